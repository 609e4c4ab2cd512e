//! Outputs of a network for the states of a box, and log-probabilities of actions with their derivatives with
//! respect to the outputs.

use std::cell::OnceCell;
use std::ops::Range;

use gfn::tensor::{from_host, index_tensor, to_host};
use tch::{Device, Kind, Tensor};

use super::beta::Betas;
use super::chart::Axes;
use super::dist::{BetaMixtures, Coupling};

/// The outputs of a network for some of the axes, `[states, width]`. The order of the outputs is that of
/// [`BetaMixtures`] for a box that has only these axes.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) axes: Axes,
    /// The outputs on the network's device; `None` in a roll-out on the host.
    tensor: Option<Tensor>,
    host: OnceCell<Vec<f64>>,
}

impl Head {
    pub(super) fn on_device(axes: Axes, tensor: Tensor) -> Self {
        Self { axes, tensor: Some(tensor), host: OnceCell::new() }
    }

    pub(super) fn on_host(axes: Axes, numbers: Vec<f64>) -> Self {
        Self { axes, tensor: None, host: numbers.into() }
    }

    fn numbers(&self) -> &[f64] {
        self.host.get_or_init(|| self.tensor.as_ref().map(to_host).unwrap_or_default())
    }
}

/// The network outputs for a batch of states.
#[derive(Debug)]
pub(super) struct Heads {
    pub(super) mixtures: BetaMixtures,
    /// The outputs for each state of the batch, a row per state.
    pub(super) each: Head,
    /// The outputs for the source (the origin, where trajectories start), a single row. `None` if steps from
    /// the source use the same axes as steps from other states, so that `each` is sufficient.
    pub(super) source: Option<Head>,
}

impl Heads {
    /// Returns the network outputs that are used for the state in row `row` of the batch (`each` or
    /// `source`), and the state's row in them. Steps from the state use the axes `axes`.
    pub(super) fn head_of(&self, axes: &Axes, row: usize) -> (&Head, usize) {
        match self.source.as_ref().filter(|_| axes.start < self.each.axes.start) {
            Some(source) => (source, 0),
            None => (&self.each, row),
        }
    }

    /// Returns the outputs for the state in row `row` of the batch, and the axes for which these outputs give
    /// mixtures. Steps from the state use the axes `axes`.
    pub(super) fn numbers_of(&self, axes: &Axes, row: usize) -> (&[f64], &Axes) {
        let (head, row) = self.head_of(axes, row);
        let width = self.mixtures.width(head.axes.len());
        (&head.numbers()[row * width..][..width], &head.axes)
    }

    /// Returns the log-probabilities of `n` actions. The actions are grouped by the axes that their steps
    /// use.
    pub(super) fn log_probs(&self, n: usize, groups: &[(Axes, Vec<ScoredStep<'_>>)]) -> Tensor {
        let options = |tensor: &Tensor| (tensor.kind(), tensor.device());
        let (kind, device) = self.each.tensor.as_ref().map_or((Kind::Float, Device::Cpu), options);
        let mut values = vec![0.0; n];
        let mut slopes = Vec::new();
        for (axes, actions) in groups {
            let (head, _) = self.head_of(axes, 0);
            let layout = Layout { mixtures: &self.mixtures, stored_axes: &head.axes, used_axes: axes };
            let scores = layout.score(head.numbers(), actions);
            for (action, &value) in actions.iter().zip(&scores.values) {
                values[action.at] = value;
            }
            let Some(numbers) = &head.tensor else { continue };
            // The log-probabilities are computed on the host, outside of libtorch, so libtorch knows no
            // gradient of them. A tensor of zeros that has the right gradient is added to them.
            let rows: Vec<usize> = actions.iter().map(|action| action.row).collect();
            let by_numbers = from_host(&scores.by_numbers, kind, device).view([actions.len() as i64, -1]);
            let slope = (in_order(numbers, &rows) * by_numbers).sum_dim_intlist(1, false, kind);
            let places: Vec<usize> = actions.iter().map(|action| action.at).collect();
            slopes.push((&slope - slope.detach(), places));
        }
        let values = from_host(&values, kind, device);
        match slopes.as_slice() {
            // If there is a single group, its actions are already in the order of the result.
            [(slope, _)] => values + slope,
            _ => slopes.iter().fold(values, |values, (slope, places)| {
                values.index_add(0, &index_tensor(places, device), slope)
            }),
        }
    }
}

/// Returns the rows of a tensor that `rows` lists, in this order.
fn in_order(tensor: &Tensor, rows: &[usize]) -> Tensor {
    let same = rows.len() as i64 == tensor.size()[0] && rows.iter().enumerate().all(|(k, &row)| k == row);
    if same { tensor.shallow_clone() } else { tensor.index_select(0, &index_tensor(rows, tensor.device())) }
}

/// An action whose log-probability is computed.
pub(super) struct ScoredStep<'a> {
    /// The index of the action in the list of log-probabilities that is computed.
    pub(super) at: usize,
    /// The row, in the tensor of network outputs, of the outputs for the action's state.
    pub(super) row: usize,
    /// The factor of the exit's logit x in log sigmoid(x): 1 for the exit, -1 for a step to another point,
    /// and 0 if the state permits only one of the two.
    pub(super) sign: f64,
    /// A constant that is added to the log-probability.
    pub(super) constant: f64,
    /// The unit coordinates (numbers in [0, 1]) of the action's point on the axes in use; `None` for the exit
    /// or the step to the source.
    pub(super) unit: Option<&'a [f64]>,
}

/// The log-probabilities of actions, and their derivatives with respect to the network outputs for the states
/// of these actions, `[actions, width]`.
struct Scores {
    values: Vec<f64>,
    by_numbers: Vec<f64>,
}

/// The layout of the network's outputs for a state.
struct Layout<'a> {
    mixtures: &'a BetaMixtures,
    /// The axes for which the network's outputs for a state give mixtures.
    stored_axes: &'a Axes,
    /// The axes that the steps of the scored actions use.
    used_axes: &'a Axes,
}

