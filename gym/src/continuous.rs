//! Networks and checks that the policies of continuous environments share.

use gfn::distribution::Exploration;
use gfn::env::{Direction, Reals, Rows};
use gfn::nn::{BackwardPolicy, Estimators, EstimatorsConfig, HostMlp, Mlp, MlpConfig, Parameters};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::Evaluation;
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

/// Settings of a policy whose networks are perceptrons and whose distributions are mixtures:
/// [`BoxPolicyConfig`](crate::boxes::BoxPolicyConfig) or [`LinePolicyConfig`](crate::line::LinePolicyConfig).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MixturePolicyConfig<M> {
    /// The hidden layers of the perceptrons.
    pub mlp: MlpConfig,
    /// The settings of P_F's mixtures, and of P_B's mixtures if P_B is learned.
    pub mixtures: M,
    /// The choice of the backward policy: fixed, learned on the torso of P_F, or learned by a separate
    /// network.
    pub backward: BackwardPolicy,
    /// The settings of the state-flow head and of log Z. The flow of the source (the initial state) is Z, so
    /// that the head isn't used there. Neither the head nor log Z takes conditions.
    pub estimators: EstimatorsConfig,
}

/// A part of the outputs of a network: the outputs for P_F, or those for P_B.
pub(crate) struct Outputs<'a> {
    /// The outputs for the batch, `[states, columns]`: those columns that the call of `Perceptrons::evaluate`
    /// listed, or all.
    pub(crate) values: Tensor,
    network: &'a Mlp,
    hidden: &'a Tensor,
    /// The range of all columns of the network's output that belong to P_F, or to P_B.
    all: std::ops::Range<i64>,
}

impl Outputs<'_> {
    /// Computes all outputs of P_F (or P_B) for one state, also those in columns that `values` lacks, `[1,
    /// width]`.
    pub(crate) fn row(&self, row: usize) -> Tensor {
        let columns = Tensor::arange_start(self.all.start, self.all.end, (Kind::Int64, self.hidden.device()));
        self.network.outputs(&self.hidden.narrow(0, row as i64, 1), Some(&columns))
    }
}

/// The networks of a policy whose states are points. One network, the torso, has outputs for P_F and for the
/// state flow, and also for P_B if P_B shares the torso. A separate P_B has a second network.
#[derive(Debug)]
pub(crate) struct Perceptrons {
    width: i64,
    shared_pb: bool,
    flow: bool,
    torso: Mlp,
    separate: Option<Mlp>,
    estimators: Estimators,
    parameters: Parameters,
}

impl Perceptrons {
    /// Builds networks with random weights. The inputs are `inputs` numbers per state. The networks give
    /// `width` outputs for P_F and `width` outputs for P_B.
    pub(crate) fn new<M>(
        inputs: usize,
        width: usize,
        config: &MixturePolicyConfig<M>,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        let inputs = inputs as i64;
        let width = width as i64;
        let MixturePolicyConfig { mlp, backward, estimators, .. } = config;
        let shared_pb = *backward == BackwardPolicy::SharedTorso;
        let outputs = width * (1 + i64::from(shared_pb)) + i64::from(estimators.flow);
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let torso = Mlp::new(&mut scope.sub("torso"), inputs, outputs, mlp);
        let separate = (*backward == BackwardPolicy::Separate)
            .then(|| Mlp::new(&mut scope.sub("pb"), inputs, width, mlp));
        let flow = estimators.flow;
        let estimators = Estimators::new(&mut scope, estimators, None)?;
        parameters.check()?;
        Ok(Self { width, shared_pb, flow, torso, separate, estimators, parameters })
    }

