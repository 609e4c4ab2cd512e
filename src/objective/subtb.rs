use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::{Balance, Residuals, StateFlow};
use crate::dist::{from_host, index_tensor};
use crate::score::{Needs, Scores};
use crate::{Error, Result};

/// How much each sub-trajectory counts; `n` is its trajectory's number of transitions, `l` its own.
///
/// Weights sum to 1 over the batch of `N` trajectories, unless the docs of a variant say otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Weighting {
    /// Single transitions only, all equal: detailed balance.
    Db,
    /// Single transitions only, `1 / (n N)` each: every trajectory counts the same.
    ModifiedDb,
    /// Whole trajectories only, `1 / N` each: trajectory balance with log F(s0) for log Z.
    Tb,
    /// All sub-trajectories of the batch, all equal.
    Equal,
    /// `2 / (n (n + 1) N)`: equal within each trajectory, every trajectory the same.
    EqualWithin,
    /// In proportion to `lambda^(l-1)` by length up to the longest of the batch, shared equally among all of that length.
    Geometric {
        /// In `(0, 1]`; small for short sub-trajectories.
        lambda: f64,
    },
    /// In proportion to `lambda^(l-1)` within each trajectory, every trajectory the same (Madan et al. 2023, the default).
    GeometricWithin {
        /// In `(0, 1]`; small for short sub-trajectories.
        lambda: f64,
    },
}

/// Sub-trajectory balance (Madan et al., *Learning GFlowNets from Partial Episodes*, 2023, eq. 8).
///
/// Residual per sub-trajectory from `s_i` to `s_j`: `log F(s_i) + sum log P_F - log F(s_j) - sum log P_B`, with R(x) behind the
/// last transition. Needs log F; forward-looking also rewards of partial states. States are evaluated once; only the scalars of a pair are formed for each sub-trajectory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SubTrajectoryBalance {
    weighting: Weighting,
    flow: StateFlow,
}

impl SubTrajectoryBalance {
    /// With some weighting.
    ///
    /// # Errors
    /// [`Error::Config`] for a lambda outside `(0, 1]`.
    pub fn new(weighting: Weighting) -> Result<Self> {
        match weighting {
            Weighting::Geometric { lambda } | Weighting::GeometricWithin { lambda }
                if !(lambda > 0.0 && lambda <= 1.0) =>
            {
                Err(Error::Config { setting: "lambda", got: lambda.to_string(), expected: "a number in (0, 1]" })
            }
            _ => Ok(Self { weighting, flow: StateFlow::Whole }),
        }
    }

    /// The same with another meaning of the estimator of log F.
    #[must_use]
    pub fn with_flow(self, flow: StateFlow) -> Self {
        Self { flow, ..self }
    }

    /// Calls `pair(trajectory, length, from, to)` for each sub-trajectory that counts; places are within the trajectory.
    fn for_each_pair(&self, lengths: &[usize], mut pair: impl FnMut(usize, usize, usize)) {
        for (i, &n) in lengths.iter().enumerate() {
            let counted = match self.weighting {
                Weighting::Db | Weighting::ModifiedDb => 1..=n.min(1),
                Weighting::Tb => n..=n,
                _ => 1..=n,
            };
            for l in counted {
                for from in 0..=n - l {
                    pair(i, l, from);
                }
            }
        }
    }

