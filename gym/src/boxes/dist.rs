use std::collections::BTreeMap;

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Reals, Rows};
use gfn::tensor::{from_host, index_tensor, to_host};
use gfn::{Error, Result, Rng};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::beta::{BetaLogDensities, beta_log_densities};
use super::chart::{Axes, Permitted, inner, is_source};
use super::env::illegal;
use super::{BoxEnv, Geometry};
use crate::continuous::{check_asked, check_width, component, finite};

/// Whether the axes of a mixture have components of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coupling {
    /// One mixture of products of Betas: a component is a blob somewhere in the box.
    Joint,
    /// A product of mixtures, one along each axis (torchgfn's): modes come in rows and columns.
    PerAxis,
}

/// Mixtures of Beta distributions on the unit coordinates of a step, and the probability of the exit (backwards: of the way back to the
/// source).
///
/// A network gives `1 + (1 + 2 n) K` numbers for each state if the axes are joined: a logit, `K` logits of the components, then
/// for each of `n` axes `K` raw numbers for alpha, then as many for beta. With components of their own it gives `1 + 3 n K`: `K` logits for
/// each axis. A concentration is `min + (max - min) sigmoid(raw)`. On an arc the second axis is the angle and the first is not used.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BetaMixtures {
    /// Whether axes have components of their own.
    pub coupling: Coupling,
    /// Components (of each axis), K.
    pub components: usize,
    /// The least alpha and beta.
    pub min_concentration: f64,
    /// The largest alpha and beta.
    pub max_concentration: f64,
}

impl BetaMixtures {
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |setting, got: String, expected| Err(Error::Config { setting, got, expected });
        let Self { components, min_concentration: min, max_concentration: max, .. } = *self;
        if components == 0 {
            return refuse("components", "0".into(), "at least 1 component");
        }
        match min > 0.0 && min < max && max.is_finite() {
            true => Ok(()),
            false => refuse("concentrations", format!("{min} to {max}"), "0 < min < max, both finite"),
        }
    }

    /// Numbers per state that a network gives.
    #[must_use]
    pub fn width(&self, ndim: usize) -> usize {
        1 + (self.choices(ndim) + 2 * ndim) * self.components
    }

    /// Choices of a component that an action takes.
    pub(super) fn choices(&self, ndim: usize) -> usize {
        match self.coupling {
            Coupling::Joint => 1,
            Coupling::PerAxis => ndim,
        }
    }

    /// Where the raw alphas (part 0) or betas (part 1) of an axis start among the numbers of a state.
    pub(super) fn raw_at(&self, part: usize, axis: usize, ndim: usize) -> usize {
        1 + (self.choices(ndim) + part * ndim + axis) * self.components
    }

    pub(super) fn concentration(&self, raw: f64) -> f64 {
        self.min_concentration + (self.max_concentration - self.min_concentration) / (1.0 + (-raw).exp())
    }

    pub(super) fn raw(&self, concentration: f64) -> f64 {
        let share = (concentration - self.min_concentration) / (self.max_concentration - self.min_concentration);
        (share / (1.0 - share)).ln()
    }
}

/// P_F or P_B of the box: the exit (or the way back to the source), or a point whose unit coordinates follow mixtures of Betas.
///
/// Without a network everything is uniform: the points that can be reached, and the choice between them and the exit.
///
/// Where the exit or the way back is the only thing that is permitted its probability is 1. (In torchgfn the exit is forced, too, but
/// scored with the probability that the network gives it.)
#[derive(Debug)]
pub struct BoxDist {
    env: BoxEnv,
    direction: Direction,
    states: Reals,
    heads: Option<(BetaMixtures, Tensor)>,
}

/// One action as the density sees it.
struct Seen {
    permitted: Permitted,
    atom: bool,
    log_volume: f64,
}

