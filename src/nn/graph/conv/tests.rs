//! Tests of rounds of message passing: rounds are compared with their formulas, and the host engine with
//! tensors.

mod golden;
mod products;

use tch::{Device, Kind};

use super::*;
use crate::Rng;
use crate::graph::{Attributes, Edge, GraphBatch, GraphState, GraphStates, Node};
use crate::nn::graph::engine::{HostGraphs, TensorGraphs};
use crate::nn::graph::features::{Counts, Labels, NodeFeatures};
use crate::nn::host::{Mirror, Packed};
use crate::nn::{GraphNetConfig, JumpingKnowledge, MessagePassing, Parameters, Torso};

const WIDTH: i64 = 6;
/// All kinds of convolution, each with one or two kinds of norm.
const CONVS: [(ConvKind, NormKind); 10] = [
    (ConvKind::Gin, NormKind::Layer),
    (ConvKind::Gin, NormKind::Graph),
    (ConvKind::GinVirtual, NormKind::Layer),
    (ConvKind::Gine, NormKind::Layer),
    (ConvKind::Directed, NormKind::Layer),
    (ConvKind::Directed, NormKind::None),
    (ConvKind::Gat { heads: 2 }, NormKind::Layer),
    (ConvKind::Gat { heads: 3 }, NormKind::Graph),
    (ConvKind::Gps { heads: 2 }, NormKind::Layer),
    (ConvKind::Gps { heads: 3 }, NormKind::Graph),
];

fn schema(kind: GraphKind) -> GraphSchema {
    GraphSchema {
        node_classes: 2,
        node_attributes: vec![2],
        edge_classes: 2,
        edge_attributes: vec![2],
        ..GraphSchema::plain(kind, 6)
    }
}

/// Applies a norm to the node embeddings of each graph separately.
fn normalise(norm: &Norm, batch: &GraphBatch<'_>, x: &Tensor) -> Tensor {
    match norm {
        Norm::Layer(norm) => norm.forward(x),
        Norm::None => x.shallow_clone(),
        Norm::Graph(norm) => {
            let graphs = batch.arrays.node_ptr.windows(2).filter(|ends| ends[0] < ends[1]).map(|ends| {
                let rows = x.narrow(0, ends[0] as i64, (ends[1] - ends[0]) as i64);
                let mean = |x: &Tensor| x.mean_dim([0i64].as_slice(), true, None);
                let centred = &rows - mean(&rows) * &norm.mean_scale;
                &norm.weight * &centred / (mean(&centred.square()) + GraphNorm::EPS).sqrt() + &norm.bias
            });
            Tensor::cat(&graphs.collect::<Vec<_>>(), 0)
        }
    }
}

/// Computes [`WholeAttention`] by its formula, node by node and head by head.
fn naive_whole_attention(
    whole: &WholeAttention,
    batch: &GraphBatch<'_>,
    nodes: &Tensor,
    local: &Tensor,
) -> Tensor {
    let projected = [&whole.query, &whole.key, &whole.value].map(|layer| layer.forward(nodes));
    let depth = nodes.size()[1] / whole.heads as i64;
    let mut each = Vec::new();
    for ends in batch.arrays.node_ptr.windows(2) {
        for i in ends[0]..ends[1] {
            let heads = (0..whole.heads as i64).map(|head| {
                let [query, key, value] = [0, 1, 2].map(|which: usize| {
                    let projected = &projected[which];
                    move |node: usize| projected.get(node as i64).narrow(0, head * depth, depth)
                });
                let scores = (ends[0]..ends[1]).map(|j| query(i).dot(&key(j)) / (depth as f64).sqrt());
                let weights = Tensor::stack(&scores.collect::<Vec<_>>(), 0).softmax(0, None);
                let terms = (ends[0]..ends[1]).map(|j| weights.get((j - ends[0]) as i64) * value(j));
                terms.fold(query(i).zeros_like(), |sum, term| sum + term)
            });
            each.push(Tensor::cat(&heads.collect::<Vec<_>>(), 0));
        }
    }
    let attended = normalise(&whole.norm, batch, &(nodes + whole.output.forward(&Tensor::stack(&each, 0))));
    let sum = attended + local;
    let fed = whole.feed.1.forward(&whole.feed.0.forward(&sum).relu());
    normalise(&whole.norm_feed, batch, &(sum + fed))
}

