//! What graph networks compute with: tensors where they are trained, rows of numbers on the host where
//! actions are drawn.

mod attention;
mod host;
mod tensors;

pub(in crate::nn) use host::{HostGraphs, HostRows};
pub(in crate::nn) use tensors::{TensorGraphs, scales, sums};

use tch::Tensor;

use crate::Result;
use crate::env::Direction;
use crate::graph::{GraphArrays, GraphBatch, MoveSymmetries};
use crate::nn::{GraphNorm, LayerNorm, Linear, Mlp};

/// A batch of graphs with the operations that a network on them is written in, once: a
/// [`Torso`](super::Torso) and all that a [`GraphNet`](super::GraphNet) consists of.
///
/// There are two engines. One records gradients on tensors, for training. The other computes with single
/// precision on the host, for the few graphs of a roll-out's step, for which tensor operations cost more than
/// the computation in them.
///
/// `N` is the number of nodes, `B` of graphs. Nodes and graphs come in the order of the
/// [arrays](Self::arrays).
pub trait Engine {
    /// Rows of numbers of one width: `[rows, width]`.
    type Rows;
    /// Numbers of rows.
    type Index;

    /// The graphs.
    fn arrays(&self) -> &GraphArrays;

    /// The symmetries of the graphs, and the changes that moves of this direction make to them, if they were
    /// counted.
    fn symmetries(&self, direction: Direction) -> Option<&MoveSymmetries>;

