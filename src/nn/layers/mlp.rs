//! A multi-layer perceptron and its settings.

use tch::Tensor;

use super::{Activation, LayerNorm, Linear};
use crate::nn::Scope;

/// The settings of a multi-layer perceptron, except its numbers of inputs and outputs.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// The widths of the hidden layers. An empty list gives a linear model.
    pub hidden: Vec<i64>,
    /// The activation after each hidden layer.
    pub activation: Activation,
    /// `true` for an affine layer norm before each activation.
    pub layer_norm: bool,
    /// The initial amplitude of the noise on the weights of every linear layer ([`Linear::noisy`]), for
    /// exploration; `None` (the default) for no noise. The noise changes only when
    /// [`Parameters::reset_noise`](crate::nn::Parameters::reset_noise) is called. Call that method before
    /// each batch, and evaluate in [`Parameters::without_noise`](crate::nn::Parameters::without_noise).
    #[serde(default)]
    pub noise: Option<f64>,
}

impl Default for MlpConfig {
    /// The default settings: two hidden layers of width 256 with ReLU, without norm and noise.
    fn default() -> Self {
        Self { hidden: vec![256, 256], activation: Activation::Relu, layer_norm: false, noise: None }
    }
}

/// A multi-layer perceptron. Each hidden layer consists of a linear layer, an optional layer norm, and an
/// activation. The output layer is linear.
///
/// The parameters of layer `i` are named `i.weight`, `i.bias`, `i.norm.weight` and `i.norm.bias`.
///
/// ```
/// use gfn::{Rng, nn::{Mlp, MlpConfig, Parameters}};
/// use tch::{Device, Kind, Tensor};
///
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
/// let config = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
/// let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)).sub("head"), 4, 2, &config);
/// assert_eq!(mlp.forward(&Tensor::ones([5, 4], (Kind::Float, Device::Cpu))).size(), [5, 2]);
/// ```
#[derive(Debug)]
pub struct Mlp {
    pub(in crate::nn) hidden: Vec<(Linear, Option<LayerNorm>)>,
    pub(in crate::nn) output: Linear,
    pub(in crate::nn) activation: Activation,
}

impl Mlp {
    /// Builds a perceptron with these numbers of inputs and outputs.
    pub fn new(scope: &mut Scope<'_>, inputs: i64, outputs: i64, config: &MlpConfig) -> Self {
        let linear = |scope: &mut Scope<'_>, inputs, outputs| match config.noise {
            None => Linear::new(scope, inputs, outputs),
            Some(sigma) => Linear::noisy(scope, inputs, outputs, sigma),
        };
        let mut width = inputs;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for (i, &next) in config.hidden.iter().enumerate() {
            let mut layer = scope.sub(&i.to_string());
            let map = linear(&mut layer, width, next);
            let norm = config.layer_norm.then(|| LayerNorm::new(&mut layer.sub("norm"), next));
            hidden.push((map, norm));
            width = next;
        }
        let output = linear(&mut scope.sub(&hidden.len().to_string()), width, outputs);
        Self { hidden, output, activation: config.activation }
    }

    /// Sets every bias of the output layer to `value`. The mean of the initial outputs over random weights is
    /// then `value`.
    pub fn fill_output_bias(&self, value: f64) {
        if let Some(bias) = self.output.bias() {
            tch::no_grad(|| {
                let _ = bias.shallow_clone().fill_(value);
            });
        }
    }

    /// Multiplies every weight and bias of the output layer by `factor`, which scales the outputs.
    ///
    /// ```
    /// use gfn::{Rng, nn::{Mlp, MlpConfig, Parameters}};
    /// use tch::{Device, Kind, Tensor};
    /// let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
    /// let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 4, 1, &MlpConfig::default());
    /// let x = Tensor::ones([1, 4], (Kind::Double, Device::Cpu));
    /// let before = mlp.forward(&x).double_value(&[0, 0]);
    /// mlp.scale_output(0.5);
    /// assert!((mlp.forward(&x).double_value(&[0, 0]) - 0.5 * before).abs() < 1e-12);
    /// ```
    pub fn scale_output(&self, factor: f64) {
        self.output.scale(factor);
    }

    /// Sets every weight and bias of the output layer to 0, so that all initial outputs are 0.
    pub fn zero_output(&self) {
        self.fill_output_bias(0.0);
        tch::no_grad(|| {
            let _ = self.output.weight().shallow_clone().zero_();
        });
    }

    /// The kind (data type) of the parameters. The input must have the same data type.
    pub fn kind(&self) -> tch::Kind {
        self.output.weight.kind()
    }

    /// The weight of the first layer, `[width, inputs]`.
    pub(in crate::nn) fn input_weight(&self) -> &Tensor {
        self.hidden.first().map_or(&self.output, |(linear, _)| linear).weight()
    }

    /// Converts an input to the kind (data type) and the device of the parameters.
    pub(crate) fn convert_input(&self, x: &Tensor) -> Tensor {
        x.to_device(self.output.weight.device()).to_kind(self.kind())
    }

    /// Computes the outputs of each row: `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.output.forward(&self.hidden(x))
    }

    /// Computes the input of the output layer: `[rows, inputs]` to `[rows, width]`, where `width` is the
    /// width of the last hidden layer.
    pub fn hidden(&self, x: &Tensor) -> Tensor {
        let mut x = x.shallow_clone();
        for (linear, norm) in &self.hidden {
            x = linear.forward(&x);
            if let Some(norm) = norm {
                x = norm.forward(&x);
            }
            x = self.activation.apply(&x);
        }
        x
    }

    /// Applies the output layer to rows that [`hidden`](Self::hidden) computed. If `columns` (i64) is given,
    /// only the outputs with these indices are computed, `[rows, columns]`.
    ///
    /// ```
    /// use gfn::{Rng, nn::{Mlp, MlpConfig, Parameters}};
    /// use tch::{Device, Kind, Tensor};
    /// let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
    /// let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 2, 3, &MlpConfig::default());
    /// let x = Tensor::ones([1, 2], (Kind::Double, Device::Cpu));
    /// let selected = mlp.outputs(&mlp.hidden(&x), Some(&Tensor::from_slice(&[2i64, 0])));
    /// assert!((selected.double_value(&[0, 0]) - mlp.forward(&x).double_value(&[0, 2])).abs() < 1e-12);
    /// ```
    pub fn outputs(&self, hidden: &Tensor, columns: Option<&Tensor>) -> Tensor {
        let Some(columns) = columns else { return self.output.forward(hidden) };
        let (weight, bias) = self.output.effective();
        hidden.linear(&weight.index_select(0, columns), bias.map(|bias| bias.index_select(0, columns)))
    }
}