/// Computes a round of message passing by its formula, node by node and message by message.
fn naive_round(conv: &Conv, batch: &GraphBatch<'_>, nodes: &Tensor) -> Tensor {
    let edges = Vec::<Vec<i64>>::try_from(batch.edge_index()).unwrap();
    let row = |node: usize| nodes.get(node as i64);
    let linear = |layer: &Linear, x: &Tensor| layer.forward(&x.unsqueeze(0)).squeeze_dim(0);
    let each = (0..batch.arrays.nodes.len()).map(|i| {
        // Lists the messages whose sender (`end` = 0) or receiver (`end` = 1) is node `i`. Returns the node
        // at the other end and the index of each of these messages.
        let received = |end: usize| -> Vec<(usize, usize)> {
            let messages = (0..edges[0].len()).filter(|&m| edges[end][m] == i as i64);
            messages.map(|m| (edges[1 - end][m] as usize, m)).collect()
        };
        let incoming = received(1);
        let outgoing = received(0);
        let sum = |terms: Vec<Tensor>| terms.iter().fold(row(i).zeros_like(), |sum, term| sum + term);
        // An undirected edge is listed as two messages, so the incoming messages already include both
        // directions.
        let neighbours = || incoming.iter().chain(outgoing.iter().filter(|_| batch.arrays.is_directed()));
        let inner = match &conv.messages {
            Messages::Gin { inner, eps, whole } => {
                let mapped = |x: &Tensor| linear(inner, x);
                let received = mapped(&row(i)) * (eps + 1.0)
                    + sum(neighbours().map(|&(j, _)| mapped(&row(j))).collect());
                let ptr = &batch.arrays.node_ptr;
                let graph = ptr.windows(2).find(|ends| (ends[0]..ends[1]).contains(&i)).unwrap();
                let total = || sum((graph[0]..graph[1]).map(row).collect());
                let n = (graph[1] - graph[0]) as f64;
                whole.as_ref().map_or_else(
                    || received.shallow_clone(),
                    |whole| &received + linear(whole, &Tensor::cat(&[total() / n, total() / n.sqrt()], 0)),
                )
            }
            Messages::Gine { inner, eps, edges, against } => {
                let engine = TensorGraphs::new(batch, Kind::Double);
                let sent = edges.forward(&engine, batch.arrays.messages_per_edge());
                let along = incoming.iter().map(|&(j, m)| (row(j) + sent.get(m as i64)).relu());
                let row = &row;
                let sent = &sent;
                let back = against.iter().flat_map(|against| {
                    outgoing.iter().map(move |&(j, m)| (row(j) + sent.get(m as i64) + against).relu())
                });
                linear(inner, &(row(i) * (eps + 1.0) + sum(along.chain(back).collect())))
            }
            Messages::Directed { own, incoming: from, outgoing: to } => {
                linear(own, &row(i))
                    + sum(incoming.iter().map(|&(j, _)| linear(from, &row(j))).collect())
                    + sum(outgoing.iter().map(|&(j, _)| linear(to, &row(j))).collect())
            }
            Messages::Gat { to, from, scores, edges, against, itself } => {
                let engine = TensorGraphs::new(batch, Kind::Double);
                let edge_vectors = edges.forward(&engine, batch.arrays.messages_per_edge());
                let mut sent: Vec<(Tensor, Tensor)> = incoming
                    .iter()
                    .map(|&(j, m)| (linear(from, &row(j)), edge_vectors.get(m as i64)))
                    .collect();
                if let Some(against) = against {
                    let vector = |m: usize| edge_vectors.get(m as i64) + against;
                    sent.extend(outgoing.iter().map(|&(j, m)| (linear(from, &row(j)), vector(m))));
                }
                sent.push((linear(from, &row(i)), itself.get(0)));
                let size = scores.size();
                let heads = (0..size[0]).map(|head| {
                    let part = |x: &Tensor| x.narrow(0, head * size[1], size[1]);
                    let score = |(x, edge): &(Tensor, Tensor)| {
                        let sum = part(&(linear(to, &row(i)) + x + edge));
                        scores.get(head).dot(&sum.where_self(&sum.ge(0.0), &(&sum * 0.2)))
                    };
                    let weights =
                        Tensor::stack(&sent.iter().map(score).collect::<Vec<_>>(), 0).softmax(0, None);
                    let terms = sent.iter().enumerate().map(|(k, (x, _))| weights.get(k as i64) * part(x));
                    terms.fold(part(&itself.get(0)).zeros_like(), |sum, term| sum + term)
                });
                Tensor::cat(&heads.collect::<Vec<_>>(), 0)
            }
        };
        row(i) + linear(&conv.output, &inner.relu())
    });
    let local = normalise(&conv.norm, batch, &Tensor::stack(&each.collect::<Vec<_>>(), 0));
    match &conv.attention {
        Some(whole) => naive_whole_attention(whole, batch, nodes, &local),
        None => local,
    }
}

