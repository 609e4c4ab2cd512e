//! Policies by their settings: a trainer's own, the prior of its objective, a teacher's.

mod graph_module;
mod module_caller;
mod module_tensors;
mod vector_module;

pub(crate) use graph_module::PyBatch;
pub(crate) use module_tensors::ModuleTensors;

use std::sync::Arc;

use gfn::env::{Env, VectorEnv};
use gfn::graph::GraphEnv;
use gfn::nn::{EdgeMlp, EdgeMlpConfig, EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::policy::{
    GraphPolicy, MlpPolicy, MlpPolicyConfig, Policy, SequencePolicy, SequencePolicyConfig, UniformPolicy,
};
use gfn::{Error, Result, Rng};
use gfn_dags::{AdjacencyFeatures, EdgeTransformer, EdgeTransformerConfig};
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig};
use gfn_gym::diffusion::{DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Target};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tch::{Device, Kind, Tensor};

use crate::errors::raised;
use crate::kinds::{PyEnv, Space};
use crate::references::{Object, References};
use crate::settings::{over_defaults, read};
use graph_module::View;

/// A policy of any type.
pub(crate) type AnyPolicy<E> = Box<dyn Policy<E> + Send>;

/// A policy, and the module of Python that it is made around, if there is one.
pub(crate) struct BuiltPolicy<E> {
    pub(crate) policy: AnyPolicy<E>,
    pub(crate) module: Option<Arc<ModuleTensors>>,
}

/// A policy as Python gives it: `{class: settings}`, and its module, if it is made around one.
#[derive(FromPyObject)]
pub(crate) struct PolicyArgument<'py>(Bound<'py, PyAny>, Option<Py<PyAny>>);

/// The class and settings of a policy, and its module, if it is made around one.
pub(crate) struct PolicySettings {
    class: String,
    values: Value,
    module: Option<Object>,
}

impl PolicyArgument<'_> {
    pub(crate) fn read(self, references: &References) -> PyResult<PolicySettings> {
        let by_class: Map<String, Value> = read("a policy", &self.0)?;
        let Some((class, values)) = by_class.into_iter().next() else {
            return Err(PyTypeError::new_err("a policy: expected its class and settings"));
        };
        Ok(PolicySettings { class, values, module: self.1.map(|module| references.add(module)) })
    }
}

/// A frozen policy: its settings, and the values of its parameters by name.
pub(crate) struct PriorSettings {
    pub(crate) policy: PolicySettings,
    pub(crate) parameters: Vec<(String, Tensor)>,
}

/// The estimates that an objective needs of a policy besides P_F and P_B.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) flow: bool,
    pub(crate) paths: bool,
    /// The width of conditions; 0 without.
    pub(crate) conditions: usize,
}

/// Builds the policies of a trainer.
pub(crate) struct PolicyBuilder<'a, E: PyEnv> {
    pub(crate) space: &'a Space<E>,
    /// The density of a diffusion: a policy can be led by its gradient.
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
}

impl<E: PyEnv> PolicyBuilder<'_, E> {
    /// Builds a policy.
    pub(crate) fn build(&self, settings: &PolicySettings, needs: Needs, rng: &mut Rng) -> PyResult<BuiltPolicy<E>> {
        let PolicySettings { class, values, module } = settings;
        let mut values = values.clone();
        if let Some(values) = values.as_object_mut() {
            let mut heads = Map::new();
            if needs.flow {
                heads.insert("flow".to_owned(), true.into());
            }
            if needs.conditions > 0 {
                heads.insert("n_conditions".to_owned(), needs.conditions.into());
            }
            if !heads.is_empty()
                && let Some(estimators) =
                    values.entry("estimators").or_insert_with(|| Map::new().into()).as_object_mut()
            {
                estimators.extend(heads);
            }
            if needs.paths && ["Mlp", "VectorModule", "SequenceModule"].contains(&class.as_str()) {
                values.insert("paths".to_owned(), true.into());
            }
        }
        let (device, kind, target) = (self.device, self.kind, self.target.clone());
        let (class, module) = (class.clone(), module.clone());
        E::policy(self.space, Plan { class, settings: values, module, device, kind, target, rng })
    }

    /// Builds a frozen policy for P_F alone. It draws from a random stream of its own, because its parameters are replaced.
    pub(crate) fn build_prior(&self, prior: &PriorSettings, needs: Needs) -> PyResult<BuiltPolicy<E>> {
        let built = self.build(&prior.policy, needs, &mut Rng::seeded(0))?;
        set_parameters(&built.policy, &prior.parameters).map_err(raised)?;
        Ok(built)
    }
}

