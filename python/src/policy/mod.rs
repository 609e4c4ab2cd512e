//! Policies that are built from settings: a trainer's policy, the prior of its objective, and the policy of
//! its teacher.

pub(crate) mod graph_module;
mod module;
pub(crate) mod vector_module;

pub(crate) use graph_module::{GraphView, PyBatch};
pub(crate) use module::ModuleTensors;

use std::sync::Arc;

use gfn::env::Env;
use gfn::nn::Scope;
use gfn::policy::{Policy, UniformPolicy};
use gfn::{Error, Result, Rng};
use gfn_gym::diffusion::Target;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tch::{Device, Kind};

use crate::errors::Outcome;
use crate::kinds::PyEnv;
use crate::parts::BuildContext;
use crate::references::Object;
use crate::settings::{over_defaults, read};
use crate::tensors::PyTensor;
use module::ModuleCaller;

/// A policy of any type.
pub(crate) type AnyPolicy<E> = Box<dyn Policy<E> + Send>;

/// A policy, and the Python module that it contains, if any.
pub(crate) struct BuiltPolicy<E> {
    pub(crate) policy: AnyPolicy<E>,
    pub(crate) module: Option<Arc<ModuleTensors>>,
}

/// The class and the settings of a policy, and its Python module, if any.
#[derive(Default)]
pub(crate) struct PolicySettings {
    class: String,
    values: Map<String, Value>,
    module: Option<Py<PyAny>>,
}

impl<'py> FromPyObject<'_, 'py> for PolicySettings {
    type Error = PyErr;

    /// Reads the attributes of a `gfn_rs.Policy`.
    fn extract(policy: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            class: policy.get_type().name()?.to_string(),
            values: read("a policy", &policy.call_method0("_values")?)?,
            module: policy.call_method0("_module")?.extract()?,
        })
    }
}

/// The heads that an objective needs in addition to P_F and P_B, and the length of conditions.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) flow: bool,
    pub(crate) paths: bool,
    /// The length of a condition's vector; 0 if there are no conditions.
    pub(crate) conditions: usize,
}

impl<E: PyEnv> BuildContext<'_, E> {
    /// Builds a policy from its settings.
    pub(crate) fn build_policy(
        &self,
        settings: PolicySettings,
        needs: Needs,
        rng: &mut Rng,
    ) -> Outcome<BuiltPolicy<E>> {
        let PolicySettings { class, mut values, module } = settings;
        let module = module.map(|module| self.references.add(module));
        if let Value::Object(estimators) = values.entry("estimators").or_insert_with(|| Map::new().into()) {
            estimators.insert("flow".to_owned(), needs.flow.into());
            estimators.insert("n_conditions".to_owned(), needs.conditions.into());
        }
        values.insert("paths".to_owned(), needs.paths.into());
        let device = self.device;
        let kind = self.kind;
        let target = self.target.clone();
        E::policy(self.space, Plan { class, settings: values, module, device, kind, target, rng })
    }

    /// Builds the frozen policy of a prior, with these parameter values. Only P_F of the prior is used. The
    /// random initial parameters are replaced at once. They are drawn from a separate random stream, so that
    /// no other random number depends on them.
    pub(crate) fn build_prior(
        &self,
        settings: PolicySettings,
        parameters: &[(String, PyTensor)],
        needs: Needs,
    ) -> Outcome<BuiltPolicy<E>> {
        let built = self.build_policy(settings, needs, &mut Rng::seeded(0))?;
        set_parameters(&built.policy, parameters)?;
        Ok(built)
    }
}

