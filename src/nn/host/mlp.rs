//! Copies of perceptrons on the host for roll-outs, whose batches are too small for tensor operations.
//!
//! A roll-out step holds a few states. libtorch takes some microseconds for each operation on them, and its matrix
//! product repacks the weights each time, which costs more than the product itself. Here weights are packed once per
//! roll-out.

use std::ops::Range;

use tch::{Device, Kind, Tensor};

use crate::nn::{LayerNorm, Linear, Mlp};
use crate::parallel;

/// Number of outputs computed together: two registers of eight.
const LANES: usize = 16;
/// Rows that a thread takes at a time.
const BLOCK: usize = 128;

/// A linear layer with its weights packed for [`product`].
#[derive(Debug)]
pub(crate) struct HostLinear {
    inputs: usize,
    outputs: usize,
    /// For each group of [`LANES`] outputs, padded with zeros, the weights of every input: `[groups, inputs, LANES]`.
    panels: Vec<f32>,
    /// `[groups * LANES]`.
    bias: Vec<f32>,
}

impl HostLinear {
    /// A copy of a layer.
    pub(in crate::nn) fn of(layer: &Linear) -> Self {
        let (weight, bias) = layer.effective();
        Self::new(&weight, bias.as_ref())
    }

    /// A layer with a weight `[outputs, inputs]` and a bias `[outputs]`.
    pub(in crate::nn) fn new(weight: &Tensor, bias: Option<&Tensor>) -> Self {
        let size = weight.size();
        let (outputs, inputs) = (size[0] as usize, size[1] as usize);
        let groups = outputs.div_ceil(LANES);
        let values = floats(weight);
        let mut panels = vec![0.0; groups * inputs * LANES];
        if inputs > 0 {
            for (panel, rows) in panels.chunks_exact_mut(inputs * LANES).zip(values.chunks(inputs * LANES)) {
                for (lane, row) in rows.chunks_exact(inputs).enumerate() {
                    for (weights, &w) in panel.as_chunks_mut::<LANES>().0.iter_mut().zip(row) {
                        weights[lane] = w;
                    }
                }
            }
        }
        let mut laid = bias.map_or_else(|| vec![0.0; outputs], floats);
        laid.resize(groups * LANES, 0.0);
        Self { inputs, outputs, panels, bias: laid }
    }

    pub(in crate::nn) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(in crate::nn) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `[rows, inputs]` to `[rows, outputs]`, on several threads if there are many rows.
    pub(in crate::nn) fn rows(&self, x: &[f32], rows: usize) -> Vec<f32> {
        if rows <= BLOCK || self.inputs == 0 {
            return self.forward(x, rows);
        }
        let blocks: Vec<&[f32]> = x[..rows * self.inputs].chunks(BLOCK * self.inputs).collect();
        parallel::map(&blocks, 1, |block| self.forward(block, block.len() / self.inputs)).concat()
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    fn forward(&self, x: &[f32], rows: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows * self.outputs];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            #[allow(unsafe_code, reason = "wide registers can only be asked for at run time")]
            // SAFETY: the processor has AVX2 and FMA, the only features that the function requires.
            unsafe {
                self.product_wide(x, rows, &mut out);
            }
            return out;
        }
        // On other architectures than x86, fused multiplication is part of the baseline if it exists.
        self.product::<{ cfg!(target_arch = "aarch64") }>(x, rows, &mut out);
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn product_wide(&self, x: &[f32], rows: usize, out: &mut [f32]) {
        self.product::<true>(x, rows, out);
    }

