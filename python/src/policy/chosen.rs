//! A policy of a type that is known at run time alone, with what some of them have besides.

use std::sync::Arc;

use gfn::distribution::Distribution;
use gfn::env::{Direction, Env};
use gfn::nn::Parameters;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, HostPolicy, MultiHead, Policy};
use gfn::{Error, Result};
use tch::Tensor;

use super::Adopted;

/// Any policy.
trait Acting<E: Env, D>: Send {
    fn policy(&self) -> &dyn Policy<E, Dist = D>;
    /// Its heads, where it has several of P_F.
    fn heads(&self) -> Option<&dyn MultiHead>;
}

struct Plain<P>(P);

impl<E: Env, D, P: Policy<E, Dist = D> + Send> Acting<E, D> for Plain<P>
where
    D: Distribution<Actions = E::Actions>,
{
    fn policy(&self) -> &dyn Policy<E, Dist = D> {
        &self.0
    }
    fn heads(&self) -> Option<&dyn MultiHead> {
        None
    }
}

struct Headed<P>(P);

impl<E: Env, D, P: Policy<E, Dist = D> + MultiHead + Send> Acting<E, D> for Headed<P>
where
    D: Distribution<Actions = E::Actions>,
{
    fn policy(&self) -> &dyn Policy<E, Dist = D> {
        &self.0
    }
    fn heads(&self) -> Option<&dyn MultiHead> {
        Some(&self.0)
    }
}

/// A policy chosen at run time, beside the frozen prior that its objective is relative to, if there is one.
pub(crate) struct AnyPolicy<E: Env, D> {
    policy: Box<dyn Acting<E, D>>,
    prior: Option<Box<Self>>,
    module: Option<Arc<Adopted>>,
}

impl<E: Env, D: Distribution<Actions = E::Actions>> AnyPolicy<E, D> {
    pub(super) fn new(policy: impl Policy<E, Dist = D> + Send + 'static) -> Self {
        Self { policy: Box::new(Plain(policy)), prior: None, module: None }
    }

    /// One that may have several heads.
    pub(super) fn headed(policy: impl Policy<E, Dist = D> + MultiHead + Send + 'static) -> Self {
        Self { policy: Box::new(Headed(policy)), prior: None, module: None }
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

impl<E: Env, D: Distribution<Actions = E::Actions>> Policy<E> for AnyPolicy<E, D> {
    type Dist = D;

    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<D>> {
        let mut evaluation = self.policy.policy().evaluate(env, states, conditions, wants)?;
        if let (Some(prior), true) = (self.prior(), wants.has(Quantity::LogPrior)) {
            evaluation.prior = tch::no_grad(|| prior.evaluate(env, states, conditions, Quantities::PF))?.pf;
        }
        Ok(evaluation)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E, D> + '_>> {
        self.policy.policy().on_host(direction)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.policy.policy().log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        self.policy.policy().parameters()
    }
}

impl<E: Env, D> MultiHead for AnyPolicy<E, D> {
    fn n_heads(&self) -> usize {
        self.policy.heads().map_or(1, MultiHead::n_heads)
    }

    fn head(&self) -> usize {
        self.policy.heads().map_or(0, MultiHead::head)
    }

    fn use_head(&self, head: usize) -> Result<()> {
        match self.policy.heads() {
            Some(heads) => heads.use_head(head),
            None if head == 0 => Ok(()),
            None => Err(Error::config("the head in use", head, "0: the policy has one head")),
        }
    }
}
