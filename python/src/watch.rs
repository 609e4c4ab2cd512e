//! Looks for Ctrl-C in the middle of what takes long.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gfn::Result;
use gfn::env::{Direction, Env};
use gfn::nn::Parameters;
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, HostPolicy, Policy};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::passed_on;
use crate::inside::check_ending;

/// How long Ctrl-C may wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// When signals were last looked at.
pub(crate) struct Watch(Mutex<Instant>);

impl Watch {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Looks at signals, unless that was just done; an error where one of them raises something.
    pub(crate) fn look(&self) -> Result<()> {
        check_ending()?;
        {
            let mut looked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() <= PATIENCE {
                return Ok(());
            }
            *looked = Instant::now();
        }
        Python::attach(|py| py.check_signals()).map_err(passed_on("a signal"))
    }

    /// A policy that looks whenever it is asked.
    pub(crate) fn over<'a, P>(&'a self, policy: &'a P) -> Watched<'a, P> {
        Watched { of: policy, watch: self }
    }
}

/// A policy or its form on the host, which looks at signals before each answer.
pub(crate) struct Watched<'a, P: ?Sized> {
    of: &'a P,
    watch: &'a Watch,
}

impl<E, P> Policy<E> for Watched<'_, P>
where
    E: Env + 'static,
    P: Policy<E>,
    P::Dist: 'static,
{
    type Dist = P::Dist;

    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<P::Dist>> {
        self.watch.look()?;
        self.of.evaluate(env, states, conditions, wants)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E, P::Dist> + '_>> {
        let of = self.of.on_host(direction)?;
        Some(Box::new(WatchedHost { of, watch: self.watch }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.of.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        self.of.parameters()
    }
}

struct WatchedHost<'a, E: Env, D> {
    of: Box<dyn HostPolicy<E, D> + 'a>,
    watch: &'a Watch,
}

impl<E: Env, D> HostPolicy<E, D> for WatchedHost<'_, E, D> {
    fn distribution(&self, env: &E, states: &E::States) -> Result<D> {
        self.watch.look()?;
        self.of.distribution(env, states)
    }
}
