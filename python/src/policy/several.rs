//! The policies of a trainer: its own, the prior that it is relative to, a teacher's.

use std::any::Any;

use gfn::env::Env;
use gfn::policy::Policy;
use gfn::{Error, Rng};
use pyo3::prelude::*;
use tch::{Device, Kind, Tensor};

use super::{AnyPolicy, Needs, Plan};
use crate::errors::raised;
use crate::kept::Object;

/// The class and settings of a policy as JSON, and its network, if that is one of Python.
pub(crate) type Network = (String, Option<Object>);

/// A frozen policy: what it is made of, and the values of its parameters by name.
pub(crate) struct Prior {
    pub(crate) network: Network,
    pub(crate) parameters: Vec<(String, Tensor)>,
}

/// What Python asked for.
pub(crate) struct Networks {
    pub(crate) own: Network,
    /// The policy itself, where it was built before: an `AnyPolicy` of the environment's type.
    pub(crate) built: Option<Box<dyn Any + Send>>,
    pub(crate) prior: Option<Prior>,
    pub(crate) teacher: Option<Network>,
    pub(crate) made_for: (Device, Kind),
    pub(crate) needs: Needs,
}

/// The policies of a trainer.
pub(crate) struct Policies<E: Env> {
    /// The one that is trained, relative to a prior if there is one.
    pub(crate) own: AnyPolicy<E>,
    pub(crate) teacher: Option<AnyPolicy<E>>,
}

impl Networks {
    /// Makes them, the trainer's own first.
    pub(crate) fn build<E: Env + 'static>(
        self,
        rng: &mut Rng,
        make: impl Fn(Plan<'_>) -> PyResult<AnyPolicy<E>>,
    ) -> PyResult<Policies<E>> {
        let Self { own, built, prior, teacher, made_for: (device, kind), needs } = self;
        let one =
            |(text, module): Network, needs, rng: &mut Rng| make(Plan::new(&text, module, device, kind, rng, needs)?);
        let own = match built {
            None => one(own, needs, rng)?,
            Some(built) => built.downcast::<Option<AnyPolicy<E>>>().ok().and_then(|built| *built).ok_or_else(|| {
                let expected = "one that was built for an environment of the same class";
                raised(Error::config("policy", "a policy of another environment", expected))
            })?,
        };
        // A teacher learns by trajectory balance, and a prior says P_F alone.
        let plain = Needs { flow: false, paths: false, ..needs };
        // The weights of a prior are written over: it draws from a stream of its own.
        let prior = prior.map(|Prior { network, parameters }| {
            let prior = one(network, plain, &mut Rng::seeded(0))?;
            take_over(&prior, &parameters).map_err(raised)?;
            PyResult::Ok(prior)
        });
        let own = own.relative_to(prior.transpose()?);
        let teacher = teacher.map(|teacher| one(teacher, plain, rng)).transpose()?;
        Ok(Policies { own, teacher })
    }
}

/// Gives a policy these values; others than its own parameters' may be among them.
fn take_over<E: Env>(policy: &dyn Policy<E>, values: &[(String, Tensor)]) -> gfn::Result<()> {
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
