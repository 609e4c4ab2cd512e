//! Estimates of the log-probabilities of objects, for environments whose states can't be listed.

use tch::Tensor;

use super::log_z::log_weights;
use super::objects::in_batches;
use crate::env::{Env, Forms, Rows};
use crate::policy::Policy;
use crate::rollout::Sampler;
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// Estimates log p(x) for each of these finished objects x, the log-probability that a policy ends in x.
///
/// The probability is `p(x) = E[P_F(tau) / P_B(tau | x)]` over trajectories tau sampled backwards from x by
/// P_B. The estimate is the log of the mean of this ratio over `paths` trajectories per object. The mean is
/// unbiased, but its log is biased downwards. The bias is smaller for more trajectories, and if P_F and P_B
/// are closer to balance; if they balance exactly, one trajectory gives the exact value. Up to isomorphism x
/// is an isomorphism class, and the ratio is divided by |Aut(x)| / |Aut(s0)|, the factor by which training
/// multiplies the reward. If several states are one object
/// ([`Symmetry::forms`](crate::env::Symmetry::forms)), trajectories to each of the object's states are
/// sampled, and p(x) is the sum of the probabilities of these states.
///
/// ```
/// use gfn::{metrics::estimate_log_probs, policy::UniformPolicy, examples::{Chain, Positions}, Rng};
/// let env = Chain::new(4);
/// let log_p = estimate_log_probs(&env, &UniformPolicy, &Positions(vec![0, 1]), 500, &mut Rng::seeded(0))?;
/// // One of three actions exits at 0; 1 is reached by one of three actions, and there one of three exits.
/// assert!((log_p[0] + 3f64.ln()).abs() < 1e-6 && (log_p[1] + 9f64.ln()).abs() < 1e-6);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if there are no objects or `paths` is 0; the errors of
/// [`Symmetry::forms`](crate::env::Symmetry::forms), of sampling and of scoring.
pub fn estimate_log_probs<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    objects: &E::States,
    paths: usize,
    rng: &mut Rng,
) -> Result<Vec<f64>> {
    let mean = |ratios: &[f64]| log_sum_exp(ratios.iter().copied()) - (ratios.len() as f64).ln();
    let log_ratios = path_log_ratios(env, policy, objects, paths, rng)?;
    Ok(log_ratios.iter().map(|ratios| mean(ratios)).collect())
}

/// Returns `log (P_F / P_B)` of trajectories sampled backwards from each of these finished objects, minus the
/// corrections that training adds to log R (for symmetry, and for objects with several states).
///
/// The mean of the exponentials of an object's numbers is an unbiased estimate of the probability that the
/// policy ends in the object; [`estimate_log_probs`] returns its log. The list of an object has `paths`
/// numbers for each of the object's states.
///
/// # Errors
/// [`Error::Config`] if there are no objects or `paths` is 0; the errors of
/// [`Symmetry::forms`](crate::env::Symmetry::forms), of sampling and of scoring.
pub fn path_log_ratios<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    objects: &E::States,
    paths: usize,
    rng: &mut Rng,
) -> Result<Vec<Vec<f64>>> {
    if paths == 0 {
        return Err(Error::config("the number of paths per object", "0", "at least one"));
    }
    let Forms { states, offsets } = match env.symmetry().forms(objects)? {
        Some(forms) => forms,
        None => Forms { states: objects.clone(), offsets: (0..=objects.len()).collect() },
    };
    let sampler = Sampler::new(env, policy);
    // `one` is the reward R = 1, with which the log importance weight of a trajectory is log P_B - log P_F,
    // plus the log of |Aut(x)| if states are isomorphism classes, minus log n for an object with n states.
    // The log-ratio of the trajectory is the negative of this weight. The exponential of a log-ratio
    // estimates n p(state), so the mean of the exponentials over the object's n states estimates the sum of
    // the states' probabilities, p(x).
    let one = |states: &E::States, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let mut values = in_batches(states.len() * paths, rng, |range, rng| {
        let rows: Vec<usize> = range.map(|k| k / paths).collect();
        let trajectories = sampler.backward(&states.select(&rows), rng)?;
        log_weights(env, policy, &one, &trajectories)
    })?;
    for weight in &mut values {
        *weight = -*weight;
    }
    Ok(offsets.windows(2).map(|ends| values[ends[0] * paths..ends[1] * paths].to_vec()).collect())
}
