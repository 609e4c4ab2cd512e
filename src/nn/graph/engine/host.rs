//! The engine for roll-outs, which computes rows of numbers in single precision on the host, without
//! gradients.

use std::cell::Cell;
use std::ops::Range;

use tch::Tensor;

use super::attention::{SLOPE, add_softmax, host_attention};
use super::{Engine, HeadEngine};
use crate::Error;
use crate::graph::GraphArrays;
use crate::nn::graph::heads::{host_scores_of_pairs, host_weighted_features};
use crate::nn::host::{HostLinear, HostMlp, Packed};
use crate::nn::{GraphNorm, LayerNorm, Linear, Mlp};

/// A batch of graphs, with a cache of copies of the network's parameters, arranged for fast products
/// (packed). All batches of a roll-out share the cache.
pub(in crate::nn) struct HostGraphs<'a> {
    pub(in crate::nn) arrays: &'a GraphArrays,
    pub(in crate::nn) packed: &'a Packed,
    shape_error: Cell<Option<Error>>,
}

impl<'a> HostGraphs<'a> {
    pub(in crate::nn) fn new(arrays: &'a GraphArrays, packed: &'a Packed) -> Self {
        Self { arrays, packed, shape_error: Cell::new(None) }
    }

    /// Stores the error for rows that don't fit a layer with this weight, and returns rows of zeros.
    #[cold]
    fn refuse_width(&self, weight: &Tensor, rows: &HostRows, outputs: usize) -> HostRows {
        self.fits_layer(weight, rows);
        HostRows::zeros(rows.len(), outputs)
    }
}

/// Rows of numbers of equal width, concatenated.
#[derive(Clone, Debug)]
pub(in crate::nn) struct HostRows {
    pub(in crate::nn) values: Vec<f32>,
    pub(in crate::nn) width: usize,
}

impl HostRows {
    /// The number of rows.
    pub(in crate::nn) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Returns the row with this index.
    pub(in crate::nn) fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..][..self.width]
    }

    fn zeros(n: usize, width: usize) -> Self {
        Self { values: vec![0.0; n * width], width }
    }
}

/// Adds the numbers of a row to those of another row.
fn add_to(row: &mut [f32], other: &[f32]) {
    for (x, y) in row.iter_mut().zip(other) {
        *x += y;
    }
}

/// Raises the numbers of a row to those of another row.
fn raise_to(row: &mut [f32], other: &[f32]) {
    // NaN stays NaN, as in libtorch: `is_nan` keeps a NaN in `x`, and a comparison with a NaN in `y` is
    // false.
    for (x, y) in row.iter_mut().zip(other) {
        *x = if *x > *y || x.is_nan() { *x } else { *y };
    }
}

