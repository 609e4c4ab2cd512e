//! Checks for signals such as Ctrl-C during long computations.

use std::cell::OnceCell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gfn::Result;
use gfn::env::{Direction, Env, TensorForm};
use gfn::nn::Parameters;
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, HostPolicy, MultiHead, Policy, TensorPolicy};
use tch::Tensor;

use crate::errors::call_python;
use crate::inside::check_ending;

/// The shortest time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// The time of the last check for signals.
pub(crate) struct Watch(Mutex<Instant>);

impl Watch {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Checks for signals, unless the last check was at most `PATIENCE` ago. Returns an error if a signal
    /// handler raises an exception, or if the interpreter is about to end.
    pub(crate) fn look(&self) -> Result<()> {
        check_ending()?;
        {
            let mut last_check = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if last_check.elapsed() <= PATIENCE {
                return Ok(());
            }
            *last_check = Instant::now();
        }
        call_python("a signal", |py| py.check_signals())
    }

    /// Wraps a policy so that each evaluation checks for signals.
    pub(crate) fn over<'a, E: Env>(&'a self, policy: &'a dyn Policy<E>) -> Watched<'a, E> {
        Watched { policy, tensors: OnceCell::new(), watch: self }
    }
}

/// A policy that checks for signals before each evaluation.
pub(crate) struct Watched<'a, E> {
    policy: &'a dyn Policy<E>,
    /// The policy's form on tensors, after its first use.
    tensors: OnceCell<WatchedTensors<'a, E>>,
    watch: &'a Watch,
}

impl<E: Env> Policy<E> for Watched<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        self.watch.look()?;
        self.policy.evaluate(env, states, conditions, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        let policy = self.policy.on_host(direction)?;
        Some(Box::new(WatchedHost { policy, watch: self.watch }))
    }

    fn on_tensors(&self, form: &TensorForm<E::States>) -> Option<&dyn TensorPolicy<E>> {
        let policy = self.policy.on_tensors(form)?;
        Some(self.tensors.get_or_init(|| WatchedTensors { policy, watch: self.watch }))
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

/// A policy on the host (CPU), which checks for signals before each evaluation.
struct WatchedHost<'a, E> {
    policy: Box<dyn HostPolicy<E> + 'a>,
    watch: &'a Watch,
}

impl<E: Env> HostPolicy<E> for WatchedHost<'_, E> {
    fn distribution(&self, env: &E, states: &E::States) -> Result<E::Dist> {
        self.watch.look()?;
        self.policy.distribution(env, states)
    }
}

/// A policy that takes states as tensors, and checks for signals before each evaluation.
struct WatchedTensors<'a, E> {
    policy: &'a dyn TensorPolicy<E>,
    watch: &'a Watch,
}

impl<E: Env> TensorPolicy<E> for WatchedTensors<'_, E> {
    fn evaluate_tensors(
        &self,
        form: &TensorForm<E::States>,
        states: &Tensor,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        self.watch.look()?;
        self.policy.evaluate_tensors(form, states, conditions, wants)
    }
}