impl BoxDist {
    /// The distribution that a network's outputs `[states, BetaMixtures::width(n)]` stand for.
    ///
    /// # Errors
    /// [`Error::Shape`] for states or outputs of another shape, [`Error::Config`] for settings that make no sense.
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
        match outputs.size() == expected {
            true => Ok(Self { env, direction, states, heads: Some((mixtures, outputs)) }),
            false => Err(Error::Shape {
                what: "the outputs of the box's network".into(),
                expected: expected.to_vec(),
                got: outputs.size(),
                remedy: "a logit, the components' logits, then raw alphas, then raw betas: see `BetaMixtures`",
            }),
        }
    }

    /// Exit (or the way back to the source) with probability one half where both are permitted, else a uniform point.
    #[must_use]
    pub fn uniform(env: BoxEnv, direction: Direction, states: Reals) -> Self {
        Self { env, direction, states, heads: None }
    }

    /// What kind of action each is, and its unit coordinates.
    fn seen(&self, rows: &[usize], actions: &Reals) -> Result<(Vec<Seen>, Reals)> {
        let n = self.env.ndim();
        check_width(&self.states, n)?;
        check_asked(self.states.len(), rows, Some((actions, n + 1)))?;
        let mut units = Reals::filled(n, rows.len(), 0.5);
        let mut seen = Vec::with_capacity(rows.len());
        for (k, (unit, action)) in units.values_mut().chunks_exact_mut(n).zip(actions.rows()).enumerate() {
            let row = rows[k];
            let state = self.states.row(row);
            let permitted = self.env.permitted(self.direction, state);
            let (point, flag) = self.env.split(action);
            let atom = match self.direction {
                Direction::Forward => flag == 1.0,
                Direction::Backward => is_source(point),
            };
            let log_volume = match atom {
                true => permitted.atom.then_some(0.0),
                false if permitted.points => self.env.unit(self.direction, state, point, unit),
                false => None,
            };
            let log_volume = log_volume
                .ok_or_else(|| illegal(row, self.direction, state, action, "outside the support of the policy"))?;
            seen.push(Seen { permitted, atom, log_volume });
        }
        Ok((seen, units))
    }

    /// The log-density of a uniform action.
    fn uniform_log_prob(&self, row: usize, seen: &Seen, unit: &[f64]) -> f64 {
        let choice = if seen.permitted.atom && seen.permitted.points { 0.5f64.ln() } else { 0.0 };
        // Uniform in the disk's area: the density of the radius grows with it.
        let on_disk = !seen.atom && self.on_disk(self.states.row(row));
        choice - seen.log_volume + if on_disk { (2.0 * unit[0]).ln() } else { 0.0 }
    }

    fn on_disk(&self, state: &[f64]) -> bool {
        self.env.geometry() == Geometry::Polar && self.direction == Direction::Forward && is_source(state)
    }

    fn draw_uniform(&self, state: &[f64], unit: &mut [f64], rng: &mut Rng) {
        unit.iter_mut().for_each(|u| *u = rng.uniform());
        if self.on_disk(state) {
            unit[0] = unit[0].sqrt();
        }
    }
}

impl Distribution for BoxDist {
    type Actions = Reals;

