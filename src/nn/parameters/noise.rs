//! Noise on the weights of a linear layer.

use tch::{Tensor, no_grad};

use super::Scope;
use super::backup::ParameterBackup;
use crate::Rng;
use crate::nn::Parameters;
use crate::tensor::upload;

/// Factorised Gaussian noise on a weight and a bias, with learned amplitudes (Fortunato et al., *Noisy
/// Networks for Exploration*, 2018, eqs. 10 and 11).
///
/// The noisy weight is `w + sigma_w * (f(e_out) f(e_in)^T)`, and the noisy bias is `b + sigma_b * f(e_out)`.
/// Here `f(e) = sign(e) sqrt|e|` elementwise, and the elements of `e_out` and `e_in` are drawn from the
/// standard normal distribution. The amplitudes `sigma_w` and `sigma_b` start at `sigma / sqrt(inputs)`,
/// where `sigma` is the setting of the layer.
#[derive(Debug)]
pub(crate) struct WeightNoise {
    amplitude: Tensor,
    bias_amplitude: Tensor,
    /// The noise of each row of the weight: `f(e) = sign(e) sqrt|e|` for a standard normal `e`.
    rows: Tensor,
    /// The noise of each column of the weight: `f(e) = sign(e) sqrt|e|` for a standard normal `e`.
    columns: Tensor,
    /// `true` if the rows of the weight belong to the outputs, `false` if its columns do.
    outputs_are_rows: bool,
}

impl WeightNoise {
    /// Creates noise for a weight of this shape: `[outputs, inputs]`, as in a linear layer, or `[inputs,
    /// outputs]`, as in a layer that stores its weight transposed.
    pub(crate) fn new(scope: &mut Scope<'_>, shape: [i64; 2], outputs_are_rows: bool, sigma: f64) -> Self {
        let [rows, columns] = shape;
        let (outputs, inputs) = if outputs_are_rows { (rows, columns) } else { (columns, rows) };
        let start = scope.checked_noise(sigma) / (inputs.max(1) as f64).sqrt();
        Self {
            amplitude: scope.constant("weight_sigma", &shape, start),
            bias_amplitude: scope.constant("bias_sigma", &[outputs], start),
            rows: scope.noise(if outputs_are_rows { "noise_out" } else { "noise_in" }, rows),
            columns: scope.noise(if outputs_are_rows { "noise_in" } else { "noise_out" }, columns),
            outputs_are_rows,
        }
    }

    /// Returns the weight with the current noise.
    pub(crate) fn weight(&self, weight: &Tensor) -> Tensor {
        weight + &self.amplitude * (self.rows.unsqueeze(1) * &self.columns)
    }

    /// Returns the bias with the current noise.
    pub(crate) fn bias(&self, bias: &Tensor) -> Tensor {
        let outputs = if self.outputs_are_rows { &self.rows } else { &self.columns };
        bias + &self.bias_amplitude * outputs
    }
}

/// Draws `sign(e) sqrt|e|` for a standard normal `e`.
pub(in crate::nn) fn noise(rng: &mut Rng) -> f64 {
    let e = rng.normal();
    e.abs().sqrt().copysign(e)
}

impl Parameters {
    /// Returns `true` if some layers have noise on their weights.
    pub(crate) fn is_noisy(&self) -> bool {
        !self.noise.is_empty()
    }

    /// Draws new noise for all noisy layers ([`MlpConfig::noise`](crate::nn::MlpConfig::noise)). Without such
    /// layers `rng` isn't used.
    ///
    /// The noise is saved in checkpoints with the parameters. A loss computed before this call can't be
    /// differentiated afterwards.
    pub fn reset_noise(&self, rng: &mut Rng) {
        no_grad(|| {
            for tensor in &self.noise {
                let values: Vec<f64> = (0..tensor.numel()).map(|_| noise(rng)).collect();
                tensor.shallow_clone().copy_(&upload(&values, tensor.device()));
            }
        });
    }

    /// Runs `f` without noise, that is, with the mean of each weight, and restores the noise afterwards. Use
    /// this method for evaluation.
    ///
    /// A loss computed before this call can't be differentiated afterwards.
    pub fn without_noise<T>(&self, f: impl FnOnce() -> T) -> T {
        let _restore = ParameterBackup::keep(&self.noise);
        no_grad(|| self.noise.iter().for_each(|tensor| drop(tensor.shallow_clone().zero_())));
        f()
    }
}
