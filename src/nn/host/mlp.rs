//! Copies of perceptrons and layer norms on the host.

use tch::{Kind, Tensor};

use super::Mirror;
use super::linear::{HostLinear, LayerInputs};
use crate::nn::{Activation, LayerNorm, Linear, Mlp};

impl LayerNorm {
    /// Copies the norm to the host. The parameters must be in single precision.
    pub(in crate::nn) fn on_host(&self, mirror: &Mirror) -> HostNorm {
        let affine = self.affine.as_ref().map(|(w, b)| (mirror.floats(w), mirror.floats(b)));
        HostNorm { width: self.width as usize, affine }
    }
}

/// A copy of a [`LayerNorm`] on the host.
#[derive(Debug)]
pub(in crate::nn) struct HostNorm {
    width: usize,
    affine: Option<(Vec<f32>, Vec<f32>)>,
}

impl HostNorm {
    /// Normalises each row of `x`, `[rows, width]`, in place.
    pub(in crate::nn) fn apply(&self, x: &mut [f32]) {
        let n = self.width as f64;
        for row in x.chunks_exact_mut(self.width) {
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
            let scale = (variance + LayerNorm::EPS).sqrt().recip();
            for x in row.iter_mut() {
                *x = ((f64::from(*x) - mean) * scale) as f32;
            }
            if let Some((weight, bias)) = &self.affine {
                for (x, (w, b)) in row.iter_mut().zip(weight.iter().zip(bias)) {
                    *x = *x * w + b;
                }
            }
        }
    }
}

/// A copy of a perceptron ([`Mlp`]) on the host, in single precision and without gradients. Use the copy for
/// small batches, where the overhead of tensor operations dominates.
///
/// The outputs of a row don't depend on the other rows, even in the last bit.
///
/// ```
/// use gfn::{Rng, nn::{HostMlp, Mlp, MlpConfig, Parameters}};
/// let mut parameters = Parameters::new(tch::Device::Cpu, tch::Kind::Float);
/// let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 4, 2, &MlpConfig::default());
/// let frozen = HostMlp::new(&mlp).ok_or("not for this perceptron")?;
/// let x = tch::Tensor::from_slice(&[0.5f32; 4]).view([1, 4]);
/// let expected = Vec::<f32>::try_from(mlp.forward(&x).view(-1))?;
/// let got = frozen.forward(&[0.5; 4], 1);
/// assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostMlp {
    activation: Activation,
    hidden: Vec<(HostLinear, Option<HostNorm>)>,
    output: HostLinear,
}

impl HostMlp {
    /// Copies a perceptron with its current noise from any device. Returns `None` if the perceptron has
    /// another data type than single precision.
    #[must_use]
    pub fn new(mlp: &Mlp) -> Option<Self> {
        (mlp.kind() == Kind::Float).then(|| Self::from_mlp(mlp, &Mirror::default()))
    }

    /// Copies a perceptron with its current noise, but only the outputs with the indices `columns`, in this
    /// order. Returns `None` as [`new`](Self::new) does.
    #[must_use]
    pub fn some_outputs(mlp: &Mlp, columns: &[i64]) -> Option<Self> {
        (mlp.kind() == Kind::Float).then(|| {
            let (weight, bias) = mlp.output.effective();
            let columns = Tensor::from_slice(columns).to_device(weight.device());
            let select = |tensor: &Tensor| tensor.index_select(0, &columns);
            let output = HostLinear::new(&select(&weight), bias.as_ref().map(select).as_ref());
            Self::with_output(mlp, output, &Mirror::default())
        })
    }

    /// Adds a hidden layer with the norm `norm`, if there is one, before all other layers.
    pub(crate) fn behind_layer(mut self, first: HostLinear, norm: Option<&LayerNorm>) -> Self {
        self.hidden.insert(0, (first, norm.map(|norm| norm.on_host(&Mirror::default()))));
        self
    }

    /// Copies a perceptron in single precision with its current noise.
    pub(in crate::nn) fn from_mlp(mlp: &Mlp, mirror: &Mirror) -> Self {
        Self::with_output(mlp, HostLinear::from_linear(&mlp.output, mirror), mirror)
    }

    fn with_output(mlp: &Mlp, output: HostLinear, mirror: &Mirror) -> Self {
        let copy = |(layer, norm): &(Linear, Option<LayerNorm>)| {
            (HostLinear::from_linear(layer, mirror), norm.as_ref().map(|norm| norm.on_host(mirror)))
        };
        let hidden = mlp.hidden.iter().map(copy).collect();
        Self { activation: mlp.activation, hidden, output }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.hidden.first().map_or(&self.output, |(layer, _)| layer).inputs()
    }

    pub(in crate::nn) fn outputs(&self) -> usize {
        self.output.outputs()
    }

