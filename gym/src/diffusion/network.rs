//! The networks of diffusion policies (PIS-GradNet).

use gfn::nn::{Activation, Linear, Mlp, MlpConfig, Scope};
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};
use tch::Tensor;

/// The size of a network whose inputs are a point and the time. Such networks compute the drift, the backward
/// corrections, and the state flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GradNetConfig {
    /// The number of harmonics of the time. The sine and the cosine of each harmonic are inputs of the
    /// network.
    pub harmonics: i64,
    /// The width of the hidden layers, and of the two embeddings of point and time.
    pub hidden: i64,
    /// The number of hidden layers that follow the sum of the two embeddings.
    pub layers: usize,
    /// `true` if the initial weights of the output layer are 0, so that an untrained policy has no drift.
    pub zero_init: bool,
}

impl Default for GradNetConfig {
    /// Returns torchgfn's sizes: 64 harmonics, width 64, two hidden layers, and an output layer that doesn't
    /// start at 0.
    fn default() -> Self {
        Self { harmonics: 64, hidden: 64, layers: 2, zero_init: false }
    }
}

impl GradNetConfig {
    fn mlp(&self, layers: usize) -> MlpConfig {
        MlpConfig { hidden: vec![self.hidden; layers], activation: Activation::Gelu, ..MlpConfig::default() }
    }

    pub(super) fn check(&self) -> Result<()> {
        for (setting, value) in [("harmonics", self.harmonics), ("the hidden width", self.hidden)] {
            if value < 1 {
                return Err(Error::config(setting, value, "at least 1"));
            }
        }
        Ok(())
    }
}

/// Returns the network's time inputs for each step, a constant tensor `[steps + 1, 2 n]` for `n` harmonics. A
/// row holds the sines and the cosines of `2 pi k t`, with t the time of the step and k the number of the
/// harmonic, from 1 to `n`.
pub(super) fn harmonics(scope: &Scope<'_>, n: i64, steps: usize) -> Tensor {
    let mut values = Vec::with_capacity((steps + 1) * 2 * n as usize);
    for step in 0..=steps {
        let t = step as f64 / steps as f64;
        let phase = |k: i64| std::f64::consts::TAU * k as f64 * t;
        values.extend((1..=n).map(|k| phase(k).sin()));
        values.extend((1..=n).map(|k| phase(k).cos()));
    }
    Tensor::from_slice(&values)
        .view([steps as i64 + 1, 2 * n])
        .to_kind(scope.kind())
        .to_device(scope.device())
}

/// The number of steps that each state of a batch has made.
pub(super) enum Times {
    /// A number of steps that is the same for all states, as in sampling.
    One(i64),
    /// A separate number of steps for each state.
    Each(Tensor),
}

impl Times {
    pub(super) fn new(steps: &[u32], device: tch::Device) -> Self {
        match steps.first() {
            Some(&first) if steps.iter().all(|&step| step == first) => Self::One(i64::from(first)),
            _ => {
                let steps: Vec<i64> = steps.iter().map(|&step| i64::from(step)).collect();
                Self::Each(Tensor::from_slice(&steps).to_device(device))
            }
        }
    }

    /// Evaluates a network whose only input is the time. Each distinct time is evaluated once. The result has
    /// a single row if all states have the same time, otherwise a row per state.
    pub(super) fn rows(&self, table: &Tensor, network: impl Fn(&Tensor) -> Tensor) -> Tensor {
        match self {
            Self::One(step) => network(&table.narrow(0, *step, 1)),
            Self::Each(steps) => network(table).index_select(0, steps),
        }
    }
}

/// A network whose inputs are a point and the time (Zhang and Chen 2022). The time is encoded by harmonics
/// (sines and cosines), whose phases aren't learned, as in torchgfn and Sendera et al. 2024. The embeddings
/// of point and time are added, and the sum passes through hidden layers with GELU.
#[derive(Debug)]
pub(super) struct JointNet {
    time: Mlp,
    point: Linear,
    joint: Mlp,
}

impl JointNet {
    pub(super) fn new(scope: &mut Scope<'_>, inputs: i64, outputs: i64, config: &GradNetConfig) -> Self {
        let joint = Mlp::new(&mut scope.sub("joint"), config.hidden, outputs, &config.mlp(config.layers));
        if config.zero_init {
            joint.zero_output();
        }
        Self {
            time: Mlp::new(&mut scope.sub("time"), 2 * config.harmonics, config.hidden, &config.mlp(1)),
            point: Linear::new(&mut scope.sub("point"), inputs, config.hidden),
            joint,
        }
    }

    /// Computes the outputs `[n, outputs]` of the network for points `[n, inputs]` at the given times.
    pub(super) fn forward(&self, points: &Tensor, table: &Tensor, times: &Times) -> Tensor {
        let time = times.rows(table, |table| self.time.forward(table).gelu("none"));
        self.joint.forward(&(self.point.forward(points) + time).gelu("none"))
    }
}

/// The learned factor of the target's gradient in the Langevin parametrisation of the drift. The factor
/// depends on the time and differs between coordinates. The initial value of the factor is 0.01 everywhere.
#[derive(Debug)]
pub(super) struct GradientScale(Mlp);

impl GradientScale {
    pub(super) fn new(scope: &mut Scope<'_>, dim: i64, config: &GradNetConfig) -> Self {
        let mlp =
            Mlp::new(&mut scope.sub("gradient_scale"), 2 * config.harmonics, dim, &config.mlp(config.layers));
        mlp.zero_output();
        mlp.fill_output_bias(0.01);
        Self(mlp)
    }

    pub(super) fn forward(&self, table: &Tensor, times: &Times) -> Tensor {
        times.rows(table, |table| self.0.forward(table))
    }
}

/// Squeezes the numbers of a tensor smoothly into `(-range, range)`.
pub(super) fn within(values: &Tensor, range: f64) -> Tensor {
    values.tanh() * range
}
