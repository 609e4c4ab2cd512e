//! From settings to a trainer.

use std::str::FromStr;
use std::sync::Arc;

use gfn::condition::ConditionSource;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{EnumerableEnv, Reward};
use gfn::objective::Objective;
use gfn::policy::Policy;
use gfn::quantity::Quantity;
use gfn::replay::{ReplayBuffer, ReplayConfig};
use gfn::rollout::ReplayEnv;
use gfn::runtime::DeviceKind;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::diffusion::Energy;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use tch::Kind;

use super::engine::{Border, Engine, Trained};
use super::exact::evaluate;
use crate::conditions::{Conditions, refuse_native};
use crate::env::{EnvKind, EnvSpec, Failures};
use crate::errors::raised;
use crate::kept::Object;
use crate::policy::{Needs, Plan, of_box, of_diffusion, of_graphs, of_line, of_structures, of_vectors};
use crate::record::{describe_diffusion, describe_graphs, describe_points, describe_structures, describe_vectors};
use crate::reward::{
    self, box_reward, diffusion_target, graph_reward, line_reward, structure_reward, vector_reward, wrong_states,
};
use crate::settings::{over_defaults, read};
use crate::states::{show_diffusion, show_graphs, show_points, show_structures, show_vectors};

/// What Python asked for: settings as JSON, and objects of its own.
pub(super) struct Asked<'a> {
    pub(super) reward: (Option<&'a str>, Option<Object>),
    pub(super) policy: (&'a str, Option<Object>),
    pub(super) objective: (&'a str, Option<Object>),
    pub(super) conditions: (Option<Object>, usize),
    pub(super) training: &'a str,
    pub(super) replay: Option<&'a str>,
    /// What checkpoints say that the run is, as JSON.
    pub(super) description: &'a str,
}

/// The settings of a buffer.
#[derive(Deserialize)]
struct Replay {
    distinct: bool,
    #[serde(flatten)]
    config: ReplayConfig,
}

/// All of a trainer but environment, reward and policy.
struct Rest {
    objective: Box<dyn Objective>,
    config: TrainerConfig,
    replay: Option<Replay>,
    conditions: Option<Arc<Conditions>>,
    description: Value,
}

/// The trainer that was asked for.
pub(super) fn session(
    (spec, kind_of_env): (&EnvSpec, EnvKind),
    asked: Asked<'_>,
    (seed, device, double): (u64, &str, bool),
    failures: &Failures,
) -> PyResult<Box<dyn Engine>> {
    let device = DeviceKind::from_str(device).and_then(DeviceKind::resolve).map_err(raised)?;
    let kind = if double { Kind::Double } else { Kind::Float };
    let objective = crate::objective::objective(asked.objective.0, asked.objective.1)?;
    let objective = crate::objective::guarded(objective, failures.clone());
    let given: Value = read("the settings of the trainer", asked.training)?;
    let config = over_defaults("the settings of the trainer", &given, &["adam"]).map_err(raised)?;
    let replay = asked.replay.map(|text| read("Replay", text)).transpose()?;
    let (function, width) = asked.conditions;
    let needs = Needs {
        flow: objective.needs().has(Quantity::LogFlow),
        paths: objective.needs().has(Quantity::LogPaths),
        conditions: width,
    };
    let conditions = function.map(|function| Arc::new(Conditions { function, width }));
    let description = read("a description", asked.description)?;
    if let (Some(_), Some(name), None) = (&conditions, asked.reward.0, &asked.reward.1) {
        return Err(raised(refuse_native(name)));
    }
    let rest = Rest { objective, config, replay, conditions, description };
    let mut rng = Rng::seeded(seed);
    let reward = reward::Asked::new(asked.reward.0, asked.reward.1)?;
    let plan = Plan::new(asked.policy.0, asked.policy.1, (device, kind), &mut rng, needs)?;
    match (&kind_of_env, spec) {
        (EnvKind::Graphs { env, molecules }, _) => {
            let border = Border { show: show_graphs(molecules.clone()), describe: describe_graphs(molecules.clone()) };
            let reward = reward.build(border.show.clone(), |settings| {
                graph_reward(settings, molecules.as_ref().map(|molecules| &molecules.codec))
            })?;
            let policy = of_graphs(plan, env)?;
            listed((env.clone(), reward, policy), rest, rng, border)
        }
        (EnvKind::Vectors(vectors), spec) => {
            let reward = reward.build(show_vectors(), |settings| match spec {
                EnvSpec::Vectors(spec) => vector_reward(settings, spec),
                EnvSpec::Other => Err(wrong_states(&settings, "the vectors of an environment of your own")),
            })?;
            let policy = of_vectors(plan, vectors)?;
            listed(
                (vectors.env.clone(), reward, policy),
                rest,
                rng,
                Border { show: show_vectors(), describe: describe_vectors() },
            )
        }
        (EnvKind::Structures(env), _) => {
            let reward = reward.build(show_structures(), |settings| structure_reward(settings, env))?;
            let policy = of_structures(plan, env)?;
            listed(
                (env.clone(), reward, policy),
                rest,
                rng,
                Border { show: show_structures(), describe: describe_structures() },
            )
        }
        (EnvKind::Box(env), _) => {
            let reward = reward.build(show_points(), box_reward)?;
            let policy = of_box(plan, env)?;
            continuous((*env, reward, policy), rest, rng, Border { show: show_points(), describe: describe_points() })
        }
        (EnvKind::Line(env), _) => {
            let reward = reward.build(show_points(), line_reward)?;
            let policy = of_line(plan, env)?;
            continuous((*env, reward, policy), rest, rng, Border { show: show_points(), describe: describe_points() })
        }
        (EnvKind::Diffusion(env), _) => {
            let target = match &reward {
                reward::Asked::Native(settings) => Some(diffusion_target(settings)?),
                reward::Asked::Called(_) => None,
            };
            let reward = reward.build(show_diffusion(), |settings| {
                Ok(Box::new(Energy::new(diffusion_target(&settings)?).along(env.process())) as _)
            })?;
            let policy = of_diffusion(plan, env, target)?;
            continuous(
                (env.clone(), reward, policy),
                rest,
                rng,
                Border { show: show_diffusion(), describe: describe_diffusion() },
            )
        }
    }
}

/// Environment, reward and policy.
type Given<E, P> = (E, Box<dyn Reward<<E as gfn::env::Env>::States>>, P);

/// A trainer of an environment whose states can be listed.
fn listed<E, P>(given: Given<E, P>, rest: Rest, rng: Rng, border: Border<E>) -> PyResult<Box<dyn Engine>>
where
    E: ReplayEnv + EnumerableEnv + 'static,
    P: Policy<E, Dist = GraphActionCategorical> + Send + 'static,
{
    let buffer = |replay: Replay| match replay.distinct {
        true => ReplayBuffer::distinct(replay.config),
        false => ReplayBuffer::new(replay.config),
    };
    let conditions = rest.conditions.clone();
    let trainer = trainer(given, rest, rng, buffer).map_err(raised)?;
    Ok(Box::new(Trained::new(trainer, border, Some(evaluate::<E, P>), conditions)))
}

/// A trainer of any other.
fn continuous<E, P>(given: Given<E, P>, rest: Rest, rng: Rng, border: Border<E>) -> PyResult<Box<dyn Engine>>
where
    E: ReplayEnv + 'static,
    P: Policy<E> + Send + 'static,
{
    let buffer = |replay: Replay| match replay.distinct {
        true => Err(gfn::Error::config("distinct", true, "false, where states are points: no two are equal")),
        false => ReplayBuffer::new(replay.config),
    };
    let conditions = rest.conditions.clone();
    let trainer = trainer(given, rest, rng, buffer).map_err(raised)?;
    Ok(Box::new(Trained::new(trainer, border, None, conditions)))
}

fn trainer<E: ReplayEnv, P: Policy<E>>(
    (env, reward, policy): Given<E, P>,
    rest: Rest,
    rng: Rng,
    buffer: impl Fn(Replay) -> Result<ReplayBuffer<E>>,
) -> Result<Trainer<E, P>> {
    let Rest { objective, config, replay, conditions, description } = rest;
    let mut trainer = Trainer::boxed(env, reward, policy, objective, config, rng)?.described_by(&description)?;
    if let Some(conditions) = conditions {
        trainer = trainer.with_conditions(move |n: usize, rng: &mut Rng| conditions.draw(n, rng));
    }
    match replay {
        None => Ok(trainer),
        Some(replay) => Ok(trainer.with_replay(buffer(replay)?)),
    }
}
