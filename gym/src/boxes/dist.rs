use std::collections::BTreeMap;

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Reals, Rows};
use gfn::{Error, Result, Rng};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::chart::{Axes, Support, inner, is_source};
use super::env::illegal;
use super::heads::{Head, Heads, ScoredStep};
use super::{BoxEnv, Geometry};
use crate::continuous::{check_mixture, check_rows, check_width, component, finite};

/// The relation between the axes in a mixture: joint components, or separate components for each axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coupling {
    /// A single mixture over all axes. Each component is a product of Betas, one for each axis, and has its
    /// mass around one point of the box.
    Joint,
    /// A product of mixtures, one for each axis, as in torchgfn. The modes of the product lie at all
    /// combinations of the modes of the axes, in rows and columns.
    PerAxis,
}

/// Settings of the Beta mixtures of a step's unit coordinates (numbers in [0, 1] that determine the point
/// that the step leads to). The same network gives the probability of the exit. In the backward direction the
/// step to the source takes the place of the exit.
///
/// A network gives `1 + (1 + 2 n) K` outputs for each state if the components are joint: a logit of the exit,
/// `K` logits of the components, then for each of `n` axes `K` raw alphas, then for each axis `K` raw betas.
/// With components per axis the network gives `1 + 3 n K` outputs, because each axis has its own `K` logits
/// of components. A concentration (alpha or beta) is `min + (max - min) sigmoid(raw)`, with `raw` its raw
/// parameter. Along an arc the second axis is the angle, and the first axis is not used.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BetaMixtures {
    /// The relation between the axes in a mixture.
    pub coupling: Coupling,
    /// The number K of components of a mixture. If axes have separate mixtures, each of them has K
    /// components.
    pub components: usize,
    /// The smallest value of the parameters alpha and beta.
    pub min_concentration: f64,
    /// The largest value of the parameters alpha and beta.
    pub max_concentration: f64,
}

impl BetaMixtures {
    pub(super) fn check(&self) -> Result<()> {
        check_mixture(self.components, "concentrations", self.min_concentration, self.max_concentration)
    }

    /// Returns the number of network outputs per state in a box of `ndim` axes.
    #[must_use]
    pub fn width(&self, ndim: usize) -> usize {
        1 + (self.choices(ndim) + 2 * ndim) * self.components
    }

    /// Returns the number of components that must be drawn for an action: a single component if components
    /// are joint, otherwise a component per axis.
    pub(super) fn choices(&self, ndim: usize) -> usize {
        match self.coupling {
            Coupling::Joint => 1,
            Coupling::PerAxis => ndim,
        }
    }

    /// Returns the index, among the network outputs for a state, of the first output from which the axis's
    /// alphas (if `part` is 0) or betas (if `part` is 1) are computed.
    pub(super) fn raw_at(&self, part: usize, axis: usize, ndim: usize) -> usize {
        1 + (self.choices(ndim) + part * ndim + axis) * self.components
    }

    /// Returns the indices of the network outputs that are needed for steps along these axes.
    pub(super) fn columns(&self, axes: Axes, ndim: usize) -> Vec<i64> {
        let k = self.components;
        let choices = if self.choices(ndim) == 1 { 0..1 } else { axes.clone() };
        let mut starts: Vec<usize> = choices.map(|choice| 1 + choice * k).collect();
        for part in 0..2 {
            starts.extend(axes.clone().map(|axis| self.raw_at(part, axis, ndim)));
        }
        std::iter::once(0)
            .chain(starts.into_iter().flat_map(|start| start..start + k))
            .map(|i| i as i64)
            .collect()
    }

    pub(super) fn concentration(&self, raw: f64) -> f64 {
        self.min_concentration + (self.max_concentration - self.min_concentration) / (1.0 + (-raw).exp())
    }

    pub(super) fn raw(&self, concentration: f64) -> f64 {
        let share =
            (concentration - self.min_concentration) / (self.max_concentration - self.min_concentration);
        (share / (1.0 - share)).ln()
    }
}

/// The distribution of P_F or P_B in the box. A forward action is the exit, or a point whose unit coordinates
/// follow mixtures of Betas. In the backward direction the step to the source takes the place of the exit.
///
/// Without a network, the next point is uniform among the points that a step can reach. The exit (or the step
/// to the source) has probability one half if other points are permitted, too.
///
/// If the exit or the step to the source is the only permitted action, its probability is 1. (torchgfn also
/// forces the exit, but uses the probability that the network gives the exit.)
#[derive(Debug)]
pub struct BoxDist {
    env: BoxEnv,
    direction: Direction,
    states: Reals,
    heads: Option<Heads>,
}

/// The facts that determine the log-probability of an action: the classes of actions that its state permits,
/// `true` if the action is the exit (or leads to the source), and the log of the volume element at its point.
struct StepParts {
    support: Support,
    atom: bool,
    log_volume: f64,
}

