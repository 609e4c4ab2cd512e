//! Policies by their settings.

mod adopted;
mod asked;
mod chosen;
mod module;
mod rows;
mod several;

pub(crate) use adopted::Adopted;
pub(crate) use chosen::{AnyPolicy, prior};
pub(crate) use module::PyBatch;
pub(crate) use several::{Network, Networks, Policies, Prior};

use module::View;

use std::sync::Arc;

use gfn::env::{Env, VectorEnv};
use gfn::graph::GraphEnv;
use gfn::nn::{EdgeMlp, EdgeMlpConfig, EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::policy::{
    GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, SequencePolicy, SequencePolicyConfig, UniformPolicy,
};
use gfn::{Error, Result, Rng};
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, EdgeTransformerConfig};
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig};
use gfn_gym::diffusion::{DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Target};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tch::{Device, Kind};

use crate::env::Vectors;
use crate::errors::raised;
use crate::kept::Object;
use crate::settings::{over_defaults, read};

/// What Python asked for, and what it is built with.
pub(crate) struct Plan<'a> {
    /// The class of the settings.
    name: String,
    settings: Value,
    /// A network in Python.
    module: Option<Object>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    pub(crate) rng: &'a mut Rng,
}

impl<'a> Plan<'a> {
    /// Reads `{class: settings}`. What the objective needs of the policy is added to the settings.
    pub(crate) fn new(
        text: &str,
        module: Option<Object>,
        device: Device,
        kind: Kind,
        rng: &'a mut Rng,
        needs: Needs,
    ) -> PyResult<Self> {
        let asked: serde_json::Map<String, Value> = read("a policy", text)?;
        let Some((name, mut settings)) = asked.into_iter().next() else {
            return Err(PyTypeError::new_err("a policy: expected its class and settings"));
        };
        if let Some(settings) = settings.as_object_mut() {
            let of_heads = [
                ("flow", Value::from(true), needs.flow),
                ("n_conditions", Value::from(needs.conditions), needs.conditions > 0),
            ];
            for (head, value, _) in of_heads.into_iter().filter(|(_, _, needed)| *needed) {
                let estimators = settings.entry("estimators").or_insert_with(|| Value::Object(serde_json::Map::new()));
                if let Some(estimators) = estimators.as_object_mut() {
                    estimators.insert(head.to_owned(), value);
                }
            }
            if needs.paths && ["Mlp", "VectorModule", "SequenceModule"].contains(&name.as_str()) {
                settings.insert("paths".to_owned(), Value::Bool(true));
            }
        }
        Ok(Self { name, settings, module, device, kind, rng })
    }

    fn config<T: Default + Serialize + DeserializeOwned>(&self) -> Result<T> {
        over_defaults(
            "the settings of the policy",
            &self.settings,
            &["estimators", "mlp", "net", "mixtures", "network"],
        )
    }

    fn not_for(&self, environment: &'static str) -> PyErr {
        PyTypeError::new_err(format!("the policy {} isn't one for {environment}", self.name))
    }
}

/// What an objective needs of a policy besides P_F and P_B.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) flow: bool,
    pub(crate) paths: bool,
    /// Width of the conditions; 0 without.
    pub(crate) conditions: usize,
}

fn boxed<E: Env>(policy: Result<impl Policy<E> + Send + 'static>) -> PyResult<AnyPolicy<E>> {
    policy.map(AnyPolicy::new).map_err(raised)
}

/// A policy for graphs.
pub(crate) fn of_graphs(plan: Plan<'_>, env: &GraphEnv) -> PyResult<AnyPolicy<GraphEnv>> {
    let (device, kind) = (plan.device, plan.kind);
    match (plan.name.as_str(), &plan.module) {
        ("GraphNet", None) => {
            let net =
                plan.config().and_then(|config: GraphNetConfig| GraphNet::new(env, config, device, kind, plan.rng));
            boxed(net.map(GraphPolicy))
        }
        ("EdgeMlp", None) => {
            let net = plan.config().and_then(|config: EdgeMlpConfig| EdgeMlp::new(env, config, device, kind, plan.rng));
            boxed(net.map(GraphPolicy))
        }
        ("GraphModule", Some(network)) => {
            module::of_graphs(network, &plan.settings, env, View::Batch, (device, kind), plan.rng)
        }
        ("Uniform", None) => Ok(AnyPolicy::new(UniformPolicy)),
        _ => Err(plan.not_for("graphs (there are GraphNet, EdgeMlp, GraphModule and Uniform)")),
    }
}

