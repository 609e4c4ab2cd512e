//! The function that builds a trainer from settings.

use std::any::Any;
use std::str::FromStr;

use gfn::objective::Quantity;
use gfn::policy::WithPrior;
use gfn::runtime::DeviceKind;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Rng};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use tch::Kind;

use super::shared_state::SharedState;
use super::trained::Trained;
use crate::conditions::{ConditionSettings, Conditions};
use crate::env::{FailureCheck, Failures};
use crate::errors::Outcome;
use crate::kinds::{PyEnv, Space};
use crate::objective::ObjectiveSettings;
use crate::parts::{BuildContext, Parts};
use crate::policy::{AnyPolicy, BuiltPolicy, Needs, PolicySettings};
use crate::references::References;
use crate::reward::{self, RewardSettings};
use crate::settings::{Settings, over_defaults};

/// The items of the dictionary of settings that Python passes to build a trainer.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct TrainerSettings {
    rewards: Vec<RewardSettings>,
    policy: PolicySettings,
    objective: ObjectiveSettings,
    conditions: Option<ConditionSettings>,
    n_conditions: usize,
    training: Settings<TrainerConfig>,
    adam: Settings<Map<String, Value>>,
    parts: Parts,
    /// The description of the run, which is stored in checkpoints. A run can be resumed only if its
    /// description equals the description in the checkpoint.
    description: Settings<Value>,
    /// The settings from which `gfn_rs.load` builds the network of a checkpoint again. Checkpoints store
    /// them.
    note: Settings<Value>,
    seed: u64,
    device: String,
    double: bool,
}

/// Builds a trainer. If `built` is given, it is the [`BuiltPolicy`] of another trainer, and the new trainer
/// continues with this policy.
pub(super) fn build<E: PyEnv>(
    space: Space<E>,
    settings: TrainerSettings,
    built: Option<Box<dyn Any + Send>>,
    references: &References,
    failures: &Failures,
) -> Outcome<Trained<E>> {
    let device = DeviceKind::from_str(&settings.device).and_then(DeviceKind::resolve)?;
    let kind = if settings.double { Kind::Double } else { Kind::Float };
    let (objective, regression) = settings.objective.build(references)?;
    let (Settings(mut config), Settings(adam), Settings(mut note)) =
        (settings.training, settings.adam, settings.note);
    config.adam = over_defaults("the settings of the trainer", &adam)?;
    config.regression = regression.unwrap_or(config.regression);
    let conditions = Conditions::new(settings.conditions, settings.n_conditions, references);
    let width = conditions.as_ref().map_or(0, |conditions| conditions.width());
    let needs = Needs {
        flow: objective.needs().has(Quantity::LogFlow),
        paths: objective.needs().has(Quantity::LogPaths),
        conditions: width,
    };
    if let Some(heads) = note.get_mut("made").and_then(Value::as_object_mut) {
        heads.insert("flow".to_owned(), needs.flow.into());
        heads.insert("paths".to_owned(), needs.paths.into());
    }
    let mut rng = Rng::seeded(settings.seed);
    let reward = reward::build(&space, &settings.rewards, conditions.as_ref(), references)?;
    let context = BuildContext {
        space: &space,
        target: reward.target,
        conditioned: reward.conditioned,
        references,
        failures,
        device,
        kind,
        width,
    };
    let own = match built {
        None => context.build_policy(settings.policy, needs, &mut rng)?,
        Some(built) => *built.downcast::<BuiltPolicy<E>>().map_err(|_| {
            let expected = "a policy that was built for an environment of the same class";
            Error::config("policy", "a policy of another environment", expected)
        })?,
    };
    // The teacher and the prior don't need the heads for state flows (`flow`) and for the number of paths to
    // a state (`paths`), because the teacher is trained by trajectory balance, and only P_F of the prior is
    // used.
    let plain = Needs { flow: false, paths: false, ..needs };
    let mut parts = settings.parts;
    let mut prior = None;
    if let Some((settings, parameters)) = parts.prior.take() {
        prior = Some(context.build_prior(settings, &parameters, plain)?);
    }
    let mut teacher = None;
    if let Some(settings) = &mut parts.teacher {
        teacher = Some(context.build_policy(std::mem::take(&mut settings.policy), plain, &mut rng)?);
    }
    let mut shared = SharedState::default();
    for policy in [Some(&own), prior.as_ref(), teacher.as_ref()].into_iter().flatten() {
        shared.add(policy);
    }
    let novelty = parts.novelty(&context, &mut rng)?;
    // The data set uses a separate random stream, so that it doesn't change any other random numbers.
    let mut data_rng = rng.clone().split();
    let env = space.env.clone();
    let reward_fn = reward.reward;
    let modules = own.modules;
    let mut trainer = match prior {
        None => Trainer::new(env, reward_fn, own.policy, objective, config, rng)?,
        Some(prior) => {
            let policy = WithPrior { policy: own.policy, prior: prior.policy };
            Trainer::new(env, reward_fn, policy, objective, config, rng)?
        }
    };
    trainer = trainer
        .with_description(&settings.description.0)?
        .with_note(&note)?
        .with_companion(FailureCheck(failures.clone()))?;
    if let Some(conditions) = conditions {
        trainer = trainer.with_conditions(conditions);
    }
    let teacher = teacher.map(|teacher| teacher.policy);
    let trainer = parts.attach(trainer, &context, teacher, novelty, &mut data_rng)?;
    Ok(Trained::new(trainer, space, shared, modules))
}

/// Returns the prior's policy, if the trainer's objective is relative to a prior.
pub(super) fn prior<E: PyEnv>(trainer: &Trainer<E>) -> Option<&AnyPolicy<E>> {
    trainer.policy_as::<WithPrior<AnyPolicy<E>, AnyPolicy<E>>>().map(|policy| &policy.prior)
}
