//! Engines, which implement the operations of graph networks. One engine computes on tensors for training,
//! another one on the host for roll-outs.

mod attention;
mod host;
mod tensors;
#[cfg(test)]
mod tests;

pub(in crate::nn) use host::{HostGraphs, HostRows};
pub(in crate::nn) use tensors::{TensorGraphs, scales, sums};

use std::cell::Cell;

use tch::Tensor;

use crate::Error;
use crate::graph::GraphArrays;
use crate::nn::{GraphNorm, LayerNorm, Linear, Mlp};

/// A batch of graphs, with the operations that networks apply to it. A [`Torso`](super::Torso), or any part
/// of a [`GraphNet`](super::GraphNet), is written once in these operations and runs on each engine.
///
/// There are two engines. The first computes on tensors and records gradients, for training. The second
/// computes in single precision on the host without gradients. The second engine is used in roll-outs,
/// because a step has few graphs, for which the overhead of tensor operations dominates.
///
/// Layers, [`add`](Self::add), [`max`](Self::max), [`add_to_nodes`](Self::add_to_nodes) and
/// [`max_over_neighbours`](Self::max_over_neighbours) check the shapes of their arguments. If a shape is
/// wrong, the operation returns other rows of the expected shape, and the evaluation of the torso returns
/// [`Error::Shape`](crate::Error::Shape) for the first wrong shape. The other operations panic.
///
/// In the shapes below `N` is the number of nodes of the batch, and `B` is the number of graphs. Nodes and
/// graphs are in the order of the [arrays](Self::arrays).
pub trait Engine {
    /// A matrix of numbers, `[rows, width]`.
    type Rows;
    /// A list of row indices.
    type Index;

    /// The nodes and edges of the graphs of this batch.
    fn arrays(&self) -> &GraphArrays;

    /// Creates rows of `width` numbers each from the concatenated numbers of all rows.
    ///
    /// # Panics
    /// If `width` is below 1, or doesn't divide the number of values.
    fn rows(&self, values: &[f64], width: usize) -> Self::Rows;

    /// Converts row indices to the type that [`gather`](Self::gather) and [`sum`](Self::sum) need.
    fn index(&self, rows: Vec<i64>) -> Self::Index;

    /// Converts several lists of row indices as [`index`](Self::index) converts each of them, together, so
    /// that a device receives them in one copy.
    fn index_all<const K: usize>(&self, lists: Vec<[Vec<i64>; K]>) -> Vec<[Self::Index; K]>;

    /// Converts a parameter `[width]` to a single row `[1, width]`, which [`add`](Self::add) can add to all
    /// rows. The parameter must be a tensor that a layer or a network stores, not a temporary one, because
    /// the host engine copies each parameter only once per roll-out, and caches the copy.
    fn parameter(&self, parameter: &Tensor) -> Self::Rows;

    /// Computes rows, each of which is the sum of `each` vectors of a learned table `[vectors, width]`. Row
    /// `i` is the sum of the vectors with the indices `entries[i * each..(i + 1) * each]`.
    ///
    /// # Panics
    /// If an index is outside the table.
    fn look_up(&self, table: &Tensor, entries: &[i64], each: usize) -> Self::Rows;

    /// Applies a linear layer to each row.
    fn linear(&self, layer: &Linear, rows: &Self::Rows) -> Self::Rows;

    /// Multiplies each row by the weights of three layers, without their biases. The result has three rows
    /// per input row, in the order of the layers.
    fn products(&self, layers: [&Linear; 3], rows: &Self::Rows) -> Self::Rows;

    /// Applies a perceptron to each row.
    fn mlp(&self, mlp: &Mlp, rows: &Self::Rows) -> Self::Rows;

    /// Applies a layer norm to each row.
    fn norm(&self, norm: &LayerNorm, rows: Self::Rows) -> Self::Rows;

    /// Applies a graph norm to the rows of nodes, `[N, width]`.
    fn graph_norm(&self, norm: &GraphNorm, rows: Self::Rows) -> Self::Rows;

    /// Replaces each number `x` by `max(x, 0)`.
    fn relu(&self, rows: Self::Rows) -> Self::Rows;

    /// Multiplies rows by `1 + eps`, where `eps` is a parameter `[1]`.
    fn scale_by_one_plus(&self, rows: Self::Rows, eps: &Tensor) -> Self::Rows;