/// Returns the states of a trajectory that adds one edge per step, followed by a graph of two nodes. The
/// first state is a graph without nodes.
fn trajectory(kind: GraphKind) -> GraphStates {
    let node = |k: u8| Node { class: u16::from(k % 2), attributes: Attributes::new(&[k / 2]).unwrap() };
    let mut graph = GraphState::from_parts(kind, &[0, 1, 0, 1, 2, 0].map(node), &[]).unwrap();
    let mut graphs = vec![GraphState::new(kind), graph.clone()];
    let edges = [(0, 1, 0), (2, 3, 0), (1, 2, 1), (4, 1, 2), (0, 4, 0), (3, 5, 2)];
    for (a, b, value) in edges {
        let edge = Edge { class: value % 2, attributes: Attributes::new(&[(value / 2) as u8]).unwrap() };
        graph.add_edge(a, b, edge).unwrap();
        graphs.push(graph.clone());
    }
    graphs.push(GraphState::from_parts(kind, &[node(0), node(3)], &[]).unwrap());
    graphs.into()
}

#[test]
fn rounds_with_shared_rows_agree_with_formulas() {
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        let schema = schema(kind);
        let states = trajectory(kind);
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let labels = [vec![], vec![0, 1], (0..6).collect(), vec![0, 2, 0, 3]].map(Labels);
        let label_cases = labels.iter().map(|labels| (labels, Counts::default()));
        let counts = [(true, 0), (false, 3)].map(|(degrees, closed_walks)| Counts { degrees, closed_walks });
        let feature_cases = label_cases.chain(counts.map(|counts| (&labels[1], counts)));
        for ((conv, norm), (labels, counts)) in
            CONVS.into_iter().flat_map(|conv| feature_cases.clone().map(move |features| (conv, features)))
        {
            let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
            let rng = &mut Rng::seeded(1);
            let mut scope = parameters.scope(rng);
            let config = GraphNetConfig {
                embedding: WIDTH,
                degrees: counts.degrees,
                closed_walks: (counts.closed_walks > 0).then_some(counts.closed_walks),
                ..GraphNetConfig::default()
            };
            let features = NodeFeatures::new(&mut scope.sub("features"), &schema, labels, &config);
            let layer = |k| Conv::new(&mut scope.sub(&format!("conv{k}")), conv, norm, &schema, WIDTH);
            let convs: Vec<Conv> = (0..3).map(layer).collect();
            let n = batch.arrays.nodes.len() as i64;

            let engine = TensorGraphs::new(&batch, Kind::Double);
            let rounds = MessageRounds::new(&engine, &Plan::new(&features, &convs));
            let start = features.forward(&engine, &rounds.features);
            let layers = convs.iter().zip(&rounds.rounds);
            let mut rows = vec![start.size()[0]];
            let shared = layers.fold(start, |x, (conv, round)| {
                let x = conv.forward(&engine, round, &x);
                rows.push(x.size()[0]);
                x
            });
            let shared = rounds.expand_to_nodes(&engine, &shared);
            // Before the first round some nodes share a row of values. After this round some still do, unless
            // node values depend on the whole graph or on counts of neighbours or walks. The number of rows
            // never decreases from round to round, and is at most the number of nodes.
            let shares_rows = rows[1] < n || convs[0].reads_whole_graph() || counts != Counts::default();
            assert!(shares_rows && rows[0] < n && rows.is_sorted() && rows[3] <= n, "{rows:?} of {n}");

            let all = features.forward(&engine, &(0..n as usize).collect::<Vec<_>>());
            let naive = convs.iter().fold(all, |x, conv| naive_round(conv, &batch, &x));
            let off = (&shared - &naive).abs().max().double_value(&[]);
            assert!(off < 1e-12, "{kind:?}, {conv:?}, {norm:?}, {labels:?}: {off}");

            let weights =
                Tensor::from_slice(&(0..n * WIDTH).map(|k| (k as f64 * 0.3).cos()).collect::<Vec<_>>());
            let gradients = |output: &Tensor| -> Tensor {
                (output.view(-1) * &weights).sum(Kind::Double).backward();
                let each = parameters.iter().map(|p| {
                    let mut gradient = p.tensor.grad();
                    let copy = gradient.copy().view(-1);
                    let _ = gradient.zero_();
                    copy
                });
                Tensor::cat(&each.collect::<Vec<_>>(), 0)
            };
            let got = gradients(&shared);
            let expected = gradients(&naive);
            let off = (&got - &expected).abs().max().double_value(&[]);
            assert!(
                off < 1e-11 && expected.abs().max().double_value(&[]) > 0.1,
                "{kind:?}, {conv:?}, {norm:?}, {labels:?}: {off}"
            );
        }
    }
}