impl BoxDist {
    /// Builds the distribution from the outputs of a network, `[states, BetaMixtures::width(n)]`.
    ///
    /// # Errors
    /// [`Error::Shape`] for states or outputs of another shape, [`Error::Config`] for invalid settings.
    pub fn new(
        env: BoxEnv,
        direction: Direction,
        states: Reals,
        mixtures: BetaMixtures,
        outputs: Tensor,
    ) -> Result<Self> {
        mixtures.check()?;
        check_width(&states, env.ndim())?;
        let expected = [states.len() as i64, mixtures.width(env.ndim()) as i64];
        if outputs.size() == expected {
            let each = Head::on_device(0..env.ndim(), outputs);
            Ok(Self::from_heads(env, direction, states, Heads { mixtures, each, source: None }))
        } else {
            Err(Error::shape(
                "the outputs of the box's network",
                expected.to_vec(),
                outputs.size(),
                "let the network return a logit, the components' logits, the raw alphas and the raw betas, \
                 in this order: see `BetaMixtures`",
            ))
        }
    }

    /// Builds the distribution from outputs of a policy, without a check, because the policy has made sure
    /// that their shapes are right.
    pub(super) fn from_heads(env: BoxEnv, direction: Direction, states: Reals, heads: Heads) -> Self {
        Self { env, direction, states, heads: Some(heads) }
    }

    /// Builds the uniform distribution. The exit (backwards: the step to the source, the origin) has
    /// probability one half if another step is permitted, too. Otherwise the next point is uniform among the
    /// points that can be reached.
    #[must_use]
    pub fn uniform(env: BoxEnv, direction: Direction, states: Reals) -> Self {
        Self { env, direction, states, heads: None }
    }

    /// Returns the `StepParts` of each action, from which its density is computed, and the unit coordinates
    /// (numbers in [0, 1]) of its point.
    fn step_parts(&self, rows: &[usize], actions: &Reals) -> Result<(Vec<StepParts>, Reals)> {
        let n = self.env.ndim();
        check_width(&self.states, n)?;
        check_rows(self.states.len(), rows, Some((actions, n + 1)))?;
        let mut units = Reals::filled(n, rows.len(), 0.5);
        let mut steps = Vec::with_capacity(rows.len());
        for (k, (unit, action)) in units.values_mut().chunks_exact_mut(n).zip(actions.rows()).enumerate() {
            let row = rows[k];
            let state = self.states.row(row);
            let support = self.env.support(self.direction, state);
            let (point, flag) = self.env.split(action);
            let atom = match self.direction {
                Direction::Forward => flag == 1.0,
                Direction::Backward => is_source(point),
            };
            let log_volume = if atom {
                support.atom.then_some(0.0)
            } else if support.points {
                self.env.unit(self.direction, state, point, unit)
            } else {
                None
            };
            let log_volume = log_volume.ok_or_else(|| {
                illegal(row, self.direction, state, action, "the policy has no density there")
            })?;
            steps.push(StepParts { support, atom, log_volume });
        }
        Ok((steps, units))
    }

    /// Returns the log-density of an action under the uniform distribution.
    fn uniform_log_prob(&self, row: usize, step: &StepParts, unit: &[f64]) -> f64 {
        let choice = if step.support.is_free() { 0.5f64.ln() } else { 0.0 };
        // If a point is uniform in the area of the disk, the density of its radius is proportional to the
        // radius.
        let on_disk = !step.atom && self.on_disk(self.states.row(row));
        choice - step.log_volume + if on_disk { (2.0 * unit[0]).ln() } else { 0.0 }
    }

    fn on_disk(&self, state: &[f64]) -> bool {
        self.env.geometry() == Geometry::Polar && self.direction == Direction::Forward && is_source(state)
    }

    fn draw_uniform(&self, state: &[f64], unit: &mut [f64], rng: &mut Rng) {
        for u in unit.iter_mut() {
            *u = rng.uniform();
        }
        if self.on_disk(state) {
            unit[0] = unit[0].sqrt();
        }
    }
}

impl Distribution for BoxDist {
    type Actions = Reals;

