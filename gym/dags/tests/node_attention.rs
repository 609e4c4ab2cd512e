//! Attention among nodes after a round of messages: what it computes, edge by edge, and that it learns a posterior.

use std::collections::HashMap;

use gfn::distribution::Distribution;
use gfn::env::{Direction, DiscreteEnv, Env, Slots};
use gfn::nn::EstimatorsConfig;
use gfn::nn::GraphNetwork;
use gfn::policy::{GraphPolicy, Policy};
use gfn::quantity::{Quantities, Quantity};
use gfn::{Error, Rng};
use gfn_dags::*;
use tch::{Device, Kind, Tensor};

use crate::edge_transformer::trained;

fn small(env: &BayesianStructure, flow: bool, kind: Kind) -> GraphPolicy<NodeAttention> {
    let config = NodeAttentionConfig { embedding: 16, heads: 2, estimators: EstimatorsConfig::with_flow(flow) };
    GraphPolicy(NodeAttention::new(env, config, Device::Cpu, kind, &mut Rng::seeded(1)).unwrap())
}

/// The network written down as its papers have it, for one graph: a message for each edge, one node after the other.
struct Plain {
    tensors: HashMap<String, Tensor>,
    heads: i64,
}

impl Plain {
    fn linear(&self, name: &str, x: &Tensor) -> Tensor {
        x.linear(&self.tensors[&format!("{name}.weight")], self.tensors.get(&format!("{name}.bias")))
    }

    fn perceptron(&self, layers: [&str; 2], x: &Tensor) -> Tensor {
        self.linear(layers[1], &self.linear(layers[0], x).relu())
    }

    fn update(&self, of: &str, inputs: &[&Tensor]) -> Tensor {
        let layers = ["input", "output"].map(|layer| format!("messages.{of}.{layer}"));
        self.perceptron([&layers[0], &layers[1]], &Tensor::cat(inputs, 0))
    }

    fn head(&self, of: &str, x: &Tensor) -> Tensor {
        self.perceptron([&format!("{of}.0"), &format!("{of}.1")], x)
    }

    fn norm(&self, name: &str, x: &Tensor) -> Tensor {
        let of = |what: &str| &self.tensors[&format!("{name}.{what}")];
        let (x, mean) = (x, x.mean(Kind::Double));
        let centred = x - mean;
        let variance = centred.square().mean(Kind::Double);
        centred / (variance + 1e-5).sqrt() * of("weight") + of("bias")
    }

    /// The logits of edges, `[d, d]`, and what concerns the graph.
    fn forward(&self, d: usize, edges: &[(u32, u32)]) -> (Tensor, Tensor) {
        let embedding = |name: &str| &self.tensors[&format!("messages.{name}.weight")];
        let start: Vec<Tensor> = (0..d).map(|node| embedding("nodes").get(node as i64)).collect();
        let (edge, graph) = (embedding("edge").get(0), embedding("graph").get(0));
        let message =
            |&(i, j): &(u32, u32)| self.update("update_edge", &[&edge, &start[i as usize], &start[j as usize], &graph]);
        let messages: Vec<Tensor> = edges.iter().map(message).collect();
        let sum = |picks: &dyn Fn(&(u32, u32)) -> bool| {
            let picked = edges.iter().zip(&messages).filter(|(edge, _)| picks(edge));
            picked.fold(edge.zeros_like(), |sum, (_, message)| sum + message)
        };
        let updates: Vec<Tensor> = (0..d)
            .map(|node| {
                let (sent, received) = (sum(&|e| e.0 as usize == node), sum(&|e| e.1 as usize == node));
                self.update("update_node", &[&start[node], &sent, &received, &graph])
            })
            .collect();
        let all_nodes = updates.iter().fold(edge.zeros_like(), |sum, update| sum + update);
        let graph_update = self.update("update_graph", &[&all_nodes, &sum(&|_| true), &graph]);
        let nodes: Vec<Tensor> =
            start.iter().zip(&updates).map(|(a, b)| self.norm("messages.norm_nodes", &(a + b))).collect();
        let graph = self.norm("messages.norm_graphs", &(graph + graph_update));

        let project = |node: &Tensor| self.linear("attention.query_key_value", node).view([3, self.heads, -1]);
        let each: Vec<Tensor> = nodes.iter().map(project).collect();
        let nodes: Vec<Tensor> = each
            .iter()
            .map(|hearer| {
                let heads: Vec<Tensor> = (0..self.heads)
                    .map(|head| {
                        let query = hearer.get(0).get(head);
                        let depth = query.size()[0] as f64;
                        let scores: Vec<Tensor> =
                            each.iter().map(|heard| query.dot(&heard.get(1).get(head)) / depth.sqrt()).collect();
                        let weights = Tensor::stack(&scores, 0).softmax(0, None);
                        each.iter().enumerate().fold(query.zeros_like(), |sum, (k, heard)| {
                            sum + weights.get(k as i64) * heard.get(2).get(head)
                        })
                    })
                    .collect();
                self.norm("attention.norm", &self.linear("attention.merge", &Tensor::cat(&heads, 0)))
            })
            .collect();
        let logit = |i: usize, j: usize| self.head("senders", &nodes[i]).dot(&self.head("receivers", &nodes[j]));
        let logits: Vec<Tensor> = (0..d * d).map(|pair| logit(pair / d, pair % d)).collect();
        (Tensor::stack(&logits, 0), self.head("graph", &graph))
    }
}

