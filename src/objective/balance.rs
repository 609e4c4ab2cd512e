use tch::Tensor;

use super::{Objective, Residuals, mean_weights, needed};
use crate::Result;
use crate::dist::{segment_ids, segment_sum};
use crate::score::{Needs, Scores};

/// Sum over each trajectory of log P_F - log P_B, `[n]`.
fn log_ratio(scores: &Scores) -> Tensor {
    let ids = segment_ids(&scores.offsets, scores.log_pf.device());
    segment_sum(&(&scores.log_pf - &scores.log_pb), &ids, scores.len())
}

/// Trajectory balance (Malkin et al., *Trajectory Balance*, 2022, eq. 14).
///
/// Residual per trajectory: `log Z + sum log P_F - log R(x) - sum log P_B`. Needs log Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryBalance;

impl Objective for TrajectoryBalance {
    fn name(&self) -> &'static str {
        "trajectory balance"
    }
    fn needs(&self) -> Needs {
        Needs { log_z: true, ..Needs::default() }
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_z = needed(scores.log_z.as_ref(), self.name(), "log Z")?;
        let values = log_z + log_ratio(scores) - &scores.log_reward;
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}

/// Log-partition variance, also called VarGrad (Richter et al. 2020; Zhang et al., *Robust Scheduling with GFlowNets*, 2023).
///
/// With `v = log R(x) + sum log P_B - sum log P_F` an estimate of log Z per trajectory, the residual is `mean(v) - v`: the
/// batch's own mean stands for log Z, with gradient. Needs nothing else; a batch of one trajectory teaches nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPartitionVariance;

impl Objective for LogPartitionVariance {
    fn name(&self) -> &'static str {
        "log-partition variance"
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let estimate = &scores.log_reward - log_ratio(scores);
        let values = estimate.mean(estimate.kind()) - estimate;
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}

/// log F of the state after each transition: the next row's, or the reward behind a trajectory's last.
pub(super) fn next_flow(scores: &Scores, log_flow: &Tensor) -> Tensor {
    let rows = log_flow.size()[0];
    let n = scores.len() as i64;
    // Behind the flows stand the rewards; each last transition points there.
    let all = Tensor::cat(&[log_flow.shallow_clone(), scores.log_reward.shallow_clone()], 0);
    let mut next: Vec<i64> = (1..=rows).collect();
    for (i, end) in (0..n).zip(&scores.offsets[1..]) {
        next[end - 1] = rows + i;
    }
    all.index_select(0, &Tensor::from_slice(&next).to_device(log_flow.device()))
}

/// Detailed balance (Bengio et al., *GFlowNet Foundations*, 2023, eq. 12).
///
/// Residual per transition: `log F(s) + log P_F - log F(s') - log P_B`, with R(x) behind the last one. Needs log F.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetailedBalance;

impl Objective for DetailedBalance {
    fn name(&self) -> &'static str {
        "detailed balance"
    }
    fn needs(&self) -> Needs {
        Needs { log_flow: true, ..Needs::default() }
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_flow = needed(scores.log_flow.as_ref(), self.name(), "state flows log F")?;
        let values = log_flow + &scores.log_pf - next_flow(scores, log_flow) - &scores.log_pb;
        Ok(Residuals { weights: mean_weights(&values), values })
    }
}
