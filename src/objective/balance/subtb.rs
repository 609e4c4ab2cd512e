use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::{Kind, Tensor};

use super::StateFlow;
use crate::Result;
use crate::error::check_setting;
use crate::objective::{Objective, RegressionLoss, Residuals, Scores, as_json};
use crate::quantity::Quantities;
use crate::tensor::{from_host, select_rows, to_host};

/// The choice of the weights of sub-trajectories' residuals. `n` is the number of transitions of the whole
/// trajectory, and `l` is the number of transitions of the sub-trajectory.
///
/// The weights of all sub-trajectories of a batch of `N` trajectories sum to 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Weighting {
    /// Single transitions only, all with equal weight. This is detailed balance.
    Db,
    /// Single transitions only, with weight `1 / (n N)`, so that the weights of each trajectory have the same
    /// sum.
    ModifiedDb,
    /// Whole trajectories only, with weight `1 / N`. This is trajectory balance with log F(s0) as log Z.
    Tb,
    /// All sub-trajectories of the batch, all with equal weight.
    Equal,
    /// All sub-trajectories, with weight `2 / (n (n + 1) N)`. Weights are equal within each trajectory, and
    /// the weights of each trajectory have the same sum.
    EqualWithin,
    /// All sub-trajectories. The length `l` gets a total weight proportional to `lambda^(l-1)`, which all
    /// sub-trajectories of this length in the batch share equally. Lengths range from 1 to the length of the
    /// longest trajectory.
    Geometric {
        /// The factor from the total weight of a length to the total weight of the next length, in `(0, 1]`.
        /// A small value favours short sub-trajectories.
        lambda: f64,
    },
    /// All sub-trajectories. Within each trajectory the weight is proportional to `lambda^(l-1)`, and the
    /// weights of each trajectory have the same sum. This is the weighting of Madan et al. 2023.
    GeometricWithin {
        /// The factor by which the weight is multiplied for each further transition of a sub-trajectory, in
        /// `(0, 1]`. A small value favours short sub-trajectories.
        lambda: f64,
    },
}

/// Sub-trajectory balance (Madan et al., *Learning GFlowNets from Partial Episodes*, 2023, eq. 8).
///
/// The residual of the sub-trajectory from `s_i` to `s_j` is `log F(s_i) + sum log P_F - log F(s_j) - sum log
/// P_B`, with R(x) for F(s_j) after the last transition. The objective needs log F; in the forward-looking
/// form it also needs rewards of partial states. The loss visits all pairs of states of a trajectory without
/// storing them: memory is linear in the length of trajectories, time is quadratic. Second derivatives aren't
/// available. [`residuals`](Objective::residuals) stores all pairs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SubTrajectoryBalance {
    weighting: Weighting,
    flow: StateFlow,
}

impl SubTrajectoryBalance {
    /// Returns sub-trajectory balance with this weighting.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a lambda outside `(0, 1]`.
    pub fn new(weighting: Weighting) -> Result<Self> {
        if let Weighting::Geometric { lambda } | Weighting::GeometricWithin { lambda } = weighting {
            check_setting("lambda", lambda, lambda > 0.0 && lambda <= 1.0, "a number in (0, 1]")?;
        }
        Ok(Self { weighting, flow: StateFlow::Whole })
    }

    /// Sets the meaning of the state-flow estimator. The default is [`StateFlow::Whole`].
    #[must_use]
    pub fn with_flow(self, flow: StateFlow) -> Self {
        Self { flow, ..self }
    }

    /// Returns the lengths of the sub-trajectories whose weight isn't 0, in a trajectory of `n` transitions.
    fn weighted_lengths(&self, n: usize) -> std::ops::RangeInclusive<usize> {
        match self.weighting {
            Weighting::Db | Weighting::ModifiedDb => 1..=n.min(1),
            Weighting::Tb => n..=n,
            _ => 1..=n,
        }
    }

    /// Computes the loss from the [potentials](compute_potentials), and its derivative with respect to each
    /// potential. Time is quadratic in the lengths of trajectories.
    fn cost(
        &self,
        potentials: &[f64],
        lengths: &[usize],
        regression: &dyn RegressionLoss,
    ) -> Result<(f64, Vec<f64>)> {
        let weight = self.weights(lengths);
        let mut loss = 0.0;
        let mut slopes = vec![0.0; potentials.len()];
        let mut first = 0;
        for &n in lengths {
            let at = &potentials[first..=first + n];
            let slopes = &mut slopes[first..=first + n];
            for l in self.weighted_lengths(n) {
                let weight = weight(n, l);
                let residuals: Vec<f64> = at.iter().zip(&at[l..]).map(|(from, to)| from - to).collect();
                let (costs, derivatives) = regression.costs(&residuals)?;
                for (from, slope) in derivatives.into_iter().enumerate() {
                    slopes[from] += weight * slope;
                    slopes[from + l] -= weight * slope;
                }
                loss += weight * costs.iter().sum::<f64>();
            }
            // A trajectory of n transitions has n + 1 potentials, one for each of its states.
            first += n + 1;
        }
        Ok((loss, slopes))
    }

