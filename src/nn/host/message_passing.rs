//! The library's torso on the host.

use super::HostLinear;
use crate::graph::GraphArrays;
use crate::nn::Linear;
use crate::nn::graph::{
    Conv, HostConv, HostEmbedded, HostFeatures, HostTorso, MessageKind, MessageRounds, NodeFeatures,
};

/// A copy of a [`MessagePassing`](crate::nn::MessagePassing) with convolutions on the host.
#[derive(Debug)]
pub(in crate::nn) struct HostMessagePassing {
    width: usize,
    features: HostFeatures,
    convs: Vec<HostConv>,
    message_kind: MessageKind,
    global: Option<HostLinear>,
}

impl HostTorso for HostMessagePassing {
    fn embed(&self, arrays: &GraphArrays) -> HostEmbedded {
        let rounds = MessageRounds::new(arrays, &self.features.labels(), self.convs.len(), self.message_kind);
        let mut nodes = self.features.forward(arrays, &rounds.features);
        for (conv, round) in self.convs.iter().zip(&rounds.rounds) {
            nodes = conv.forward(arrays, round, &nodes);
        }
        if let Some(index) = &rounds.index {
            nodes = index.iter().flat_map(|&row| &nodes[row as usize * self.width..][..self.width]).copied().collect();
        }
        let pooled = self.pool(arrays, &nodes);
        if let Some(global) = &self.global {
            let added = global.rows(&pooled, arrays.len());
            let mut rows = nodes.chunks_exact_mut(self.width);
            for (n, added) in arrays.sizes().zip(added.chunks_exact(self.width)) {
                for row in rows.by_ref().take(n) {
                    // NaN passes through; the check before drawing finds it.
                    row.iter_mut().zip(added).for_each(|(x, &a)| *x += if a < 0.0 { 0.0 } else { a });
                }
            }
        }
        HostEmbedded { nodes, graphs: pooled }
    }
}

impl HostMessagePassing {
    pub(in crate::nn) fn new(features: &NodeFeatures, convs: &[Conv], global: Option<&Linear>) -> Self {
        Self {
            width: features.classes().size()[1] as usize,
            features: features.on_host(),
            convs: convs.iter().map(Conv::on_host).collect(),
            message_kind: convs.first().map_or(MessageKind::Sum, Conv::message_kind),
            global: global.map(HostLinear::of),
        }
    }

    /// Mean and damped sum of each graph's node rows.
    fn pool(&self, arrays: &GraphArrays, nodes: &[f32]) -> Vec<f32> {
        let mut out = Vec::with_capacity(arrays.len() * 2 * self.width);
        let mut rows = nodes.chunks_exact(self.width);
        for n in arrays.sizes() {
            let start = out.len();
            out.resize(start + self.width, 0.0f32);
            for row in rows.by_ref().take(n) {
                out[start..].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            let n = n.max(1) as f32;
            out.extend_from_within(start..);
            let (mean, damped) = out[start..].split_at_mut(self.width);
            mean.iter_mut().for_each(|x| *x /= n);
            damped.iter_mut().for_each(|x| *x /= n.sqrt());
        }
        out
    }
}