#[test]
fn it_is_message_passing_edge_by_edge() {
    tch::set_num_threads(1);
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap();
    let policy = small(&env, true, Kind::Double);
    let parameters = policy.0.parameters();
    let tensors = parameters.iter().map(|p| (p.name.clone(), p.tensor.shallow_clone())).collect();
    let plain = Plain { tensors, heads: 2 };
    let complete = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let graphs = [[].as_slice(), &[(0, 1)], &[(1, 0)], &[(0, 1), (2, 1), (3, 0)], &complete];
    let states = crate::graphs(4, &graphs);
    let evaluation = policy.evaluate(&env, &states, None, Quantities::PF | Quantity::LogFlow).unwrap();
    let (pf, log_flow) = (evaluation.pf.unwrap(), evaluation.values.get(Quantity::LogFlow).unwrap());
    let masks = env.masks(Direction::Forward, &states);
    let mut exits = Vec::new();
    for (row, edges) in graphs.iter().enumerate() {
        let (logits, graph) = plain.forward(4, edges);
        let slots: Vec<u32> = masks.legal_slots(row).collect();
        let all = Tensor::cat(&[logits, graph.narrow(0, 0, 1)], 0);
        let picked = all.index_select(0, &Tensor::from_slice(&slots.iter().map(|&s| i64::from(s)).collect::<Vec<_>>()));
        let expected = picked.log_softmax(0, None);
        let got = pf.log_prob(&vec![row; slots.len()], &Slots(slots)).unwrap();
        let worst = (got - &expected).abs().max().double_value(&[]);
        let flow = (log_flow.double_value(&[row as i64]) - graph.double_value(&[1])).abs();
        assert!(worst < 1e-10 && flow < 1e-10, "{row}: {worst}, {flow}");
        exits.push(graph.double_value(&[0]));
    }
    // The graphs do differ to the network, an edge from its reverse too.
    for (i, a) in exits.iter().enumerate() {
        assert!(exits[..i].iter().all(|b| (a - b).abs() > 1e-6), "{exits:?}");
    }
}

#[test]
fn conditions_that_it_does_not_take_are_refused() {
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap();
    let policy = small(&env, false, Kind::Float);
    let with = |columns: i64| {
        let conditions = Tensor::zeros([2, columns], (Kind::Float, Device::Cpu));
        policy.evaluate(&env, &env.initial(&[0; 2]), Some(&conditions), Quantities::PF).map(|_| ())
    };
    assert!(matches!(with(3), Err(Error::Missing { .. })));
    // Constant conditions have no columns.
    with(0).unwrap();
}

#[test]
fn gradients_are_finite_and_reach_all_parameters() {
    tch::set_num_threads(1);
    let env = BayesianStructure::new(StructureConfig::new(4)).unwrap();
    let policy = small(&env, true, Kind::Float);
    let states = crate::graphs(4, &[&[], &[(0, 1), (2, 1)]]);
    let evaluation = policy.evaluate(&env, &states, None, Quantities::PF | Quantity::LogFlow).unwrap();
    let chosen = evaluation.pf.unwrap().log_prob(&[0, 1], &Slots(vec![1, 16])).unwrap();
    (chosen.sum(Kind::Float) + evaluation.values.get(Quantity::LogFlow).unwrap().sum(Kind::Float)).backward();
    for p in policy.0.parameters().iter().filter(|p| p.name != "log_z") {
        let size = f64::try_from(p.tensor.grad().abs().max()).unwrap();
        assert!(size.is_finite() && size > 0.0, "{}: {size}", p.name);
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let env = BayesianStructure::new(StructureConfig::new(3)).unwrap();
    for (embedding, heads) in [(0, 4), (32, 0), (30, 4)] {
        let config = NodeAttentionConfig { embedding, heads, ..NodeAttentionConfig::default() };
        let made = NodeAttention::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0));
        assert!(matches!(made, Err(Error::Config { .. })), "{embedding} {heads}");
    }
    let others = BayesianStructure::new(StructureConfig::new(4)).unwrap();
    let result = small(&env, false, Kind::Float).evaluate(&others, &others.initial(&[0; 2]), None, Quantities::PF);
    assert!(matches!(result, Err(Error::Shape { .. })));
}

#[test]
fn it_learns_a_posterior() {
    let [before, after] = trained(|env| small(env, false, Kind::Float));
    assert!(before > 0.1 && after < 0.02, "{before} {after}");
}
