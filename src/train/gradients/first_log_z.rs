//! The first value of log Z.

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

/// Sets log Z to the importance estimate of the first batch, unless the user chose a value: the log of the mean importance weight. A log Z that
/// starts hundreds too low needs thousands of steps to get there, and the policy learns to bridge the gap meanwhile.
///
/// The weights are those of the `fresh` trajectories, which come first, because the policy didn't sample the others. If they explore or come
/// from another policy, the value is a start and no estimate. Replicas use the mean over all. Dropping the result restores the unset value.
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
    let chunks = chunked::split(&trajectories.select(0..n)?, config.chunk.unwrap_or(usize::MAX))?;
    let has_prior = objective.needs().has(Quantity::LogPrior);
    let needs = if has_prior { Quantity::LogPrior.into() } else { Quantities::NONE };
    let scores = chunked::leaf_scores(env, reward, policy, &chunks, &Scoring { needs, ..context.scoring() });
    let scores = scores.map_err(|error: Error| checks::name_objective(objective, error))?;
    let mine = scores.log_weights(objective.reward_exponent());
    let all: Vec<f64> = context.group.join(&Tensor::from_slice(&mine))?.iter().flat_map(to_host).collect();
    let estimate = log_sum_exp(all.iter().copied()) - (all.len() as f64).ln();
    // `score` refuses such values and names their cause.
    if estimate.is_nan() || estimate.abs() > f64::from(f32::MAX) {
        return Ok(None);
    }
    let before = Restored::keep([&log_z]);
    let _ = no_grad(|| log_z.fill_(estimate));
    Ok(Some(before))
}