impl Engine for HostGraphs<'_> {
    type Rows = HostRows;
    type Index = Vec<i64>;

    fn arrays(&self) -> &GraphArrays {
        self.arrays
    }

    fn rows(&self, values: &[f64], width: usize) -> HostRows {
        HostRows { values: values.iter().map(|&x| x as f32).collect(), width }
    }

    fn index(&self, rows: Vec<i64>) -> Vec<i64> {
        rows
    }

    fn index_all<const K: usize>(&self, lists: Vec<[Vec<i64>; K]>) -> Vec<[Vec<i64>; K]> {
        lists
    }

    fn parameter(&self, parameter: &Tensor) -> HostRows {
        let values = self.packed.get_or_pack(&[parameter], || self.packed.mirror.floats(parameter));
        HostRows { width: values.len(), values: values.to_vec() }
    }

    fn look_up(&self, table: &Tensor, entries: &[i64], each: usize) -> HostRows {
        let table = self.packed.get_or_pack(&[table], || HostRows {
            values: self.packed.mirror.floats(table),
            width: table.size()[1] as usize,
        });
        let mut out = HostRows::zeros(entries.len() / each, table.width);
        for (row, entries) in out.values.chunks_exact_mut(table.width).zip(entries.chunks_exact(each)) {
            for &entry in entries {
                add_to(row, table.row(entry as usize));
            }
        }
        out
    }

    fn linear(&self, layer: &Linear, rows: &HostRows) -> HostRows {
        let copy = || HostLinear::from_linear(layer, &self.packed.mirror);
        let packed = self.packed.get_or_pack(&[layer.weight()], copy);
        if packed.inputs() != rows.width {
            return self.refuse_width(layer.weight(), rows, packed.outputs());
        }
        HostRows { values: packed.rows(&rows.values, rows.len()), width: packed.outputs() }
    }

    fn products(&self, layers: [&Linear; 3], rows: &HostRows) -> HostRows {
        let packed = self.packed.get_or_pack(&layers.map(Linear::weight), || {
            let values = layers.map(|layer| self.packed.mirror.floats(layer.weight())).concat();
            let size = layers[0].weight().size();
            HostLinear::from_values(size[1] as usize, 3 * size[0] as usize, &values, None)
        });
        HostRows { values: packed.rows(&rows.values, rows.len()), width: packed.outputs() / 3 }
    }

    fn mlp(&self, mlp: &Mlp, rows: &HostRows) -> HostRows {
        let copy = || HostMlp::from_mlp(mlp, &self.packed.mirror);
        let packed = self.packed.get_or_pack(&[mlp.output.weight()], copy);
        if packed.inputs() != rows.width {
            return self.refuse_width(mlp.input_weight(), rows, packed.outputs());
        }
        HostRows { values: packed.forward(&rows.values, rows.len()), width: packed.outputs() }
    }

    fn norm(&self, norm: &LayerNorm, mut rows: HostRows) -> HostRows {
        let copy = || norm.on_host(&self.packed.mirror);
        match &norm.affine {
            Some((weight, _)) => self.packed.get_or_pack(&[weight], copy).apply(&mut rows.values),
            None => copy().apply(&mut rows.values),
        }
        rows
    }

    fn graph_norm(&self, norm: &GraphNorm, mut rows: HostRows) -> HostRows {
        let parameters = [&norm.weight, &norm.bias, &norm.mean_scale];
        let packed = self
            .packed
            .get_or_pack(&parameters, || parameters.map(|parameter| self.packed.mirror.floats(parameter)));
        let [weight, bias, mean_scale] = &*packed;
        let width = rows.width;
        let mut first = 0;
        for n in self.arrays.sizes() {
            let graph = &mut rows.values[first..first + n * width];
            first += n * width;
            let means = |graph: &[f32], term: fn(f64) -> f64| {
                let mut sums = vec![0.0; width];
                let rows = graph.chunks_exact(width);
                for row in rows {
                    for (sum, &x) in sums.iter_mut().zip(row) {
                        *sum += term(f64::from(x));
                    }
                }
                sums.into_iter().map(move |sum| sum / n as f64)
            };
            let shift: Vec<f32> =
                means(graph, |x| x).zip(mean_scale).map(|(mean, s)| -(mean as f32) * s).collect();
            for row in graph.chunks_exact_mut(width) {
                add_to(row, &shift);
            }
            let variances = means(graph, |x| x * x).zip(weight);
            let factors: Vec<f32> = variances.map(|(v, w)| w / (v + GraphNorm::EPS).sqrt() as f32).collect();
            for row in graph.chunks_exact_mut(width) {
                for (x, factor) in row.iter_mut().zip(&factors) {
                    *x *= factor;
                }
                add_to(row, bias);
            }
        }
        rows
    }

    fn relu(&self, mut rows: HostRows) -> HostRows {
        // NaN stays NaN, because `NaN < 0.0` is false. So the check before actions are drawn finds NaN.
        for x in &mut rows.values {
            *x = if *x < 0.0 { 0.0 } else { *x };
        }
        rows
    }

    fn scale_by_one_plus(&self, mut rows: HostRows, eps: &Tensor) -> HostRows {
        let factor = 1.0 + self.packed.get_or_pack(&[eps], || self.packed.mirror.floats(eps))[0];
        for x in &mut rows.values {
            *x *= factor;
        }
        rows
    }

    fn add(&self, mut rows: HostRows, others: &HostRows) -> HostRows {
        if others.values.len() == others.width && others.width == rows.width {
            for row in rows.values.chunks_exact_mut(others.width) {
                add_to(row, &others.values);
            }
        } else if self.have_equal_shapes(&rows, others) {
            add_to(&mut rows.values, &others.values);
        }
        rows
    }

    fn max(&self, mut rows: HostRows, others: &HostRows) -> HostRows {
        if self.have_equal_shapes(&rows, others) {
            raise_to(&mut rows.values, &others.values);
        }
        rows
    }

    fn scale(&self, mut rows: HostRows, factors: &HostRows) -> HostRows {
        // If `factors` holds a single number, `cycle` repeats this number for all rows.
        for (row, factor) in rows.values.chunks_exact_mut(rows.width).zip(factors.values.iter().cycle()) {
            for x in row.iter_mut() {
                *x *= factor;
            }
        }
        rows
    }

    fn concat(&self, first: &HostRows, second: &HostRows) -> HostRows {
        HostRows { values: [first.values.as_slice(), &second.values].concat(), width: first.width }
    }

    fn gather(&self, rows: &HostRows, which: Option<&Vec<i64>>) -> HostRows {
        let Some(which) = which else { return rows.clone() };
        let mut values = Vec::with_capacity(which.len() * rows.width);
        for &row in which {
            values.extend_from_slice(rows.row(row as usize));
        }
        HostRows { values, width: rows.width }
    }

    fn sum(&self, rows: &HostRows, entries: &Vec<i64>, offsets: &Vec<i64>) -> HostRows {
        let mut out = HostRows::zeros(offsets.len(), rows.width);
        let ends = offsets.iter().skip(1).map(|&end| end as usize).chain([entries.len()]);
        for ((sum, &start), end) in out.values.chunks_exact_mut(rows.width).zip(offsets).zip(ends) {
            for &entry in &entries[start as usize..end] {
                add_to(sum, rows.row(entry as usize));
            }
        }
        out
    }

    fn max_over_neighbours(&self, nodes: &HostRows) -> HostRows {
        let mut out = HostRows::zeros(nodes.len(), nodes.width);
        if !self.has_row_per_node(nodes) {
            return out;
        }
        let mut has_neighbour = vec![false; nodes.len()];
        for (from, to) in self.arrays.edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
            let to = to as usize;
            let row = &mut out.values[to * nodes.width..][..nodes.width];
            let sent = nodes.row(from as usize);
            if std::mem::replace(&mut has_neighbour[to], true) {
                raise_to(row, sent);
            } else {
                row.copy_from_slice(sent);
            }
        }
        out
    }

    fn add_messages(
        &self,
        mut to: HostRows,
        rows: &HostRows,
        entries: &Vec<i64>,
        edges: &HostRows,
        messages: &Vec<i64>,
        receivers: &Vec<i64>,
    ) -> HostRows {
        for ((&entry, &message), &receiver) in entries.iter().zip(messages).zip(receivers) {
            let sum = &mut to.values[receiver as usize * rows.width..][..rows.width];
            let sent = rows.row(entry as usize).iter().zip(edges.row(message as usize));
            for (sum, (x, edge)) in sum.iter_mut().zip(sent) {
                let sent = x + edge;
                *sum += if sent < 0.0 { 0.0 } else { sent };
            }
        }
        to
    }

    fn attend(
        &self,
        inputs: &HostRows,
        parameter: &Tensor,
        values: &HostRows,
        receivers: &Vec<i64>,
        offsets: &Vec<i64>,
    ) -> HostRows {
        let vectors = self.packed.get_or_pack(&[parameter], || self.packed.mirror.floats(parameter));
        let depth = parameter.size()[1] as usize;
        let score = |message: usize, part: Range<usize>| {
            let terms = inputs.row(message)[part.clone()].iter().zip(&vectors[part]);
            terms.map(|(&x, a)| a * if x < 0.0 { SLOPE as f32 * x } else { x }).sum()
        };
        let mut out = HostRows::zeros(offsets.len(), values.width);
        let mut first = 0;
        for messages in receivers.chunk_by(|a, b| a == b) {
            let row = messages[0] as usize * values.width;
            let range = first..first + messages.len();
            for start in (0..values.width).step_by(depth) {
                let part = start..start + depth;
                let scores: Vec<f32> = range.clone().map(|message| score(message, part.clone())).collect();
                let sent = range.clone().map(|message| &values.row(message)[part.clone()]);
                add_softmax(&mut out.values[row + start..row + start + depth], scores, sent);
            }
            first = range.end;
        }
        out
    }

    fn attend_within(&self, query: &HostRows, key: &HostRows, value: &HostRows, heads: usize) -> HostRows {
        HostRows { values: host_attention(self.arrays, query, key, value, heads), width: query.width }
    }

    fn pool(&self, nodes: &HostRows) -> HostRows {
        let width = nodes.width;
        let mut values = Vec::with_capacity(self.arrays.len() * 2 * width);
        let mut rows = nodes.values.chunks_exact(width);
        for n in self.arrays.sizes() {
            let start = values.len();
            values.resize(start + width, 0.0f32);
            for row in rows.by_ref().take(n) {
                add_to(&mut values[start..], row);
            }
            let n = n.max(1) as f32;
            values.extend_from_within(start..);
            let (mean, damped) = values[start..].split_at_mut(width);
            for x in mean.iter_mut() {
                *x /= n;
            }
            for x in damped.iter_mut() {
                *x /= n.sqrt();
            }
        }
        HostRows { values, width: 2 * width }
    }

    fn add_to_nodes(&self, mut nodes: HostRows, graphs: &HostRows) -> HostRows {
        if !self.fits_nodes(&nodes, graphs) {
            return nodes;
        }
        let mut rows = nodes.values.chunks_exact_mut(nodes.width);
        for (n, added) in self.arrays.sizes().zip(graphs.values.chunks_exact(graphs.width)) {
            for row in rows.by_ref().take(n) {
                add_to(row, added);
            }
        }
        nodes
    }
}

impl HeadEngine for HostGraphs<'_> {
    fn shape(&self, rows: &HostRows) -> Vec<i64> {
        vec![rows.len() as i64, rows.width as i64]
    }

    fn shape_error(&self) -> &Cell<Option<Error>> {
        &self.shape_error
    }

    fn pair_scores(&self, query: &Linear, key: &Linear, columns: usize, nodes: &HostRows) -> HostRows {
        let values =
            host_scores_of_pairs(self.arrays, self.linear(query, nodes), &self.linear(key, nodes), columns);
        HostRows { values, width: columns }
    }

    fn weighted_pair_features(&self, weights: &HostRows, columns: usize, features: &HostRows) -> HostRows {
        HostRows { values: host_weighted_features(self.arrays, weights, columns, features), width: columns }
    }
}
