//! A policy of a type that is known at run time alone, with the prior and the module of Python that it may have.

use std::sync::Arc;

use gfn::env::{Direction, Env};
use gfn::nn::Parameters;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, HostPolicy, MultiHead, Policy};
use gfn::train::Trainer;
use gfn::{Error, Result};
use tch::Tensor;

use super::Adopted;

/// A policy chosen at run time, beside the frozen prior that its objective is relative to, if there is one.
pub(crate) struct AnyPolicy<E> {
    policy: Box<dyn Policy<E> + Send>,
    prior: Option<Box<Self>>,
    module: Option<Arc<Adopted>>,
}

impl<E: Env> AnyPolicy<E> {
    pub(super) fn new(policy: impl Policy<E> + Send + 'static) -> Self {
        Self { policy: Box::new(policy), prior: None, module: None }
    }

    pub(super) fn relative_to(self, prior: Option<Self>) -> Self {
        Self { prior: prior.map(Box::new), ..self }
    }

    /// The same, of a module of Python.
    pub(super) fn of_module(self, module: Adopted) -> Self {
        Self { module: Some(Arc::new(module)), ..self }
    }

    /// The module of Python that it is of, if it is.
    pub(crate) fn module(&self) -> Option<&Arc<Adopted>> {
        self.module.as_ref()
    }

    /// The prior.
    pub(crate) fn prior(&self) -> Option<&Self> {
        self.prior.as_deref()
    }
}

/// The prior of a trainer's policy, which is an [`AnyPolicy`].
pub(crate) fn prior<E: Env + 'static>(trainer: &Trainer<E>) -> Result<Option<&AnyPolicy<E>>> {
    let policy: Option<&AnyPolicy<E>> = trainer.policy_as();
    policy
        .map(AnyPolicy::prior)
        .ok_or(Error::contract("a trainer of this package has an `AnyPolicy`", "it has another policy"))
}

impl<E: Env> Policy<E> for AnyPolicy<E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        let mut evaluation = self.policy.evaluate(env, states, conditions, wants)?;
        if let (Some(prior), true) = (self.prior(), wants.has(Quantity::LogPrior)) {
            evaluation.prior = tch::no_grad(|| prior.evaluate(env, states, conditions, Quantities::PF))?.pf;
        }
        Ok(evaluation)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        self.policy.on_host(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.policy.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        self.policy.parameters()
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        self.policy.heads()
    }
}