    /// The weight of a sub-trajectory of length `l` in a trajectory of `n`, as a function of both.
    fn weights(&self, lengths: &[usize]) -> impl Fn(usize, usize) -> f64 + use<> {
        let n_trajectories = lengths.len().max(1) as f64;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut of_length = vec![0usize; longest + 1];
        for &n in lengths {
            (1..=n).for_each(|l| of_length[l] += n - l + 1);
        }
        let transitions: usize = lengths.iter().sum();
        let pairs: usize = of_length.iter().sum();
        let power = |lambda: f64, l: usize| lambda.powi(l as i32 - 1);
        // Depends on the batch alone.
        let total = match self.weighting {
            Weighting::Geometric { lambda } => (1..=longest).map(|l| power(lambda, l)).sum(),
            _ => 1.0,
        };
        let within: Vec<f64> = match self.weighting {
            Weighting::GeometricWithin { lambda } => {
                // sum over l of (n - l + 1) lambda^(l-1) = the sum over k <= n of the partial sums.
                let mut sums = vec![0.0; longest + 1];
                let mut partial = 0.0;
                for l in 1..=longest {
                    partial += power(lambda, l);
                    sums[l] = sums[l - 1] + partial;
                }
                sums
            }
            _ => Vec::new(),
        };
        let weighting = self.weighting;
        move |n, l| match weighting {
            Weighting::Db => 1.0 / transitions as f64,
            Weighting::ModifiedDb => 1.0 / (n as f64 * n_trajectories),
            Weighting::Tb => 1.0 / n_trajectories,
            Weighting::Equal => 1.0 / pairs as f64,
            Weighting::EqualWithin => 2.0 / ((n * (n + 1)) as f64 * n_trajectories),
            Weighting::Geometric { lambda } => power(lambda, l) / (total * of_length[l] as f64),
            Weighting::GeometricWithin { lambda } => power(lambda, l) / (within[n] * n_trajectories),
        }
    }
}

impl Balance for SubTrajectoryBalance {
    fn name(&self) -> &'static str {
        match self.flow {
            StateFlow::Whole => "sub-trajectory balance",
            StateFlow::ForwardLooking => "forward-looking sub-trajectory balance",
        }
    }

    fn needs(&self) -> Needs {
        self.flow.needs()
    }

    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_flow = self.flow.of(scores, Balance::name(self))?;
        let (kind, device) = (log_flow.kind(), log_flow.device());
        let lengths: Vec<usize> = scores.offsets.windows(2).map(|w| w[1] - w[0]).collect();
        let potential = potential(scores, &log_flow, device);
        let weight = self.weights(&lengths);
        let (mut from_rows, mut to_rows, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        self.for_each_pair(&lengths, |i, l, from| {
            // Trajectory i has one more place than it has transitions.
            let first = scores.offsets[i] + i;
            from_rows.push(first + from);
            to_rows.push(first + from + l);
            weights.push(weight(lengths[i], l));
        });
        let values = potential.index_select(0, &index_tensor(&from_rows, device))
            - potential.index_select(0, &index_tensor(&to_rows, device));
        let values = values.to_kind(kind);
        Ok(Residuals { values, weights: from_host(&weights, kind, device) })
    }
}

/// `log F(s_t) - sum over k < t of (log P_F - log P_B)` at each place of each trajectory, `[transitions + n]`: the residual of a
/// sub-trajectory is the difference of two of them.
fn potential(scores: &Scores, log_flow: &Tensor, device: Device) -> Tensor {
    // In double precision: what came before in the batch is added and taken off again, and must leave no trace.
    let ratio = (&scores.log_pf - &scores.log_pb).to_kind(Kind::Double);
    // Cumulative sums by trajectory: over all rows, less what came before the trajectory.
    let zero = Tensor::zeros([1], (Kind::Double, device));
    let sums = Tensor::cat(&[zero, ratio.cumsum(0, Kind::Double)], 0);
    let flows = Tensor::cat(&[log_flow.shallow_clone(), scores.log_reward.shallow_clone()], 0).to_kind(Kind::Double);
    let rows = *scores.offsets.last().unwrap_or(&0);
    let (mut sum_at, mut start, mut flow_at) = (Vec::new(), Vec::new(), Vec::new());
    for (i, ends) in scores.offsets.windows(2).enumerate() {
        for place in ends[0]..=ends[1] {
            sum_at.push(place);
            start.push(ends[0]);
            flow_at.push(if place == ends[1] { rows + i } else { place });
        }
    }
    let at = |values: &Tensor, rows: &[usize]| values.index_select(0, &index_tensor(rows, device));
    at(&flows, &flow_at) - (at(&sums, &sum_at) - at(&sums, &start))
}
