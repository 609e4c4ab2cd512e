//! The library's torso on the host.

use super::HostLinear;
use crate::graph::GraphArrays;
use crate::nn::Linear;
use crate::nn::graph::{
    Conv, HostConv, HostEmbedded, HostFeatures, HostTorso, MessageKind, MessageRounds, NodeFeatures, add_to_nodes,
    host_pool,
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
        let pooled = host_pool(arrays, &nodes, self.width);
        if let Some(global) = &self.global {
            let mut added = global.rows(&pooled, arrays.len());
            // NaN passes through; the check before drawing finds it.
            added.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
            add_to_nodes(arrays, &mut nodes, &added, self.width);
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
}
