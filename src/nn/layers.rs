//! Plain layers: linear, layer norm, embedding table.
//!
//! A layer registers its parameters in the scope that it is given: hand it one of its own (`scope.sub("name")`).

use tch::Tensor;

use super::Scope;
use super::noise::WeightNoise;

/// `y = x W^T + b`, with `W` of shape `[outputs, inputs]` (parameter `weight`) and `b` of shape `[outputs]` (`bias`).
///
/// Weights and biases start uniform on `[-1/sqrt(inputs), 1/sqrt(inputs))`, PyTorch's default.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
    noise: Option<WeightNoise>,
}

impl Linear {
    /// A linear layer with a bias.
    pub fn new(scope: &mut Scope<'_>, inputs: i64, outputs: i64) -> Self {
        let mut layer = Self::without_bias(scope, inputs, outputs);
        layer.bias = Some(scope.uniform("bias", &[outputs], bound(inputs)));
        layer
    }

    /// A linear layer without a bias, for one that is followed by a norm or whose outputs are summed.
    pub fn without_bias(scope: &mut Scope<'_>, inputs: i64, outputs: i64) -> Self {
        Self { weight: scope.uniform("weight", &[outputs, inputs], bound(inputs)), bias: None, noise: None }
    }

    /// A linear layer with a bias and with noise on both: `sigma / sqrt(inputs)` is the amplitude that it starts with
    /// (Fortunato et al., *Noisy Networks for Exploration*, 2018, who take 0.5). It is trained, as parameters `weight_sigma` and
    /// `bias_sigma`; what is drawn is redrawn by [`Parameters::reset_noise`](super::Parameters::reset_noise) only.
    pub fn noisy(scope: &mut Scope<'_>, inputs: i64, outputs: i64, sigma: f64) -> Self {
        let mut layer = Self::new(scope, inputs, outputs);
        layer.noise = Some(WeightNoise::of_weight(scope, (outputs, inputs), sigma));
        layer
    }

    /// `[rows, inputs]` to `[rows, outputs]`; leading dimensions beyond one are kept.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.effective();
        x.linear(&weight, bias)
    }

    /// Weight and bias with the noise that there is.
    pub(super) fn effective(&self) -> (Tensor, Option<Tensor>) {
        match &self.noise {
            None => (self.weight.shallow_clone(), self.bias.as_ref().map(Tensor::shallow_clone)),
            Some(noise) => (noise.weight(&self.weight), self.bias.as_ref().map(|bias| noise.bias(bias))),
        }
    }

    /// Multiplies weight and bias, before training: where outputs start. Noise on them stays as it is.
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

    /// The bias without noise, `[outputs]`, if the layer has one.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

fn bound(inputs: i64) -> f64 {
    1.0 / (inputs.max(1) as f64).sqrt()
}

/// Layer norm (Ba et al., 2016): each row to mean 0 and variance 1, then, if affine, a learned scale and shift.
#[derive(Debug)]
pub struct LayerNorm {
    pub(super) width: i64,
    pub(super) affine: Option<(Tensor, Tensor)>,
}

impl LayerNorm {
    /// Added to the variance before its root, as in PyTorch.
    pub(super) const EPS: f64 = 1e-5;

    /// With a learned `weight` (starts at 1) and `bias` (starts at 0), both `[width]`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        let affine = (scope.constant("weight", &[width], 1.0), scope.constant("bias", &[width], 0.0));
        Self { width, affine: Some(affine) }
    }

    /// Without parameters.
    pub fn plain(width: i64) -> Self {
        Self { width, affine: None }
    }

    /// `[rows, width]` to `[rows, width]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (weight, bias) = self.affine.as_ref().map(|(w, b)| (w, b)).unzip();
        x.layer_norm([self.width], weight, bias, Self::EPS, true)
    }
}

/// A table of one learned vector per class: parameter `weight`, `[classes, width]`, standard normal at first.
#[derive(Debug)]
pub struct Embedding {
    weight: Tensor,
}