    /// The encoded batch, for layers of your own in tensors, between [`to_tensor`](Self::to_tensor) and
    /// [`of_tensor`](Self::of_tensor).
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) on the host. A torso that needs it says so by
    /// [`on_host`](super::Torso::on_host).
    fn batch(&self) -> Result<&GraphBatch<'_>>;

    /// Rows as a tensor, `[rows, width]`.
    fn to_tensor(&self, rows: &Self::Rows) -> Tensor;

    /// A tensor `[rows, width]` as rows.
    fn of_tensor(&self, tensor: Tensor) -> Self::Rows;

    /// The number of rows, and their width.
    fn shape(&self, rows: &Self::Rows) -> Vec<i64>;

    /// Rows of `width` numbers each.
    ///
    /// # Panics
    /// If the width isn't at least 1, or doesn't divide the numbers.
    fn rows(&self, values: &[f64], width: usize) -> Self::Rows;

    /// Numbers of rows, for [`gather`](Self::gather) and sums.
    fn index(&self, rows: Vec<i64>) -> Self::Index;

    /// A parameter `[width]` as one row, which can be added to all rows. A parameter and a table are tensors
    /// that the module keeps: the host reads each once for a roll-out, and holds it so long.
    fn parameter(&self, parameter: &Tensor) -> Self::Rows;

    /// For each row the sum of `each` entries of a learned table `[entries, width]`.
    ///
    /// # Panics
    /// For an entry that isn't in the table.
    fn look_up(&self, table: &Tensor, entries: &[i64], each: usize) -> Self::Rows;

    /// A linear layer on each row.
    fn linear(&self, layer: &Linear, rows: &Self::Rows) -> Self::Rows;

    /// The products of each row with three layers' weights, one behind the other: three times as many rows.
    fn products(&self, layers: [&Linear; 3], rows: &Self::Rows) -> Self::Rows;

    /// A perceptron on each row.
    fn mlp(&self, mlp: &Mlp, rows: &Self::Rows) -> Self::Rows;

    /// A layer norm of each row.
    fn norm(&self, norm: &LayerNorm, rows: Self::Rows) -> Self::Rows;

    /// A graph norm of the nodes' rows, `[N, width]`.
    fn graph_norm(&self, norm: &GraphNorm, rows: Self::Rows) -> Self::Rows;

    /// `max(x, 0)` of each number.
    fn relu(&self, rows: Self::Rows) -> Self::Rows;

    /// `(1 + eps) x`, with a parameter `[1]`.
    fn grow(&self, rows: Self::Rows, eps: &Tensor) -> Self::Rows;

    /// The sum of rows and as many others, or one for all.
    fn add(&self, rows: Self::Rows, others: &Self::Rows) -> Self::Rows;

    /// The larger of both, number by number.
    fn max(&self, rows: Self::Rows, others: &Self::Rows) -> Self::Rows;

    /// Each row times its own number, `[rows, 1]`.
    fn weigh(&self, rows: Self::Rows, weights: &Self::Rows) -> Self::Rows;

    /// The rows of both, one behind the other.
    fn join(&self, first: &Self::Rows, second: &Self::Rows) -> Self::Rows;

    /// The rows with these numbers; `None` for as they are.
    fn gather(&self, rows: &Self::Rows, which: Option<&Self::Index>) -> Self::Rows;

    /// Sums of rows by segment: segment `i` holds those with the numbers
    /// `entries[offsets[i]..offsets[i + 1]]`, the last one to the end.
    fn sum(&self, rows: &Self::Rows, entries: &Self::Index, offsets: &Self::Index) -> Self::Rows;

    /// `true` if nodes get rows of their own for [`sum_over_neighbours`](Self::sum_over_neighbours).
    fn sums_over_neighbours(&self) -> bool {
        false
    }

    /// The sum over each node's neighbours, given a row for each node; `None` where sums are by index.
    fn sum_over_neighbours(&self, _nodes: &Self::Rows) -> Option<Self::Rows> {
        None
    }

    /// Adds to each receiver's row of `to` the sum of `relu(row + edge)` over messages from
    /// `rows[entries[m]]` along `edges[messages[m]]` to `receivers[m]`.
    fn add_along(
        &self,
        to: Self::Rows,
        rows: &Self::Rows,
        entries: &Self::Index,
        edges: &Self::Rows,
        messages: &Self::Index,
        receivers: &Self::Index,
    ) -> Self::Rows;

    /// `a . leaky_relu(x)` (slope 0.2) of each head's part `x` of a row, with a parameter of vectors `a`
    /// `[heads, depth]`: `[rows, heads * depth]` to `[rows, heads]`.
    fn head_scores(&self, rows: &Self::Rows, parameter: &Tensor) -> Self::Rows;

    /// For each receiver the sum of its messages' values `[M, heads * depth]`, weighted by the softmax of
    /// their scores `[M, heads]`, head by head: `[receivers, heads * depth]`. Messages come receiver by
    /// receiver: those of receiver `i` begin at `offsets[i]`, and there `receivers` is `i`. Zeros for a
    /// receiver without any.
    fn attend(
        &self,
        scores: &Self::Rows,
        values: &Self::Rows,
        receivers: &Self::Index,
        offsets: &Self::Index,
    ) -> Self::Rows;

    /// Attention of each node to all nodes of its graph, `softmax(q(a) . k(b) / sqrt(depth)) v(b)`, head by
    /// head. All are `[N, heads * depth]`.
    fn attend_within(&self, query: &Self::Rows, key: &Self::Rows, value: &Self::Rows, heads: usize) -> Self::Rows;

    /// Mean and damped sum of each graph's rows of nodes: `[N, width]` to `[B, 2 width]`. The mean alone
    /// can't count nodes. An empty graph gives zeros.
    fn pool(&self, nodes: &Self::Rows) -> Self::Rows;

    /// Adds each graph's row to its nodes.
    fn to_nodes(&self, nodes: Self::Rows, graphs: &Self::Rows) -> Self::Rows;

    /// `q(a) . k(b) / sqrt(depth)` for all ordered pairs of nodes of each graph, in columns: `[N, width]` to
    /// `[sum of n * n, columns]`. Both layers have `columns * depth` outputs. Symmetric where edges are
    /// undirected.
    fn pair_scores(&self, query: &Linear, key: &Linear, columns: usize, nodes: &Self::Rows) -> Self::Rows;

    /// The sum of pair features `[sum of n * n, K]`, weighted by both ends of each pair, in columns, by
    /// weights `[N, 2 K columns]`.
    fn weigh_pairs(&self, weights: &Self::Rows, columns: usize, features: &Self::Rows) -> Self::Rows;
}
