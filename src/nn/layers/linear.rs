//! A linear layer.

use tch::Tensor;

use crate::nn::Scope;
use crate::nn::parameters::WeightNoise;

/// A linear layer, `y = x W^T + b`. `W` is the parameter `weight`, `[outputs, inputs]`, and `b` is the
/// parameter `bias`, `[outputs]`.
///
/// Initial weights and biases are uniform on `[-1/sqrt(inputs), 1/sqrt(inputs))`, as in PyTorch.
#[derive(Debug)]
pub struct Linear {
    pub(super) weight: Tensor,
    pub(super) bias: Option<Tensor>,
    pub(super) noise: Option<WeightNoise>,
}

impl Linear {
    /// Builds a linear layer with a weight and a bias.
    pub fn new(scope: &mut Scope<'_>, inputs: i64, outputs: i64) -> Self {
        let mut layer = Self::without_bias(scope, inputs, outputs);
        layer.bias = Some(scope.uniform("bias", &[outputs], bound(inputs)));
        layer
    }

    /// Builds a linear layer without a bias. Use such a layer before a norm, or if the outputs of several
    /// layers are summed.
    pub fn without_bias(scope: &mut Scope<'_>, inputs: i64, outputs: i64) -> Self {
        Self { weight: scope.uniform("weight", &[outputs, inputs], bound(inputs)), bias: None, noise: None }
    }

    /// Builds a linear layer with noise on its weight and bias (Fortunato et al., *Noisy Networks for
    /// Exploration*, 2018). The initial amplitude of the noise is `sigma / sqrt(inputs)`; the paper has
    /// `sigma = 0.5`. The amplitudes are trained, as parameters `weight_sigma` and `bias_sigma`. The noise
    /// only changes when [`Parameters::reset_noise`](crate::nn::Parameters::reset_noise) is called. An
    /// invalid `sigma` is an error of [`Parameters::check`](crate::nn::Parameters::check).
    pub fn noisy(scope: &mut Scope<'_>, inputs: i64, outputs: i64, sigma: f64) -> Self {
        let mut layer = Self::new(scope, inputs, outputs);
        layer.noise = Some(WeightNoise::new(scope, [outputs, inputs], true, sigma));
        layer
    }

    /// Applies the layer to each row: `[rows, inputs]` to `[rows, outputs]`. There may be further leading
    /// dimensions.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.effective();
        x.linear(&weight, bias)
    }

    /// Returns the weight and the bias, including the current noise.
    pub(in crate::nn) fn effective(&self) -> (Tensor, Option<Tensor>) {
        match &self.noise {
            None => (self.weight.shallow_clone(), self.bias.as_ref().map(Tensor::shallow_clone)),
            Some(noise) => (noise.weight(&self.weight), self.bias.as_ref().map(|bias| noise.bias(bias))),
        }
    }

    /// Multiplies the weight and the bias by a factor, but not their noise. Call this method before training
    /// to set the size of initial outputs.
    pub fn scale(&self, factor: f64) {
        tch::no_grad(|| {
            for tensor in std::iter::once(&self.weight).chain(&self.bias) {
                let _ = tensor.shallow_clone().g_mul_scalar_(factor);
            }
        });
    }

    /// The weight without noise, `[outputs, inputs]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The bias without noise, `[outputs]`; `None` if the layer has no bias.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

/// Returns the bound of the uniform distribution of initial weights.
fn bound(inputs: i64) -> f64 {
    1.0 / (inputs.max(1) as f64).sqrt()
}
