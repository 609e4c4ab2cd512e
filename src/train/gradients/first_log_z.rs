//! Where log Z starts.

use tch::{Tensor, no_grad};

use super::{checks, chunked};
use crate::nn::{Parameters, Restored};
use crate::objective::Scoring;
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity};
use crate::rollout::{Container, Trajectories};
use crate::tensor::{log_sum_exp, to_host};
use crate::train::Context;
use crate::train::TrainEnv;
use crate::{Error, Result};

/// Gives log Z, where nobody chose a value for it, what the first batch says of it: the log of the mean importance weight. A log Z that starts
/// hundreds below takes thousands of steps to get there, and the policy learns to bridge the gap meanwhile.
///
/// The weights are those of the `fresh` trajectories, which come first: others weren't drawn by the policy. Where these explore, or are a
/// teacher's, it is a start and no estimate. Replicas take the mean over all. A
/// step that fails takes it back.
pub(in crate::train) fn start_log_z<E: TrainEnv>(
    context: &Context<E>,
    trajectories: &Trajectories<E>,
    fresh: usize,
) -> Result<Option<Restored>> {
    let Context { env, policy, config, .. } = context;
    let (objective, reward) = (context.objective.as_ref(), context.reward.as_ref());
    let unset = policy.parameters().and_then(Parameters::unset_log_z);
    let Some(mut log_z) = unset.filter(|_| context.step == 0 && objective.needs().has(Quantity::LogZ)) else {
        return Ok(None);
    };
    let n = if fresh > 0 { fresh } else { trajectories.len() };
    let chunks = chunked::chunks(&trajectories.select(0..n)?, config.chunk.unwrap_or(usize::MAX))?;
    let has_prior = objective.needs().has(Quantity::LogPrior);
    let needs = if has_prior { Quantity::LogPrior.into() } else { Quantities::NONE };
    let scores = chunked::leaf_scores(env, reward, policy, &chunks, &Scoring { needs, ..context.scoring() });
    let scores = scores.map_err(|error: Error| checks::asked_by(objective, error))?;
    let mine = scores.log_weights(objective.reward_exponent());
    let all: Vec<f64> = context.group.join(&Tensor::from_slice(&mine))?.iter().flat_map(to_host).collect();
    let estimate = log_sum_exp(all.iter().copied()) - (all.len() as f64).ln();
    // What single precision can't hold is refused by the step, which says where it comes from.
    if estimate.is_nan() || estimate.abs() > f64::from(f32::MAX) {
        return Ok(None);
    }
    let before = Restored::keep([&log_z]);
    let _ = no_grad(|| log_z.fill_(estimate));
    Ok(Some(before))
}
