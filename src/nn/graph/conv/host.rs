//! Rounds of message passing on the host.

use tch::Tensor;

use super::message_classes::MessageRound;
use super::pooling::{add_to_nodes, host_pool};
use super::{Conv, Messages};
use crate::graph::GraphArrays;
use crate::nn::host::{HostLinear, HostNorm, floats};
use crate::nn::layers::HostKinds;

/// A copy of a [`Conv`] on the host.
#[derive(Debug)]
pub(crate) struct HostConv {
    messages: HostMessages,
    output: HostLinear,
    norm: HostNorm,
    width: usize,
}

#[derive(Debug)]
enum HostMessages {
    /// Entries of a table are summed.
    Plain {
        /// Map from rows to the table, and a bias added to each sum.
        table: HostLinear,
        bias: Vec<f32>,
        /// Weight of a node's own entry beside the sum; `None` if it is one of the entries.
        own: Option<f32>,
        /// From the whole graph.
        whole: Option<HostLinear>,
    },
    /// The map comes after the sum.
    WithEdges { inner: HostLinear, own: f32, edges: HostKinds, against: Option<Vec<f32>> },
}

impl Conv {
    /// A copy of the round.
    pub(crate) fn on_host(&self) -> HostConv {
        let width = self.output.weight().size()[0] as usize;
        let messages = match &self.messages {
            Messages::Gin { inner, eps, whole } => {
                let (own, whole) = (Some(1.0 + floats(eps)[0]), whole.as_ref().map(HostLinear::of));
                HostMessages::Plain { table: HostLinear::of(inner), bias: vec![0.0; width], own, whole }
            }
            Messages::Gine { inner, eps, edges, against } => HostMessages::WithEdges {
                inner: HostLinear::of(inner),
                own: 1.0 + floats(eps)[0],
                edges: edges.on_host(),
                against: against.as_ref().map(floats),
            },
            Messages::Directed { own, incoming, outgoing } => {
                let weights = Tensor::cat(&[own.weight(), incoming.weight(), outgoing.weight()], 0);
                let bias = own.bias().map_or_else(|| vec![0.0; width], floats);
                HostMessages::Plain { table: HostLinear::new(&weights, None), bias, own: None, whole: None }
            }
        };
        HostConv { messages, output: HostLinear::of(&self.output), norm: self.norm.on_host(), width }
    }
}