    /// Each output sums over the inputs in their order, whatever the number of rows, so a row never depends on its
    /// batch mates.
    #[inline(always)]
    fn product<const FUSED: bool>(&self, x: &[f32], rows: usize, out: &mut [f32]) {
        const TILE: usize = 6;
        let size = self.inputs * LANES;
        for (group, bias) in self.bias.as_chunks::<LANES>().0.iter().enumerate() {
            let panel = &self.panels[group * size..][..size];
            let mut first = 0;
            while first < rows {
                let tile = (rows - first).min(TILE);
                let at = (x, first, out as &mut [f32], group);
                match tile {
                    1 => self.tile::<1, FUSED>(panel, bias, at),
                    2 => self.tile::<2, FUSED>(panel, bias, at),
                    3 => self.tile::<3, FUSED>(panel, bias, at),
                    4 => self.tile::<4, FUSED>(panel, bias, at),
                    5 => self.tile::<5, FUSED>(panel, bias, at),
                    _ => self.tile::<TILE, FUSED>(panel, bias, at),
                }
                first += tile;
            }
        }
    }

    /// Computes `ROWS` rows from `first` on, for one group of outputs. Their sums stay in registers.
    #[inline(always)]
    fn tile<const ROWS: usize, const FUSED: bool>(
        &self,
        panel: &[f32],
        bias: &[f32; LANES],
        (x, first, out, group): (&[f32], usize, &mut [f32], usize),
    ) {
        let mut sums = [*bias; ROWS];
        let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &x[(first + r) * self.inputs..][..self.inputs]);
        for (k, weights) in panel.as_chunks::<LANES>().0.iter().enumerate() {
            // Plain indices: with iterators the compiler doesn't vectorise.
            for r in 0..ROWS {
                let factor = rows[r][k];
                for j in 0..LANES {
                    let (w, s) = (weights[j], sums[r][j]);
                    sums[r][j] = if FUSED { factor.mul_add(w, s) } else { s + factor * w };
                }
            }
        }
        let start = group * LANES;
        let width = (self.outputs - start).min(LANES);
        for (r, sum) in sums.iter().enumerate() {
            // Copied whole: if only a part of a sum is read, the sums don't stay in registers, which is 15 times
            // slower.
            let whole = *sum;
            out[(first + r) * self.outputs + start..][..width].copy_from_slice(&whole[..width]);
        }
    }
}

/// The numbers of a tensor, row by row.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor.detach().contiguous();
    let mut out = vec![0.0; tensor.numel()];
    tensor.copy_data(&mut out, tensor.numel());
    out
}

impl LayerNorm {
    pub(in crate::nn) fn on_host(&self) -> HostNorm {
        HostNorm { width: self.width as usize, affine: self.affine.as_ref().map(|(w, b)| (floats(w), floats(b))) }
    }
}

/// A copy of a layer norm on the host.
#[derive(Debug)]
pub(crate) struct HostNorm {
    width: usize,
    affine: Option<(Vec<f32>, Vec<f32>)>,
}

impl HostNorm {
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
                row.iter_mut().zip(weight.iter().zip(bias)).for_each(|(x, (w, b))| *x = *x * w + b);
            }
        }
    }
}

/// A copy of a perceptron ([`Mlp`]) on the host, in single precision and without gradients, for batches so small that
/// tensor operations cost more than the computation in them.
///
/// A row's outputs don't depend on the other rows, not even in the last bit.
///
/// ```
/// use gfn::{Rng, nn::{HostMlp, Mlp, MlpConfig, Parameters}};
/// let mut parameters = Parameters::new(tch::Device::Cpu, tch::Kind::Float);
/// let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 4, 2, &MlpConfig::default());
/// let frozen = HostMlp::new(&mlp).ok_or("not for this perceptron")?;
/// let expected = Vec::<f32>::try_from(mlp.forward(&tch::Tensor::from_slice(&[0.5f32; 4]).view([1, 4])).view(-1))?;
/// let got = frozen.forward(vec![0.5; 4], 1);
/// assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostMlp {
    activate: fn(&mut [f32]),
    /// The layer before the first one, if there is one: an optional norm, then the activation.
    before: Option<Option<HostNorm>>,
    hidden: Vec<(HostLinear, Option<HostNorm>)>,
    output: HostLinear,
}

impl HostMlp {
    /// A copy of the perceptron with its current noise. `None` if it isn't on the host in single precision, and for
    /// [`Activation::Gelu`](crate::nn::Activation::Gelu).
    #[must_use]
    pub fn new(mlp: &Mlp) -> Option<Self> {
        let columns: Vec<i64> = (0..mlp.output.weight().size()[0]).collect();
        Self::some_outputs(mlp, &columns)
    }

