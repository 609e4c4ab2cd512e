//! Linear layers on the host, for the small batches of a roll-out.
//!
//! A step of a roll-out evaluates a few states. The overhead of a libtorch operation is some microseconds. In
//! each call libtorch's matrix product rearranges (packs) the weights again, which costs more than the
//! product itself for so few rows. The layers here pack their weights once per roll-out.

use std::ops::Range;

use tch::Tensor;

use super::mirror::{Mirror, floats};
use crate::nn::Linear;
use crate::parallel;

/// The number of outputs that are computed together. These outputs fill two vector registers of eight
/// numbers.
const LANES: usize = 16;
/// The largest number of input rows (states, for example) for which a thread computes the outputs in one
/// task, so that they stay in the cache of its core.
const MAX_ROWS_PER_TASK: usize = 128;
/// The number of input rows that aren't divided among threads.
const MIN_ROWS_PER_TASK: usize = 32;

/// The inputs of a layer, row by row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LayerInputs<'a> {
    /// The numbers of each row, `[rows, inputs]`.
    Dense(&'a [f32]),
    /// The indices of the inputs that are 1, `[rows, k]`. All other inputs are 0.
    Active { columns: &'a [i64], k: usize },
}

impl LayerInputs<'_> {
    /// Returns the inputs of some rows. `inputs` is the number of inputs of the layer.
    fn select(&self, rows: &Range<usize>, inputs: usize) -> Self {
        match *self {
            Self::Dense(x) => Self::Dense(&x[rows.start * inputs..rows.end * inputs]),
            Self::Active { columns, k } => {
                Self::Active { columns: &columns[rows.start * k..rows.end * k], k }
            }
        }
    }

    /// Divides these `rows` rows into blocks, one for each thread or more, and calls `forward` with each
    /// block and its number of rows. Returns the results in the order of the rows. `inputs` is the number of
    /// inputs of the layer.
    #[track_caller]
    pub(super) fn map_blocks(
        &self,
        rows: usize,
        inputs: usize,
        forward: impl Fn(LayerInputs<'_>, usize) -> Vec<f32> + Sync + Send,
    ) -> Vec<f32> {
        if rows <= MIN_ROWS_PER_TASK {
            return forward(*self, rows);
        }
        let threads = rayon::current_num_threads();
        let size = rows.div_ceil(threads).clamp(MIN_ROWS_PER_TASK, MAX_ROWS_PER_TASK);
        if rows <= size {
            return forward(*self, rows);
        }
        let starts = (0..rows).step_by(size);
        let blocks: Vec<Range<usize>> = starts.map(|start| start..rows.min(start + size)).collect();
        parallel::map(&blocks, 1, |block| forward(self.select(block, inputs), block.len())).concat()
    }
}

/// A copy of a linear layer on the host in single precision. The weights are packed in an order that makes
/// products with a few rows fast.
///
/// ```
/// use gfn::nn::HostLinear;
/// use tch::Tensor;
/// let weight = Tensor::from_slice(&[1.0f32, 2.0]).view([1, 2]);
/// let layer = HostLinear::new(&weight, Some(&Tensor::from_slice(&[0.5f32])));
/// assert_eq!(layer.rows(&[1.0, 1.0, 0.0, 3.0], 2), [3.5, 6.5]);
/// ```
#[derive(Debug)]
pub struct HostLinear {
    inputs: usize,
    outputs: usize,
    /// The weights of every input for each group of [`LANES`] outputs, `[groups, inputs, LANES]`. The last
    /// group is padded with zeros.
    panels: Vec<f32>,
    /// The bias of each output, padded with zeros to full groups of [`LANES`] outputs, `[groups * LANES]`.
    bias: Vec<f32>,
}

impl HostLinear {
    /// Copies a linear layer in single precision, including its current noise.
    pub(in crate::nn) fn from_linear(layer: &Linear, mirror: &Mirror) -> Self {
        let (weight, bias) = layer.effective();
        let size = weight.size();
        let bias = bias.map(|bias| mirror.floats(&bias));
        Self::from_values(size[1] as usize, size[0] as usize, &mirror.floats(&weight), bias)
    }

    /// Creates a layer with a weight `[outputs, inputs]` and a bias `[outputs]`, both in single precision.
    ///
    /// # Panics
    /// If the weight or the bias isn't in single precision.
    #[must_use]
    pub fn new(weight: &Tensor, bias: Option<&Tensor>) -> Self {
        let size = weight.size();
        Self::from_values(size[1] as usize, size[0] as usize, &floats(weight), bias.map(floats))
    }

    /// Creates the same layer as [`new`](Self::new) from the transpose of the weight, `[inputs, outputs]`.
    /// Both must be in single precision.
    pub(crate) fn from_table(table: &Tensor, bias: Option<&Tensor>) -> Self {
        let size = table.size();
        let inputs = size[0] as usize;
        let outputs = size[1] as usize;
        let mut panels = vec![0.0; outputs.div_ceil(LANES) * inputs * LANES];
        let groups = panels.as_chunks_mut::<LANES>().0;
        for (input, row) in floats(table).chunks_exact(outputs.max(1)).enumerate() {
            let (whole, rest) = row.as_chunks::<LANES>();
            for (group, weights) in whole.iter().enumerate() {
                groups[group * inputs + input] = *weights;
            }
            if !rest.is_empty() {
                groups[whole.len() * inputs + input][..rest.len()].copy_from_slice(rest);
            }
        }
        Self::from_panels(inputs, outputs, panels, bias.map(floats))
    }

    fn from_panels(inputs: usize, outputs: usize, panels: Vec<f32>, bias: Option<Vec<f32>>) -> Self {
        let mut bias = bias.unwrap_or_default();
        bias.resize(outputs.div_ceil(LANES) * LANES, 0.0);
        Self { inputs, outputs, panels, bias }
    }

    /// Creates a layer from the numbers of its weight, row by row, and of its bias.
    pub(in crate::nn) fn from_values(
        inputs: usize,
        outputs: usize,
        values: &[f32],
        bias: Option<Vec<f32>>,
    ) -> Self {
        let groups = outputs.div_ceil(LANES);
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
        Self::from_panels(inputs, outputs, panels, bias)
    }

    pub(in crate::nn) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(in crate::nn) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Applies the layer to each row: `[rows, inputs]` to `[rows, outputs]`. More than 32 rows are divided
    /// among several threads.
    ///
    /// # Panics
    /// If `x` holds fewer than `rows` rows.
    #[must_use]
    pub fn rows(&self, x: &[f32], rows: usize) -> Vec<f32> {
        LayerInputs::Dense(x).map_blocks(rows, self.inputs, |x, rows| self.forward(x, rows))
    }

    /// Applies the layer to each row on the calling thread: `[rows, inputs]` to `[rows, outputs]`.
    pub(super) fn forward(&self, x: LayerInputs<'_>, rows: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows * self.outputs];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            #[allow(unsafe_code, reason = "wide registers can only be asked for at run time")]
            // SAFETY: the processor was found to have AVX2 and FMA, which are the only features that the
            // function requires.
            unsafe {
                self.product_wide(x, rows, &mut out);
            }
            return out;
        }
        // AArch64 always has an instruction that multiplies and adds in one step (fused). Other processors
        // without AVX2 and FMA multiply and add separately.
        self.apply::<{ cfg!(target_arch = "aarch64") }>(x, rows, &mut out);
        out
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn product_wide(&self, x: LayerInputs<'_>, rows: usize, out: &mut [f32]) {
        self.apply::<true>(x, rows, out);
    }

    /// Computes all outputs of all rows from inputs in either form.
    #[inline(always)]
    fn apply<const FUSED: bool>(&self, x: LayerInputs<'_>, rows: usize, out: &mut [f32]) {
        match x {
            LayerInputs::Dense(x) => self.product::<FUSED>(x, rows, out),
            LayerInputs::Active { columns, k } => self.sums(columns, k, rows, out),
        }
    }

    /// Computes all outputs of all rows. Each output is a sum over the inputs in their order, for any number
    /// of rows. So the result of a row doesn't depend on the other rows.
    #[inline(always)]
    fn product<const FUSED: bool>(&self, x: &[f32], rows: usize, out: &mut [f32]) {
        const TILE: usize = 6;
        let size = self.inputs * LANES;
        for (group, bias) in self.bias.as_chunks::<LANES>().0.iter().enumerate() {
            let panel = &self.panels[group * size..][..size];
            let mut first = 0;
            while first < rows {
                let tile = (rows - first).min(TILE);
                match tile {
                    1 => self.tile::<1, FUSED>(panel, bias, x, first, out, group),
                    2 => self.tile::<2, FUSED>(panel, bias, x, first, out, group),
                    3 => self.tile::<3, FUSED>(panel, bias, x, first, out, group),
                    4 => self.tile::<4, FUSED>(panel, bias, x, first, out, group),
                    5 => self.tile::<5, FUSED>(panel, bias, x, first, out, group),
                    _ => self.tile::<TILE, FUSED>(panel, bias, x, first, out, group),
                }
                first += tile;
            }
        }
    }

    /// Computes one group of up to [`LANES`] outputs for `ROWS` input rows, beginning at row `first`. `ROWS`
    /// is a constant, so that the sums stay in registers, which makes the function fast.
    #[inline(always)]
    fn tile<const ROWS: usize, const FUSED: bool>(
        &self,
        panel: &[f32],
        bias: &[f32; LANES],
        x: &[f32],
        first: usize,
        out: &mut [f32],
        group: usize,
    ) {
        let mut sums = [*bias; ROWS];
        let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &x[(first + r) * self.inputs..][..self.inputs]);
        for (k, weights) in panel.as_chunks::<LANES>().0.iter().enumerate() {
            // The loops run over indices, because the compiler vectorises loops over indices, but not the
            // same loops over iterators.
            for r in 0..ROWS {
                let factor = rows[r][k];
                for j in 0..LANES {
                    let w = weights[j];
                    let s = sums[r][j];
                    sums[r][j] = if FUSED { factor.mul_add(w, s) } else { s + factor * w };
                }
            }
        }
        let start = group * LANES;
        let width = (self.outputs - start).min(LANES);
        for (r, sum) in sums.iter().enumerate() {
            // The whole array `sum` is copied, even if only a part is needed. If only a part were read, the
            // sums wouldn't stay in registers, and the function would be 15 times slower.
            let whole = *sum;
            out[(first + r) * self.outputs + start..][..width].copy_from_slice(&whole[..width]);
        }
    }

    /// Computes all outputs from the indices of the inputs that are 1, added in their order to the bias.
    #[inline(always)]
    fn sums(&self, columns: &[i64], k: usize, rows: usize, out: &mut [f32]) {
        // Several rows at once hide the latency of additions, which pays for long sums.
        const TILE: usize = 4;
        const MIN_LONG_SUM: usize = 16;
        let size = self.inputs * LANES;
        for (group, bias) in self.bias.as_chunks::<LANES>().0.iter().enumerate() {
            let panel = self.panels[group * size..][..size].as_chunks::<LANES>().0;
            let mut first = 0;
            while first < rows {
                let tile = if k < MIN_LONG_SUM || rows - first < TILE { 1 } else { TILE };
                let columns = &columns[first * k..][..tile * k];
                let sums = &mut out[first * self.outputs..][..tile * self.outputs];
                match tile {
                    1 => self.sum_tile::<1>(panel, bias, columns, k, sums, group),
                    _ => self.sum_tile::<TILE>(panel, bias, columns, k, sums, group),
                }
                first += tile;
            }
        }
    }

    /// Computes one group of up to [`LANES`] outputs for `ROWS` input rows.
    #[inline(always)]
    fn sum_tile<const ROWS: usize>(
        &self,
        panel: &[[f32; LANES]],
        bias: &[f32; LANES],
        columns: &[i64],
        k: usize,
        out: &mut [f32],
        group: usize,
    ) {
        let mut sums = [*bias; ROWS];
        let rows: [&[i64]; ROWS] = std::array::from_fn(|r| &columns[r * k..][..k]);
        for i in 0..k {
            for r in 0..ROWS {
                let weights = &panel[rows[r][i] as usize];
                for j in 0..LANES {
                    sums[r][j] += weights[j];
                }
            }
        }
        let start = group * LANES;
        for (r, sum) in sums.iter().enumerate() {
            let whole = *sum;
            let row = &mut out[r * self.outputs + start..(r + 1) * self.outputs];
            match row.first_chunk_mut::<LANES>() {
                Some(full) => *full = whole,
                None => row.copy_from_slice(&whole[..self.outputs - start]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::nn::Parameters;
    use crate::tensor::to_host;

    #[test]
    fn products_agree_with_libtorch_for_every_number_of_rows_and_outputs() {
        let mut rng = Rng::seeded(3);
        let mut draw = |shape: [i64; 2]| {
            let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| rng.normal() as f32).collect();
            Tensor::from_slice(&values).view(shape)
        };
        for (inputs, outputs) in [(0, 3), (1, 1), (5, 15), (33, 16), (64, 17), (20, 40)] {
            let weight = draw([outputs, inputs]);
            let bias = draw([1, outputs]).view(-1);
            for rows in [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13] {
                let x = draw([rows, inputs]);
                for bias in [None, Some(&bias)] {
                    let linear = HostLinear::new(&weight, bias);
                    let expected = to_host(&x.linear(&weight, bias));
                    let x = floats(&x);
                    let x = LayerInputs::Dense(&x);
                    let mut narrow = vec![0.0; expected.len()];
                    linear.apply::<false>(x, rows as usize, &mut narrow);
                    for got in [linear.forward(x, rows as usize), narrow] {
                        assert_eq!(got.len(), expected.len());
                        let near = |(got, expected): (&f32, &f64)| (f64::from(*got) - expected).abs() < 1e-4;
                        assert!(got.iter().zip(&expected).all(near), "{inputs} {outputs} {rows}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_other_rows_of_its_batch() {
        let mut rng = Rng::seeded(4);
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let linear = Linear::new(&mut parameters.scope(&mut rng), 37, 21);
        let linear = HostLinear::new(linear.weight(), linear.bias());
        let x: Vec<f32> = (0..13 * 37).map(|_| rng.normal() as f32).collect();
        let whole = linear.forward(LayerInputs::Dense(&x), 13);
        for (row, expected) in x.chunks(37).zip(whole.chunks(21)) {
            assert_eq!(linear.forward(LayerInputs::Dense(row), 1), expected);
        }
    }

    #[test]
    fn indices_of_ones_give_the_product_with_zeros_and_ones() {
        const K: usize = 5;
        let mut rng = Rng::seeded(6);
        for outputs in [1, 16, 21] {
            let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
            let linear = Linear::new(&mut parameters.scope(&mut rng), 37, outputs);
            let table = HostLinear::from_table(&linear.weight().tr(), linear.bias());
            let linear = HostLinear::from_linear(&linear, &Mirror::default());
            assert_eq!((&table.panels, &table.bias), (&linear.panels, &linear.bias));
            for rows in 0..10 {
                let columns: Vec<i64> = (0..rows * K).map(|_| rng.below(37) as i64).collect();
                let mut ones = vec![0.0; rows * 37];
                for (i, &column) in columns.iter().enumerate() {
                    ones[i / K * 37 + column as usize] += 1.0;
                }
                let product = linear.forward(LayerInputs::Dense(&ones), rows);
                let sums = linear.forward(LayerInputs::Active { columns: &columns, k: K }, rows);
                let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
                assert!(sums.len() == product.len() && sums.iter().zip(&product).all(near));
                let other: Vec<i64> = columns.iter().map(|column| (column + 1) % 37).collect();
                let others = linear.forward(LayerInputs::Active { columns: &other, k: K }, rows);
                assert!(rows == 0 || !others.iter().zip(&product).all(near), "another sum");
            }
        }
    }
}
