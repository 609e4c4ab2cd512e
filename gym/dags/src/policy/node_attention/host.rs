//! The network on the host, for the few states of a roll-out step.

use std::cell::RefCell;
use std::collections::HashMap;

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Rows};
use gfn::nn::{HostLinear, HostMlp, HostNorm};
use gfn::policy::HostPolicy;
use tch::Tensor;

use super::super::pair_policy::check_nodes;
use super::{NodeAttentionNetwork, Update};
use crate::{BayesianStructure, DagStates, NodeSet};

/// The most bytes of [`Local`]; it is emptied beyond.
const MAX_BYTES: usize = 64 << 20;

/// A copy of a [`NodeAttentionNetwork`], in single precision.
///
/// Parts that depend on the parameters alone (what edges send) are computed once for a roll-out. Parts that depend on a node's neighbours
/// alone are kept as well: a step adds one edge, so that all nodes but two have the neighbours that they had before.
pub(super) struct HostNodeAttention {
    n_nodes: usize,
    width: usize,
    heads: usize,
    /// Vectors of nodes `[d, D]` and of graphs `[D]` before any message.
    nodes: Vec<f32>,
    graph: Vec<f32>,
    /// The hidden layers of the updates of nodes `[d, D]` and of graphs `[D]` in a graph without edges.
    own: Vec<f32>,
    own_graph: Vec<f32>,
    /// What an edge adds to the hidden layers of its source, its target and the graph, `[d, d, D]` each.
    sent: Vec<f32>,
    received: Vec<f32>,
    counted: Vec<f32>,
    node_output: HostLinear,
    sum_of_nodes: HostLinear,
    graph_output: HostLinear,
    norm_nodes: HostNorm,
    norm_graphs: HostNorm,
    query_key_value: HostLinear,
    merge: HostLinear,
    norm_heard: HostNorm,
    senders: HostMlp,
    receivers: HostMlp,
    graph_numbers: HostMlp,
    local: RefCell<Local>,
}

/// Results for nodes, by the node, its children and its parents.
#[derive(Default)]
struct Local {
    places: HashMap<(usize, NodeSet, NodeSet), usize>,
    /// A node's update before the residual connection, `[places, D]`.
    updates: Vec<f32>,
    /// Query, key and value after it, `[places, 3, D]`.
    projected: Vec<f32>,
}

impl HostNodeAttention {
    /// `None` for a network that isn't on the host in single precision.
    pub(super) fn new(network: &NodeAttentionNetwork) -> Option<Self> {
        let senders = HostMlp::new(&network.senders)?;
        let (messages, attention) = (&network.messages, &network.attention);
        let (nodes, graph) = (messages.nodes.weight(), messages.graph.weight());
        let sent = messages.sent();
        let (of_node, of_graph) = (&messages.update_node, &messages.update_graph);
        let hidden = |update: &Update, parts: Tensor| floats(&update.hidden(&parts));
        Some(Self {
            n_nodes: nodes.size()[0] as usize,
            width: nodes.size()[1] as usize,
            heads: attention.heads as usize,
            own: hidden(of_node, of_node.part(0, nodes) + of_node.part(3, graph)),
            own_graph: hidden(of_graph, of_graph.part(2, graph)),
            sent: floats(&of_node.part(1, &sent)),
            received: floats(&of_node.part(2, &sent)),
            counted: floats(&of_graph.part(1, &sent)),
            nodes: floats(nodes),
            graph: floats(graph),
            node_output: HostLinear::of(&of_node.output),
            sum_of_nodes: HostLinear::new(&of_graph.weight(0), None),
            graph_output: HostLinear::of(&of_graph.output),
            norm_nodes: messages.norm_nodes.on_host(),
            norm_graphs: messages.norm_graphs.on_host(),
            query_key_value: HostLinear::of(&attention.query_key_value),
            merge: HostLinear::of(&attention.merge),
            norm_heard: attention.norm.on_host(),
            senders,
            receivers: HostMlp::new(&network.receivers)?,
            graph_numbers: HostMlp::new(&network.graph)?,
            local: RefCell::default(),
        })
    }

    /// The place in [`Local`] of each node of each graph, `[B, d]`. What isn't there yet is computed.
    fn places(&self, states: &DagStates, local: &mut Local) -> Vec<usize> {
        let (d, width) = (self.n_nodes, self.width);
        if (local.places.len() + states.len() * d) * 4 * width * size_of::<f32>() > MAX_BYTES {
            *local = Local::default();
        }
        let (mut places, mut hidden, mut residual) = (Vec::with_capacity(states.len() * d), Vec::new(), Vec::new());
        for (dag, node) in states.dags().flat_map(|dag| (0..d).map(move |node| (dag, node))) {
            let (children, parents) = (dag.children(node), dag.parents(node));
            let next = local.places.len();
            let place = *local.places.entry((node, children, parents)).or_insert(next);
            places.push(place);
            if place == next {
                let own = node * width..(node + 1) * width;
                let start = hidden.len();
                hidden.extend_from_slice(&self.own[own.clone()]);
                residual.extend_from_slice(&self.nodes[own]);
                let mut message =
                    |table: &[f32], edge: usize| add(&mut hidden[start..], &table[edge * width..][..width]);
                children.iter().for_each(|child| message(&self.sent, node * d + child));
                parents.iter().for_each(|parent| message(&self.received, parent * d + node));
            }
        }
        relu(&mut hidden);
        let n = hidden.len() / width;
        let updates = self.node_output.rows(&hidden, n);
        add(&mut residual, &updates);
        self.norm_nodes.apply(&mut residual);
        local.updates.extend(updates);
        local.projected.extend(self.query_key_value.rows(&residual, n));
        places
    }