    /// Adds `others` to `rows`. `others` has as many rows as `rows`, or a single row that is added to each
    /// row.
    fn add(&self, rows: Self::Rows, others: &Self::Rows) -> Self::Rows;

    /// Computes the elementwise maximum of two matrices of rows.
    fn max(&self, rows: Self::Rows, others: &Self::Rows) -> Self::Rows;

    /// Multiplies each row by a number. `factors` is `[rows, 1]`, or holds a single number for all rows.
    fn scale(&self, rows: Self::Rows, factors: &Self::Rows) -> Self::Rows;

    /// Returns the rows of `first`, followed by the rows of `second`. `first` and `second` must have the same
    /// width.
    fn concat(&self, first: &Self::Rows, second: &Self::Rows) -> Self::Rows;

    /// Selects the rows with the indices `which`. `None` copies all rows.
    fn gather(&self, rows: &Self::Rows, which: Option<&Self::Index>) -> Self::Rows;

    /// Computes the sum of the rows of each segment. Segment `i` consists of the rows with the indices
    /// `entries[offsets[i]..offsets[i + 1]]`, and the last segment extends to the end of `entries`.
    fn sum(&self, rows: &Self::Rows, entries: &Self::Index, offsets: &Self::Index) -> Self::Rows;

    /// Returns `true` if [`sum_over_neighbours`](Self::sum_over_neighbours) is available for this batch. In
    /// that case each node must have a separate row, also if nodes have equal values. Defaults to `false`.
    fn sums_over_neighbours(&self) -> bool {
        false
    }

    /// Computes the sum of the rows of the neighbours of each node, from one row per node; `None` (the
    /// default) if [`sum`](Self::sum) must be used.
    fn sum_over_neighbours(&self, _nodes: &Self::Rows) -> Option<Self::Rows> {
        None
    }

    /// Computes the elementwise maximum of the rows of each node's neighbours, from one row per node. Two
    /// nodes are neighbours if an edge joins them, in either direction. The result is 0 for a node without
    /// neighbours. If several neighbours have the maximum, they share its gradient equally. A neighbour
    /// counts once, also if edges join it to the node in both directions.
    fn max_over_neighbours(&self, nodes: &Self::Rows) -> Self::Rows;

    /// Adds the message `relu(rows[entries[m]] + edges[messages[m]])` to row `receivers[m]` of `to`, for each
    /// message `m`.
    fn add_messages(
        &self,
        to: Self::Rows,
        rows: &Self::Rows,
        entries: &Self::Index,
        edges: &Self::Rows,
        messages: &Self::Index,
        receivers: &Self::Index,
    ) -> Self::Rows;

    /// Computes the sum of the messages to each receiver, weighted by the softmax of their scores, head by
    /// head: `[receivers, heads * depth]`. The score of a message is `a . leaky_relu(x)` (slope 0.2). Here
    /// `x` is the head's part of the message's row of `inputs`, `[M, heads * depth]`, and `a` is the head's
    /// vector in the parameter `[heads, depth]`. The summed vectors are `values`, `[M, heads * depth]`.
    /// Messages are ordered by receiver: the messages to receiver `i` begin at `offsets[i]`, and `receivers`
    /// is `i` for each of them. The result is 0 for a receiver without messages.
    fn attend(
        &self,
        inputs: &Self::Rows,
        parameter: &Tensor,
        values: &Self::Rows,
        receivers: &Self::Index,
        offsets: &Self::Index,
    ) -> Self::Rows;

    /// Computes the attention of each node `a` to all nodes `b` of its graph, `sum_b softmax_b(q(a) . k(b) /
    /// sqrt(depth)) v(b)`, head by head. The arguments and the result have the shape `[N, heads * depth]`.
    fn attend_within(
        &self,
        query: &Self::Rows,
        key: &Self::Rows,
        value: &Self::Rows,
        heads: usize,
    ) -> Self::Rows;

    /// Pools the node rows of each graph: `[N, width]` to `[B, 2 width]`. The first half of a result is the
    /// mean of the rows. The second half is their sum divided by the square root of their number, because the
    /// mean alone can't count nodes. The result is 0 for a graph without nodes.
    fn pool(&self, nodes: &Self::Rows) -> Self::Rows;

