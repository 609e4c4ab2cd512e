//! Figures of each trajectory on the host, in double precision: what is reported, and what drawing by loss and teaching go by.

use super::Scores;
use crate::quantity::Quantity;
use crate::tensor::to_host;

impl Scores {
    /// The estimate of log Z that the scores hold for each trajectory: its parameter, log F(s0), the flow out of s0, or the batch's mean
    /// log importance weight, with R to the power `beta` where that is relative to a prior.
    pub(crate) fn log_z_estimates(&self, beta: f64) -> Vec<f64> {
        if let Some(log_z) = self.get(Quantity::LogZ) {
            return to_host(log_z);
        }
        let starts = &self.offsets[..self.len()];
        if let Some(log_flow) = self.get(Quantity::LogFlow) {
            let ahead = self.get(Quantity::StateLogReward).map(to_host);
            let log_flow = to_host(log_flow);
            return starts.iter().map(|&row| log_flow[row] + ahead.as_ref().map_or(0.0, |ahead| ahead[row])).collect();
        }
        if let Some(flows) = self.get(Quantity::LogInitialFlow) {
            return to_host(flows);
        }
        let sum: f64 = self.log_weights(beta).iter().sum();
        vec![sum / self.len().max(1) as f64; self.len()]
    }

    /// Returns the imbalance of each trajectory, for any objective: the estimate of log Z minus the log importance weight,
    /// which is `log Z + sum log P_F - log R - sum log P_B`; if the
    /// scores hold a prior, it is `log Z + sum log P_F - beta log R - sum log prior`.
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

    /// What is relative to a prior goes by log R as it is, everything else by log R |Aut|.
    #[test]
    fn imbalances_are_of_the_reward_that_is_trained_on() {
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
