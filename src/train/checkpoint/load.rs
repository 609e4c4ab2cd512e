//! Policies from checkpoints, without the program that trained them.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tch::{Device, Kind};

use super::differences::describe_changes;
use super::{Checkpoint, no_parameters};
use crate::env::{Env, VectorEnv, VectorStates};
use crate::graph::GraphEnv;
use crate::io::TensorKind;
use crate::nn::{EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, Parameters};
use crate::policy::{
    ByNumber, Enumeration, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, ScaledEntries,
    SequenceLayout, SequencePolicy, SequencePolicyConfig, StateFeatures,
};
use crate::{Error, Result, Rng};

/// A policy from a checkpoint, with its environment: all that a [`Sampler`](crate::rollout::Sampler) needs.
pub struct LoadedPolicy<E: Env> {
    /// The environment of the policy.
    pub env: E,
    /// The policy with the parameters of the checkpoint.
    pub policy: Box<dyn Policy<E> + Send>,
    /// The number of training steps after which the checkpoint was saved.
    pub steps_done: u64,
}

impl<E: Env + fmt::Debug> fmt::Debug for LoadedPolicy<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("LoadedPolicy");
        out.field("env", &self.env).field("steps_done", &self.steps_done).finish_non_exhaustive()
    }
}

/// An environment whose policies can be built from the settings in a checkpoint.
pub trait BuildPolicy: Env + Sized {
    /// Builds the policy that has these settings ([`Policy::settings`]) in `parameters`, which are empty and
    /// accept only parameters with the names and shapes of the checkpoint. Initial values don't matter.
    ///
    /// # Errors
    /// [`Error::Config`] for settings of another policy; the errors of the policy's constructor.
    fn build_policy(&self, settings: &Value, parameters: Parameters) -> Result<Box<dyn Policy<Self> + Send>>;
}

