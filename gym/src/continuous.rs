//! What policies of continuous environments have in common.

use gfn::distribution::Exploration;
use gfn::env::{Direction, Reals, Rows};
use gfn::nn::{BackwardPolicy, LogZ, Mlp, MlpConfig, Parameters};
use gfn::policy::Evaluation;
use gfn::quantity::{Quantities, Quantity};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

/// The make of [`Perceptrons`].
pub(crate) struct PerceptronsConfig<'a> {
    /// Numbers per state that go in.
    pub(crate) inputs: i64,
    /// Numbers per state that P_F is told by; P_B is told by as many.
    pub(crate) width: i64,
    pub(crate) mlp: &'a MlpConfig,
    pub(crate) backward: BackwardPolicy,
    pub(crate) flow: bool,
    pub(crate) initial_log_z: f64,
}

/// The networks of a policy on points: a torso for P_F, the state flow, and P_B where it shares it; another where P_B has one of its own.
#[derive(Debug)]
pub(crate) struct Perceptrons {
    width: i64,
    shared_pb: bool,
    flow: bool,
    torso: Mlp,
    separate: Option<Mlp>,
    log_z: LogZ,
    parameters: Parameters,
}

impl Perceptrons {
    pub(crate) fn new(config: &PerceptronsConfig<'_>, device: Device, kind: Kind, rng: &mut Rng) -> Result<Self> {
        let &PerceptronsConfig { inputs, width, mlp, backward, flow, initial_log_z } = config;
        let shared_pb = backward == BackwardPolicy::SharedTorso;
        let outputs = width * (1 + i64::from(shared_pb)) + i64::from(flow);
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let torso = Mlp::new(&mut scope.sub("torso"), inputs, outputs, mlp);
        let separate =
            (backward == BackwardPolicy::Separate).then(|| Mlp::new(&mut scope.sub("pb"), inputs, width, mlp));
        let log_z = LogZ::scalar(&mut scope, initial_log_z);
        parameters.check()?;
        Ok(Self { width, shared_pb, flow, torso, separate, log_z, parameters })
    }

    /// What is wanted of the states whose inputs are `x`; `dist` makes a distribution of a network's outputs, or the uniform one of none.
    pub(crate) fn evaluate<D>(
        &self,
        x: &Tensor,
        is_source: impl Iterator<Item = bool>,
        wants: Quantities,
        dist: impl Fn(Direction, Option<Tensor>) -> Result<D>,
    ) -> Result<Evaluation<D>> {
        let (width, log_flow) = (self.width, wants.has(Quantity::LogFlow) && self.flow);
        let shared = (wants.has(Quantity::LogPf) || log_flow || (wants.has(Quantity::LogPb) && self.shared_pb))
            .then(|| self.torso.forward(x));
        let mut out = Evaluation::default();
        if let Some(shared) = &shared {
            if wants.has(Quantity::LogPf) {
                out.pf = Some(dist(Direction::Forward, Some(shared.narrow(1, 0, width)))?);
            }
            if log_flow {
                out = out.with(Quantity::LogFlow, with_log_z(&self.log_z, &shared.select(1, -1), is_source));
            }
        }
        if wants.has(Quantity::LogPb) {
            let outputs = match (&self.separate, &shared) {
                (Some(network), _) => Some(network.forward(x)),
                (None, Some(shared)) if self.shared_pb => Some(shared.narrow(1, width, width)),
                _ => None,
            };
            out.pb = Some(dist(Direction::Backward, outputs)?);
        }
        Ok(out)
    }

    pub(crate) fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.log_z.forward(conditions, n)
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// log F with log Z at the source, whose flow it is.
fn with_log_z(log_z: &LogZ, flow: &Tensor, is_source: impl Iterator<Item = bool>) -> Tensor {
    let sources: Vec<bool> = is_source.collect();
    let at_source = Tensor::from_slice(&sources).to_device(flow.device());
    match log_z.forward(None, sources.len()) {
        Some(log_z) => log_z.where_self(&at_source, flow),
        None => flow.shallow_clone(),
    }
}

/// Checks that states are of a width.
pub(crate) fn check_width(states: &Reals, width: usize) -> Result<()> {
    match states.width() == width {
        true => Ok(()),
        false => Err(Error::Shape {
            what: "states of a continuous environment".into(),
            expected: vec![states.len() as i64, width as i64],
            got: vec![states.len() as i64, states.width() as i64],
            remedy: "give states of the environment, with as many numbers each as it has",
        }),
    }
}

/// Checks what a distribution over `n` states is asked about: rows among them, and an action of a width for each row.
pub(crate) fn check_asked(n: usize, rows: &[usize], actions: Option<(&Reals, usize)>) -> Result<()> {
    if let Some((actions, width)) =
        actions.filter(|(actions, width)| (actions.len(), actions.width()) != (rows.len(), *width))
    {
        return Err(Error::Shape {
            what: "actions to be scored".into(),
            expected: vec![rows.len() as i64, width as i64],
            got: vec![actions.len() as i64, actions.width() as i64],
            remedy: "give one action of the environment for each row",
        });
    }
    match rows.iter().find(|&&row| row >= n) {
        Some(&index) => Err(Error::OutOfRange { index, len: n }),
        None => Ok(()),
    }
}

/// Refuses an exit bias where there is no exit to be biased; `expected` says how else to explore.
pub(crate) fn check_no_exit_bias(exploration: &Exploration, expected: &'static str) -> Result<()> {
    match exploration.exit_bias() {
        0.0 => Ok(()),
        bias => Err(Error::Config { setting: "exit_bias", got: bias.to_string(), expected }),
    }
}

/// Refuses conditions, which the networks of this module have no input for.
pub(crate) fn check_no_conditions(conditions: Option<&Tensor>) -> Result<()> {
    match conditions {
        None => Ok(()),
        Some(_) => Err(Error::Missing {
            objective: "sampling under conditions",
            needs: "a network that takes conditions",
            remedy: "train and sample this one without conditions",
        }),
    }
}

/// An output of a network, which must be finite to be drawn from.
pub(crate) fn finite(row: usize, value: f64) -> Result<f64> {
    match value.is_finite() {
        true => Ok(value),
        false => Err(Error::NonFinite {
            what: "an output of the policy's network",
            row,
            value,
            remedy: "lower the learning rate, clip gradients (`max_norm`), or check what the network is given",
        }),
    }
}

/// Draws a component of a mixture by its logit over a temperature.
pub(crate) fn component(row: usize, logits: &[f64], temperature: f64, rng: &mut Rng) -> Result<usize> {
    let mut max = f64::NEG_INFINITY;
    for &logit in logits {
        max = max.max(finite(row, logit)?);
    }
    let weight = |logit: &f64| ((logit - max) / temperature).exp();
    let mut rest = rng.uniform() * logits.iter().map(weight).sum::<f64>();
    let passed = |logit: &f64| {
        rest -= weight(logit);
        rest < 0.0
    };
    // Rounding may leave a rest behind the last one.
    Ok(logits.iter().position(passed).unwrap_or(logits.len() - 1))
}
