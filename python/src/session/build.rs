//! From settings to a trainer.

use std::any::Any;
use std::str::FromStr;
use std::sync::Arc;

use gfn::Rng;
use gfn::env::{EnumerableEnv, Env, Rows};
use gfn::objective::Objective;
use gfn::objective::Quantity;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn::runtime::DeviceKind;
use gfn::train::TrainEnv;
use gfn::train::{Trainer, TrainerConfig};
use gfn_dags::AdjacencyFeatures;
use gfn_gym::diffusion::Energy;
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Device, Kind};

use super::engine::{Engine, Listing, Trained};
use super::exact::evaluate;
use super::judging::{certified, judged};
use super::replay::{Distinct, Replay};
use super::shared::Shared;
use crate::conditions::{self, Conditions};
use crate::env::{EnvKind, EnvSpec, Failures};
use crate::errors::raised;
use crate::kept::Object;
use crate::objects::{
    Border, Coordinates, Encoding, read_diffusion, read_graphs, read_points, read_structures, read_vectors,
};
use crate::parts::{AnySearch, Others, Parts, mala};
use crate::policy::{Needs, Networks, Policies, of_box, of_diffusion, of_graphs, of_line, of_structures, of_vectors};
use crate::reward::{
    Built, Handed, Rewards, box_reward, by_keys, diffusion_target, graph_reward, line_reward, structure_reward,
    vector_reward, wrong_states,
};
use crate::settings::{over_defaults, read};
use crate::states::{show_diffusion, show_graphs, show_points, show_structures, show_vectors};