impl Layout<'_> {
    fn score(&self, numbers: &[f64], actions: &[ScoredStep<'_>]) -> Scores {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            #[allow(unsafe_code, reason = "wide registers can only be requested at run time")]
            // SAFETY: the processor has AVX2, the only feature that the function needs.
            return unsafe { self.score_wide(numbers, actions) };
        }
        self.score_all(numbers, actions)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn score_wide(&self, numbers: &[f64], actions: &[ScoredStep<'_>]) -> Scores {
        self.score_all(numbers, actions)
    }

    /// Returns the range of the outputs for a state from which an axis's parameters are computed: its alphas
    /// if `part` is 0, its betas if `part` is 1.
    fn raw(&self, part: usize, axis: usize) -> Range<usize> {
        let start = self.mixtures.raw_at(part, axis - self.stored_axes.start, self.stored_axes.len());
        start..start + self.mixtures.components
    }

    /// Returns the choices of components that an action makes: one choice for all axes if components are
    /// joint, and otherwise one per axis. Each choice has the range of the components' logits among the
    /// outputs for a state, and the axes to which the chosen component applies.
    fn choices(&self) -> Vec<(Range<usize>, Axes)> {
        let k = self.mixtures.components;
        match self.mixtures.coupling {
            Coupling::Joint => vec![(1..1 + k, self.used_axes.clone())],
            Coupling::PerAxis => {
                let start = |axis: usize| 1 + (axis - self.stored_axes.start) * k;
                self.used_axes.clone().map(|axis| (start(axis)..start(axis) + k, axis..axis + 1)).collect()
            }
        }
    }

    /// Computes log-probabilities and derivatives whose bits are the same on every processor. For this, no
    /// multiplication and addition are fused, and sums are taken in a fixed order.
    #[inline(always)]
    fn score_all(&self, numbers: &[f64], actions: &[ScoredStep<'_>]) -> Scores {
        let k = self.mixtures.components;
        let width = self.mixtures.width(self.stored_axes.len());
        let choices = self.choices();
        // The terms of the log-density that don't depend on the point are computed once for each state. These
        // terms are computed in f64, because log-gammas of large concentrations cancel, which would leave
        // little precision in f32.
        let mut place = vec![usize::MAX; numbers.len() / width];
        let mut n_distinct = 0;
        let mut raw = [Vec::new(), Vec::new()];
        for action in actions.iter().filter(|action| action.unit.is_some()) {
            if place[action.row] == usize::MAX {
                place[action.row] = n_distinct;
                n_distinct += 1;
                let row = &numbers[action.row * width..][..width];
                for (part, raw) in raw.iter_mut().enumerate() {
                    for axis in self.used_axes.clone() {
                        raw.extend_from_slice(&row[self.raw(part, axis)]);
                    }
                }
            }
        }
        let betas = Betas::new(self.mixtures, [&raw[0], &raw[1]]);
        let mut values = Vec::with_capacity(actions.len());
        let mut by_numbers = vec![0.0; actions.len() * width];
        let mut total = vec![0.0; k];
        let mut share = vec![0.0; k];
        for (action, by_numbers) in actions.iter().zip(by_numbers.chunks_exact_mut(width)) {
            let row = &numbers[action.row * width..][..width];
            let (choice, by_choice) = log_sigmoid(action.sign * row[0]);
            let mut value = choice + action.constant;
            by_numbers[0] = action.sign * by_choice;
            for (logits, axes) in choices.iter().filter(|_| action.unit.is_some()) {
                let unit = action.unit.unwrap_or_default();
                let step = |axis: usize| {
                    let used = axis - self.used_axes.start;
                    let u = unit[axis - self.used_axes.start];
                    let first = (place[action.row] * self.used_axes.len() + used) * k;
                    (first..first + k, [u.ln(), (-u).ln_1p()])
                };
                share.copy_from_slice(&row[logits.clone()]);
                total.copy_from_slice(&share);
                for axis in axes.clone() {
                    let (terms, logs) = step(axis);
                    add_densities(&betas, terms, logs, &mut total);
                }
                value += softmax(&mut total) - softmax(&mut share);
                let by_logits = by_numbers[logits.clone()].iter_mut();
                for (by, (total, share)) in by_logits.zip(total.iter().zip(&share)) {
                    *by = total - share;
                }
                for axis in axes.clone() {
                    let (terms, logs) = step(axis);
                    for part in 0..2 {
                        let by_raw = &mut by_numbers[self.raw(part, axis)];
                        let by_concentration = &betas.by_concentrations[part][terms.clone()];
                        slopes(
                            by_concentration,
                            &betas.slopes[part][terms.clone()],
                            logs[part],
                            &total,
                            by_raw,
                        );
                    }
                }
            }
            values.push(value);
        }
        Scores { values, by_numbers }
    }
}

/// Adds the log-density of each component's Beta at u to the component's entry in `total`. `terms` is the
/// range of these Betas in `betas`, and `logs` holds the logarithms of u and 1 - u.
#[inline(always)]
fn add_densities(betas: &Betas, terms: Range<usize>, logs: [f64; 2], total: &mut [f64]) {
    let n = total.len();
    let [alphas, betas_of] = [0, 1].map(|part| &betas.concentrations[part][terms.clone()][..n]);
    let norms = &betas.log_norms[terms][..n];
    for i in 0..n {
        total[i] += (alphas[i] - 1.0) * logs[0] + (betas_of[i] - 1.0) * logs[1] + norms[i];
    }
}

/// Writes the derivatives of the log-density with respect to the network outputs from which the alphas, or
/// the betas, of the components are computed. `share` is the share of each component in the density.
#[inline(always)]
fn slopes(by_concentration: &[f64], slope: &[f64], log: f64, share: &[f64], out: &mut [f64]) {
    let n = out.len();
    let by_concentration = &by_concentration[..n];
    let slope = &slope[..n];
    let share = &share[..n];
    for i in 0..n {
        out[i] = share[i] * (log + by_concentration[i]) * slope[i];
    }
}

/// Turns logits into probabilities in place, and returns the logarithm of the sum of the logits'
/// exponentials.
#[inline(always)]
fn softmax(logits: &mut [f64]) -> f64 {
    let max = fold(logits, f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
    for x in logits.iter_mut() {
        *x = super::lanes::exp(*x - max);
    }
    let sum = fold(logits, 0.0, |a, b| a + b);
    let scale = 1.0 / sum;
    for x in logits.iter_mut() {
        *x *= scale;
    }
    max + sum.ln()
}

/// Folds values in eight independent lanes, which the processor computes in parallel. The eight results are
/// folded afterwards.
#[inline(always)]
fn fold(values: &[f64], start: f64, both: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [start; 8];
    let (blocks, rest) = values.as_chunks::<8>();
    for block in blocks {
        for i in 0..8 {
            lanes[i] = both(lanes[i], block[i]);
        }
    }
    lanes.iter().chain(rest).fold(start, |all, &x| both(all, x))
}

/// Returns ln sigmoid(x) and its derivative.
fn log_sigmoid(x: f64) -> (f64, f64) {
    let small = (-x.abs()).exp();
    let by_x = if x < 0.0 { 1.0 } else { small } / (1.0 + small);
    (x.min(0.0) - small.ln_1p(), by_x)
}
