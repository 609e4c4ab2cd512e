//! From nodes to their graph and back.

use tch::{Kind, Tensor};

use crate::graph::{GraphArrays, GraphBatch};

/// Mean and damped sum of node embeddings, `[B, 2 D]`. The mean alone can't count nodes. An empty graph gives zeros.
pub(in crate::nn) fn pool(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let sum = sums(batch, nodes);
    let scale = |power: f64| scales(batch, power, nodes.kind());
    Tensor::cat(&[&sum * scale(-1.0), &sum * scale(-0.5)], 1)
}

/// Adds each graph's row to its nodes, `[N, D]`.
pub(in crate::nn) fn to_nodes(batch: &GraphBatch<'_>, nodes: &Tensor, graphs: &Tensor) -> Tensor {
    match batch.arrays.same_size() {
        Some(n) if n > 0 => {
            let size = nodes.size();
            (nodes.view([batch.len() as i64, n as i64, size[1]]) + graphs.unsqueeze(1)).view([size[0], size[1]])
        }
        _ => nodes + graphs.index_select(0, batch.node_graph()),
    }
}

/// The sum of each graph's node rows, `[B, D]`.
pub(in crate::nn) fn sums(batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let (b, width) = (batch.len() as i64, nodes.size()[1]);
    match batch.arrays.same_size() {
        Some(n) if n > 0 => nodes.reshape([b, n as i64, width]).sum_dim_intlist(1, false, nodes.kind()),
        _ => Tensor::zeros([b, width], (nodes.kind(), nodes.device())).index_add(0, batch.node_graph(), nodes),
    }
}

/// A power of each graph's number of nodes, `[B, 1]`; 1 for an empty graph.
pub(in crate::nn) fn scales(batch: &GraphBatch<'_>, power: f64, kind: Kind) -> Tensor {
    let scales: Vec<f64> = batch.arrays.sizes().map(|n| (n.max(1) as f64).powf(power)).collect();
    crate::tensor::from_host(&scales, kind, batch.device()).unsqueeze(1)
}

/// [`pool`] on the host, of node rows of this width.
pub(in crate::nn) fn host_pool(arrays: &GraphArrays, nodes: &[f32], width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(arrays.len() * 2 * width);
    let mut rows = nodes.chunks_exact(width);
    for n in arrays.sizes() {
        let start = out.len();
        out.resize(start + width, 0.0f32);
        for row in rows.by_ref().take(n) {
            out[start..].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        let n = n.max(1) as f32;
        out.extend_from_within(start..);
        let (mean, damped) = out[start..].split_at_mut(width);
        mean.iter_mut().for_each(|x| *x /= n);
        damped.iter_mut().for_each(|x| *x /= n.sqrt());
    }
    out
}

/// [`to_nodes`] on the host.
pub(in crate::nn) fn add_to_nodes(arrays: &GraphArrays, nodes: &mut [f32], graphs: &[f32], width: usize) {
    let mut rows = nodes.chunks_exact_mut(width);
    for (n, added) in arrays.sizes().zip(graphs.chunks_exact(width)) {
        for row in rows.by_ref().take(n) {
            row.iter_mut().zip(added).for_each(|(x, &a)| *x += a);
        }
    }
}