    /// Draws a uniform action with probability epsilon. The temperature divides the logits of the exit and of
    /// the components. The exit bias is added to the exit's logit. Noise is refused, because the distribution
    /// has no Gaussian that noise could widen.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Reals> {
        let env = self.env;
        let n = self.env.ndim();
        check_width(&self.states, n)?;
        check_rows(self.states.len(), rows, None)?;
        if exploration.noise() != 0.0 {
            return Err(Error::config(
                "noise",
                exploration.noise(),
                "0, because a box is explored by epsilon, temperature and exit bias",
            ));
        }
        let mut actions = Reals::filled(n + 1, rows.len(), 0.0);
        let mut unit = vec![0.0; n];
        for (action, &row) in actions.values_mut().chunks_exact_mut(n + 1).zip(rows) {
            let state = self.states.row(row);
            let support = env.support(self.direction, state);
            if support.is_empty() {
                return Err(Error::NoLegalAction { row, direction: self.direction });
            }
            let uniform = exploration.epsilon_value() > 0.0 && rng.uniform() < exploration.epsilon_value();
            let axes = env.axes(self.direction, state);
            let heads = self.heads.as_ref().filter(|_| !uniform);
            let free = support.is_free();
            let atom = match heads {
                _ if !free => support.atom,
                None => rng.uniform() < 0.5,
                Some(heads) => {
                    let forward = self.direction == Direction::Forward;
                    let bias = if forward { exploration.exit_bias() } else { 0.0 };
                    let logit =
                        (finite(row, heads.numbers_of(&axes, row).0[0])? + bias) / exploration.temperature();
                    rng.uniform() < 1.0 / (1.0 + (-logit).exp())
                }
            };
            let (point, flag) = action.split_at_mut(n);
            match (atom, self.direction) {
                (true, Direction::Forward) => {
                    point.copy_from_slice(state);
                    flag[0] = 1.0;
                }
                // The coordinates of the source are 0, and the action already holds zeros, so nothing is
                // written.
                (true, Direction::Backward) => {}
                (false, _) => {
                    match heads {
                        None => self.draw_uniform(state, &mut unit, rng),
                        Some(heads) => draw(heads, row, axes, exploration.temperature(), &mut unit, rng)?,
                    }
                    for u in &mut unit {
                        *u = inner(*u);
                    }
                    env.place(self.direction, state, &unit, point);
                }
            }
        }
        Ok(actions)
    }

    fn log_prob(&self, rows: &[usize], actions: &Reals) -> Result<Tensor> {
        let (steps, units) = self.step_parts(rows, actions)?;
        let Some(heads) = &self.heads else {
            let values: Vec<f64> = steps
                .iter()
                .zip(units.rows())
                .zip(rows)
                .map(|((step, unit), &row)| self.uniform_log_prob(row, step, unit))
                .collect();
            return Ok(Tensor::from_slice(&values));
        };
        // Steps along an arc use only the axis of the angle; other steps use all axes. Steps that use the
        // same axes are scored together.
        let mut groups: BTreeMap<usize, (Axes, Vec<ScoredStep<'_>>)> = BTreeMap::new();
        for (at, ((step, unit), &row)) in steps.iter().zip(units.rows()).zip(rows).enumerate() {
            let axes = self.env.axes(self.direction, self.states.row(row));
            let free = step.support.is_free();
            // If a state permits only the exit, or only other points, the choice between the two has
            // log-probability 0: log sigmoid(0) and the added ln 2 cancel.
            let (sign, forced) = match (free, step.atom) {
                (false, _) => (0.0, 2f64.ln()),
                (true, true) => (1.0, 0.0),
                (true, false) => (-1.0, 0.0),
            };
            let (_, row) = heads.head_of(&axes, row);
            let unit = (!step.atom).then(|| &unit[axes.clone()]);
            let action = ScoredStep { at, row, sign, constant: forced - step.log_volume, unit };
            groups.entry(axes.start).or_insert_with(|| (axes, Vec::new())).1.push(action);
        }
        Ok(heads.log_probs(rows.len(), &groups.into_values().collect::<Vec<_>>()))
    }
}

/// Draws the unit coordinates (numbers in [0, 1]) on the axes `axes` from the mixture of a state, and writes
/// them to `unit`.
fn draw(
    heads: &Heads,
    row: usize,
    axes: Axes,
    temperature: f64,
    unit: &mut [f64],
    rng: &mut Rng,
) -> Result<()> {
    let mixtures = &heads.mixtures;
    let (values, stored) = heads.numbers_of(&axes, row);
    let k = mixtures.components;
    let n = stored.len();
    let choose =
        |choice: usize, rng: &mut Rng| component(row, &values[1 + choice * k..][..k], temperature, rng);
    let joint = match mixtures.coupling {
        Coupling::Joint => Some(choose(0, rng)?),
        Coupling::PerAxis => None,
    };
    for axis in axes {
        let component = joint.map_or_else(|| choose(axis - stored.start, rng), Ok)?;
        let concentration = |part: usize| {
            finite(row, values[mixtures.raw_at(part, axis - stored.start, n) + component])
                .map(|raw| mixtures.concentration(raw))
        };
        let alpha = concentration(0)?;
        let beta = concentration(1)?;
        // The constructor can't fail for checked settings, because alpha and beta are positive and finite.
        let beta = rand_distr::Beta::new(alpha, beta).map_err(|_| not_positive(row, alpha, beta))?;
        unit[axis] = beta.sample(rng);
    }
    Ok(())
}

fn not_positive(row: usize, alpha: f64, beta: f64) -> Error {
    let detail = format!("row {row}: alpha {alpha}, beta {beta}");
    Error::contract("concentrations are positive and finite", detail)
}
