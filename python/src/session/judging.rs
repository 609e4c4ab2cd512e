//! Certificates of policies, and judgements of samples, as JSON.

use gfn::env::{EnumerableEnv, Rows, StateGraph};
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_judge::{Budget, Judgement, certify};
use pyo3::prelude::*;
use serde_json::json;

use super::engine::later;
use super::sampled::one_instance;
use crate::errors::passed_on;
use crate::evaluation::Found;
use crate::objects::{Border, some};
use crate::policy::prior;
use crate::watch::Watch;

/// A trainer of an environment whose actions can be listed.
type Listed<E> = Trainer<E>;

/// Figures as JSON.
#[derive(IntoPyObject)]
pub(super) struct Figures {
    json: String,
}

/// What samples say of the trainer's policy.
pub(super) fn certified<E: EnumerableEnv + 'static>(
    trainer: &Listed<E>,
    budget: Budget,
    rng: &mut Rng,
) -> Result<String> {
    one_instance(trainer.env())?;
    if prior(trainer)?.is_some() {
        return Err(Error::config("the objective", "relative to a prior", "one whose target is R, or `exact`"));
    }
    let watch = Watch::new();
    let policy = watch.over(trainer.policy());
    let certificate = certify(trainer.env(), &policy, trainer.reward(), None, budget, rng)?;
    let mut out = json!(certificate);
    out["text"] = json!(certificate.to_string());
    out["findings"] = json!(certificate.findings.iter().map(ToString::to_string).collect::<Vec<_>>());
    out["limits"] = json!(certificate.limits.iter().map(ToString::to_string).collect::<Vec<_>>());
    Ok(out.to_string())
}

/// What given samples say of their sampler, beside the target of the trainer's reward; with the states of objects that are missing.
pub(super) fn judged<E: EnumerableEnv + 'static>(
    trainer: &Listed<E>,
    objects: &Py<PyAny>,
    limit: usize,
    border: &Border<E::States>,
    rng: &mut Rng,
) -> Result<Found<Figures>>
where
    E::States: 'static,
{
    let (env, watch) = (trainer.env(), Watch::new());
    one_instance(env)?;
    let objects = Python::attach(|py| (border.read)(objects.bind(py), "objects")).map_err(passed_on("the objects"))?;
    let objects = some(objects)?;
    let graph = StateGraph::build_watched(env, 0, limit, |_| watch.look())?;
    let of_states = graph.target_distribution(trainer.reward(), None)?;
    let groups = graph.objects(env)?;
    let mut target = vec![0.0; groups.first.len()];
    groups.of.iter().zip(&of_states.probs).for_each(|(&object, p)| target[object] += p);
    let place = |(row, state): (usize, Option<usize>)| {
        let ends = state.filter(|&state| graph.can_end(state));
        let wrong = || {
            Error::config(
                "the list of objects",
                format!("not valid (row {row})"),
                "finished objects of the environment",
            )
        };
        ends.map(|state| groups.of[state]).ok_or_else(wrong)
    };
    let samples: Result<Vec<usize>> = graph.indices(env, &objects).into_iter().enumerate().map(place).collect();
    let judged = Judgement::new(&target, &samples?, rng)?;
    let mut out = json!(judged);
    out["log_z"] = json!(of_states.log_z);
    let missing: Vec<usize> = judged.missing.iter().map(|object| groups.first[object.object]).collect();
    let states = later(&border.show, graph.states().select(&missing));
    Ok(Found { states, figures: Figures { json: out.to_string() } })
}
