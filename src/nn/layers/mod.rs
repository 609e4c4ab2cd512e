//! The basic layers: linear layer, layer norm, multi-layer perceptron, embedding table.
//!
//! A layer registers its parameters in the scope in which it is built. Build each layer in a separate scope
//! (`scope.sub("name")`).

mod activation;
mod embedding;
mod layer_norm;
mod linear;
mod mlp;

pub use activation::Activation;
pub use embedding::Embedding;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{Mlp, MlpConfig};

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;
    use crate::Rng;
    use crate::nn::Parameters;

    fn close(a: &Tensor, b: &Tensor) -> bool {
        a.size() == b.size() && (a - b).abs().max().double_value(&[]) < 1e-12
    }

    fn input() -> Tensor {
        Tensor::from_slice(&[0.5, -1.0, 2.0, 0.1, 0.7, -0.3]).view([2, 3])
    }

    #[test]
    fn linear_is_the_product_plus_the_bias() {
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(1);
        let mut scope = p.scope(&mut rng);
        let biased = Linear::new(&mut scope.sub("a"), 3, 4);
        let unbiased = Linear::without_bias(&mut scope.sub("b"), 3, 4);
        let x = input();
        let expected = x.matmul(&biased.weight.tr()) + biased.bias().unwrap();
        assert!(close(&biased.forward(&x), &expected));
        assert!(close(&unbiased.forward(&x), &x.matmul(&unbiased.weight().tr())));
        assert_eq!(p.count(), 4 * 3 + 4 + 4 * 3);
        let largest = biased.weight.abs().max().double_value(&[]);
        assert!(largest <= 1.0 / 3f64.sqrt(), "{largest}");
    }

    #[test]
    fn layer_norm_standardises_rows_then_scales() {
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(1);
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
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(2);
        let config =
            MlpConfig { hidden: vec![5, 4], activation: Activation::Tanh, layer_norm: true, noise: None };
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
        let h =
            (input().matmul(&t[0].tr()) + &t[1]).layer_norm([5], Some(&t[2]), Some(&t[3]), 1e-5, true).tanh();
        let h = (h.matmul(&t[4].tr()) + &t[5]).layer_norm([4], Some(&t[6]), Some(&t[7]), 1e-5, true).tanh();
        let expected = h.matmul(&t[8].tr()) + &t[9];
        assert!(close(&mlp.forward(&input()), &expected));
    }

    /// Checks that outputs agree with the equation of the documentation of `WeightNoise`, that they equal the
    /// outputs of the mean weights if noise is off, and that they change when new noise is drawn.
    #[test]
    fn noise_is_on_weight_and_bias() {
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(1);
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

    /// Checks the moments of the noise of Fortunato et al. 2018: for a standard normal `e`, `sign(e) sqrt|e|`
    /// has mean 0 and variance E|e| = sqrt(2 / pi).
    #[test]
    fn noise_has_the_moments_of_the_paper() {
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(1);
        let _ = Linear::noisy(&mut p.scope(&mut rng), 20_000, 1, 0.5);
        let noise = &p.iter().last().unwrap().tensor;
        let mean = noise.mean(Kind::Double).double_value(&[]);
        let variance = noise.var(true).double_value(&[]);
        assert!(
            mean.abs() < 0.03 && (variance - (2.0 / std::f64::consts::PI).sqrt()).abs() < 0.03,
            "{mean}, {variance}"
        );
    }

    #[test]
    fn invalid_noise_is_refused() {
        for sigma in [-0.1, f64::NAN, f64::INFINITY] {
            let mut p = Parameters::new(Device::Cpu, Kind::Double);
            let mut rng = Rng::seeded(1);
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
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(2);
        let table = Embedding::new(&mut p.scope(&mut rng), 3, 2);
        let classes = Tensor::from_slice(&[2i64, 0, 2]);
        let out = table.forward(&classes);
        assert_eq!(out, table.weight().index_select(0, &classes));
        out.sum(Kind::Double).backward();
        let expected = Tensor::from_slice(&[1.0, 1.0, 0.0, 0.0, 2.0, 2.0]).view([3, 2]);
        assert_eq!(table.weight().grad(), expected);
    }
}
