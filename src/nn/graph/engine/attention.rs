//! The attention operations of both engines.

use tch::{Kind, Tensor};

use super::HostRows;
use crate::graph::{GraphArrays, GraphBatch};
use crate::nn::graph::heads::{GRAPHS_PER_THREAD, dot, size_groups};
use crate::parallel;
use crate::tensor::upload;

/// The slope of GATv2's leaky ReLU for negative numbers.
pub(super) const SLOPE: f64 = 0.2;

/// Computes the last step of [`Engine::attend`](super::Engine::attend) for tensors: the sum of the messages
/// to each receiver, weighted by the softmax of their `scores`.
pub(super) fn softmax_sums(scores: &Tensor, values: &Tensor, receivers: &Tensor, offsets: &Tensor) -> Tensor {
    const MAX: i64 = 2;
    let messages = scores.size()[0];
    let heads = scores.size()[1];
    let width = values.size()[1];
    let zeros = |width: i64| Tensor::zeros([offsets.size()[0], width], (scores.kind(), scores.device()));
    if messages == 0 {
        return zeros(width);
    }
    // The largest score among the messages to a receiver is subtracted from their scores. The subtraction
    // doesn't change the softmax, but keeps exponentials from overflowing.
    let indices = Tensor::arange(messages, (Kind::Int64, scores.device()));
    let bags =
        Tensor::embedding_bag::<Tensor>(&scores.detach(), &indices, offsets, false, MAX, false, None, false);
    let weights = (scores - bags.0.index_select(0, receivers)).exp();
    let weights = &weights / zeros(heads).index_add(0, receivers, &weights).index_select(0, receivers);
    let weighted = values.view([messages, heads, width / heads]) * weights.unsqueeze(2);
    zeros(width).index_add(0, receivers, &weighted.view([messages, width]))
}

/// Implements [`Engine::attend_within`](super::Engine::attend_within) for tensors. `rows` holds the queries,
/// the keys and the values.
pub(super) fn attention(batch: &GraphBatch<'_>, rows: [&Tensor; 3], heads: i64) -> Tensor {
    let arrays = batch.arrays;
    let width = rows[0].size()[1];
    let kind = rows[0].kind();
    // Computes the attention within each group of `length` successive rows, that is, the nodes of one graph
    // and its padding.
    let attend = |rows: [Tensor; 3], length: i64, masked: Option<&Tensor>| {
        let [query, key, value] = rows.map(|x| x.view([-1, length, heads, width / heads]).transpose(1, 2));
        let scores = query.matmul(&key.transpose(2, 3)) / ((width / heads) as f64).sqrt();
        let scores = match masked {
            Some(masked) => scores.masked_fill(masked, f64::NEG_INFINITY),
            None => scores,
        };
        scores.softmax(3, kind).matmul(&value).transpose(1, 2).reshape([-1, width])
    };
    match arrays.same_size() {
        _ if arrays.nodes.is_empty() => return rows[2].shallow_clone(),
        Some(n) => return attend(rows.map(Tensor::shallow_clone), n as i64, None),
        None => {}
    }
    // The attention in graphs of similar size is computed together, with as many rows per graph as the
    // largest of them has nodes. A smaller graph is padded with copies of its first node, to which no node
    // attends.
    let mut parts = Vec::new();
    let mut position = vec![0; arrays.nodes.len()];
    let mut base = 0;
    for graphs in size_groups(arrays) {
        let range = |g: usize| arrays.node_ptr[g]..arrays.node_ptr[g + 1];
        let length = graphs.iter().map(|&g| range(g).len()).max().unwrap_or(0);
        if length == 0 {
            continue;
        }
        let mut padded_rows = Vec::new();
        let mut masked = Vec::new();
        for nodes in graphs.into_iter().map(range) {
            for node in nodes.clone() {
                position[node] = (base + padded_rows.len() + node - nodes.start) as i64;
            }
            padded_rows.extend(
                (0..length).map(|k| if k < nodes.len() { nodes.start + k } else { nodes.start } as i64),
            );
            masked.extend((0..length).map(|k| k >= nodes.len()));
        }
        let masked = upload(&masked, batch.device()).view([-1, 1, 1, length as i64]);
        base += padded_rows.len();
        let padded_rows = batch.tensor(padded_rows.into_iter());
        parts.push(attend(rows.map(|x| x.index_select(0, &padded_rows)), length as i64, Some(&masked)));
    }
    Tensor::cat(&parts, 0).index_select(0, &batch.tensor(position.into_iter()))
}

/// Adds the sum of `values`, each weighted by the softmax of its score, to `sum`.
pub(super) fn add_softmax<'a>(
    sum: &mut [f32],
    mut scores: Vec<f32>,
    values: impl Iterator<Item = &'a [f32]>,
) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in &mut scores {
        *score = (*score - largest).exp();
    }
    let total: f32 = scores.iter().sum();
    for (weight, value) in scores.iter().map(|score| score / total).zip(values) {
        for (x, y) in sum.iter_mut().zip(value) {
            *x += weight * y;
        }
    }
}

/// Implements [`Engine::attend_within`](super::Engine::attend_within) on the host.
pub(super) fn host_attention(
    arrays: &GraphArrays,
    query: &HostRows,
    key: &HostRows,
    value: &HostRows,
    heads: usize,
) -> Vec<f32> {
    let graphs: Vec<usize> = (0..arrays.len()).collect();
    let depth = query.width / heads;
    let scale = (depth as f32).sqrt().recip();
    let outputs = parallel::map(&graphs, GRAPHS_PER_THREAD, |&g| {
        let nodes = arrays.node_ptr[g]..arrays.node_ptr[g + 1];
        let mut out = vec![0.0; nodes.len() * query.width];
        for (row, a) in out.chunks_exact_mut(query.width).zip(nodes.clone()) {
            for (head, sum) in row.chunks_exact_mut(depth).enumerate() {
                let part = head * depth..(head + 1) * depth;
                let query_part = &query.row(a)[part.clone()];
                let scores = nodes.clone().map(|b| scale * dot(query_part, &key.row(b)[part.clone()]));
                add_softmax(sum, scores.collect(), nodes.clone().map(|b| &value.row(b)[part.clone()]));
            }
        }
        out
    });
    outputs.concat()
}