    /// With probability epsilon a uniform action. The temperature divides the logits of exit and components, the exit bias is added to that of
    /// the exit. Noise is refused: there is no Gaussian to be widened.
    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Reals> {
        let (env, n) = (self.env, self.env.ndim());
        check_width(&self.states, n)?;
        check_asked(self.states.len(), rows, None)?;
        if exploration.noise() != 0.0 {
            return Err(Error::Config {
                setting: "noise",
                got: exploration.noise().to_string(),
                expected: "0: points of a box are explored by epsilon, temperature and exit bias",
            });
        }
        let host =
            self.heads.as_ref().map(|(mixtures, outputs)| Ok::<_, Error>((mixtures, Reals::from_tensor(outputs)?)));
        let host = host.transpose()?;
        let mut actions = Reals::filled(n + 1, rows.len(), 0.0);
        let mut unit = vec![0.0; n];
        for (action, &row) in actions.values_mut().chunks_exact_mut(n + 1).zip(rows) {
            let state = self.states.row(row);
            let permitted = env.permitted(self.direction, state);
            if !permitted.atom && !permitted.points {
                return Err(Error::NoLegalAction { row, direction: self.direction });
            }
            let uniform = exploration.epsilon_value() > 0.0 && rng.uniform() < exploration.epsilon_value();
            let head = host.as_ref().filter(|_| !uniform).map(|(mixtures, values)| (*mixtures, values.row(row)));
            let free = permitted.atom && permitted.points;
            let atom = match head {
                _ if !free => permitted.atom,
                None => rng.uniform() < 0.5,
                Some((_, values)) => {
                    let forward = self.direction == Direction::Forward;
                    let bias = if forward { exploration.exit_bias() } else { 0.0 };
                    let logit = (finite(row, values[0])? + bias) / exploration.temperature();
                    rng.uniform() < 1.0 / (1.0 + (-logit).exp())
                }
            };
            let (point, flag) = action.split_at_mut(n);
            match (atom, self.direction) {
                (true, Direction::Forward) => {
                    point.copy_from_slice(state);
                    flag[0] = 1.0;
                }
                // The source is where all coordinates are 0, as they are.
                (true, Direction::Backward) => {}
                (false, _) => {
                    match head {
                        None => self.draw_uniform(state, &mut unit, rng),
                        Some(head) => {
                            let axes = env.axes(self.direction, state);
                            draw(head, (row, axes), exploration.temperature(), &mut unit, rng)?;
                        }
                    }
                    unit.iter_mut().for_each(|u| *u = inner(*u));
                    env.place(self.direction, state, &unit, point);
                }
            }
        }
        Ok(actions)
    }

    fn log_prob(&self, rows: &[usize], actions: &Reals) -> Result<Tensor> {
        let (seen, units) = self.seen(rows, actions)?;
        let Some((mixtures, outputs)) = &self.heads else {
            let values: Vec<f64> = seen
                .iter()
                .zip(units.rows())
                .zip(rows)
                .map(|((seen, unit), &row)| self.uniform_log_prob(row, seen, unit))
                .collect();
            return Ok(Tensor::from_slice(&values));
        };
        let (kind, device) = (outputs.kind(), outputs.device());
        let host = |values: &[f64]| from_host(values, kind, device);
        // A forced choice has sign 0: log sigmoid(0) and the constant cancel.
        let free = |seen: &Seen| seen.permitted.atom && seen.permitted.points;
        let sign = |seen: &Seen| if !free(seen) { 0.0 } else { 2.0 * f64::from(u8::from(seen.atom)) - 1.0 };
        let signs: Vec<f64> = seen.iter().map(sign).collect();
        let constants: Vec<f64> =
            seen.iter().map(|seen| if free(seen) { 0.0 } else { 2f64.ln() } - seen.log_volume).collect();
        let logits = outputs.select(1, 0).index_select(0, &index_tensor(rows, device));
        let choice = (logits * host(&signs)).log_sigmoid() + host(&constants);

        // Steps with the same unit coordinates in use are scored together: along an arc only the angle's mixture is computed.
        let mut moves: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for k in (0..rows.len()).filter(|&k| !seen[k].atom) {
            moves.entry(self.axes_at(rows[k]).start).or_default().push(k);
        }
        Ok(moves.values().fold(choice, |log_prob, moves| {
            let density = self.log_density(mixtures, outputs, rows, (moves, &units));
            log_prob.index_add(0, &index_tensor(moves, device), &density)
        }))
    }
}

impl BoxDist {
    fn axes_at(&self, row: usize) -> Axes {
        self.env.axes(self.direction, self.states.row(row))
    }

