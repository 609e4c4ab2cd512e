//! Generative augmented flow networks, which add intrinsic rewards to transitions (the edges of the state
//! space) and to terminal states.

use tch::Tensor;

use crate::Result;
use crate::objective::{Objective, Residuals, Scores};
use crate::quantity::{Quantities, Quantity};

/// The terms that both augmented objectives share.
struct AugmentedTerms<'a> {
    /// The intrinsic reward r of each transition, `[transitions]`.
    edges: &'a Tensor,
    /// log F of the state before each transition, `[transitions]`.
    log_flow: &'a Tensor,
    /// log(R(x) + r(x)) of each trajectory, `[n]`, where r(x) is the intrinsic reward of the terminal state.
    log_reward: Tensor,
    /// log F of the state after each transition, `[transitions]`. After the last transition of a trajectory
    /// it is log(R(x) + r(x)).
    next_flow: Tensor,
}

impl<'a> AugmentedTerms<'a> {
    fn new(scores: &'a Scores, objective: &'static str) -> Result<Self> {
        let log_flow = scores.need(Quantity::LogFlow, objective)?;
        let edges = scores.need(Quantity::IntrinsicEdge, objective)?;
        let terminal = scores.need(Quantity::IntrinsicTerminal, objective)?;
        let log_reward = scores.log_reward.logaddexp(&terminal.log());
        let next_flow = scores.behind(log_flow, &log_reward);
        Ok(Self { edges, log_flow, log_reward, next_flow })
    }
}

/// Trajectory balance with intrinsic rewards (Pan et al., *Generative Augmented Flow Networks*, 2023; the
/// paper's edge-based form has no rewards of terminal states).
///
/// The residual of a trajectory is `log Z + sum log P_F - log(R(x) + r(x)) - sum log(P_B(s | s') + r(s -> s')
/// / F(s'))`, with sums over the transitions s -> s'. P_B of the exit action is 1. The objective needs log Z,
/// log F and intrinsic rewards (`Intrinsic` in the package `gfn-extras`).
///
/// Intrinsic rewards **change the target**: while they aren't 0, the policy for which all residuals vanish
/// doesn't sample from R / Z, but from the distribution of the flows `F(s) = R(s) + r(s) [if s can end] + sum
/// over s' of F(s') P_B(s | s') + r(s -> s')`. If all intrinsic rewards are 0, this objective equals
/// [`TrajectoryBalance`](super::TrajectoryBalance) bit for bit.
///
/// Intrinsic rewards of transitions and of terminal states have separate coefficients. torchgfn's example
/// uses either rewards of terminal states alone, or rewards of transitions that include a reward of the
/// terminal state. Without exit action the flow after the last transition is known to be `R(x) + r(x)`.
///
/// This example computes the residual of one trajectory of one transition and an exit by hand:
///
/// ```
/// use gfn::objective::{AugmentedTrajectoryBalance, Objective, Scores};
/// use gfn::objective::Quantity;
/// use tch::Tensor;
/// let log = |p: &[f64]| Tensor::from_slice(p).log();
/// let mut scores = Scores::new(vec![0, 2], log(&[0.5, 0.25]), log(&[0.75, 1.0]), log(&[3.0]));
/// scores.set(Quantity::LogZ, log(&[8.0]))?;
/// scores.set(Quantity::LogFlow, log(&[8.0, 4.0]))?;
/// scores.set(Quantity::IntrinsicEdge, Tensor::from_slice(&[1.0, 0.0]))?;
/// scores.set(Quantity::IntrinsicTerminal, Tensor::from_slice(&[2.0]))?;
/// let residual = AugmentedTrajectoryBalance.residuals(&scores)?.values.double_value(&[0]);
/// // 8 * 0.5 * 0.25 over (3 + 2) * (0.75 + 1 / 4).
/// assert!((residual - (1f64 / 5.0).ln()).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AugmentedTrajectoryBalance;

impl Objective for AugmentedTrajectoryBalance {
    fn name(&self) -> &'static str {
        "augmented trajectory balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogZ | Quantity::LogFlow | Quantity::IntrinsicEdge | Quantity::IntrinsicTerminal
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_z = scores.need(Quantity::LogZ, self.name())?;
        let AugmentedTerms { edges, log_reward, next_flow, .. } = AugmentedTerms::new(scores, self.name())?;
        let backward = scores.log_pb.logaddexp(&(edges.log() - next_flow));
        Ok(Residuals::mean(log_z + scores.sums(&(&scores.log_pf - backward)) - log_reward))
    }
}

/// Detailed balance with intrinsic rewards (Pan et al., *Generative Augmented Flow Networks*, 2023).
///
/// The residual of a transition is `log(F(s) P_F(s' | s)) - log(F(s') P_B(s | s') + r(s -> s'))`, with
/// `R(x) + r(x)` for F(s') in the last transition. The objective needs log F and intrinsic rewards;
/// [`AugmentedTrajectoryBalance`] explains how intrinsic rewards change the target. If all intrinsic rewards
/// are 0, this objective equals [`DetailedBalance`](super::DetailedBalance).
///
/// All residuals of this objective vanish for a single F only. The residuals of `AugmentedTrajectoryBalance`
/// may also vanish for another F.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AugmentedDetailedBalance;

impl Objective for AugmentedDetailedBalance {
    fn name(&self) -> &'static str {
        "augmented detailed balance"
    }
    fn needs(&self) -> Quantities {
        Quantity::LogFlow | Quantity::IntrinsicEdge | Quantity::IntrinsicTerminal
    }
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let AugmentedTerms { edges, log_flow, next_flow, .. } = AugmentedTerms::new(scores, self.name())?;
        let backward = (next_flow + &scores.log_pb).logaddexp(&edges.log());
        Ok(Residuals::mean(log_flow + &scores.log_pf - backward))
    }
}