#[test]
fn host_rounds_agree_with_tensors() {
    let labels = Labels(vec![0, 2, 0, 3]);
    for (kind, (conv, norm)) in [GraphKind::Directed, GraphKind::Undirected]
        .into_iter()
        .flat_map(|kind| CONVS.map(|conv| (kind, conv)))
    {
        let schema = schema(kind);
        let states = trajectory(kind);
        let rng = &mut Rng::seeded(2);
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let mut scope = parameters.scope(rng);
        let config = GraphNetConfig {
            embedding: WIDTH,
            degrees: true,
            closed_walks: Some(2),
            ..GraphNetConfig::default()
        };
        let features = NodeFeatures::new(&mut scope.sub("features"), &schema, &labels, &config);
        let convs = ["0", "1", "2"].map(|name| Conv::new(&mut scope.sub(name), conv, norm, &schema, WIDTH));
        // An initial weight of 0 or 1 would hide that an engine omits this weight, so all weights are
        // changed.
        for parameter in &parameters {
            let values: Vec<f64> = (0..parameter.tensor.numel()).map(|_| rng.normal()).collect();
            let noise = Tensor::from_slice(&values).view(&parameter.tensor.size()[..]).to_kind(Kind::Float);
            tch::no_grad(|| parameter.tensor.shallow_clone().copy_(&(&parameter.tensor + 0.1 * noise)));
        }
        fn run<E: Engine>(engine: &E, features: &NodeFeatures, convs: &[Conv]) -> E::Rows {
            let rounds = MessageRounds::new(engine, &Plan::new(features, convs));
            let start = features.forward(engine, &rounds.features);
            let layers = convs.iter().zip(&rounds.rounds);
            let last = layers.fold(start, |x, (conv, round)| conv.forward(engine, round, &x));
            rounds.expand_to_nodes(engine, &last)
        }
        let expected = run(&TensorGraphs::new(&batch, Kind::Float), &features, &convs);
        let on_host = |mirror: Mirror| {
            let packed = Packed::new(mirror);
            run(&HostGraphs::new(states.arrays(), &packed), &features, &convs)
        };
        let rows = on_host(Mirror::default());
        let got = Tensor::from_slice(&rows.values).view([-1, rows.width as i64]);
        assert_eq!(got.size(), expected.size());
        let off = (got - expected).abs().max().double_value(&[]);
        assert!(off < 1e-5, "{kind:?}, {conv:?}, {norm:?}: {off}");
        // Copies from a mirror of the parameters are the same, bit for bit. A mirror that is older than the
        // last update gives the old values.
        assert_eq!(on_host(Mirror::new(&parameters)).values, rows.values);
        let old = Mirror::new(&parameters);
        for parameter in &parameters {
            let _ = tch::no_grad(|| parameter.tensor.shallow_clone().g_add_scalar_(0.25));
        }
        assert_eq!(on_host(old).values, rows.values);
        let updated = on_host(Mirror::default()).values;
        assert!(updated != rows.values && on_host(Mirror::new(&parameters)).values == updated);
    }
}