/// Sets each parameter of a policy to the value of the same name. A parameter without a value of its name and
/// shape is an error. Values without a parameter of their name are ignored.
fn set_parameters<E: Env>(policy: &AnyPolicy<E>, values: &[(String, PyTensor)]) -> Result<()> {
    for parameter in policy.parameters().into_iter().flat_map(|parameters| parameters.iter()) {
        let fits = |(name, PyTensor(value)): &&(String, PyTensor)| {
            *name == parameter.name && value.size() == parameter.tensor.size()
        };
        let Some((_, PyTensor(value))) = values.iter().find(fits) else {
            let got = format!(
                "a policy without the parameter `{}` of shape {:?}",
                parameter.name,
                parameter.tensor.size()
            );
            return Err(Error::config("the prior", got, "the policy of a trainer of the same environment"));
        };
        tch::no_grad(|| parameter.tensor.shallow_clone().f_copy_(value).map(|_| ()))?;
    }
    Ok(())
}

/// Returns only the settings that the configuration `C` has. Each policy is given the settings `estimators`
/// and `paths`, but some configurations don't have both of them.
fn known_settings<C: Default + Serialize>(settings: &Map<String, Value>) -> Map<String, Value> {
    let defaults = serde_json::to_value(C::default()).unwrap_or_default();
    let known = settings.iter().filter(|(name, _)| defaults.get(name).is_some());
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The settings of one policy, and the objects from which it is built.
pub(crate) struct Plan<'a> {
    pub(crate) class: String,
    settings: Map<String, Value>,
    /// The custom Python module of the policy, if it has one.
    module: Option<Object>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) rng: &'a mut Rng,
}

impl Plan<'_> {
    /// Builds a policy from its settings, which override the defaults of the configuration `C`.
    pub(crate) fn build<C, E, P>(
        mut self,
        build: impl FnOnce(C, &mut Self) -> Result<P>,
    ) -> Outcome<BuiltPolicy<E>>
    where
        C: Default + Serialize + DeserializeOwned,
        E: Env,
        P: Policy<E> + Send + 'static,
    {
        let config = over_defaults("the settings of the policy", &known_settings::<C>(&self.settings))?;
        Ok(BuiltPolicy { policy: Box::new(build(config, &mut self)?), module: None })
    }

    /// Builds a policy around a Python module. The policy's settings are divided into two groups: the
    /// settings of the heads, and the settings of the embeddings. No name is in both groups.
    fn build_around<C, S, E, P>(
        self,
        build: impl FnOnce(C, S, &mut Self, &mut dyn FnMut(&mut Scope<'_>) -> ModuleCaller) -> Result<P>,
    ) -> Outcome<BuiltPolicy<E>>
    where
        C: Default + Serialize + DeserializeOwned,
        S: DeserializeOwned,
        E: Env,
        P: Policy<E> + Send + 'static,
    {
        let mut plan = self;
        let own = serde_json::from_value(Value::Object(plan.settings.clone())).map_err(|error| {
            PyValueError::new_err(format!("the settings of the policy can't be read: {error}"))
        })?;
        let config = over_defaults("the settings of the policy", &known_settings::<C>(&plan.settings))?;
        let module = plan.module.clone();
        let module = module.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "the policy {} has no module: expected a torch.nn.Module as its argument",
                plan.class
            ))
        })?;
        let tensors = ModuleTensors::new(module.clone())?;
        let device = plan.device;
        let kind = plan.kind;
        let mut joined = Ok(());
        let policy = build(config, own, &mut plan, &mut |scope| {
            joined = tensors.join(scope);
            ModuleCaller::new(module.clone(), &tensors, device, kind)
        });
        joined?;
        Ok(BuiltPolicy { policy: Box::new(policy?), module: Some(Arc::new(tensors)) })
    }

    pub(crate) fn not_for<T>(&self, environment: &str) -> Outcome<T> {
        Err(PyTypeError::new_err(format!("the policy {} isn't a policy for {environment}", self.class))
            .into())
    }
}

/// Builds the policy that gives all legal actions of a state the same probability.
pub(crate) fn uniform<E: Env>() -> BuiltPolicy<E>
where
    UniformPolicy: Policy<E>,
{
    BuiltPolicy { policy: Box::new(UniformPolicy), module: None }
}