    /// The log-density of unit coordinates for each of `moves`, with respect to themselves. All have the same coordinates in use.
    fn log_density(
        &self,
        mixtures: &BetaMixtures,
        outputs: &Tensor,
        rows: &[usize],
        (moves, units): (&[usize], &Reals),
    ) -> Tensor {
        let (n, k) = (self.env.ndim() as i64, mixtures.components as i64);
        let (kind, device) = (outputs.kind(), outputs.device());
        let axes = self.axes_at(rows[moves[0]]);
        let (first_axis, n_axes) = (axes.start as i64, axes.len() as i64);
        // What doesn't depend on the point is computed once for each state that is moved from.
        let mut place = vec![usize::MAX; self.states.len()];
        let (mut distinct, mut of) = (Vec::new(), Vec::with_capacity(moves.len()));
        for &m in moves {
            let row = rows[m];
            if place[row] == usize::MAX {
                place[row] = distinct.len();
                distinct.push(row);
            }
            of.push(place[row]);
        }
        let heads = outputs.index_select(0, &index_tensor(&distinct, device));
        let choices = mixtures.choices(self.env.ndim()) as i64;
        let logits = heads.narrow(1, 1, choices * k).view([-1, choices, k]);
        let logits = match mixtures.coupling {
            Coupling::Joint => logits,
            Coupling::PerAxis => logits.narrow(1, first_axis, n_axes),
        };
        let log_weights = logits.log_softmax(-1, kind);
        let raw = heads.narrow(1, 1 + choices * k, 2 * n * k).view([-1, 2, n, k]).narrow(2, first_axis, n_axes);
        let points: Vec<&[f64]> = moves.iter().map(|&m| &units.row(m)[axes.clone()]).collect();
        // In f64: the log-gammas of large concentrations cancel, down to the rounding of f32.
        let BetaLogDensities { values, by_raw } = beta_log_densities(mixtures, &to_host(&raw), &of, &points);
        // Away from the source a state is seldom left twice, and has nothing to be repeated.
        let of = (distinct.len() < moves.len()).then(|| index_tensor(&of, device));
        let gather = |values: Tensor| match &of {
            Some(of) => values.index_select(0, of),
            None => values,
        };
        let values = from_host(&values, kind, device).view([-1, n_axes, k]);
        // The value as it was computed, with the derivatives that were computed beside it.
        let slope = gather(raw) * from_host(&by_raw, kind, device).view([-1, 2, n_axes, k]);
        let slope = slope.sum_dim_intlist(1, false, kind);
        let each = values + (&slope - slope.detach());
        let log_weights = gather(log_weights);
        let total = |values: Tensor| values.sum_dim_intlist(1, false, kind);
        match mixtures.coupling {
            Coupling::Joint => (total(each) + log_weights.squeeze_dim(1)).logsumexp(-1, false),
            Coupling::PerAxis => total((each + log_weights).logsumexp(-1, true)).squeeze_dim(-1),
        }
    }
}

/// Draws the unit coordinates in use from a state's mixture.
fn draw(
    (mixtures, values): (&BetaMixtures, &[f64]),
    (row, axes): (usize, Axes),
    temperature: f64,
    unit: &mut [f64],
    rng: &mut Rng,
) -> Result<()> {
    let (k, n) = (mixtures.components, unit.len());
    let choose = |choice: usize, rng: &mut Rng| component(row, &values[1 + choice * k..][..k], temperature, rng);
    let joint = match mixtures.coupling {
        Coupling::Joint => Some(choose(0, rng)?),
        Coupling::PerAxis => None,
    };
    for axis in axes {
        let component = joint.map_or_else(|| choose(axis, rng), Ok)?;
        let concentration = |part: usize| {
            finite(row, values[mixtures.raw_at(part, axis, n) + component]).map(|raw| mixtures.concentration(raw))
        };
        let (alpha, beta) = (concentration(0)?, concentration(1)?);
        // Both are positive and finite: the settings are checked.
        let beta = rand_distr::Beta::new(alpha, beta).map_err(|_| not_positive(row, alpha, beta))?;
        unit[axis] = beta.sample(rng);
    }
    Ok(())
}

fn not_positive(row: usize, alpha: f64, beta: f64) -> Error {
    let detail = format!("row {row}: alpha {alpha}, beta {beta}");
    Error::Contract { check: "concentrations are positive and finite", detail }
}
