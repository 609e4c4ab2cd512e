//! Certificates of policies, and judgements of samples, by name.

use gfn::env::{EnumerableEnv, Rows, StateGraph};
use gfn::{Error, Result};
use gfn_judge::{Budget, Judgement, certify};
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::build::prior;
use super::sampled::check_one_instance;
use super::trained::Trained;
use crate::border::Shown;
use crate::kinds::PyEnv;
use crate::watch::Watch;

impl<E: PyEnv + EnumerableEnv> Trained<E> {
    /// A certificate of the policy from samples.
    pub(super) fn certify(&mut self, budget: Budget) -> Result<Value> {
        self.without_noise(|trainer, space, rng| {
            check_one_instance(&space.env)?;
            if prior(trainer).is_some() {
                let expected = "one whose target is R, or `exact`";
                return Err(Error::config("the objective", "relative to a prior", expected));
            }
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let certificate = certify(&space.env, &policy, trainer.reward(), None, budget, rng)?;
            let mut out = json!(certificate);
            out["text"] = json!(certificate.to_string());
            out["findings"] = json!(certificate.findings.iter().map(ToString::to_string).collect::<Vec<_>>());
            out["limits"] = json!(certificate.limits.iter().map(ToString::to_string).collect::<Vec<_>>());
            Ok(out)
        })
    }

    /// A judgement of samples of any sampler beside the target of the trainer's reward, with the states of objects that are missing.
    pub(super) fn judge(&mut self, objects: &Py<PyAny>, limit: usize) -> Result<(Value, Shown)> {
        self.without_noise(|trainer, space, rng| {
            let (env, watch) = (&space.env, Watch::new());
            check_one_instance(env)?;
            let objects = space.border.read_some(objects)?;
            let graph = StateGraph::build_watched(env, 0, limit, |_| watch.look())?;
            let of_states = graph.target_distribution(trainer.reward(), None)?;
            let groups = graph.objects(env)?;
            let mut target = vec![0.0; groups.first.len()];
            for (&object, p) in groups.of.iter().zip(&of_states.probs) {
                target[object] += p;
            }
            let mut samples = Vec::new();
            for (row, state) in graph.indices(env, &objects).into_iter().enumerate() {
                let Some(state) = state.filter(|&state| graph.can_end(state)) else {
                    let got = format!("not valid (row {row})");
                    return Err(Error::config("the list of objects", got, "finished objects of the environment"));
                };
                samples.push(groups.of[state]);
            }
            let judgement = Judgement::new(&target, &samples, rng)?;
            let mut out = json!(judgement);
            out["log_z"] = json!(of_states.log_z);
            let missing: Vec<usize> = judgement.missing.iter().map(|object| groups.first[object.object]).collect();
            let states = space.border.defer(graph.states().select(&missing));
            Ok((out, states))
        })
    }
}
