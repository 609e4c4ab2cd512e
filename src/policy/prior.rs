use crate::quantity::{Quantities, Quantity};
use serde_json::Value;
use tch::Tensor;

use crate::Result;
use crate::env::{Direction, Env};
use crate::nn::Parameters;
use crate::policy::{Evaluation, HostPolicy, MultiHead, Policy};

/// A policy together with a frozen prior, for relative trajectory balance and Trust-PCL.
///
/// The prior is evaluated without gradient, and its parameters aren't trained. Roll-outs, log Z and heads
/// come from `policy`.
///
/// ```
/// use gfn::policy::{Policy, UniformPolicy, WithPrior};
/// use gfn::examples::Chain;
/// let policy = WithPrior { policy: UniformPolicy, prior: UniformPolicy };
/// assert!(Policy::<Chain>::parameters(&policy).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WithPrior<P, Q> {
    /// The trained policy.
    pub policy: P,
    /// The prior, which isn't trained.
    pub prior: Q,
}

impl<E: Env, P: Policy<E>, Q: Policy<E>> Policy<E> for WithPrior<P, Q> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        let mut evaluation = self.policy.evaluate(env, states, conditions, wants)?;
        if wants.has(Quantity::LogPrior) {
            evaluation.prior =
                tch::no_grad(|| self.prior.evaluate(env, states, conditions, Quantities::PF))?.pf;
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

    fn settings(&self) -> Value {
        self.policy.settings()
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        self.policy.heads()
    }
}