    /// Vectors of graphs after the messages, `[B, D]`.
    fn graphs(&self, states: &DagStates, places: &[usize], updates: &[f32]) -> Vec<f32> {
        let (n, d, width) = (states.len(), self.n_nodes, self.width);
        let (mut hidden, mut sums) = (self.own_graph.repeat(n), vec![0.0; n * width]);
        let rows = hidden.chunks_exact_mut(width).zip(sums.chunks_exact_mut(width));
        for ((dag, places), (hidden, sum)) in states.dags().zip(places.chunks_exact(d)).zip(rows) {
            for (source, target) in dag.edges() {
                add(hidden, &self.counted[(source as usize * d + target as usize) * width..][..width]);
            }
            places.iter().for_each(|place| add(sum, &updates[place * width..][..width]));
        }
        add(&mut hidden, &self.sum_of_nodes.rows(&sums, n));
        relu(&mut hidden);
        let mut graphs = self.graph_output.rows(&hidden, n);
        graphs.chunks_exact_mut(width).for_each(|graph| add(graph, &self.graph));
        self.norm_graphs.apply(&mut graphs);
        graphs
    }

    /// Vectors of nodes after the attention, `[B, d, D]`: each node hears all nodes of its graph.
    fn attention(&self, places: &[usize], projected: &[f32]) -> Vec<f32> {
        let (d, width, depth) = (self.n_nodes, self.width, self.width / self.heads);
        let scale = (depth as f32).sqrt().recip();
        let mut heard = vec![0.0; places.len() * width];
        let mut weights = vec![0.0; d];
        for (places, heard) in places.chunks_exact(d).zip(heard.chunks_exact_mut(d * width)) {
            // Query, key or value (0, 1, 2) of a node in a head.
            let part = |node: usize, which: usize, head: usize| {
                &projected[(3 * places[node] + which) * width + head * depth..][..depth]
            };
            for (node, heard) in heard.chunks_exact_mut(width).enumerate() {
                for (head, heard) in heard.chunks_exact_mut(depth).enumerate() {
                    let query = part(node, 0, head);
                    for (other, weight) in weights.iter_mut().enumerate() {
                        *weight = scale * dot(query, part(other, 1, head));
                    }
                    softmax(&mut weights);
                    for (other, weight) in weights.iter().enumerate() {
                        heard.iter_mut().zip(part(other, 2, head)).for_each(|(sum, value)| *sum += weight * value);
                    }
                }
            }
        }
        let mut out = self.merge.rows(&heard, places.len());
        self.norm_heard.apply(&mut out);
        out
    }
}

impl HostPolicy<BayesianStructure, GraphActionCategorical> for HostNodeAttention {
    fn distribution(&self, env: &BayesianStructure, states: &DagStates) -> gfn::Result<GraphActionCategorical> {
        check_nodes(states, self.n_nodes)?;
        let (n, d, width) = (states.len(), self.n_nodes, self.width);
        let mut local = self.local.borrow_mut();
        let places = self.places(states, &mut local);
        let graphs = self.graphs(states, &places, &local.updates);
        let nodes = self.attention(&places, &local.projected);
        let receivers = self.receivers.forward(nodes.clone(), n * d);
        let senders = self.senders.forward(nodes, n * d);
        let numbers = self.graph_numbers.forward(graphs, n);
        let mut logits = Vec::with_capacity(n * (d * d + 1));
        let of_graphs = senders.chunks_exact(d * width).zip(receivers.chunks_exact(d * width));
        for ((senders, receivers), numbers) in of_graphs.zip(numbers.chunks_exact((numbers.len() / n.max(1)).max(1))) {
            for sender in senders.chunks_exact(width) {
                logits.extend(receivers.chunks_exact(width).map(|receiver| dot(sender, receiver)));
            }
            // The exit's is the first.
            logits.extend(numbers.first());
        }
        GraphActionCategorical::on_host(env.masks(Direction::Forward, states), logits)
    }
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    gfn::tensor::to_host(tensor).into_iter().map(|x| x as f32).collect()
}

/// Adds `values` to the first of `sums`.
fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

fn relu(values: &mut [f32]) {
    // Unlike `max`, this lets NaN through to the check before drawing.
    values.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
}

fn softmax(values: &mut [f32]) {
    let max = values.iter().fold(f32::NEG_INFINITY, |max, &x| max.max(x));
    values.iter_mut().for_each(|x| *x = (*x - max).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|x| *x /= sum);
}

/// In eight sums side by side, which the compiler turns into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}
