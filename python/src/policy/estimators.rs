//! Policies whose log F, log Z or both are computed by Python modules.

use gfn::env::{Direction, Env};
use gfn::nn::{Group, Parameters};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, HostPolicy, MultiHead, Policy};
use gfn::{Result, Rng};
use tch::Tensor;

use super::AnyPolicy;
use super::module::{ModuleCaller, Modules, join};
use crate::env::Failures;
use crate::tensors;

/// A policy whose log F, log Z or both are computed by Python modules. Everything else comes from `policy`.
pub(super) struct WithModules<E> {
    policy: AnyPolicy<E>,
    /// A policy that has only log F.
    flow: Option<AnyPolicy<E>>,
    /// The module that maps conditions to log Z.
    log_z: Option<ModuleCaller>,
    /// The parameters of `policy`, without those of its log Z if `log_z` replaces it, and the tensors of the
    /// modules.
    parameters: Parameters,
    /// The store of exceptions that `log_z` raises, because [`Policy::log_z`] can't return an error.
    failures: Failures,
}

impl<E: Env> WithModules<E> {
    pub(super) fn new(
        policy: AnyPolicy<E>,
        flow: Option<(AnyPolicy<E>, ModuleCaller)>,
        log_z: Option<ModuleCaller>,
        modules: &Modules,
        failures: &Failures,
        rng: &mut Rng,
    ) -> Result<Self> {
        let none = Parameters::new(tch::Device::Cpu, tch::Kind::Float);
        let all = policy.parameters().unwrap_or(&none);
        let mut parameters = all.share(|parameter| log_z.is_none() || parameter.group != Group::LogZ);
        let mut scope = parameters.scope(rng);
        if let Some((_, caller)) = &flow {
            join(modules, caller, &mut scope.sub("flow"))?;
        }
        if let Some(caller) = &log_z {
            join(modules, caller, &mut scope.group(Group::LogZ).sub("log_z"))?;
        }
        let flow = flow.map(|(flow, _)| flow);
        Ok(Self { policy, flow, log_z, parameters, failures: failures.clone() })
    }
}

impl<E: Env> Policy<E> for WithModules<E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        let evaluation = self.policy.evaluate(env, states, conditions, wants)?;
        let Some(flow) = self.flow.as_ref().filter(|_| wants.has(Quantity::LogFlow)) else {
            return Ok(evaluation);
        };
        let mut estimates = flow.evaluate(env, states, conditions, Quantity::LogFlow.into())?.values;
        Ok(evaluation.with(Quantity::LogFlow, estimates.remove(Quantity::LogFlow)))
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        self.policy.on_host(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        let Some(caller) = &self.log_z else { return self.policy.log_z(conditions, n) };
        let conditions = conditions?.to_device(caller.device).to_kind(caller.kind);
        self.failures.call(|py| {
            let answer = caller.call(py, vec![tensors::to_python(py, &conditions)?], None)?;
            caller.numbers(&answer, "log Z of conditions", conditions.size()[0])
        })
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        self.policy.heads()
    }
}
