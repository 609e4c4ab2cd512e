//! Copies of graph networks on the host for roll-outs.

use tch::{Device, Kind};

use super::HostLinear;
use crate::Result;
use crate::graph::GraphState;
use crate::nn::Linear;
use crate::nn::graph::{
    Conv, Fits, Heads, HostConv, HostFeatures, HostHead, MessageKind, MessageRounds, NodeFeatures, host_pair_features,
};

/// A copy of a convolutional [`GraphNet`](crate::nn::GraphNet) on the host, in single precision and without gradients.
/// A roll-out step holds so few graphs that tensor operations cost more than the computation in them.
///
/// ```
/// use gfn::{env::{Direction, Env}, nn::{GraphNet, GraphNetConfig, GraphNetwork}, testing::Triangles, Rng};
/// let env = Triangles::new();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let frozen = net.on_host(Direction::Forward).ok_or("not for this network")?;
/// // The logits of pairs of nodes, then those of the exit.
/// let blocks = frozen.forward(env.initial(2).graphs())?;
/// assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [2 * 9, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostGraphNet {
    fits: Fits,
    width: usize,
    features: HostFeatures,
    convs: Vec<HostConv>,
    message_kind: MessageKind,
    global: Option<HostLinear>,
    heads: Vec<HostHead>,
    pair_walks: Option<usize>,
}

/// Graphs with their embeddings.
pub(in crate::nn) struct HostEmbedded<'a> {
    pub(in crate::nn) graphs_of: &'a [GraphState],
    /// `[N, D]`, graph by graph.
    pub(in crate::nn) nodes: Vec<f32>,
    /// `[B, 2 D]`.
    pub(in crate::nn) graphs: Vec<f32>,
    width: usize,
}

impl HostEmbedded<'_> {
    pub(in crate::nn) fn n_nodes(&self) -> usize {
        self.nodes.len() / self.width
    }
}

/// The parts of a network that are copied.
pub(in crate::nn) struct HostParts<'a> {
    pub(in crate::nn) features: &'a NodeFeatures,
    pub(in crate::nn) convs: &'a [Conv],
    pub(in crate::nn) global: Option<&'a Linear>,
    pub(in crate::nn) heads: &'a Heads,
    pub(in crate::nn) fits: &'a Fits,
    pub(in crate::nn) pair_walks: Option<usize>,
}

impl HostGraphNet {
    /// A copy; `None` if the weights aren't on the host in single precision, or a convolution has no host form.
    pub(in crate::nn) fn new(parts: &HostParts<'_>) -> Option<Self> {
        let classes = parts.features.classes();
        if classes.kind() != Kind::Float || classes.device() != Device::Cpu {
            return None;
        }
        Some(Self {
            fits: parts.fits.clone(),
            width: classes.size()[1] as usize,
            features: parts.features.on_host(),
            convs: parts.convs.iter().map(Conv::on_host).collect::<Option<_>>()?,
            message_kind: parts.convs.first().map_or(MessageKind::Sum, Conv::message_kind),
            global: parts.global.map(HostLinear::of),
            heads: parts.heads.on_host()?,
            pair_walks: parts.pair_walks,
        })
    }

    /// The blocks of logits of some graphs, each `[rows, width]` row by row, in the order of the action types.
    ///
    /// # Errors
    /// [`Error::Contract`](crate::Error::Contract) for a graph with classes, labels or attributes that the network's
    /// environment doesn't have.
    pub fn forward(&self, graphs: &[GraphState]) -> Result<Vec<Vec<f32>>> {
        self.fits.check_graphs(graphs)?;
        let embedded = self.embed(graphs);
        let pairs = self.pair_walks.map(|walks| host_pair_features(graphs, walks));
        Ok(self.heads.iter().map(|head| head.forward(&embedded, pairs.as_deref())).collect())
    }

    fn embed<'a>(&self, graphs: &'a [GraphState]) -> HostEmbedded<'a> {
        let rounds = MessageRounds::new(graphs, self.features.n_labels(), self.convs.len(), self.message_kind);
        let mut nodes = self.features.forward(graphs, &rounds.features);
        for (conv, round) in self.convs.iter().zip(&rounds.rounds) {
            nodes = conv.forward(round, &nodes);
        }
        if let Some(index) = &rounds.index {
            nodes = index.iter().flat_map(|&row| &nodes[row as usize * self.width..][..self.width]).copied().collect();
        }
        let pooled = self.pool(graphs, &nodes);
        if let Some(global) = &self.global {
            let added = global.rows(&pooled, graphs.len());
            let mut rows = nodes.chunks_exact_mut(self.width);
            for (graph, added) in graphs.iter().zip(added.chunks_exact(self.width)) {
                for row in rows.by_ref().take(graph.n_nodes()) {
                    // NaN passes through; the check before drawing finds it.
                    row.iter_mut().zip(added).for_each(|(x, &a)| *x += if a < 0.0 { 0.0 } else { a });
                }
            }
        }
        HostEmbedded { graphs_of: graphs, nodes, graphs: pooled, width: self.width }
    }

    /// Mean and damped sum of each graph's node rows.
    fn pool(&self, graphs: &[GraphState], nodes: &[f32]) -> Vec<f32> {
        let mut out = Vec::with_capacity(graphs.len() * 2 * self.width);
        let mut rows = nodes.chunks_exact(self.width);
        for graph in graphs {
            let start = out.len();
            out.resize(start + self.width, 0.0f32);
            for row in rows.by_ref().take(graph.n_nodes()) {
                out[start..].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            let n = graph.n_nodes().max(1) as f32;
            out.extend_from_within(start..);
            let (mean, damped) = out[start..].split_at_mut(self.width);
            mean.iter_mut().for_each(|x| *x /= n);
            damped.iter_mut().for_each(|x| *x /= n.sqrt());
        }
        out
    }
}