    /// Returns the function that maps `n` and `l` to the weight of a sub-trajectory of length `l` in a
    /// trajectory of `n` transitions.
    fn weights(&self, lengths: &[usize]) -> impl Fn(usize, usize) -> f64 + use<> {
        let n_trajectories = lengths.len().max(1) as f64;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut n_of_length = vec![0usize; longest + 1];
        for &n in lengths {
            (1..=n).for_each(|l| n_of_length[l] += n - l + 1);
        }
        let transitions: usize = lengths.iter().sum();
        let pairs: usize = n_of_length.iter().sum();
        let power = |lambda: f64, l: usize| lambda.powi(l as i32 - 1);
        // With `Geometric` the total weight of a length is lambda^(l-1), divided by the sum of lambda^(l-1)
        // over all lengths `l` up to the longest trajectory of the batch. This sum is computed once.
        let total = match self.weighting {
            Weighting::Geometric { lambda } => (1..=longest).map(|l| power(lambda, l)).sum(),
            _ => 1.0,
        };
        let within: Vec<f64> = match self.weighting {
            Weighting::GeometricWithin { lambda } => {
                // The divisor that makes the weights of a trajectory of n transitions sum to 1 (before they
                // are divided by the number of trajectories) is the sum over l of (n - l + 1) lambda^(l-1).
                // It is computed as a sum over k from 1 to n, whose terms are the sums of lambda^(l-1) over l
                // from 1 to k.
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
            Weighting::Geometric { lambda } => power(lambda, l) / (total * n_of_length[l] as f64),
            Weighting::GeometricWithin { lambda } => power(lambda, l) / (within[n] * n_trajectories),
        }
    }
}

impl Objective for SubTrajectoryBalance {
    fn name(&self) -> &'static str {
        match self.flow {
            StateFlow::Whole => "sub-trajectory balance",
            StateFlow::ForwardLooking => "forward-looking sub-trajectory balance",
        }
    }

    fn needs(&self) -> Quantities {
        self.flow.needs()
    }

    fn settings(&self) -> Value {
        as_json(self)
    }

    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let log_flow = self.flow.log_flow(scores, self.name())?;
        let kind = log_flow.kind();
        let device = log_flow.device();
        let lengths = trajectory_lengths(scores);
        let potentials = compute_potentials(scores, &log_flow);
        let weight = self.weights(&lengths);
        let mut from_rows = Vec::new();
        let mut to_rows = Vec::new();
        let mut weights = Vec::new();
        let mut first = 0;
        for &n in &lengths {
            for l in self.weighted_lengths(n) {
                from_rows.extend(first..=first + n - l);
                to_rows.extend(first + l..=first + n);
                weights.resize(from_rows.len(), weight(n, l));
            }
            first += n + 1;
        }
        let values = select_rows(&potentials, &from_rows) - select_rows(&potentials, &to_rows);
        Ok(Residuals { values: values.to_kind(kind), weights: from_host(&weights, kind, device) })
    }

    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let log_flow = self.flow.log_flow(scores, self.name())?;
        let kind = log_flow.kind();
        let device = log_flow.device();
        let potentials = compute_potentials(scores, &log_flow);
        let (loss, slopes) = self.cost(&to_host(&potentials), &trajectory_lengths(scores), regression)?;
        // `cost` computes the loss and its derivatives outside of autograd. The sum of potentials times these
        // derivatives has the gradient of the loss, so only this sum is recorded. Its detached copy cancels
        // its value exactly, so the returned value is `loss`.
        let product = (&potentials * from_host(&slopes, Kind::Double, device)).sum(Kind::Double);
        Ok((&product - product.detach() + loss).to_kind(kind))
    }
}

fn trajectory_lengths(scores: &Scores) -> Vec<usize> {
    scores.offsets.windows(2).map(|ends| ends[1] - ends[0]).collect()
}

/// Returns the potential `log F(s_t) - sum over k < t of (log P_F - log P_B)` of each state of each
/// trajectory, `[transitions + n]`. The residual of a sub-trajectory is the difference of two potentials.
fn compute_potentials(scores: &Scores, log_flow: &Tensor) -> Tensor {
    // The cumulative sums are computed in double precision. In single precision the subtraction below would
    // leave a rounding error.
    let ratio = (&scores.log_pf - &scores.log_pb).to_kind(Kind::Double);
    // The cumulative sum within a trajectory is the cumulative sum over all transitions of the batch, minus
    // the sum over the transitions before the trajectory.
    let zero = Tensor::zeros([1], (Kind::Double, log_flow.device()));
    let sums = Tensor::cat(&[zero, ratio.cumsum(0, Kind::Double)], 0);
    let flows =
        Tensor::cat(&[log_flow.shallow_clone(), scores.log_reward.shallow_clone()], 0).to_kind(Kind::Double);
    let rows = *scores.offsets.last().unwrap_or(&0);
    let mut sum_at = Vec::new();
    let mut start = Vec::new();
    let mut flow_at = Vec::new();
    for (i, ends) in scores.offsets.windows(2).enumerate() {
        for place in ends[0]..=ends[1] {
            sum_at.push(place);
            start.push(ends[0]);
            flow_at.push(if place == ends[1] { rows + i } else { place });
        }
    }
    select_rows(&flows, &flow_at) - (select_rows(&sums, &sum_at) - select_rows(&sums, &start))
}