    /// Evaluates the states whose inputs are `x`. The closure `dist` builds a distribution from a network's
    /// outputs, or a uniform distribution from `None` if there is no network.
    ///
    /// `columns` lists the columns that are needed among the `width` outputs of P_F or P_B; `None` means all
    /// columns.
    pub(crate) fn evaluate<D>(
        &self,
        x: &Tensor,
        is_source: impl Iterator<Item = bool>,
        wants: Quantities,
        columns: Option<&[i64]>,
        dist: impl Fn(Direction, Option<Outputs<'_>>) -> Result<D>,
    ) -> Result<Evaluation<D>> {
        let width = self.width;
        let log_flow = wants.has(Quantity::LogFlow) && self.flow;
        let shared_pb = wants.has(Quantity::LogPb) && self.shared_pb;
        let hidden = (wants.has(Quantity::LogPf) || log_flow || shared_pb).then(|| self.torso.hidden(x));
        // A single matrix product gives the outputs for P_F, P_B and log F, as neighbouring columns.
        let taken = columns.map_or(width, |columns| columns.len() as i64);
        let some = columns.map(|columns| {
            let pf = wants.has(Quantity::LogPf).then_some(0);
            let starts = pf.into_iter().chain(shared_pb.then_some(width));
            let mut all: Vec<i64> =
                starts.flat_map(|start| columns.iter().map(move |column| start + column)).collect();
            all.extend(log_flow.then_some(width * (1 + i64::from(self.shared_pb))));
            all
        });
        let index = |columns: &[i64]| Tensor::from_slice(columns).to_device(x.device());
        let shared =
            hidden.as_ref().map(|hidden| self.torso.outputs(hidden, some.as_deref().map(index).as_ref()));
        let pb_start = if columns.is_none() || wants.has(Quantity::LogPf) { taken } else { 0 };
        let mut out = Evaluation::default();
        if let Some((shared, hidden)) = shared.as_ref().zip(hidden.as_ref()) {
            if wants.has(Quantity::LogPf) {
                let values = shared.narrow(1, 0, taken);
                let outputs = Outputs { values, network: &self.torso, hidden, all: 0..width };
                out.pf = Some(dist(Direction::Forward, Some(outputs))?);
            }
            if log_flow {
                out = out
                    .with(Quantity::LogFlow, with_log_z(&self.estimators, &shared.select(1, -1), is_source));
            }
            if shared_pb {
                let values = shared.narrow(1, pb_start, taken);
                let outputs = Outputs { values, network: &self.torso, hidden, all: width..2 * width };
                out.pb = Some(dist(Direction::Backward, Some(outputs))?);
            }
        }
        if wants.has(Quantity::LogPb) && !shared_pb {
            let network = self.separate.as_ref();
            let own = network.map(|network| (network, network.hidden(x)));
            let outputs = own.as_ref().map(|(network, hidden)| {
                let values = network.outputs(hidden, columns.map(index).as_ref());
                Outputs { values, network, hidden, all: 0..width }
            });
            out.pb = Some(dist(Direction::Backward, outputs)?);
        }
        Ok(out)
    }

    /// Returns all outputs for P_F, `[states, width]`, in states whose inputs are `x`.
    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        self.torso.forward(x).narrow(1, 0, self.width)
    }

    /// Copies the network of P_F or P_B to the host and keeps only the outputs whose indices `columns` lists.
    /// Returns `None` if there is no network or the network can't be copied.
    pub(crate) fn on_host(&self, direction: Direction, columns: &[i64]) -> Option<HostMlp> {
        let (network, start) = match (direction, &self.separate) {
            (Direction::Forward, _) => (&self.torso, 0),
            (Direction::Backward, Some(network)) => (network, 0),
            (Direction::Backward, None) if self.shared_pb => (&self.torso, self.width),
            (Direction::Backward, None) => return None,
        };
        let columns: Vec<i64> = columns.iter().map(|column| start + column).collect();
        HostMlp::some_outputs(network, &columns)
    }

