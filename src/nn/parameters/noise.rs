//! Noise on the weights of a linear layer.

use tch::{Tensor, no_grad};

use super::Scope;
use super::restored::Restored;
use crate::Rng;
use crate::nn::Parameters;

/// Factorised Gaussian noise on a weight and a bias, with learned amplitudes (Fortunato et al., *Noisy
/// Networks for Exploration*, 2018, eqs. 10 and 11).
///
/// `w + sigma_w * (f(e_out) f(e_in)^T)` and `b + sigma_b * f(e_out)`, where `f(e) = sign(e) sqrt|e|` and the
/// `e` are standard normal. Amplitudes start at `sigma / sqrt(inputs)`.
#[derive(Debug)]
pub(crate) struct WeightNoise {
    amplitude: Tensor,
    bias_amplitude: Tensor,
    /// f(e) of the weight's rows and columns, in the weight's layout.
    rows: Tensor,
    columns: Tensor,
    /// `true` if rows, rather than columns, belong to the outputs.
    outputs_are_rows: bool,
}

impl WeightNoise {
    /// Noise for a weight `[outputs, inputs]`, as in a linear layer, or for a table `[inputs, outputs]`.
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

    /// The weight with noise.
    pub(crate) fn weight(&self, weight: &Tensor) -> Tensor {
        weight + &self.amplitude * (self.rows.unsqueeze(1) * &self.columns)
    }

    /// The bias with noise.
    pub(crate) fn bias(&self, bias: &Tensor) -> Tensor {
        let outputs = if self.outputs_are_rows { &self.rows } else { &self.columns };
        bias + &self.bias_amplitude * outputs
    }
}

/// sign(e) sqrt|e| of a standard normal e.
pub(in crate::nn) fn noise(rng: &mut Rng) -> f64 {
    let e = rng.normal();
    e.abs().sqrt().copysign(e)
}

impl Parameters {
    /// Draws the noise of all noisy layers again ([`MlpConfig::noise`](crate::nn::MlpConfig::noise)); without
    /// such layers it draws nothing.
    ///
    /// Noise is saved with the parameters. A loss recorded before this call can't be differentiated
    /// afterwards.
    pub fn reset_noise(&self, rng: &mut Rng) {
        no_grad(|| {
            for tensor in &self.noise {
                let values: Vec<f64> = (0..tensor.numel()).map(|_| noise(rng)).collect();
                tensor.shallow_clone().copy_(&Tensor::from_slice(&values));
            }
        });
    }

    /// Runs `f` without noise, that is, with the mean of each weight, and restores the noise afterwards. It
    /// is meant for evaluation.
    ///
    /// A loss recorded before this call can't be differentiated afterwards.
    pub fn without_noise<T>(&self, f: impl FnOnce() -> T) -> T {
        let _back = Restored::keep(&self.noise);
        no_grad(|| self.noise.iter().for_each(|tensor| drop(tensor.shallow_clone().zero_())));
        f()
    }
}
