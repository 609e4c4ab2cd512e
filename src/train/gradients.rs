//! One update of a trainer: scores, loss, gradients, optimiser.

use std::time::Instant;

use super::{StepStats, Trainer};
use crate::objective::{Scores, score};
use crate::policy::Policy;
use crate::quantity::{Quantity, Values};
use crate::rollout::{ReplayEnv, Trajectories};
use crate::runtime::flushing_denormals;
use crate::tensor::to_host;
use crate::train::{checks, chunked};
use crate::{Error, Result};

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// One update on a batch, possibly in several epochs. It reports the loss of the first epoch and the times of all.
    pub(super) fn update(
        &mut self,
        trajectories: &Trajectories<E>,
        old: Option<Values>,
        stats: &mut StepStats,
    ) -> Result<Scores> {
        let first = old.is_none();
        let differentiated = match self.thompson {
            None => self.differentiate(trajectories, old, 1.0, stats),
            Some(_) => self.differentiate_heads(trajectories, stats),
        };
        if let (Err(_), Some(parameters)) = (&differentiated, self.policy.parameters()) {
            // Gradients of a failed backward pass must not enter the next step.
            parameters.clear_gradients();
        }
        let (mut scores, loss) = differentiated?;
        // A scalar log Z is a view of its parameter, which is about to change under all who read the scores later.
        if let Some(log_z) = scores.remove(Quantity::LogZ) {
            scores.set(Quantity::LogZ, log_z.detach().copy())?;
        }
        let started = Instant::now();
        let mut grad_norm = 0.0;
        if let Some(optimizer) = &mut self.optimizer {
            optimizer.scale_lr(self.config.lr_scale.at(self.step))?;
            grad_norm = optimizer.step()?.grad_norm;
        }
        stats.seconds[3] += started.elapsed().as_secs_f64();
        if first {
            stats.loss = loss;
            stats.log_z = log_z(&scores, self.objective.reward_exponent());
            stats.states = scores.distinct.1;
            stats.distinct = scores.distinct.0;
            stats.grad_norm = grad_norm;
        }
        Ok(scores)
    }

    /// Adds the gradients of `weight` times the loss of a batch; returns its scores and the loss itself.
    pub(super) fn differentiate(
        &self,
        trajectories: &Trajectories<E>,
        old: Option<Values>,
        weight: f64,
        stats: &mut StepStats,
    ) -> Result<(Scores, f64)> {
        let started = Instant::now();
        let needs = self.objective.needs();
        // Before anything is recorded: the copy's values stand in for the parameters' own meanwhile.
        let by_target = self.ask_lagged(trajectories)?;
        let (env, reward, policy) = (&self.env, self.reward.as_ref(), &self.policy);
        let chunks = self.config.chunk.map(|limit| chunked::chunks(trajectories, limit)).transpose()?;
        let objective = self.objective.as_ref();
        let scored = match &chunks {
            None => score(env, reward, policy, trajectories, needs),
            Some(chunks) => chunked::leaf_scores(env, reward, policy, chunks, needs),
        };
        let mut scores = scored.map_err(|error| checks::asked_by(objective, error))?;
        scores.old = old;
        self.add_intrinsic(trajectories, &mut scores)?;
        scores.set_all(by_target)?;
        let loss = objective.loss(&scores, self.config.regression)?;
        checks::check_loss(objective, &loss)?;
        let value = loss.double_value(&[]);
        if !value.is_finite() {
            return Err(Error::NonFinite {
                what: "loss",
                row: self.step,
                value,
                remedy: "lower the learning rate, clip gradients (`max_norm`), or check the reward's scale",
            });
        }
        let scored = started.elapsed().as_secs_f64();
        let mut has_gradient = loss.requires_grad();
        if has_gradient {
            let weighted = loss * weight;
            flushing_denormals(|| weighted.backward());
        }
        if let Some(chunks) = &chunks {
            has_gradient &= chunked::backward(env, reward, policy, chunks, needs, &scores)?;
        }
        checks::check_gradient(objective, policy.parameters(), has_gradient)?;
        stats.seconds[1] += scored;
        stats.seconds[2] += started.elapsed().as_secs_f64() - scored;
        Ok((scores, value))
    }
}

/// The batch mean of the scores' estimate of log Z.
fn log_z(scores: &Scores, beta: f64) -> f64 {
    let each = log_z_of_each(scores, beta);
    each.iter().sum::<f64>() / each.len().max(1) as f64
}

/// The scores' estimate of log Z for each trajectory: its parameter, log F(s0), the flow out of s0, or the batch mean
/// of log importance weights, with R to the power `beta` if they are relative to a prior.
fn log_z_of_each(scores: &Scores, beta: f64) -> Vec<f64> {
    if let Some(log_z) = scores.get(Quantity::LogZ) {
        return to_host(log_z);
    }
    let starts = &scores.offsets[..scores.len()];
    if let Some(log_flow) = scores.get(Quantity::LogFlow) {
        let ahead = scores.get(Quantity::StateLogReward).map(to_host);
        let log_flow = to_host(log_flow);
        return starts.iter().map(|&row| log_flow[row] + ahead.as_ref().map_or(0.0, |ahead| ahead[row])).collect();
    }
    if let Some(flows) = scores.get(Quantity::LogInitialFlow) {
        return to_host(flows);
    }
    let sum: f64 = scores.log_weights(beta).iter().sum();
    vec![sum / scores.len().max(1) as f64; scores.len()]
}

/// `log Z + sum log P_F - log R - sum log P_B` of each trajectory, with the scores' estimate of log Z; for scores with
/// a prior, `log Z + sum log P_F - beta log R - sum log prior`.
pub(super) fn imbalance_of_each(scores: &Scores, beta: f64) -> Vec<f64> {
    log_z_of_each(scores, beta)
        .into_iter()
        .zip(scores.log_weights(beta))
        .map(|(log_z, weight)| log_z - weight)
        .collect()
}