/// Loads the environment and the policy of a checkpoint onto the host, without a trainer, a reward and an
/// objective.
///
/// The checkpoint must be one of a [`GraphEnv`] without custom rules and custom action types, with a
/// [`GraphNet`] without custom torso or an [`EdgeMlp`]. Use [`load_with_env`] for other environments, and
/// [`Trainer::resume`](crate::train::Trainer::resume) to resume training. The parameters are those of the
/// last step; a moving average of the parameters isn't used.
///
/// ```
/// use gfn::prelude::*;
/// let folder = std::env::temp_dir().join(format!("gfn-load-{}", std::process::id()));
/// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
/// let env = GraphEnv::free(actions, GraphState::undirected(3))?;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
/// Experiment::new(env, reward).steps(2).train()?.trainer.save(&folder)?;
///
/// // In another program:
/// let loaded = gfn::load(&folder)?;
/// let samples = Sampler::new(&loaded.env, &loaded.policy).forward(10, &mut gfn::Rng::seeded(1))?;
/// assert_eq!((loaded.steps_done, samples.terminal_states().graphs().len()), (2, 10));
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::File`] for a checkpoint that can't be read, and for one with a custom environment or a custom
/// policy; the message says which function to use instead.
pub fn load(path: impl AsRef<Path>) -> Result<LoadedPolicy<GraphEnv>> {
    let checkpoint = Checkpoint::load(path)?;
    let settings = saved_settings(&checkpoint, "env");
    let refuse = |problem: String| {
        let problem =
            format!("its environment can't be built without the program that trained it: {problem}");
        Error::file(&checkpoint.path, problem, "build the environment, and call `gfn::load_with_env`")
    };
    let env = match settings {
        Value::Null => Err(refuse("the checkpoint has no settings of a graph environment".to_owned())),
        settings => GraphEnv::from_settings(settings).map_err(|error| refuse(error.to_string())),
    };
    build(&checkpoint, env?, Device::Cpu)
}

/// Loads the policy of a checkpoint onto a device, for an environment that the caller gives. Use this
/// function for environments with custom rules or custom action types, for environments of vectors, and to
/// load onto a GPU.
///
/// The policy of a [`VectorEnv`] may be a [`SequencePolicy`], or an [`MlpPolicy`] with [`KHot`],
/// [`ScaledEntries`], [`ByNumber`] or [`Enumeration`]. Checkpoints store no settings of a `VectorEnv`, so
/// only the shape of the network shows if it belongs to another environment.
///
/// ```
/// use gfn::examples::word_env;
/// use gfn::prelude::*;
/// use gfn::tch::{Device, Kind};
/// let folder = std::env::temp_dir().join(format!("gfn-load-with-env-{}", std::process::id()));
/// let (env, features, mut rng) = (word_env(2, 3), KHot::new(3, 3), gfn::Rng::seeded(0));
/// let config = MlpPolicyConfig::default();
/// let policy = MlpPolicy::new(&env, features, config, Device::Cpu, Kind::Float, &mut rng)?;
/// let reward = |words: &VectorStates, _: Option<&gfn::tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(words.rows().map(|word| f64::from(word[0])).collect())
/// };
/// let config = TrainerConfig::default();
/// Trainer::new(env, reward, policy, TrajectoryBalance, config, rng)?.save(&folder)?;
///
/// let loaded = gfn::load_with_env(&folder, word_env(2, 3), Device::Cpu)?;
/// let words = Sampler::new(&loaded.env, &loaded.policy).forward(10, &mut gfn::Rng::seeded(1))?;
/// assert_eq!(words.terminal_states().rows().len(), 10);
/// // A network of words with four letters doesn't fit.
/// assert!(gfn::load_with_env(&folder, word_env(4, 3), Device::Cpu).is_err());
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::File`] for a checkpoint that can't be read, for an environment with other settings than the
/// checkpoint's (the message names the differences), for a network of another environment, and for a custom
/// policy; [`Error::Device`] for a device that isn't available.
pub fn load_with_env<E: BuildPolicy>(
    path: impl AsRef<Path>,
    env: E,
    device: Device,
) -> Result<LoadedPolicy<E>> {
    let checkpoint = Checkpoint::load(path)?;
    let there = saved_settings(&checkpoint, "env");
    let here = env.settings();
    if !there.is_null() && *there != here {
        let changes = describe_changes("it", there, &here);
        let problem = format!("this is the checkpoint of another environment: {changes}");
        return Err(Error::file(&checkpoint.path, problem, "give the environment of the run that saved it"));
    }
    build(&checkpoint, env, device)
}

/// Returns an entry of the checkpoint's state; null if there is none.
fn saved_settings<'a>(checkpoint: &'a Checkpoint, name: &str) -> &'a Value {
    checkpoint.manifest().state.get(name).unwrap_or(&Value::Null)
}

/// Builds the policy of a checkpoint for an environment, and restores its parameters.
fn build<E: BuildPolicy>(checkpoint: &Checkpoint, env: E, device: Device) -> Result<LoadedPolicy<E>> {
    let settings = saved_settings(checkpoint, "policy");
    let refuse = |problem: String| {
        let problem = format!("its policy can't be built from the checkpoint: {problem}");
        let remedy = "build the policy, and call `Checkpoint::load(path)?.restore(parameters)` with its \
            parameters";
        Error::file(&checkpoint.path, problem, remedy)
    };
    if settings.is_null() {
        let problem = "the checkpoint has no settings of a policy, because the policy is custom, or because \
            an earlier version of this library saved it";
        return Err(refuse(problem.to_owned()));
    }
    let model = &checkpoint.manifest().model;
    check_sizes(settings, model.iter().map(|spec| spec.shape.iter().product::<i64>()).sum())
        .map_err(|error| refuse(error.to_string()))?;
    let is_double = model.first().is_some_and(|spec| spec.kind == TensorKind::F64);
    let kind = if is_double { Kind::Double } else { Kind::Float };
    let shapes: HashMap<_, _> = model.iter().map(|spec| (spec.name.clone(), spec.shape.clone())).collect();
    let parameters = Parameters::with_expected(device, kind, shapes);
    parameters.check()?;
    let policy = env.build_policy(settings, parameters).map_err(|error| refuse(error.to_string()))?;
    checkpoint.restore(policy.parameters().ok_or_else(no_parameters)?)?;
    Ok(LoadedPolicy { env, policy, steps_done: checkpoint.manifest().step })
}

/// Checks that all integers in the settings of a policy are at most the number of elements of its parameters
/// (or 65,536, the number of values of a vector's entry). Larger numbers of a damaged or false file could
/// overflow, or build more layers than fit into memory.
fn check_sizes(settings: &Value, n_elements: i64) -> Result<()> {
    /// The setting that is a limit in bytes and not a size of the network.
    const CACHE: &str = "cache_bytes";
    let most = n_elements.max(1 << 16);
    match settings {
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            let size = number.as_i64().and_then(i64::checked_abs);
            if size.is_some_and(|size| size <= most) {
                return Ok(());
            }
            let expected = "at most the number of elements of all parameters";
            Err(Error::config("a size in the settings", number, expected))
        }
        Value::Array(entries) => entries.iter().try_for_each(|entry| check_sizes(entry, n_elements)),
        Value::Object(entries) => {
            let mut sizes = entries.iter().filter(|(name, _)| *name != CACHE);
            sizes.try_for_each(|(_, entry)| check_sizes(entry, n_elements))
        }
        _ => Ok(()),
    }
}

/// Reads the settings of a policy.
fn read<T: for<'de> Deserialize<'de>>(settings: &Value) -> Result<T> {
    T::deserialize(settings).map_err(|error| {
        Error::config("the settings of a policy", error, "the settings of a policy of this environment")
    })
}

#[derive(Deserialize)]
enum GraphPolicySettings {
    GraphNet(GraphNetConfig),
    EdgeMlp(EdgeMlpConfig),
}

impl BuildPolicy for GraphEnv {
    fn build_policy(&self, settings: &Value, parameters: Parameters) -> Result<Box<dyn Policy<Self> + Send>> {
        let rng = &mut Rng::seeded(0);
        Ok(match read(settings)? {
            GraphPolicySettings::GraphNet(config) => {
                Box::new(GraphPolicy(GraphNet::with_parameters(self, config, parameters, rng)?))
            }
            GraphPolicySettings::EdgeMlp(config) => {
                Box::new(GraphPolicy(EdgeMlp::with_parameters(self, config, parameters, rng)?))
            }
        })
    }
}

#[derive(Deserialize)]
enum VectorPolicySettings {
    MlpPolicy { features: VectorFeatures, config: MlpPolicyConfig, is_table: bool },
    SequencePolicy { layout: SequenceLayout, config: SequencePolicyConfig },
}

#[derive(Deserialize)]
enum VectorFeatures {
    KHot(KHot),
    ScaledEntries(ScaledEntries),
    ByNumber(ByNumber),
    Enumeration(ByNumber),
}

impl VectorFeatures {
    fn boxed(self) -> Box<dyn StateFeatures<VectorStates>> {
        match self {
            Self::KHot(features) => Box::new(features),
            Self::ScaledEntries(features) => Box::new(features),
            Self::ByNumber(features) => Box::new(features),
            Self::Enumeration(numbers) => Box::new(Enumeration(numbers)),
        }
    }
}

impl BuildPolicy for VectorEnv {
    fn build_policy(&self, settings: &Value, parameters: Parameters) -> Result<Box<dyn Policy<Self> + Send>> {
        let rng = &mut Rng::seeded(0);
        Ok(match read(settings)? {
            VectorPolicySettings::MlpPolicy { features, config, is_table } => Box::new(
                MlpPolicy::with_parameters(self, features.boxed(), config, is_table, parameters, rng)?,
            ),
            VectorPolicySettings::SequencePolicy { layout, config } => {
                Box::new(SequencePolicy::with_parameters(self, layout, config, parameters, rng)?)
            }
        })
    }
}