    /// The same with these of the outputs, in this order.
    #[must_use]
    pub fn some_outputs(mlp: &Mlp, columns: &[i64]) -> Option<Self> {
        let single = mlp.kind() == Kind::Float && mlp.output.weight().device() == Device::Cpu;
        let activate = mlp.activation.on_host().filter(|_| single)?;
        let on_host = |(layer, norm): &(Linear, Option<LayerNorm>)| {
            (HostLinear::of(layer), norm.as_ref().map(LayerNorm::on_host))
        };
        let hidden = mlp.hidden.iter().map(on_host).collect();
        let (weight, bias) = mlp.output.effective();
        let of = |tensor: &Tensor| tensor.index_select(0, &Tensor::from_slice(columns));
        let output = HostLinear::new(&of(&weight), bias.as_ref().map(of).as_ref());
        Some(Self { activate, before: None, hidden, output })
    }

    /// The same behind a layer with this norm and `mlp`'s activation.
    pub(crate) fn after_layer(norm: Option<&LayerNorm>, mlp: &Mlp, outputs: Range<i64>) -> Option<Self> {
        let columns: Vec<i64> = outputs.collect();
        Some(Self { before: Some(norm.map(LayerNorm::on_host)), ..Self::some_outputs(mlp, &columns)? })
    }

    /// `[rows, inputs]` to `[rows, outputs]`, row by row.
    ///
    /// # Panics
    /// If `x` holds fewer than `rows` rows.
    #[must_use]
    pub fn forward(&self, x: Vec<f32>, rows: usize) -> Vec<f32> {
        // A thread takes a block through all layers while the rows are in its cache.
        let inputs = self.hidden.first().map_or(&self.output, |(layer, _)| layer).inputs;
        if rows <= BLOCK || inputs == 0 {
            return self.block(x, rows);
        }
        let blocks: Vec<&[f32]> = x[..rows * inputs].chunks(BLOCK * inputs).collect();
        parallel::map(&blocks, 1, |block| self.block(block.to_vec(), block.len() / inputs)).concat()
    }

    fn block(&self, mut x: Vec<f32>, rows: usize) -> Vec<f32> {
        if let Some(norm) = &self.before {
            self.between(&mut x, norm.as_ref());
        }
        for (layer, norm) in &self.hidden {
            x = layer.forward(&x, rows);
            self.between(&mut x, norm.as_ref());
        }
        self.output.forward(&x, rows)
    }

