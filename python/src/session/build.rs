//! From settings to a trainer.

use std::any::Any;
use std::str::FromStr;
use std::sync::Arc;

use gfn::objective::{Objective, Quantity};
use gfn::policy::WithPrior;
use gfn::runtime::DeviceKind;
use gfn::train::Trainer;
use gfn::{Error, Rng};
use pyo3::prelude::*;
use serde_json::Value;
use tch::Kind;

use super::shared::Shared;
use super::trained::Trained;
use crate::conditions::Conditions;
use crate::env::{FailureCheck, Failures};
use crate::errors::raised;
use crate::kinds::{PyEnv, Space};
use crate::objective::ObjectiveArgument;
use crate::parts::{PartContext, Parts, ReplaySettings};
use crate::policy::{AnyPolicy, BuiltPolicy, Needs, PolicyBuilder, PolicySettings};
use crate::references::References;
use crate::reward::{self, RewardArgument, RewardSettings};
use crate::settings::{over_defaults, read};

/// The items of the dictionary that Python builds a trainer of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct TrainerArguments<'py> {
    rewards: Vec<RewardArgument<'py>>,
    policy: PolicySettings,
    objective: ObjectiveArgument<'py>,
    conditions: Option<Py<PyAny>>,
    n_conditions: usize,
    training: Bound<'py, PyAny>,
    replay: Option<Bound<'py, PyAny>>,
    parts: Parts,
    /// The description of the run in checkpoints.
    description: Bound<'py, PyAny>,
    /// A note for whoever loads a checkpoint.
    note: Bound<'py, PyAny>,
    seed: u64,
    device: String,
    double: bool,
}

/// The settings of a trainer, and objects of Python.
pub(super) struct TrainerSettings {
    rewards: Vec<RewardSettings>,
    policy: PolicySettings,
    objective: Box<dyn Objective>,
    conditions: Option<Arc<Conditions>>,
    training: Value,
    replay: Option<ReplaySettings>,
    parts: Parts,
    description: Value,
    note: Value,
    seed: u64,
    device: String,
    double: bool,
}

impl TrainerArguments<'_> {
    /// Reads the settings, and adds the objects that a trainer calls to its references.
    pub(super) fn read(self, py: Python<'_>, references: &References) -> PyResult<TrainerSettings> {
        let rewards = self.rewards.into_iter().map(|reward| reward.read(references)).collect::<PyResult<_>>()?;
        let conditions = Conditions::read(self.conditions, self.n_conditions, py, references).map_err(raised)?;
        Ok(TrainerSettings {
            rewards,
            policy: self.policy,
            objective: self.objective.build(references)?,
            conditions: conditions.map(Arc::new),
            training: read("the settings of the trainer", &self.training)?,
            replay: self.replay.map(|replay| read("Replay", &replay)).transpose()?,
            parts: self.parts,
            description: read("a description", &self.description)?,
            note: read("a note", &self.note)?,
            seed: self.seed,
            device: self.device,
            double: self.double,
        })
    }
}

/// Builds a trainer; `built` is a [`BuiltPolicy`] of another one.
pub(super) fn build<E: PyEnv>(
    space: Space<E>,
    settings: TrainerSettings,
    built: Option<Box<dyn Any + Send>>,
    references: &References,
    failures: &Failures,
) -> PyResult<Trained<E>> {
    let device = DeviceKind::from_str(&settings.device).and_then(DeviceKind::resolve).map_err(raised)?;
    let kind = if settings.double { Kind::Double } else { Kind::Float };
    let objective = settings.objective;
    let config = over_defaults("the settings of the trainer", &settings.training, &["adam"]).map_err(raised)?;
    let width = settings.conditions.as_ref().map_or(0, |conditions| conditions.width());
    let needs = Needs {
        flow: objective.needs().has(Quantity::LogFlow),
        paths: objective.needs().has(Quantity::LogPaths),
        conditions: width,
    };
    let mut note = settings.note;
    if let Some(heads) = note.get_mut("made").and_then(Value::as_object_mut) {
        heads.insert("flow".to_owned(), needs.flow.into());
        heads.insert("paths".to_owned(), needs.paths.into());
    }
    let mut rng = Rng::seeded(settings.seed);
    let reward = reward::build(&space, &settings.rewards, settings.conditions.as_deref())?;
    let builder = PolicyBuilder { space: &space, references, target: reward.target.clone(), device, kind };
    let own = match built {
        None => builder.build(settings.policy, needs, &mut rng)?,
        Some(built) => *built.downcast::<BuiltPolicy<E>>().map_err(|_| {
            let expected = "one that was built for an environment of the same class";
            raised(Error::config("policy", "a policy of another environment", expected))
        })?,
    };
    // A teacher learns by trajectory balance, and only P_F of a prior is needed.
    let plain = Needs { flow: false, paths: false, ..needs };
    let mut parts = settings.parts;
    let mut prior = None;
    if let Some((settings, parameters)) = parts.prior.take() {
        prior = Some(builder.build_prior(settings, &parameters, plain)?);
    }
    let mut teacher = None;
    if let Some(settings) = &mut parts.teacher {
        teacher = Some(builder.build(settings.policy.take(), plain, &mut rng)?);
    }
    let mut shared = Shared::default();
    for policy in [Some(&own), prior.as_ref(), teacher.as_ref()].into_iter().flatten() {
        shared.add(policy);
    }
    let novelty = parts.novelty(&space, references, device, kind, &mut rng).map_err(raised)?;
    // A stream of its own: whether there are data doesn't change what is drawn.
    let mut data_rng = rng.clone().split();
    let priority = parts.priority(references, failures);
    let module = own.module;
    let build = || -> gfn::Result<Trainer<E>> {
        let (env, reward_fn) = (space.env.clone(), reward.reward);
        let mut trainer = match prior {
            None => Trainer::new(env, reward_fn, own.policy, objective, config, rng)?,
            Some(prior) => {
                let policy = WithPrior { policy: own.policy, prior: prior.policy };
                Trainer::new(env, reward_fn, policy, objective, config, rng)?
            }
        };
        trainer = trainer
            .with_description(&settings.description)?
            .with_note(&note)?
            .with_companion(FailureCheck(failures.clone()))?;
        if let Some(conditions) = settings.conditions.clone() {
            trainer = trainer.with_conditions(conditions);
        }
        if let Some(replay) = settings.replay {
            trainer = trainer.with_replay(replay.build(&space, priority)?);
        }
        let context = PartContext {
            space: &space,
            target: reward.target,
            conditioned: reward.conditioned,
            teacher: teacher.map(|teacher| teacher.policy),
            novelty,
            references,
            width,
        };
        parts.attach(trainer, context, &mut data_rng)
    };
    let trainer = build().map_err(raised)?;
    Ok(Trained::new(trainer, space, settings.conditions, shared, module))
}

/// The prior of a trainer's policy.
pub(super) fn prior<E: PyEnv>(trainer: &Trainer<E>) -> Option<&AnyPolicy<E>> {
    trainer.policy_as::<WithPrior<AnyPolicy<E>, AnyPolicy<E>>>().map(|policy| &policy.prior)
}