    /// Computes the outputs of each row: `[rows, inputs]` to `[rows, outputs]`.
    ///
    /// # Panics
    /// If `x` holds fewer than `rows` rows.
    #[must_use]
    pub fn forward(&self, x: &[f32], rows: usize) -> Vec<f32> {
        self.forward_inputs(LayerInputs::Dense(x), rows)
    }

    /// Computes the outputs of each row as [`forward`](Self::forward) does, from inputs in either form.
    pub(crate) fn forward_inputs(&self, x: LayerInputs<'_>, rows: usize) -> Vec<f32> {
        // A thread computes all layers for a block of rows, so that the block stays in the cache of its core.
        x.map_blocks(rows, self.inputs(), |x, rows| self.forward_block(x, rows))
    }

    /// Computes the outputs of the `rows` rows of `x` on the calling thread.
    fn forward_block(&self, inputs: LayerInputs<'_>, rows: usize) -> Vec<f32> {
        let mut x = inputs;
        let mut embedding;
        for (layer, norm) in &self.hidden {
            embedding = layer.forward(x, rows);
            if let Some(norm) = norm {
                norm.apply(&mut embedding);
            }
            self.activation.apply_on_host(&mut embedding);
            x = LayerInputs::Dense(&embedding);
        }
        self.output.forward(x, rows)
    }
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::Rng;
    use crate::nn::{Linear, MlpConfig, Parameters};
    use crate::tensor::to_host;

    const ACTIVATIONS: [Activation; 6] = [
        Activation::Relu,
        Activation::LeakyRelu,
        Activation::Gelu,
        Activation::Silu,
        Activation::Tanh,
        Activation::Elu,
    ];

    fn config(hidden: &[i64], activation: Activation, layer_norm: bool, noise: Option<f64>) -> MlpConfig {
        MlpConfig { hidden: hidden.to_vec(), activation, layer_norm, noise }
    }

    #[test]
    fn perceptrons_agree_with_libtorch() {
        let mut rng = Rng::seeded(5);
        let x: Vec<f32> = (0..7 * 12).map(|_| 2.0 * rng.normal() as f32).collect();
        for activation in ACTIVATIONS {
            for (hidden, norm, noise) in
                [(vec![], false, None), (vec![20], true, None), (vec![20, 9], true, Some(0.5))]
            {
                let config = config(&hidden, activation, norm, noise);
                let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
                let mut scope = parameters.scope(&mut rng);
                let mlp = Mlp::new(&mut scope, 12, 6, &config);
                let first = Linear::new(&mut scope.sub("first"), 12, 12);
                let before = norm.then(|| LayerNorm::new(&mut scope.sub("before"), 12));
                parameters.reset_noise(&mut rng);
                let tensor = first.forward(&Tensor::from_slice(&x).view([7, 12]));
                let tensor =
                    before.as_ref().map_or_else(|| tensor.shallow_clone(), |norm| norm.forward(&tensor));
                let expected = to_host(&mlp.forward(&activation.apply(&tensor)).narrow(1, 2, 3));
                let first = HostLinear::from_linear(&first, &Mirror::default());
                let copy = HostMlp::some_outputs(&mlp, &[2, 3, 4]).unwrap();
                let copy = copy.behind_layer(first, before.as_ref());
                let got = copy.forward(&x, 7);
                let off =
                    got.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
                assert!(got.len() == 21 && off < 1e-5, "{activation:?} {hidden:?}: {off}");
            }
        }
    }

    #[test]
    fn many_rows_are_distributed_over_threads() {
        let mut rng = Rng::seeded(6);
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let config = config(&[11], Activation::Relu, true, None);
        let copy = HostMlp::new(&Mlp::new(&mut parameters.scope(&mut rng), 5, 3, &config)).unwrap();
        let x: Vec<f32> = (0..1000 * 5).map(|_| rng.normal() as f32).collect();
        let one_by_one: Vec<f32> = x.chunks(5).flat_map(|row| copy.forward(row, 1)).collect();
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| copy.forward(&x, 1000)), one_by_one);
            // If only 700 of the 1000 rows of `x` are requested, the other rows are ignored.
            assert_eq!(pool.install(|| copy.forward(&x, 700)), one_by_one[..700 * 3]);
        }
    }

    #[test]
    fn nan_is_not_hidden() {
        for activation in ACTIVATIONS {
            let mut x = [f32::NAN, -1.0];
            activation.apply_on_host(&mut x);
            assert!(x[0].is_nan() && x[1] <= 0.0);
        }
    }

    #[test]
    fn perceptrons_in_double_precision_have_no_host_copy() {
        for (kind, has_copy) in [(Kind::Float, true), (Kind::Double, false)] {
            let mut parameters = Parameters::new(Device::Cpu, kind);
            let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 2, 3, &MlpConfig::default());
            assert_eq!(HostMlp::new(&mlp).is_some(), has_copy);
        }
    }
}
