//! Sampling objects from a policy, in batches.

use std::ops::Range;

use crate::env::{Env, Rows};
use crate::policy::Policy;
use crate::rollout::Sampler;
use crate::{Error, Result, Rng};

/// The number of trajectories that are sampled and scored at once. Each batch of this size gets a separate
/// random stream.
const BATCH: usize = 1024;

/// Samples `n` objects from a policy. Trajectories are sampled in batches, so that memory for trajectories
/// doesn't grow with `n`.
///
/// ```
/// use gfn::{env::Rows, metrics::sample_objects, policy::UniformPolicy, examples::word_env, Rng};
/// let env = word_env(2, 3);
/// assert_eq!(sample_objects(&env, &UniformPolicy, 1_500, &mut Rng::seeded(0))?.len(), 1_500);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// The errors of the [sampler](Sampler).
pub fn sample_objects<E: Env>(env: &E, policy: &dyn Policy<E>, n: usize, rng: &mut Rng) -> Result<E::States> {
    let sampler = Sampler::new(env, policy);
    let mut out = env.initial(&[]);
    for (range, mut rng) in batches(n, rng) {
        out.append(sampler.forward(range.len(), &mut rng)?.terminal_states().clone());
    }
    Ok(out)
}

/// Computes a number for each of `n` samples, batch by batch. `compute` returns the numbers of a range of
/// samples.
pub(super) fn in_batches(
    n: usize,
    rng: &mut Rng,
    mut compute: impl FnMut(Range<usize>, &mut Rng) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    if n == 0 {
        return Err(Error::config("the list of trajectories to estimate from", "none", "at least one"));
    }
    let mut out = Vec::with_capacity(n);
    for (range, mut rng) in batches(n, rng) {
        out.extend(compute(range, &mut rng)?);
    }
    Ok(out)
}

/// Divides `n` samples into batches. Returns the range of samples and the random stream of each batch.
fn batches(n: usize, rng: &mut Rng) -> Vec<(Range<usize>, Rng)> {
    (0..n).step_by(BATCH).map(|start| (start..n.min(start + BATCH), rng.split())).collect()
}