/// What Python asked for: settings as JSON, and objects of its own.
pub(super) struct TrainerSettings<'a> {
    pub(super) rewards: Vec<Handed<Object>>,
    pub(super) policy: (&'a str, Option<Object>),
    /// The policy itself, where it was built before.
    pub(super) built: Option<Box<dyn Any + Send>>,
    pub(super) objective: (&'a str, Option<Object>),
    pub(super) conditions: Option<Conditions>,
    pub(super) training: &'a str,
    pub(super) replay: Option<&'a str>,
    pub(super) parts: Parts,
    /// What checkpoints say that the run is, as JSON, and a note for whoever loads them.
    pub(super) description: &'a str,
    pub(super) note: &'a str,
}

/// All of a trainer but environment, reward and policy.
struct Rest {
    objective: Box<dyn Objective>,
    config: TrainerConfig,
    replay: Option<Replay>,
    conditions: Option<Arc<Conditions>>,
    parts: Parts,
    made_for: (Device, Kind),
    description: Value,
    note: Value,
    failures: Failures,
}

/// The trainer that was asked for.
pub(super) fn session(
    spec: &EnvSpec,
    kind_of_env: EnvKind,
    asked: TrainerSettings<'_>,
    seed: u64,
    device: &str,
    double: bool,
    failures: &Failures,
) -> PyResult<Box<dyn Engine>> {
    let device = DeviceKind::from_str(device).and_then(DeviceKind::resolve).map_err(raised)?;
    let kind = if double { Kind::Double } else { Kind::Float };
    let objective = crate::objective::objective(asked.objective.0, asked.objective.1)?;
    let objective = crate::objective::guarded(objective, failures.clone());
    let given: Value = read("the settings of the trainer", asked.training)?;
    let config = over_defaults("the settings of the trainer", &given, &["adam"]).map_err(raised)?;
    let replay = asked.replay.map(|text| read("Replay", text)).transpose()?;
    let conditions = asked.conditions.map(Arc::new);
    let width = conditions.as_ref().map_or(0, |conditions| conditions.width());
    let needs = Needs {
        flow: objective.needs().has(Quantity::LogFlow),
        paths: objective.needs().has(Quantity::LogPaths),
        conditions: width,
    };
    let description = read("a description", asked.description)?;
    let mut note: Value = read("a note", asked.note)?;
    if let Some(made) = note.get_mut("made").and_then(Value::as_object_mut) {
        made.insert("flow".to_owned(), needs.flow.into());
        made.insert("paths".to_owned(), needs.paths.into());
    }
    let mut parts = asked.parts;
    let (prior, teacher) = parts.take_networks();
    let own = (asked.policy.0.to_owned(), asked.policy.1);
    let networks = Networks { own, built: asked.built, prior, teacher, made_for: (device, kind), needs };
    let rest = Rest {
        objective,
        config,
        replay,
        conditions,
        parts,
        made_for: (device, kind),
        description,
        note,
        failures: failures.clone(),
    };
    let mut rng = Rng::seeded(seed);
    let reward = Rewards::read(asked.rewards, rest.conditions.as_deref())?;
    match (&kind_of_env, spec) {
        (EnvKind::Graphs { env, reading }, spec) => {
            let problem = if let EnvSpec::Problem(problem) = spec { Some(*problem) } else { None };
            let border = Border {
                show: show_graphs(reading.clone()),
                read: read_graphs(reading.clone(), env.schema().clone()),
                features: None,
            };
            let reward = reward
                .build(&border.show, by_keys(env), |settings| graph_reward(settings, reading.as_ref(), problem))?;
            let policies = networks.build(&mut rng, |plan| of_graphs(plan, env))?;
            listed(EnvParts { env: env.clone(), reward, policies, border, search: None }, rest, rng)
        }
        (EnvKind::Vectors(vectors), spec) => {
            let reward = reward.build(&show_vectors(), by_keys(&vectors.env), |settings| match spec {
                EnvSpec::Vectors(spec) => vector_reward(settings, spec),
                _ => Err(wrong_states(&settings, "the vectors of an environment of your own")),
            })?;
            let width = vectors.env.width();
            let features = Some(Encoding::new(KHot::new(width, vectors.values)));
            let border = Border { show: show_vectors(), read: read_vectors(width, vectors.values), features };
            let policies = networks.build(&mut rng, |plan| of_vectors(plan, vectors))?;
            listed(EnvParts { env: vectors.env.clone(), reward, policies, border, search: None }, rest, rng)
        }
        (EnvKind::Structures(structures), _) => {
            let (env, n) = (structures.env(), structures.n_nodes());
            let reward =
                reward.build(&show_structures(n), by_keys(env), |settings| structure_reward(settings, structures))?;
            let features = Some(Encoding::new(AdjacencyFeatures::new(n)));
            let border = Border { show: show_structures(n), read: read_structures(n), features };
            let policies = networks.build(&mut rng, |plan| of_structures(plan, structures))?;
            listed(EnvParts { env: env.clone(), reward, policies, border, search: None }, rest, rng)
        }
        (EnvKind::Box(env), _) => {
            let reward = reward.build(&show_points(), None, box_reward)?;
            let features = Some(Encoding::new(Coordinates(env.ndim())));
            let border = Border { show: show_points(), read: read_points(env.ndim()), features };
            let policies = networks.build(&mut rng, |plan| of_box(plan, env))?;
            continuous(EnvParts { env: *env, reward, policies, border, search: None }, rest, rng)
        }
        (EnvKind::Line(env), _) => {
            let reward = reward.build(&show_points(), None, line_reward)?;
            let features = Some(Encoding::new(Coordinates(2)));
            let border = Border { show: show_points(), read: read_points(2), features };
            let policies = networks.build(&mut rng, |plan| of_line(plan, env))?;
            continuous(EnvParts { env: *env, reward, policies, border, search: None }, rest, rng)
        }
        (EnvKind::Diffusion(env), _) => {
            let target = reward.native().map(diffusion_target).transpose()?;
            let reward = reward.build(&show_diffusion(), None, |settings| {
                Ok(Box::new(Energy::new(diffusion_target(&settings)?).along(env.process())) as _)
            })?;
            let search = target.clone().zip(rest.parts.mala()).map(|(target, given)| mala(env, target, given));
            let search = search.transpose().map_err(raised)?;
            let features = Some(Encoding::new(Coordinates(env.dim())));
            let border = Border { show: show_diffusion(), read: read_diffusion(env.clone()), features };
            let policies = networks.build(&mut rng, |plan| of_diffusion(plan, env, target.clone()))?;
            continuous(EnvParts { env: env.clone(), reward, policies, border, search }, rest, rng)
        }
    }
}

/// What is made by the kind of the environment.
struct EnvParts<E: Env> {
    env: E,
    reward: Built<E::States>,
    policies: Policies<E>,
    border: Border<E::States>,
    search: Option<AnySearch<E>>,
}

/// A trainer of an environment whose states can be listed.
fn listed<E>(given: EnvParts<E>, rest: Rest, rng: Rng) -> PyResult<Box<dyn Engine>>
where
    E: TrainEnv<Actions = gfn::env::Slots> + EnumerableEnv + Clone + 'static,
    E::States: 'static,
{
    let (border, conditions) = (given.border.clone(), rest.conditions.clone());
    let shared = Shared::of(&given.policies);
    let distinct = |config, priority| match priority {
        None => ReplayBuffer::distinct(config),
        Some(priority) => ReplayBuffer::distinct_by_priority(config, priority),
    };
    let trainer = trainer(given, rest, rng, distinct)?;
    let listing = Listing { exact: evaluate::<E>, certified: certified::<E>, judged: judged::<E> };
    Ok(Box::new(Trained::new(trainer, border, Some(listing), by_object::<E>, conditions, shared)))
}

/// The first state of the same object.
fn by_object<E: EnumerableEnv>(env: &E, states: &E::States) -> gfn::Result<Vec<usize>> {
    let objects = env.objects(states)?;
    Ok(objects.of.into_iter().map(|object| objects.first[object]).collect())
}

/// A trainer of any other.
fn continuous<E>(given: EnvParts<E>, rest: Rest, rng: Rng) -> PyResult<Box<dyn Engine>>
where
    E: TrainEnv + Clone + 'static,
    E::States: 'static,
{
    let (border, conditions) = (given.border.clone(), rest.conditions.clone());
    let shared = Shared::of(&given.policies);
    let distinct = |_, _| Err(gfn::Error::config("distinct", true, "false, where states are points: no two are equal"));
    let trainer = trainer(given, rest, rng, distinct)?;
    let each_its_own = |_: &E, states: &E::States| Ok((0..states.len()).collect());
    Ok(Box::new(Trained::new(trainer, border, None, each_its_own, conditions, shared)))
}

fn trainer<E>(given: EnvParts<E>, rest: Rest, mut rng: Rng, distinct: Distinct<E>) -> PyResult<Trainer<E>>
where
    E: TrainEnv + Clone + 'static,
    E::States: 'static,
{
    let Rest {
        objective,
        config,
        replay,
        conditions,
        mut parts,
        made_for: (device, kind),
        description,
        note,
        failures,
    } = rest;
    let EnvParts { env, reward: Built { reward, conditioned }, policies, border, search, .. } = given;
    let Policies { own, teacher } = policies;
    let novelty = parts.novelty(&border, device, kind, &mut rng)?;
    // A stream of its own: whether there are given objects doesn't change what is drawn.
    let mut looking = rng.clone().split();
    let priority = parts.priority(&failures);
    let width = conditions.as_ref().map_or(0, |conditions| conditions.width());
    let built = || -> gfn::Result<_> {
        let mut trainer =
            Trainer::new(env, reward, own, objective, config, rng)?.described_by(&description)?.noted(&note)?;
        if let Some(conditions) = conditions {
            trainer = trainer.with_conditions(conditions::Shared(conditions));
        }
        match replay {
            None => Ok(trainer),
            Some(replay) => Ok(trainer.with_replay(replay.build(distinct, border.features.clone(), priority)?)),
        }
    };
    let trainer = built().map_err(raised)?;
    parts.attach(trainer, Others { teacher, novelty, search, conditioned }, &border, width, &mut looking)
}