/// Gives a policy these values of its parameters; there may be values of others among them.
fn set_parameters<E: Env>(policy: &AnyPolicy<E>, values: &[(String, Tensor)]) -> Result<()> {
    for parameter in policy.parameters().into_iter().flat_map(|parameters| parameters.iter()) {
        let fits =
            |(name, value): &&(String, Tensor)| *name == parameter.name && value.size() == parameter.tensor.size();
        let Some((_, value)) = values.iter().find(fits) else {
            let got = format!("a policy without parameter `{}` of shape {:?}", parameter.name, parameter.tensor.size());
            return Err(Error::config("the prior", got, "the policy of a trainer of the same environment"));
        };
        tch::no_grad(|| parameter.tensor.shallow_clone().f_copy_(value).map(|_| ()))?;
    }
    Ok(())
}

/// The settings of one policy, and what it is built with.
pub(crate) struct Plan<'a> {
    class: String,
    settings: Value,
    /// A network in Python.
    module: Option<Object>,
    device: Device,
    kind: Kind,
    target: Option<Arc<dyn Target>>,
    rng: &'a mut Rng,
}

impl Plan<'_> {
    /// Builds a policy of the settings, which are added to the defaults.
    fn build<C, E, P>(self, build: impl FnOnce(C, &mut Self) -> Result<P>) -> PyResult<BuiltPolicy<E>>
    where
        C: Default + Serialize + DeserializeOwned,
        E: Env,
        P: Policy<E> + Send + 'static,
    {
        let mut plan = self;
        let nested = ["estimators", "mlp", "net", "mixtures", "network"];
        let config = over_defaults("the settings of the policy", &plan.settings, &nested).map_err(raised)?;
        let policy = build(config, &mut plan).map_err(raised)?;
        Ok(BuiltPolicy { policy: Box::new(policy), module: None })
    }

    /// The settings of a policy around a module, and of its estimators.
    fn module_settings<T: DeserializeOwned>(&self) -> PyResult<(T, EstimatorsConfig)> {
        let settings = serde_json::from_value(self.settings.clone())
            .map_err(|error| PyValueError::new_err(format!("policy: {error}")))?;
        let estimators = match self.settings.get("estimators") {
            None => EstimatorsConfig::default(),
            Some(estimators) => over_defaults("the settings of the policy", estimators, &[]).map_err(raised)?,
        };
        Ok((settings, estimators))
    }

    fn module(&self) -> PyResult<&Object> {
        self.module.as_ref().ok_or_else(|| PyTypeError::new_err(format!("the policy {} has no module", self.class)))
    }

    fn not_for<T>(&self, environment: &str) -> PyResult<T> {
        Err(PyTypeError::new_err(format!("the policy {} isn't one for {environment}", self.class)))
    }
}

fn uniform<E: Env>() -> BuiltPolicy<E>
where
    UniformPolicy: Policy<E>,
{
    BuiltPolicy { policy: Box::new(UniformPolicy), module: None }
}

/// A policy for graphs.
pub(crate) fn graph_policy(plan: Plan<'_>, env: &GraphEnv) -> PyResult<BuiltPolicy<GraphEnv>> {
    match plan.class.as_str() {
        "GraphNet" => plan.build(|config: GraphNetConfig, plan| {
            Ok(GraphPolicy(GraphNet::new(env, config, plan.device, plan.kind, plan.rng)?))
        }),
        "EdgeMlp" => plan.build(|config: EdgeMlpConfig, plan| {
            Ok(GraphPolicy(EdgeMlp::new(env, config, plan.device, plan.kind, plan.rng)?))
        }),
        "GraphModule" => graph_module::policy(plan, env, View::Batch),
        "Uniform" => Ok(uniform()),
        _ => plan.not_for("graphs (there are GraphNet, EdgeMlp, GraphModule and Uniform)"),
    }
}

