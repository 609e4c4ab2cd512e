//! Policies that are built from settings: a trainer's policy, the prior of its objective, and the policy of
//! its teacher.

mod estimators;
pub(crate) mod graph_module;
mod module;
pub(crate) mod vector_module;

pub(crate) use graph_module::{GraphView, PyBatch};
pub(crate) use module::PolicyModule;

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

use crate::env::Failures;
use crate::errors::Outcome;
use crate::kinds::PyEnv;
use crate::parts::BuildContext;
use crate::settings::{over_defaults, read};
use crate::tensors::PyTensor;
use estimators::WithModules;
use module::{ModuleCaller, Modules, join};

/// A policy of any type.
pub(crate) type AnyPolicy<E> = Box<dyn Policy<E> + Send>;

/// A policy, and the Python modules that it contains.
pub(crate) struct BuiltPolicy<E> {
    pub(crate) policy: AnyPolicy<E>,
    pub(crate) modules: Modules,
}

/// The class and the settings of a policy, and its Python modules by the names of their settings.
#[derive(Default)]
pub(crate) struct PolicySettings {
    class: String,
    values: Map<String, Value>,
    modules: Vec<(String, Py<PyAny>)>,
}

impl<'py> FromPyObject<'_, 'py> for PolicySettings {
    type Error = PyErr;

    /// Reads the attributes of a `gfn_rs.Policy`.
    fn extract(policy: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            class: policy.get_type().name()?.to_string(),
            values: read("a policy", &policy.call_method0("_values")?)?,
            modules: policy
                .call_method0("_own_modules")?
                .call_method0("items")?
                .try_iter()?
                .map(|item| item?.extract())
                .collect::<PyResult<_>>()?,
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
        let PolicySettings { class, mut values, modules } = settings;
        let module = |(setting, object): (String, Py<PyAny>)| {
            PolicyModule::new(&class, setting, self.references.add(object)).map(Arc::new)
        };
        let modules = modules.into_iter().map(module).collect::<PyResult<Modules>>()?;
        let find = |setting| ModuleCaller::find(&modules, setting, self.device, self.kind);
        if find("log_z").is_some() && needs.conditions == 0 {
            return Err(PyValueError::new_err(format!(
                "{class}.log_z is a module, which maps conditions to log Z, but the policy has no \
                 conditions: expected None, because log Z is a single number without conditions"
            ))
            .into());
        }
        let flow = find("flow").filter(|_| needs.flow);
        if let Value::Object(estimators) = values.entry("estimators").or_insert_with(|| Map::new().into()) {
            let needs_head = needs.flow && flow.is_none();
            estimators.insert("flow".to_owned(), needs_head.into());
            estimators.insert("n_conditions".to_owned(), needs.conditions.into());
        }
        values.insert("paths".to_owned(), needs.paths.into());
        let device = self.device;
        let kind = self.kind;
        let target = self.target.clone();
        let failures = self.failures;
        let plan = Plan { class, settings: values, modules, flow, device, kind, target, failures, rng };
        E::policy(self.space, plan)
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
    /// The custom Python modules of the policy.
    modules: Modules,
    /// The module that computes log F, if the policy has such a module and log F is needed.
    flow: Option<ModuleCaller>,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    pub(crate) target: Option<Arc<dyn Target>>,
    /// The store of exceptions of the module that computes log Z.
    failures: &'a Failures,
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
        E: Env + 'static,
        P: Policy<E> + Send + 'static,
    {
        let config = over_defaults("the settings of the policy", &known_settings::<C>(&self.settings))?;
        let policy = Box::new(build(config, &mut self)?);
        self.finish(policy, None)
    }

    /// Builds a policy around Python modules. `build` calls its last argument for the module of P_F, and then
    /// for the module of P_B if P_B is separate. `flow` makes a policy that has only log F from the module of
    /// log F.
    fn build_around<C, E, P>(
        mut self,
        build: impl FnOnce(C, &mut Self, &mut dyn FnMut(&mut Scope<'_>) -> ModuleCaller) -> Result<P>,
        flow: impl FnOnce(ModuleCaller) -> AnyPolicy<E>,
    ) -> Outcome<BuiltPolicy<E>>
    where
        C: Default + Serialize + DeserializeOwned,
        E: Env + 'static,
        P: Policy<E> + Send + 'static,
    {
        let config = over_defaults("the settings of the policy", &known_settings::<C>(&self.settings))?;
        let main = self.caller("module").ok_or_else(|| {
            PyTypeError::new_err(format!(
                "the policy {} has no module: expected a torch.nn.Module as its argument",
                self.class
            ))
        })?;
        let mut torsos = [Some(main.clone()), self.caller("backward")].into_iter().flatten();
        let modules = self.modules.clone();
        let mut joined = Ok(());
        let policy = build(config, &mut self, &mut |scope| {
            let caller = torsos.next().unwrap_or_else(|| main.clone());
            if joined.is_ok() {
                joined = join(&modules, &caller, scope);
            }
            caller
        });
        joined?;
        let flow = self.flow.take().map(|caller| (flow(caller.clone()), caller));
        self.finish(Box::new(policy?), flow)
    }

    /// Reads the settings that concern modules: the inputs of the modules, and the widths of their
    /// embeddings. The heads have other settings.
    fn own_settings<S: DeserializeOwned>(&self) -> PyResult<S> {
        serde_json::from_value(Value::Object(self.settings.clone())).map_err(|error| {
            PyValueError::new_err(format!("the settings of the policy can't be read: {error}"))
        })
    }

    /// Returns the module of a setting; `None` if the policy has no such module.
    fn caller(&self, setting: &str) -> Option<ModuleCaller> {
        ModuleCaller::find(&self.modules, setting, self.device, self.kind)
    }

    /// Replaces log F and log Z of a policy by the results of modules, if there are such modules. `flow` is a
    /// policy that has only log F, and the module that computes it.
    fn finish<E: Env + 'static>(
        self,
        policy: AnyPolicy<E>,
        flow: Option<(AnyPolicy<E>, ModuleCaller)>,
    ) -> Outcome<BuiltPolicy<E>> {
        let log_z = self.caller("log_z");
        let policy = match (&flow, &log_z) {
            (None, None) => policy,
            _ => Box::new(WithModules::new(policy, flow, log_z, &self.modules, self.failures, self.rng)?),
        };
        Ok(BuiltPolicy { policy, modules: self.modules })
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
    BuiltPolicy { policy: Box::new(UniformPolicy), modules: Vec::new() }
}
