//! Policies from checkpoints, without the program that trained them.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

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

/// An environment whose policies can be built from the settings in a checkpoint. The trait is meant for the
/// environments of this library only: for another environment, build the policy, and fill its parameters by
/// [`Checkpoint::restore`].
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
/// [`ScaledEntries`], [`ByNumber`] or [`Enumeration`]. Environments made from
/// [`VectorRules`](crate::env::VectorRules) have no settings, so only the shape of the network shows if it
/// belongs to another environment. Custom rules of graphs are compared only if they implement
/// [`GraphRules::settings`](crate::graph::GraphRules::settings).
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
    let model = saved_parameters(checkpoint)?;
    let n_elements = model.iter().map(|(_, tensor)| tensor.numel()).sum();
    check_sizes(settings, n_elements, model.len()).map_err(|error| refuse(error.to_string()))?;
    let is_double = model.first().is_some_and(|(_, tensor)| tensor.kind() == Kind::Double);
    let kind = if is_double { Kind::Double } else { Kind::Float };
    let shapes: HashMap<_, _> = model.into_iter().map(|(name, tensor)| (name, tensor.size())).collect();
    let parameters = Parameters::with_expected(device, kind, shapes);
    parameters.check()?;
    let policy = env.build_policy(settings, parameters).map_err(|error| refuse(error.to_string()))?;
    checkpoint.restore(policy.parameters().ok_or_else(no_parameters)?)?;
    Ok(LoadedPolicy { env, policy, steps_done: checkpoint.manifest().step })
}

/// Returns the parameters in the checkpoint.
///
/// # Errors
/// [`Error::File`] if the manifest lists other parameters.
fn saved_parameters(checkpoint: &Checkpoint) -> Result<Vec<(String, Tensor)>> {
    let tensors = checkpoint.section("model");
    let mut listed: HashMap<_, _> = checkpoint.manifest().model.iter().map(|s| (&s.name, s)).collect();
    let is_listed = |(name, tensor): &(String, Tensor)| {
        listed.remove(name).is_some_and(|spec| {
            spec.shape == tensor.size() && TensorKind::from_tensor(tensor) == Some(spec.kind)
        })
    };
    if tensors.len() == checkpoint.manifest().model.len() && tensors.iter().all(is_listed) {
        return Ok(tensors);
    }
    let problem = "the manifest lists other parameters than the file of tensors has";
    Err(Error::file(&checkpoint.path, problem, "the checkpoint is damaged: use another one"))
}

/// Checks that all integers in the settings of a policy are at most the number of elements of its parameters
/// (or 65,536, the number of values of a vector's entry), and that there are at most as many layers as
/// parameters. Larger numbers of a damaged or false file could overflow, or build more layers than fit into
/// memory.
fn check_sizes(settings: &Value, n_elements: usize, n_parameters: usize) -> Result<()> {
    /// The setting that is a limit in bytes and not a size of the network.
    const CACHE: &str = "cache_bytes";
    /// The setting that is a number of layers.
    const LAYERS: &str = "layers";
    let check = |number: &Value, most: usize, expected| {
        let size = number.as_i64().and_then(i64::checked_abs).and_then(|size| usize::try_from(size).ok());
        if size.is_some_and(|size| size <= most) || number.is_f64() {
            return Ok(());
        }
        Err(Error::config("a size in the settings", number, expected))
    };
    match settings {
        Value::Number(_) => {
            check(settings, n_elements.max(1 << 16), "at most the number of elements of all parameters")
        }
        Value::Array(entries) => {
            entries.iter().try_for_each(|entry| check_sizes(entry, n_elements, n_parameters))
        }
        Value::Object(entries) => entries.iter().try_for_each(|(name, entry)| match entry {
            Value::Number(_) if name == LAYERS => {
                check(entry, n_parameters, "at most the number of parameters")
            }
            _ if name == CACHE => Ok(()),
            _ => check_sizes(entry, n_elements, n_parameters),
        }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ActionSet, AddEdge, GraphState, Semantics};

    /// Checks that sizes are compared with the tensors of a file, and not with a list in its manifest, which
    /// may be false.
    #[test]
    fn manifests_that_list_other_parameters_are_refused() {
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let env = GraphEnv::free(actions, GraphState::undirected(3)).unwrap();
        let config = GraphNetConfig { embedding: 4, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
        let policy = GraphPolicy(net);
        let parameters = Policy::<GraphEnv>::parameters(&policy).unwrap();
        let settings = Policy::<GraphEnv>::settings(&policy);
        let state = serde_json::json!({ "env": env.settings(), "policy": settings });
        let path = std::env::temp_dir().join(format!("gfn-forged-{}", std::process::id()));
        let load = |forge: fn(&mut Checkpoint)| {
            let mut checkpoint = Checkpoint::new(parameters, 0, state.clone()).unwrap();
            forge(&mut checkpoint);
            checkpoint.save(&path).unwrap();
            super::load(&path).map(drop)
        };
        load(|_| ()).unwrap();
        let forgeries: [fn(&mut Checkpoint); 4] = [
            |checkpoint| checkpoint.manifest.model[0].shape = vec![1 << 40, 1 << 40],
            |checkpoint| checkpoint.manifest.model[0].kind = TensorKind::F64,
            |checkpoint| checkpoint.manifest.model[0].name = checkpoint.manifest.model[1].name.clone(),
            |checkpoint| drop(checkpoint.manifest.model.pop()),
        ];
        for forge in forgeries {
            let error = load(forge).unwrap_err();
            assert!(matches!(error, Error::File { .. }), "{error:?}");
            assert!(error.to_string().contains("lists other parameters"), "{error}");
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn there_are_at_most_as_many_layers_as_parameters() {
        let settings = |layers: u64| serde_json::json!({ "net": { "layers": layers, "width": 65_536 } });
        assert!(check_sizes(&settings(12), 100, 12).is_ok());
        let error = check_sizes(&settings(13), 100, 12).unwrap_err().to_string();
        assert!(error.contains("at most the number of parameters"), "{error}");
    }
}
