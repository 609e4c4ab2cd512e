//! Estimates of log Z and of the imbalance of each trajectory, on the host, in double precision. Reports,
//! replay priorities and the adaptive teacher of the package `gfn-extras` use these estimates.

use super::Scores;
use crate::quantity::Quantity;
use crate::tensor::to_host;

impl Scores {
    /// Returns an estimate of log Z for each trajectory. The estimate is the first of these that the scores
    /// have: the policy's log Z, its log F(s0), the log of the edge flows out of s0. If the scores have none
    /// of these, the estimate is the mean log importance weight of the batch, with R to the power `beta` if
    /// the scores have a prior.
    pub(crate) fn log_z_estimates(&self, beta: f64) -> Vec<f64> {
        if let Some(log_z) = self.get(Quantity::LogZ) {
            return to_host(log_z);
        }
        let starts = &self.offsets[..self.len()];
        if let Some(log_flow) = self.get(Quantity::LogFlow) {
            let log_flow = to_host(log_flow);
            // If the policy's log F is forward-looking, it doesn't contain the reward of the state, so log
            // R(s0) is added.
            let rewards = self.get(Quantity::StateLogReward).map(to_host);
            let reward_at = |row: usize| rewards.as_ref().map_or(0.0, |rewards| rewards[row]);
            return starts.iter().map(|&row| log_flow[row] + reward_at(row)).collect();
        }
        if let Some(flows) = self.get(Quantity::LogInitialFlow) {
            return to_host(flows);
        }
        let sum: f64 = self.log_weights(beta).iter().sum();
        vec![sum / self.len().max(1) as f64; self.len()]
    }

    /// Returns the imbalance of each trajectory, for any objective. The imbalance is the estimate of log Z
    /// minus the log importance weight: `log Z + sum log P_F - log R - sum log P_B`. If the scores have a
    /// prior, the imbalance is `log Z + sum log P_F - beta log R - sum log prior`.
    pub fn imbalances(&self, beta: f64) -> Vec<f64> {
        self.log_z_estimates(beta)
            .into_iter()
            .zip(self.log_weights(beta))
            .map(|(log_z, weight)| log_z - weight)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use tch::Tensor;

    use super::*;

    /// Checks that imbalances relative to a prior use the uncorrected log R, and that all other imbalances
    /// use the corrected log R.
    #[test]
    fn imbalances_use_the_reward_of_training() {
        let [log_pf, log_pb, log_reward] =
            [[-1.0, -2.0], [-0.5, 0.0], [3.0, 1.0]].map(|values| Tensor::from_slice(&values));
        let mut scores = Scores::new(vec![0, 1, 2], log_pf, log_pb, log_reward);
        scores.raw_log_reward = Tensor::from_slice(&[2.0, 1.0]);
        scores.set(Quantity::LogZ, Tensor::from_slice(&[4.0, 4.0])).unwrap();
        assert_eq!(scores.imbalances(0.5), [4.0 - (3.0 - 0.5 + 1.0), 4.0 - (1.0 + 2.0)]);
        scores.set(Quantity::LogPrior, Tensor::from_slice(&[-0.25, -4.0])).unwrap();
        assert_eq!(scores.imbalances(0.5), [4.0 - (1.0 - 0.25 + 1.0), 4.0 - (0.5 - 4.0 + 2.0)]);
    }
}