impl HostConv {
    /// One round: from the rows before it to the rows after it.
    pub(crate) fn forward(&self, arrays: &GraphArrays, round: &MessageRound<Vec<i64>>, rows: &[f32]) -> Vec<f32> {
        let (width, n) = (self.width, round.offsets.len());
        let mut inner = match &self.messages {
            HostMessages::Plain { table, bias, own, whole } => {
                let mut sums = self.summed(round, &table.rows(rows, rows.len() / width), bias, *own);
                if let Some(whole) = whole {
                    let own: Vec<f32> = (0..n).flat_map(|row| self.row(rows, round.own_row(row))).copied().collect();
                    let pooled = host_pool(arrays, &own, width);
                    add_to_nodes(arrays, &mut sums, &whole.rows(&pooled, arrays.len()), width);
                }
                sums
            }
            HostMessages::WithEdges { inner, own, edges, against } => {
                let edges = self.edge_rows(arrays, edges, against.as_deref());
                inner.rows(&self.received(round, rows, (&edges, arrays.messages_per_edge()), *own), n)
            }
        };
        // NaN passes through; the check before drawing finds it.
        inner.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
        let mut out = self.output.rows(&inner, n);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            out.iter_mut().zip(self.row(rows, round.own_row(row))).for_each(|(out, x)| *out += x);
        }
        self.norm.apply(&mut out);
        out
    }

    fn row<'a>(&self, rows: &'a [f32], at: i64) -> &'a [f32] {
        &rows[at as usize * self.width..][..self.width]
    }

    /// The sum of each receiver's table entries.
    fn summed(&self, round: &MessageRound<Vec<i64>>, table: &[f32], bias: &[f32], own: Option<f32>) -> Vec<f32> {
        let mut out = Vec::with_capacity(round.offsets.len() * self.width);
        for row in 0..round.offsets.len() {
            let at = out.len();
            out.extend_from_slice(bias);
            let sum = &mut out[at..];
            if let Some(scale) = own {
                let own = self.row(table, round.own_row(row));
                sum.iter_mut().zip(own).for_each(|(sum, x)| *sum += scale * x);
            }
            for &entry in &round.entries[round.entries_of(row)] {
                sum.iter_mut().zip(self.row(table, entry)).for_each(|(sum, x)| *sum += x);
            }
        }
        out
    }

    /// The vector of each edge along it; for directed edges then those against them.
    fn edge_rows(&self, arrays: &GraphArrays, kinds: &HostKinds, against: Option<&[f32]>) -> Vec<f32> {
        let mut out = vec![0.0; arrays.weights.len() * self.width];
        for (edge, row) in arrays.weights.iter().zip(out.chunks_exact_mut(self.width)) {
            kinds.add(edge.class, &edge.attributes, row);
        }
        if let Some(against) = against {
            let n = out.len();
            out.extend_from_within(..);
            out[n..].iter_mut().zip(against.iter().cycle()).for_each(|(x, against)| *x += against);
        }
        out
    }

    /// `(1 + eps) h_i + sum_j relu(h_j + e_ij)` of each receiver, given the vectors of edges, each of so many messages.
    fn received(
        &self,
        round: &MessageRound<Vec<i64>>,
        rows: &[f32],
        (edges, each): (&[f32], usize),
        own: f32,
    ) -> Vec<f32> {
        let mut out = Vec::with_capacity(round.offsets.len() * self.width);
        for row in 0..round.offsets.len() {
            let at = out.len();
            out.extend(self.row(rows, round.own_row(row)).iter().map(|x| own * x));
            let sum = &mut out[at..];
            for message in round.entries_of(row) {
                let edge = self.row(edges, round.number(message) / each as i64);
                let sent = self.row(rows, round.entries[message]).iter().zip(edge);
                sum.iter_mut().zip(sent).for_each(|(sum, (x, edge))| {
                    let sent = x + edge;
                    *sum += if sent < 0.0 { 0.0 } else { sent };
                });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::super::tests::{MAKES, WIDTH, growing, schema};
    use super::*;
    use crate::Rng;
    use crate::graph::{GraphBatch, GraphKind};
    use crate::nn::Parameters;
    use crate::nn::graph::node_features::Labels;
    use crate::nn::graph::{MessageRounds, NodeFeatures};

    #[test]
    fn rounds_on_the_host_are_those_of_libtorch() {
        let labels = Labels(vec![0, 2, 0, 3]);
        for (kind, make) in
            [GraphKind::Directed, GraphKind::Undirected].into_iter().flat_map(|kind| MAKES.map(|make| (kind, make)))
        {
            let (schema, states, rng) = (schema(kind), growing(kind), &mut Rng::seeded(2));
            let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
            let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
            let mut scope = parameters.scope(rng);
            let features = NodeFeatures::new(&mut scope.sub("features"), &schema, WIDTH, &labels);
            let convs = ["0", "1", "2"].map(|name| make(&mut scope.sub(name), &schema, WIDTH));
            // Weights that start at 0 or 1 would hide what is left out.
            for parameter in &parameters {
                let values: Vec<f64> = (0..parameter.tensor.numel()).map(|_| rng.normal()).collect();
                let noise = Tensor::from_slice(&values).view(&parameter.tensor.size()[..]).to_kind(Kind::Float);
                tch::no_grad(|| parameter.tensor.shallow_clone().copy_(&(&parameter.tensor + 0.1 * noise)));
            }
            let rounds = MessageRounds::new(batch.arrays, &labels, convs.len(), convs[0].message_kind());
            let start = features.on_host().forward(batch.arrays, &rounds.features);
            let layers = convs.iter().zip(&rounds.rounds);
            let got = layers.fold(start, |x, (conv, round)| conv.on_host().forward(batch.arrays, round, &x));
            let rounds = rounds.on_device(Device::Cpu);
            let start = features.forward(&batch, &rounds.features);
            let layers = convs.iter().zip(&rounds.rounds);
            let expected = layers.fold(start, |x, (conv, round)| conv.forward(&batch, round, &x));
            assert_eq!(got.len(), expected.numel());
            let off = (Tensor::from_slice(&got) - expected.view(-1)).abs().max().double_value(&[]);
            assert!(off < 1e-5, "{kind:?}, {:?}: {off}", convs[0].message_kind());
        }
    }
}