impl Embedding {
    /// A table for classes `0..classes`.
    pub fn new(scope: &mut Scope<'_>, classes: i64, width: i64) -> Self {
        Self { weight: scope.normal("weight", &[classes, width], 1.0) }
    }

    /// The vectors of i64 classes: `[rows]` to `[rows, width]`. A class outside the table panics in libtorch.
    pub fn forward(&self, classes: &Tensor) -> Tensor {
        Tensor::embedding(&self.weight, classes, -1, false, false)
    }

    /// The table, `[classes, width]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::nn::{Activation, Mlp, MlpConfig, Parameters};

    fn close(a: &Tensor, b: &Tensor) -> bool {
        a.size() == b.size() && (a - b).abs().max().double_value(&[]) < 1e-12
    }

    fn input() -> Tensor {
        Tensor::from_slice(&[0.5, -1.0, 2.0, 0.1, 0.7, -0.3]).view([2, 3])
    }

    #[test]
    fn linear_is_the_product_plus_the_bias() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(1));
        let mut scope = p.scope(&mut rng);
        let with = Linear::new(&mut scope.sub("a"), 3, 4);
        let without = Linear::without_bias(&mut scope.sub("b"), 3, 4);
        let x = input();
        let expected = x.matmul(&with.weight.tr()) + with.bias().unwrap();
        assert!(close(&with.forward(&x), &expected));
        assert!(close(&without.forward(&x), &x.matmul(&without.weight().tr())));
        assert_eq!(p.count(), 4 * 3 + 4 + 4 * 3);
        let largest = with.weight.abs().max().double_value(&[]);
        assert!(largest <= 1.0 / 3f64.sqrt(), "{largest}");
    }

    #[test]
    fn layer_norm_standardises_rows_then_scales() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(1));
        let affine = LayerNorm::new(&mut p.scope(&mut rng), 3);
        let x = input();
        let mean = x.mean_dim([1i64].as_slice(), true, Kind::Double);
        let var = (&x - &mean).square().mean_dim([1i64].as_slice(), true, Kind::Double);
        let expected = (&x - mean) / (var + 1e-5).sqrt();
        assert!(close(&LayerNorm::plain(3).forward(&x), &expected));
        tch::no_grad(|| {
            for parameter in &p {
                let _ = parameter.tensor.shallow_clone().fill_(2.0);
            }
        });
        assert!(close(&affine.forward(&x), &(expected * 2.0 + 2.0)));
    }

    #[test]
    fn a_perceptron_is_its_layers_in_order() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(2));
        let config = MlpConfig { hidden: vec![5, 4], activation: Activation::Tanh, layer_norm: true, noise: None };
        let mlp = Mlp::new(&mut p.scope(&mut rng).sub("m"), 3, 2, &config);
        let names: Vec<_> = p.iter().map(|p| p.name.as_str()).collect();
        let expected = [
            "m.0.weight",
            "m.0.bias",
            "m.0.norm.weight",
            "m.0.norm.bias",
            "m.1.weight",
            "m.1.bias",
            "m.1.norm.weight",
            "m.1.norm.bias",
            "m.2.weight",
            "m.2.bias",
        ];
        assert_eq!(names, expected);
        let t: Vec<_> = p.iter().map(|p| p.tensor.shallow_clone()).collect();
        let h = (input().matmul(&t[0].tr()) + &t[1]).layer_norm([5], Some(&t[2]), Some(&t[3]), 1e-5, true).tanh();
        let h = (h.matmul(&t[4].tr()) + &t[5]).layer_norm([4], Some(&t[6]), Some(&t[7]), 1e-5, true).tanh();
        let expected = h.matmul(&t[8].tr()) + &t[9];
        assert!(close(&mlp.forward(&input()), &expected));
    }

    /// The equation with the noise that is there, the means without it, and another draw each time.
    #[test]
    fn noise_is_on_weight_and_bias() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(1));
        let layer = Linear::noisy(&mut p.scope(&mut rng), 3, 4, 0.5);
        let names: Vec<_> = p.iter().map(|p| (p.name.as_str(), p.tensor.requires_grad())).collect();
        let trained = ["weight", "bias", "weight_sigma", "bias_sigma"].map(|name| (name, true));
        assert_eq!(names, [trained.as_slice(), &[("noise_out", false), ("noise_in", false)]].concat());
        let t: Vec<_> = p.iter().map(|p| p.tensor.detach()).collect();
        assert!(close(&t[2], &Tensor::full_like(&t[2], 0.5 / 3f64.sqrt())));
        let expected = || {
            let weight = &t[0] + &t[2] * t[4].unsqueeze(1).matmul(&t[5].unsqueeze(0));
            input().matmul(&weight.tr()) + &t[1] + &t[3] * &t[4]
        };
        let first = layer.forward(&input());
        assert!(close(&first, &expected()));
        let plain = p.without_noise(|| layer.forward(&input()));
        assert!(close(&plain, &(input().matmul(&t[0].tr()) + &t[1])));
        assert!(close(&layer.forward(&input()), &first), "the noise is back");
        p.reset_noise(&mut rng);
        let second = layer.forward(&input());
        assert!(close(&second, &expected()) && !close(&second, &first));
        second.square().sum(Kind::Double).backward();
        assert!(p.iter().filter(|p| p.tensor.requires_grad()).all(|p| p.tensor.grad().defined()));
    }

    /// sign(e) sqrt|e| has mean 0 and variance E|e| = sqrt(2 / pi).
    #[test]
    fn noise_has_the_moments_of_the_paper() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(1));
        let _ = Linear::noisy(&mut p.scope(&mut rng), 20_000, 1, 0.5);
        let noise = &p.iter().last().unwrap().tensor;
        let (mean, variance) = (noise.mean(Kind::Double).double_value(&[]), noise.var(true).double_value(&[]));
        assert!(
            mean.abs() < 0.03 && (variance - (2.0 / std::f64::consts::PI).sqrt()).abs() < 0.03,
            "{mean}, {variance}"
        );
    }

    #[test]
    fn senseless_noise_is_refused() {
        for sigma in [-0.1, f64::NAN, f64::INFINITY] {
            let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(1));
            let config = MlpConfig { noise: Some(sigma), ..MlpConfig::default() };
            let _ = Mlp::new(&mut p.scope(&mut rng), 2, 2, &config);
            assert!(p.check().unwrap_err().to_string().contains("noise"));
        }
    }

    #[test]
    fn activations_at_minus_one_and_two() {
        let x = Tensor::from_slice(&[-1.0, 2.0]);
        for (activation, expected) in [
            (Activation::Relu, [0.0, 2.0]),
            (Activation::LeakyRelu, [-0.01, 2.0]),
            (Activation::Gelu, [-0.158_655_253_931_457_07, 1.954_499_736_103_641_8]),
            (Activation::Silu, [-1.0 / (1.0 + 1f64.exp()), 2.0 / (1.0 + (-2f64).exp())]),
            (Activation::Tanh, [(-1f64).tanh(), 2f64.tanh()]),
            (Activation::Elu, [(-1f64).exp() - 1.0, 2.0]),
        ] {
            let got = activation.apply(&x);
            assert!(close(&got, &Tensor::from_slice(&expected)), "{activation:?}");
        }
    }

    #[test]
    fn an_embedding_gathers_rows_and_sums_their_gradients() {
        let (mut p, mut rng) = (Parameters::new(Device::Cpu, Kind::Double), Rng::seeded(2));
        let table = Embedding::new(&mut p.scope(&mut rng), 3, 2);
        let classes = Tensor::from_slice(&[2i64, 0, 2]);
        let out = table.forward(&classes);
        assert_eq!(out, table.weight().index_select(0, &classes));
        out.sum(Kind::Double).backward();
        let expected = Tensor::from_slice(&[1.0, 1.0, 0.0, 0.0, 2.0, 2.0]).view([3, 2]);
        assert_eq!(table.weight().grad(), expected);
    }
}
