//! Policies by their settings: a trainer's own, the prior of its objective, a teacher's.

pub(crate) mod graph_module;
mod module_caller;
mod module_tensors;
pub(crate) mod vector_module;

pub(crate) use graph_module::{GraphView, PyBatch};
pub(crate) use module_tensors::ModuleTensors;

use std::sync::Arc;

use gfn::env::Env;
use gfn::nn::EstimatorsConfig;
use gfn::policy::{Policy, UniformPolicy};
use gfn::{Error, Result, Rng};
use gfn_gym::diffusion::Target;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tch::{Device, Kind};

use crate::errors::raised;
use crate::kinds::{PyEnv, Space};
use crate::parts::PyTensor;
use crate::references::{Object, References};
use crate::settings::{over_defaults, read};

/// A policy of any type.
pub(crate) type AnyPolicy<E> = Box<dyn Policy<E> + Send>;

/// A policy, and the module of Python that it is made around, if there is one.
pub(crate) struct BuiltPolicy<E> {
    pub(crate) policy: AnyPolicy<E>,
    pub(crate) module: Option<Arc<ModuleTensors>>,
}

/// The class and settings of a policy, and its module, if it is made around one.
pub(crate) struct PolicySettings {
    class: String,
    values: Value,
    module: Option<Py<PyAny>>,
}

impl PolicySettings {
    /// Takes the settings, of which one policy is built.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            class: std::mem::take(&mut self.class),
            values: std::mem::take(&mut self.values),
            module: self.module.take(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for PolicySettings {
    type Error = PyErr;

    /// Reads a `gfn_rs.Policy`.
    fn extract(policy: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let by_class: Map<String, Value> = read("a policy", &policy.call_method0("_by_class")?)?;
        let Some((class, values)) = by_class.into_iter().next() else {
            return Err(PyTypeError::new_err("a policy: expected its class and settings"));
        };
        Ok(Self { class, values, module: policy.call_method0("_module")?.extract()? })
    }
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
    pub(crate) references: &'a References,
    /// The density of a diffusion: a policy can be led by its gradient.
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
}

impl<E: PyEnv> PolicyBuilder<'_, E> {
    /// Builds a policy.
    pub(crate) fn build(&self, settings: PolicySettings, needs: Needs, rng: &mut Rng) -> PyResult<BuiltPolicy<E>> {
        let PolicySettings { class, mut values, module } = settings;
        let module = module.map(|module| self.references.add(module));
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
        E::policy(self.space, Plan { class, settings: values, module, device, kind, target, rng })
    }

    /// Builds a frozen policy for P_F alone, with these values of its parameters. It draws from a random stream of its own, because its
    /// first parameters are replaced.
    pub(crate) fn build_prior(
        &self,
        settings: PolicySettings,
        parameters: &[(String, PyTensor)],
        needs: Needs,
    ) -> PyResult<BuiltPolicy<E>> {
        let built = self.build(settings, needs, &mut Rng::seeded(0))?;
        set_parameters(&built.policy, parameters).map_err(raised)?;
        Ok(built)
    }
}

/// Gives a policy these values of its parameters; there may be values of others among them.
fn set_parameters<E: Env>(policy: &AnyPolicy<E>, values: &[(String, PyTensor)]) -> Result<()> {
    for parameter in policy.parameters().into_iter().flat_map(|parameters| parameters.iter()) {
        let fits = |(name, PyTensor(value)): &&(String, PyTensor)| {
            *name == parameter.name && value.size() == parameter.tensor.size()
        };
        let Some((_, PyTensor(value))) = values.iter().find(fits) else {
            let got = format!("a policy without parameter `{}` of shape {:?}", parameter.name, parameter.tensor.size());
            return Err(Error::config("the prior", got, "the policy of a trainer of the same environment"));
        };
        tch::no_grad(|| parameter.tensor.shallow_clone().f_copy_(value).map(|_| ()))?;
    }
    Ok(())
}

/// The settings of one policy, and what it is built with.
pub(crate) struct Plan<'a> {
    pub(crate) class: String,
    settings: Value,
    /// A network in Python.
    module: Option<Object>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) rng: &'a mut Rng,
}

impl Plan<'_> {
    /// Builds a policy of the settings, which are added to the defaults.
    pub(crate) fn build<C, E, P>(self, build: impl FnOnce(C, &mut Self) -> Result<P>) -> PyResult<BuiltPolicy<E>>
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

    pub(crate) fn not_for<T>(&self, environment: &str) -> PyResult<T> {
        Err(PyTypeError::new_err(format!("the policy {} isn't one for {environment}", self.class)))
    }
}

/// The policy that takes each legal action with the same probability.
pub(crate) fn uniform<E: Env>() -> BuiltPolicy<E>
where
    UniformPolicy: Policy<E>,
{
    BuiltPolicy { policy: Box::new(UniformPolicy), module: None }
}