/// A policy for vectors.
pub(crate) fn of_vectors(plan: Plan<'_>, vectors: &Vectors) -> PyResult<AnyPolicy<VectorEnv>> {
    let (env, device, kind) = (&vectors.env, plan.device, plan.kind);
    let features = KHot::new(env.width(), vectors.values);
    let layout = || {
        let expected = "an environment whose states are written from left to right";
        vectors.sequence.ok_or_else(|| raised(Error::config("the policy", &plan.name, expected)))
    };
    match (plan.name.as_str(), &plan.module) {
        ("Mlp", None) => boxed(
            plan.config()
                .and_then(|config: MlpPolicyConfig| MlpPolicy::new(env, features, config, device, kind, plan.rng)),
        ),
        ("VectorModule", Some(network)) => rows::of_vectors(network, &plan.settings, vectors, (device, kind), plan.rng),
        ("SequenceModule", Some(network)) => {
            layout()?;
            rows::of_vectors(network, &plan.settings, vectors, (device, kind), plan.rng)
        }
        ("SequenceNet", None) => {
            let layout = layout()?;
            boxed(plan.config().and_then(|config: SequencePolicyConfig| {
                SequencePolicy::new(env, layout, config, device, kind, plan.rng)
            }))
        }
        ("Uniform", None) => Ok(AnyPolicy::new(UniformPolicy)),
        _ => Err(plan.not_for("vectors (there are Mlp, VectorModule, SequenceNet, SequenceModule and Uniform)")),
    }
}

/// A policy for acyclic graphs.
pub(crate) fn of_structures(plan: Plan<'_>, structures: &BayesianStructure) -> PyResult<AnyPolicy<GraphEnv>> {
    let (env, n_nodes) = (structures.env(), structures.n_nodes());
    let (device, kind) = (plan.device, plan.kind);
    match (plan.name.as_str(), &plan.module) {
        ("Mlp", None) => boxed(plan.config().and_then(|config: MlpPolicyConfig| {
            MlpPolicy::new(env, AdjacencyFeatures::new(n_nodes), config, device, kind, plan.rng)
        })),
        ("GraphNet", None) => {
            boxed(plan.config().and_then(|config: GraphNetConfig| {
                Ok(GraphPolicy(GraphNet::new(env, config, device, kind, plan.rng)?))
            }))
        }
        ("EdgeTransformer", None) => boxed(
            plan.config()
                .and_then(|config: EdgeTransformerConfig| EdgeTransformer::new(env, config, device, kind, plan.rng))
                .map(GraphPolicy),
        ),
        ("DagModule", Some(network)) => {
            let view = View::Adjacency(n_nodes as i64);
            module::of_graphs(network, &plan.settings, env, view, (device, kind), plan.rng)
        }
        ("Uniform", None) => Ok(AnyPolicy::new(UniformPolicy)),
        _ => Err(plan.not_for("acyclic graphs (there are Mlp, GraphNet, EdgeTransformer, DagModule and Uniform)")),
    }
}

/// A policy for points of the unit box.
pub(crate) fn of_box(plan: Plan<'_>, env: &BoxEnv) -> PyResult<AnyPolicy<BoxEnv>> {
    match plan.name.as_str() {
        "BoxNet" => boxed(
            plan.config()
                .and_then(|config: BoxPolicyConfig| BoxPolicy::new(env, config, plan.device, plan.kind, plan.rng)),
        ),
        _ => Err(plan.not_for("the unit box (there is BoxNet)")),
    }
}

/// A policy for points of the line.
pub(crate) fn of_line(plan: Plan<'_>, env: &Line) -> PyResult<AnyPolicy<Line>> {
    match plan.name.as_str() {
        "LineNet" => boxed(
            plan.config()
                .and_then(|config: LinePolicyConfig| LinePolicy::new(env, config, plan.device, plan.kind, plan.rng)),
        ),
        _ => Err(plan.not_for("the line (there is LineNet)")),
    }
}

/// A policy for a diffusion; of a target of the library's, it can be led by the target's gradient.
pub(crate) fn of_diffusion(
    plan: Plan<'_>,
    env: &DiffusionSampling,
    target: Option<Arc<dyn Target>>,
) -> PyResult<AnyPolicy<DiffusionSampling>> {
    match plan.name.as_str() {
        "DiffusionNet" => boxed(plan.config().and_then(|config: DiffusionPolicyConfig| {
            DiffusionPolicy::new(env, config, target, plan.device, plan.kind, plan.rng)
        })),
        _ => Err(plan.not_for("a diffusion (there is DiffusionNet)")),
    }
}

/// The settings of heads that a network in Python gets.
pub(crate) fn estimators(settings: &Value) -> Result<EstimatorsConfig> {
    match settings.get("estimators") {
        None => Ok(EstimatorsConfig::default()),
        Some(given) => over_defaults("the settings of the policy", given, &[]),
    }
}
