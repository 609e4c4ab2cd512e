use std::f64::consts::TAU;

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Reals, Rows};
use gfn::tensor::{from_host, index_tensor};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::Line;
use super::env::illegal;
use crate::continuous::{check_mixture, check_no_exit_bias, check_rows, check_width, component, finite};

/// The standard deviation of the steps of a policy without a network. The line has no uniform distribution,
/// so such a policy takes Gaussian steps with this large standard deviation instead.
const WIDE: f64 = 3.0;

/// Settings of the mixtures of Gaussians that the length of a step follows.
///
/// A network gives `3 K` outputs for each state: `K` logits, `K` means, and `K` raw deviations. A standard
/// deviation is `min_std + (max_std - min_std) sigmoid(raw)`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct NormalMixtures {
    /// The number K of components of each mixture.
    pub components: usize,
    /// The smallest standard deviation of a component.
    pub min_std: f64,
    /// The largest standard deviation of a component.
    pub max_std: f64,
}

impl NormalMixtures {
    pub(super) fn check(&self) -> Result<()> {
        check_mixture(self.components, "standard deviations", self.min_std, self.max_std)
    }

    fn std(&self, raw: f64) -> f64 {
        self.min_std + (self.max_std - self.min_std) / (1.0 + (-raw).exp())
    }
}

/// The distribution of P_F or P_B on the line: the length of a step follows a mixture of Gaussians. The
/// backward step from time 1 always leads to 0.
///
/// Without a network the length of a step is Gaussian with mean 0 and standard deviation 3.
#[derive(Debug)]
pub struct LineDist {
    env: Line,
    direction: Direction,
    states: Reals,
    heads: Option<(NormalMixtures, Tensor)>,
}

impl LineDist {
    /// Builds the distribution from the outputs of a network, `[states, 3 K]`.
    ///
    /// # Errors
    /// [`Error::Shape`] for states or outputs of another shape, [`Error::Config`] for invalid settings.
    pub fn new(
        env: Line,
        direction: Direction,
        states: Reals,
        mixtures: NormalMixtures,
        outputs: Tensor,
    ) -> Result<Self> {
        mixtures.check()?;
        check_width(&states, 2)?;
        let expected = [states.len() as i64, 3 * mixtures.components as i64];
        if outputs.size() == expected {
            Ok(Self { env, direction, states, heads: Some((mixtures, outputs)) })
        } else {
            Err(Error::shape(
                "the outputs of the line's network",
                expected.to_vec(),
                outputs.size(),
                "let the network return K logits, K means and K raw deviations: see `NormalMixtures`",
            ))
        }
    }

    /// Builds the distribution without a network: the length of a step follows N(0, 3^2) in all states. The
    /// backward step from time 1 leads to 0.
    #[must_use]
    pub fn uniform(env: Line, direction: Direction, states: Reals) -> Self {
        Self { env, direction, states, heads: None }
    }

    fn is_forced(&self, state: &[f64]) -> bool {
        self.direction == Direction::Backward && self.env.is_forced_back(state)
    }

    /// Draws the length of a step from the mixture of one state.
    fn draw(
        mixtures: &NormalMixtures,
        values: &[f64],
        row: usize,
        exploration: &Exploration,
        rng: &mut Rng,
    ) -> Result<f64> {
        let k = mixtures.components;
        let temperature = exploration.temperature();
        let component = component(row, &values[..k], temperature, rng)?;
        // A Gaussian density to the power 1 / T is, after normalisation, a Gaussian with T times the
        // variance.
        let std = mixtures.std(finite(row, values[2 * k + component])?) * temperature.sqrt();
        let std = std.hypot(exploration.noise());
        Ok(finite(row, values[k + component])? + std * rng.normal())
    }
}

impl Distribution for LineDist {
    type Actions = Reals;

    /// Draws a step from the wide Gaussian, N(0, 3^2), with probability epsilon. The temperature divides
    /// logits and multiplies variances, and the noise is added to every standard deviation in quadrature. An
    /// exit bias is refused, because there is no exit.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Reals> {
        check_width(&self.states, 2)?;
        check_rows(self.states.len(), rows, None)?;
        check_no_exit_bias(
            exploration,
            "0, because a line has no exit; it is explored by epsilon, temperature and `noise`",
        )?;
        let host = match &self.heads {
            Some((mixtures, outputs)) => Some((mixtures, Reals::from_tensor(outputs)?)),
            None => None,
        };
        let epsilon = exploration.epsilon_value();
        let mut points = Reals::filled(1, rows.len(), 0.0);
        for (point, &row) in points.values_mut().iter_mut().zip(rows) {
            let state = self.states.row(row);
            if self.is_forced(state) {
                continue;
            }
            let wide = epsilon > 0.0 && rng.uniform() < epsilon;
            let length = match host.as_ref().filter(|_| !wide) {
                Some((mixtures, values)) => Self::draw(mixtures, values.row(row), row, exploration, rng)?,
                None => WIDE.hypot(exploration.noise()) * rng.normal(),
            };
            let sign = if self.direction == Direction::Forward { 1.0 } else { -1.0 };
            *point = state[0] + sign * length;
        }
        Ok(points)
    }

    fn log_prob(&self, rows: &[usize], actions: &Reals) -> Result<Tensor> {
        check_width(&self.states, 2)?;
        check_rows(self.states.len(), rows, Some((actions, 1)))?;
        let mut lengths = Vec::with_capacity(rows.len());
        let mut free = Vec::with_capacity(rows.len());
        let sign = if self.direction == Direction::Forward { 1.0 } else { -1.0 };
        for (&row, action) in rows.iter().zip(actions.rows()) {
            let state = self.states.row(row);
            let forced = self.is_forced(state);
            if !action[0].is_finite() || (forced && action[0] != 0.0) {
                return Err(illegal(
                    row,
                    self.direction,
                    state,
                    action[0],
                    "the policy has no density there",
                ));
            }
            lengths.push(sign * (action[0] - state[0]));
            free.push(f64::from(u8::from(!forced)));
        }
        let normaliser = 0.5 * TAU.ln();
        let Some((mixtures, outputs)) = &self.heads else {
            let log_prob =
                |(x, free): (&f64, &f64)| free * (-0.5 * (x / WIDE).powi(2) - WIDE.ln() - normaliser);
            let values: Vec<f64> = lengths.iter().zip(&free).map(log_prob).collect();
            return Ok(Tensor::from_slice(&values));
        };
        let kind = outputs.kind();
        let device = outputs.device();
        let heads =
            outputs.index_select(0, &index_tensor(rows, device)).view([-1, 3, mixtures.components as i64]);
        let lengths = from_host(&lengths, kind, device).unsqueeze(1);
        let std = heads.select(1, 2).sigmoid() * (mixtures.max_std - mixtures.min_std) + mixtures.min_std;
        let scaled = (lengths - heads.select(1, 1)) / &std;
        let each = heads.select(1, 0).log_softmax(-1, kind) - scaled.square() * 0.5 - std.log();
        Ok((each.logsumexp(-1, false) - normaliser) * from_host(&free, kind, device))
    }
}
