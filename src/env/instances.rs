//! The instances in which trajectories start ([`Env::n_instances`]).

use crate::env::Env;
use crate::{Error, Result, Rng};

/// Returns an instance for each of `n` trajectories. All instances are used in turn.
pub(crate) fn instances_in_turn<E: Env>(env: &E, n: usize) -> Vec<u32> {
    (0..env.n_instances().max(1)).cycle().take(n).collect()
}

/// Draws an instance for each of `n` trajectories, uniformly. Consumes no random numbers if there is only one
/// instance.
pub(crate) fn draw_instances<E: Env>(env: &E, n: usize, rng: &mut Rng) -> Vec<u32> {
    match env.n_instances() {
        0 | 1 => vec![0; n],
        several => (0..n).map(|_| rng.below(several as usize) as u32).collect(),
    }
}

/// Checks that the environment has each of these instances.
pub(crate) fn check_instances<E: Env>(env: &E, instances: &[u32]) -> Result<()> {
    let known = env.n_instances();
    match instances.iter().find(|&&instance| instance >= known) {
        Some(&instance) => Err(Error::out_of_range(instance as usize, known as usize)),
        None => Ok(()),
    }
}

/// Returns an error for an environment of several instances. Functions that return a single distribution or
/// log Z make this check.
pub(crate) fn check_one_instance<E: Env>(env: &E, expected: &'static str) -> Result<()> {
    match env.n_instances() {
        0 | 1 => Ok(()),
        several => Err(Error::config("the number of instances of the environment", several, expected)),
    }
}