    fn between(&self, x: &mut [f32], norm: Option<&HostNorm>) {
        if let Some(norm) = norm {
            norm.apply(x);
        }
        (self.activate)(x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::nn::{Activation, MlpConfig, Parameters};
    use crate::tensor::to_host;

    fn config(hidden: &[i64], activation: Activation, layer_norm: bool, noise: Option<f64>) -> MlpConfig {
        MlpConfig { hidden: hidden.to_vec(), activation, layer_norm, noise }
    }

    #[test]
    fn products_are_those_of_libtorch_for_every_number_of_rows_and_outputs() {
        let mut rng = Rng::seeded(3);
        let mut draw = |shape: [i64; 2]| {
            let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| rng.normal() as f32).collect();
            Tensor::from_slice(&values).view(shape)
        };
        for (inputs, outputs) in [(0, 3), (1, 1), (5, 15), (33, 16), (64, 17), (20, 40)] {
            let (weight, bias) = (draw([outputs, inputs]), draw([1, outputs]).view(-1));
            for rows in [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13] {
                let x = draw([rows, inputs]);
                for bias in [None, Some(&bias)] {
                    let linear = HostLinear::new(&weight, bias);
                    let expected = to_host(&x.linear(&weight, bias));
                    let x = floats(&x);
                    let mut narrow = vec![0.0; expected.len()];
                    linear.product::<false>(&x, rows as usize, &mut narrow);
                    for got in [linear.forward(&x, rows as usize), narrow] {
                        assert_eq!(got.len(), expected.len());
                        let near = |(got, expected): (&f32, &f64)| (f64::from(*got) - expected).abs() < 1e-4;
                        assert!(got.iter().zip(&expected).all(near), "{inputs} {outputs} {rows}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_batch_mates() {
        let mut rng = Rng::seeded(4);
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let linear = Linear::new(&mut parameters.scope(&mut rng), 37, 21);
        let linear = HostLinear::new(linear.weight(), linear.bias());
        let x: Vec<f32> = (0..13 * 37).map(|_| rng.normal() as f32).collect();
        let whole = linear.forward(&x, 13);
        for (row, expected) in x.chunks(37).zip(whole.chunks(21)) {
            assert_eq!(linear.forward(row, 1), expected);
        }
    }

    #[test]
    fn perceptrons_are_those_of_libtorch() {
        let mut rng = Rng::seeded(5);
        let x: Vec<f32> = (0..7 * 12).map(|_| 2.0 * rng.normal() as f32).collect();
        let activations =
            [Activation::Relu, Activation::LeakyRelu, Activation::Silu, Activation::Tanh, Activation::Elu];
        for activation in activations {
            for (hidden, norm, noise) in [(vec![], false, None), (vec![20], true, None), (vec![20, 9], true, Some(0.5))]
            {
                let config = config(&hidden, activation, norm, noise);
                let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
                let mut scope = parameters.scope(&mut rng);
                let mlp = Mlp::new(&mut scope, 12, 6, &config);
                let before = norm.then(|| LayerNorm::new(&mut scope.sub("before"), 12));
                parameters.reset_noise(&mut rng);
                let tensor = Tensor::from_slice(&x).view([7, 12]);
                let tensor = before.as_ref().map_or_else(|| tensor.shallow_clone(), |norm| norm.forward(&tensor));
                let expected = to_host(&mlp.forward(&activation.apply(&tensor)).narrow(1, 2, 3));
                let copy = HostMlp::after_layer(before.as_ref(), &mlp, 2..5).unwrap();
                let got = copy.forward(x.clone(), 7);
                let off = got.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
                assert!(got.len() == 21 && off < 1e-5, "{activation:?} {hidden:?}: {off}");
            }
        }
    }

    #[test]
    fn many_rows_are_shared_out() {
        let mut rng = Rng::seeded(6);
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let config = config(&[11], Activation::Relu, true, None);
        let copy = HostMlp::new(&Mlp::new(&mut parameters.scope(&mut rng), 5, 3, &config)).unwrap();
        let x: Vec<f32> = (0..1000 * 5).map(|_| rng.normal() as f32).collect();
        let one_by_one: Vec<f32> = x.chunks(5).flat_map(|row| copy.forward(row.to_vec(), 1)).collect();
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| copy.forward(x.clone(), 1000)), one_by_one);
            // Rows beyond the requested number are ignored.
            assert_eq!(pool.install(|| copy.forward(x.clone(), 700)), one_by_one[..700 * 3]);
        }
    }

    #[test]
    fn nan_is_not_hidden() {
        for activation in [Activation::Relu, Activation::LeakyRelu, Activation::Elu, Activation::Silu, Activation::Tanh]
        {
            let mut x = [f32::NAN, -1.0];
            activation.on_host().unwrap()(&mut x);
            assert!(x[0].is_nan() && x[1] <= 0.0);
        }
    }

    #[test]
    fn what_has_no_form_on_the_host_is_left_to_libtorch() {
        let of = |kind, activation| {
            let mut parameters = Parameters::new(Device::Cpu, kind);
            let config = config(&[4], activation, false, None);
            let mlp = Mlp::new(&mut parameters.scope(&mut Rng::seeded(0)), 2, 3, &config);
            HostMlp::new(&mlp).is_some()
        };
        assert!(of(Kind::Float, Activation::Relu));
        assert!(!of(Kind::Double, Activation::Relu) && !of(Kind::Float, Activation::Gelu));
    }
}