    pub(crate) fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// Returns log F of each state. The flow of the source (the initial state) is Z, so log Z there replaces the
/// head's output.
fn with_log_z(estimators: &Estimators, flow: &Tensor, is_source: impl Iterator<Item = bool>) -> Tensor {
    let sources: Vec<bool> = is_source.collect();
    let at_source = Tensor::from_slice(&sources).to_device(flow.device());
    match estimators.log_z(None, sources.len()) {
        Some(log_z) => log_z.where_self(&at_source, flow),
        None => flow.shallow_clone(),
    }
}

/// Checks that each state has `width` numbers.
pub(crate) fn check_width(states: &Reals, width: usize) -> Result<()> {
    if states.width() == width {
        Ok(())
    } else {
        Err(Error::shape(
            "states of a continuous environment",
            [states.len() as i64, width as i64],
            [states.len() as i64, states.width() as i64],
            "give states of this environment",
        ))
    }
}

/// Checks the arguments of a distribution over `n` states: the rows must be below `n`, and each row must have
/// an action of the right width.
pub(crate) fn check_rows(n: usize, rows: &[usize], actions: Option<(&Reals, usize)>) -> Result<()> {
    if let Some((actions, width)) =
        actions.filter(|(actions, width)| (actions.len(), actions.width()) != (rows.len(), *width))
    {
        return Err(Error::shape(
            "actions to be scored",
            [rows.len() as i64, width as i64],
            [actions.len() as i64, actions.width() as i64],
            "give one action of this environment for each row",
        ));
    }
    match rows.iter().find(|&&row| row >= n) {
        Some(&index) => Err(Error::out_of_range(index, n)),
        None => Ok(()),
    }
}

/// Checks that there is one action for each state. Also checks that states and actions have the widths that
/// the environment requires.
pub(crate) fn check_widths(states: &Reals, actions: &Reals, widths: [usize; 2]) -> Result<()> {
    let got = [states.width(), actions.width(), actions.len()];
    let expected = [widths[0], widths[1], states.len()];
    if got == expected {
        return Ok(());
    }
    Err(Error::shape(
        "the list (width of states, width of actions, number of actions) of a continuous environment",
        expected.map(|n| n as i64).to_vec(),
        got.map(|n| n as i64).to_vec(),
        "give states of this environment, and one action of this environment for each state",
    ))
}

/// Converts a tensor of actions, a row of `width` numbers in `f64` for each, to [`Reals`].
pub(crate) fn read_actions(tensor: &Tensor, width: usize) -> Result<Reals> {
    match (tensor.kind(), tensor.size().as_slice()) {
        (Kind::Double, [_, columns]) if *columns == width as i64 => Reals::from_tensor(tensor),
        (kind, size) => Err(Error::contract(
            "actions of a continuous environment are given as rows of f64, of the width of its actions",
            format!("the tensor is {kind:?} {size:?}, but {width} columns of f64 are needed"),
        )),
    }
}

/// Checks that a mixture has components and that `min` and `max` bound a range of positive numbers. The error
/// message calls this range `bounds`.
pub(crate) fn check_mixture(components: usize, bounds: &'static str, min: f64, max: f64) -> Result<()> {
    if components == 0 {
        return Err(Error::config("components", 0, "at least 1 component"));
    }
    if min > 0.0 && min < max && max.is_finite() {
        return Ok(());
    }
    Err(Error::config(bounds, format!("{min} to {max}"), "0 < min < max, both finite"))
}

/// Refuses an exit bias, for environments without an exit. The error message gives `expected` as advice,
/// which names other ways to explore.
pub(crate) fn check_no_exit_bias(exploration: &Exploration, expected: &'static str) -> Result<()> {
    match exploration.exit_bias() {
        0.0 => Ok(()),
        bias => Err(Error::config("exit_bias", bias, expected)),
    }
}

/// Refuses conditions, because the networks of this module have no input for them.
pub(crate) fn check_no_conditions(conditions: Option<&Tensor>) -> Result<()> {
    match conditions {
        None => Ok(()),
        Some(_) => Err(Error::missing(
            "sampling under conditions",
            "a network that takes conditions, but this network takes none",
            "train and sample without conditions",
        )),
    }
}

/// Checks that an output of a network is finite before an action is drawn from it.
pub(crate) fn finite(row: usize, value: f64) -> Result<f64> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::non_finite(
            "an output of the policy's network",
            row,
            value,
            "lower the learning rate, clip gradients (`max_norm`), or check the inputs of the network",
        ))
    }
}

/// Draws the index of a component of a mixture from the softmax of the logits divided by the temperature.
pub(crate) fn component(row: usize, logits: &[f64], temperature: f64, rng: &mut Rng) -> Result<usize> {
    let mut max = f64::NEG_INFINITY;
    for &logit in logits {
        max = max.max(finite(row, logit)?);
    }
    let weights: Vec<f64> = logits.iter().map(|logit| ((logit - max) / temperature).exp()).collect();
    let mut rest = rng.uniform() * weights.iter().sum::<f64>();
    let passed = |weight: &f64| {
        rest -= weight;
        rest < 0.0
    };
    // `passed` subtracts one weight after the other from `rest`, until `rest` is below 0. Rounding may leave
    // `rest` at 0 or above even after the last weight. The last component is drawn in this case.
    Ok(weights.iter().position(passed).unwrap_or(logits.len() - 1))
}