    /// Adds the row of each graph to the rows of its nodes.
    fn add_to_nodes(&self, nodes: Self::Rows, graphs: &Self::Rows) -> Self::Rows;
}

/// An engine with the further operations that only heads and checks of shapes need.
pub(in crate::nn) trait HeadEngine: Engine {
    /// The number of rows and their width, as a list of two numbers.
    fn shape(&self, rows: &Self::Rows) -> Vec<i64>;

    /// The width of rows.
    fn width(&self, rows: &Self::Rows) -> i64 {
        self.shape(rows).last().copied().unwrap_or(0)
    }

    /// The error of the first operation whose arguments had a wrong shape; `None` if there was no such
    /// operation.
    fn shape_error(&self) -> &Cell<Option<Error>>;

    /// Returns `true` if rows have the expected shape, where a number of rows of `None` stands for any
    /// number. Otherwise stores an error that names `argument`, unless there is one already.
    fn has_shape(&self, argument: &'static str, rows: &Self::Rows, expected: (Option<i64>, i64)) -> bool {
        const REMEDY: &str = "correct the widths of the torso's layers (`Torso::embed`)";
        let got = self.shape(rows);
        let expected = [expected.0.unwrap_or(got[0]), expected.1];
        if got == expected {
            return true;
        }
        let first = self.shape_error().take();
        self.shape_error().set(first.or_else(|| Some(Error::shape(argument, expected, got, REMEDY))));
        false
    }

    /// Returns `true` if a layer with the weight `[outputs, inputs]` can be applied to these rows. Otherwise
    /// stores an error, as [`has_shape`](Self::has_shape) does.
    fn fits_layer(&self, weight: &Tensor, rows: &Self::Rows) -> bool {
        self.has_shape("the input of a layer of a torso", rows, (None, weight.size()[1]))
    }

    /// Returns `true` if `rows` and `others` have equal shapes. Otherwise stores an error, as
    /// [`has_shape`](Self::has_shape) does.
    fn have_equal_shapes(&self, rows: &Self::Rows, others: &Self::Rows) -> bool {
        let expected = (self.shape(rows).first().copied(), self.width(rows));
        self.has_shape("the second argument of `add` or `max` in a torso", others, expected)
    }

    /// Returns `true` if there is a row for each node. Otherwise stores an error, as
    /// [`has_shape`](Self::has_shape) does.
    fn has_row_per_node(&self, nodes: &Self::Rows) -> bool {
        let n = self.arrays().nodes.len() as i64;
        self.has_shape("the rows of nodes in a torso", nodes, (Some(n), self.width(nodes)))
    }

    /// Returns `true` if there is a row for each node, and a row of the same width for each graph. Otherwise
    /// stores an error, as [`has_shape`](Self::has_shape) does.
    fn fits_nodes(&self, nodes: &Self::Rows, graphs: &Self::Rows) -> bool {
        let expected = (Some(self.arrays().len() as i64), self.width(nodes));
        self.has_row_per_node(nodes)
            && self.has_shape("the rows of graphs in `add_to_nodes` of a torso", graphs, expected)
    }

    /// Returns rows of zeros with as many rows as `rows`.
    fn zeros_for(&self, rows: &Self::Rows, width: i64) -> Self::Rows {
        self.rows(&vec![0.0; (self.shape(rows)[0] * width) as usize], width as usize)
    }

    /// Computes `columns` scores `q(a) . k(b) / sqrt(depth)` for each ordered pair of nodes `(a, b)` of each
    /// graph: `[N, width]` to `[sum of n * n, columns]`. The layers `query` and `key` have `columns * depth`
    /// outputs. If edges are undirected, the score of the reversed pair is added, so that scores are
    /// symmetric.
    fn pair_scores(&self, query: &Linear, key: &Linear, columns: usize, nodes: &Self::Rows) -> Self::Rows;

    /// Computes `columns` weighted sums of the features of each ordered pair of nodes, `[sum of n * n,
    /// columns]`. `features` is `[sum of n * n, K]`. The weights of a pair are sums of the weights of its two
    /// nodes, `[N, 2 K columns]`: the first half for the first node, the second half for the second node. If
    /// edges are undirected, the weights of the reversed pair are added, so that the sums are symmetric.
    fn weighted_pair_features(
        &self,
        weights: &Self::Rows,
        columns: usize,
        features: &Self::Rows,
    ) -> Self::Rows;
}