/// Compares the derivative of a weighted sum of outputs, along a random direction of all parameters, with a
/// finite difference.
#[test]
fn gradients_agree_with_finite_differences() {
    for (kind, (conv, norm)) in [GraphKind::Directed, GraphKind::Undirected]
        .into_iter()
        .flat_map(|kind| CONVS.map(|conv| (kind, conv)))
    {
        let schema = schema(kind);
        let states = trajectory(kind);
        let rng = &mut Rng::seeded(7);
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let config = GraphNetConfig {
            conv,
            norm,
            embedding: WIDTH,
            degrees: true,
            closed_walks: Some(2),
            jumping: JumpingKnowledge::Concat,
            ..GraphNetConfig::default()
        };
        let torso = MessagePassing::new(&mut parameters.scope(rng), &schema, &Labels(vec![0, 1]), &config);
        let mut normal = |tensor: &Tensor| {
            let values: Vec<f64> = (0..tensor.numel()).map(|_| rng.normal()).collect();
            Tensor::from_slice(&values).view(&tensor.size()[..])
        };
        let directions: Vec<Tensor> = parameters.iter().map(|p| normal(&p.tensor)).collect();
        let engine = TensorGraphs::new(&batch, Kind::Double);
        let embedded = torso.embed(&engine, None).unwrap();
        let weights = [normal(&embedded.nodes), normal(&embedded.graphs)];
        let sum = || {
            let embedded = torso.embed(&engine, None).unwrap();
            (embedded.nodes * &weights[0]).sum(Kind::Double)
                + (embedded.graphs * &weights[1]).sum(Kind::Double)
        };
        sum().backward();
        let slopes = parameters.iter().zip(&directions).map(|(p, d)| (p.tensor.grad() * d).sum(Kind::Double));
        let slope: f64 = slopes.map(|slope| slope.double_value(&[])).sum();
        let step = |size: f64| {
            for (parameter, direction) in parameters.iter().zip(&directions) {
                let _ = tch::no_grad(|| parameter.tensor.shallow_clone().g_add_(&(direction * size)));
            }
        };
        let h = 1e-6;
        step(h);
        let above = sum().double_value(&[]);
        step(-2.0 * h);
        let difference = (above - sum().double_value(&[])) / (2.0 * h);
        assert!(
            (slope - difference).abs() < 1e-5 * slope.abs().max(1.0) && slope.abs() > 0.1,
            "{conv:?}, {norm:?}: {slope}, {difference}"
        );
    }
}