/// A policy for acyclic graphs.
pub(crate) fn structure_policy(plan: Plan<'_>, env: &GraphEnv, n_nodes: usize) -> PyResult<BuiltPolicy<GraphEnv>> {
    match plan.class.as_str() {
        "Mlp" => plan.build(|config: MlpPolicyConfig, plan| {
            MlpPolicy::new(env, AdjacencyFeatures::new(n_nodes), config, plan.device, plan.kind, plan.rng)
        }),
        "EdgeTransformer" => plan.build(|config: EdgeTransformerConfig, plan| {
            Ok(GraphPolicy(EdgeTransformer::new(env, config, plan.device, plan.kind, plan.rng)?))
        }),
        "DagModule" => graph_module::policy(plan, env, View::Adjacency(n_nodes as i64)),
        "GraphNet" | "Uniform" => graph_policy(plan, env),
        _ => plan.not_for("acyclic graphs (there are Mlp, GraphNet, EdgeTransformer, DagModule and Uniform)"),
    }
}

/// A policy for vectors.
pub(crate) fn vector_policy(plan: Plan<'_>, space: &Space<VectorEnv>) -> PyResult<BuiltPolicy<VectorEnv>> {
    let env = &space.env;
    let is_for_sequences = ["SequenceNet", "SequenceModule"].contains(&plan.class.as_str());
    if is_for_sequences && space.facts.sequence.is_none() {
        let expected = "an environment whose states are written from left to right";
        return Err(raised(Error::config("the policy", &plan.class, expected)));
    }
    match (plan.class.as_str(), space.facts.sequence) {
        ("Mlp", _) => plan.build(|config: MlpPolicyConfig, plan| {
            MlpPolicy::new(env, space.features(), config, plan.device, plan.kind, plan.rng)
        }),
        ("SequenceNet", Some(layout)) => plan.build(|config: SequencePolicyConfig, plan| {
            SequencePolicy::new(env, layout, config, plan.device, plan.kind, plan.rng)
        }),
        ("VectorModule" | "SequenceModule", _) => vector_module::policy(plan, space),
        ("Uniform", _) => Ok(uniform()),
        _ => plan.not_for("vectors (there are Mlp, VectorModule, SequenceNet, SequenceModule and Uniform)"),
    }
}

/// A policy for points of the unit box.
pub(crate) fn box_policy(plan: Plan<'_>, env: &BoxEnv) -> PyResult<BuiltPolicy<BoxEnv>> {
    match plan.class.as_str() {
        "BoxNet" => {
            plan.build(|config: BoxPolicyConfig, plan| BoxPolicy::new(env, config, plan.device, plan.kind, plan.rng))
        }
        _ => plan.not_for("the unit box (there is BoxNet)"),
    }
}

/// A policy for points of the line.
pub(crate) fn line_policy(plan: Plan<'_>, env: &Line) -> PyResult<BuiltPolicy<Line>> {
    match plan.class.as_str() {
        "LineNet" => {
            plan.build(|config: LinePolicyConfig, plan| LinePolicy::new(env, config, plan.device, plan.kind, plan.rng))
        }
        _ => plan.not_for("the line (there is LineNet)"),
    }
}

/// A policy for a diffusion.
pub(crate) fn diffusion_policy(plan: Plan<'_>, env: &DiffusionSampling) -> PyResult<BuiltPolicy<DiffusionSampling>> {
    match plan.class.as_str() {
        "DiffusionNet" => plan.build(|config: DiffusionPolicyConfig, plan| {
            DiffusionPolicy::new(env, config, plan.target.clone(), plan.device, plan.kind, plan.rng)
        }),
        _ => plan.not_for("a diffusion (there is DiffusionNet)"),
    }
}
