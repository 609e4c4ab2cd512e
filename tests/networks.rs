//! Tests of properties that every graph network must have: equivariance, independence of the other graphs in
//! the batch, correct results for unusual sizes, and outputs that depend on every input.

use crate::nets::{
    CONVS, KINDS, SeesLabels, all, blocks, config, configs, difference, everything, everything_under, net,
    random_graph,
};
use gfn::distribution::GraphActionCategorical;
use gfn::env::Direction;
use gfn::env::StateGraph;
use gfn::graph::{
    Anchor, Edge, GraphBatch, GraphEnv, GraphKind, GraphState, GraphStates, Move, Node, Semantics,
};
use gfn::nn::{
    BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, JumpingKnowledge, MlpConfig,
    NormKind, Parameters,
};
use gfn::nn::{GraphNetwork, NetworkOutput};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, GraphPolicy, Policy};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use tch::{Device, Kind};

/// Relabels the nodes of a graph: node `a` becomes node `names[a]`.
fn relabel(graph: &GraphState, names: &[u32]) -> GraphState {
    let mut nodes = vec![Node::default(); names.len()];
    for (a, node) in graph.nodes().enumerate() {
        nodes[names[a] as usize] = node;
    }
    let edges = graph.edges().map(|(a, b)| (names[a as usize], names[b as usize], graph.edge(a, b).unwrap()));
    GraphState::from_parts(graph.kind(), &nodes, &edges.collect::<Vec<_>>()).unwrap()
}

fn permutation(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut out: Vec<u32> = (0..n as u32).collect();
    for k in (1..n).rev() {
        out.swap(k, rng.below(k + 1));
    }
    out
}

fn evaluate(
    env: &GraphEnv,
    net: &impl GraphNetwork,
    graphs: &[GraphState],
) -> Evaluation<GraphActionCategorical> {
    tch::no_grad(|| GraphPolicy(net).evaluate(env, &GraphStates::from(graphs.to_vec()), None, all())).unwrap()
}

/// Returns the slot of an action after relabelling. `slot` is its slot in `graph`, before relabelling.
fn renamed_slot(
    env: &GraphEnv,
    direction: Direction,
    pair: (&GraphState, &GraphState),
    names: &[u32],
    slot: u32,
) -> u32 {
    let (kind, action_type, action) = env.actions().decode(direction, pair.0, slot).unwrap();
    let name = |a: u32| names[a as usize];
    let (a, b) = match action_type.head(direction).unwrap().anchor {
        Anchor::Graph => (action.a, action.b),
        Anchor::Node => (name(action.a), action.b),
        Anchor::Edge | Anchor::NodePair => (name(action.a), name(action.b)),
    };
    let pairs = !matches!(action_type.head(direction).unwrap().anchor, Anchor::Graph | Anchor::Node);
    let (a, b) = if pairs && !pair.0.is_directed() { (a.min(b), a.max(b)) } else { (a, b) };
    env.actions().encode(direction, pair.1, kind, Move { a, b, ..action }).unwrap()
}

/// Relabels random graphs. Returns the largest resulting change of log F and of an action's log-probability.
fn change_by_relabelling(env: &GraphEnv, net: &impl GraphNetwork, rng: &mut Rng) -> f64 {
    let mut largest: f64 = 0.0;
    for n in [1, 2, 3, 5, 7] {
        let graph = random_graph(env.schema().kind, n, 0.4, rng);
        let names = permutation(n, rng);
        let other = relabel(&graph, &names);
        let mine = evaluate(env, net, std::slice::from_ref(&graph));
        let theirs = evaluate(env, net, std::slice::from_ref(&other));
        largest = largest.max(difference(
            mine.values.get(Quantity::LogFlow).unwrap(),
            theirs.values.get(Quantity::LogFlow).unwrap(),
        ));
        for (direction, mine, theirs) in
            [(Direction::Forward, mine.pf, theirs.pf), (Direction::Backward, mine.pb, theirs.pb)]
        {
            let mine = mine.unwrap();
            let theirs = theirs.unwrap();
            assert!(!mine.legal_slots().is_empty());
            assert_eq!(mine.legal_slots().len(), theirs.legal_slots().len());
            for (&slot, p) in mine.legal_slots().iter().zip(mine.host_log_probs().unwrap()) {
                let slot = renamed_slot(env, direction, (&graph, &other), &names, slot);
                let place = theirs.legal_slots().binary_search(&slot).unwrap();
                largest = largest.max((p - theirs.host_log_probs().unwrap()[place]).abs());
            }
        }
    }
    largest
}

#[test]
fn relabelling_a_graph_permutes_its_slots() {
    for (kind, config) in
        KINDS.iter().flat_map(|&kind| configs().into_iter().map(move |config| (kind, config)))
    {
        let env = everything(kind, 8);
        let conv = config.conv;
        for pair_walks in [None, Some(2)] {
            let net = net(&env, GraphNetConfig { pair_walks, ..config.clone() }, Kind::Float);
            let change = change_by_relabelling(&env, &net, &mut Rng::seeded(5));
            assert!(change < 1e-5, "{kind:?} {conv:?} {pair_walks:?}: {change}");
        }
        // As a negative control, the output of a network that sees labels must change. A network that was
        // built for labelled graphs must be refused.
        let seeing = SeesLabels::new(net(&env, config.clone(), Kind::Float), &env);
        let change = change_by_relabelling(&env, &seeing, &mut Rng::seeded(5));
        assert!(change > 1e-2, "{kind:?} {conv:?}: {change}");
        let labelled = net(&everything_under(Semantics::Labelled, kind, 8), config.clone(), Kind::Float);
        let policy = GraphPolicy(labelled);
        let graph = GraphState::with_nodes(kind, 2);
        assert!(policy.evaluate(&env, &vec![graph].into(), None, all()).is_err());
    }
}

#[test]
fn state_graphs_find_networks_equivariant_unless_they_see_labels() {
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let graph = StateGraph::build(&env, 1000).unwrap();
    for conv in CONVS {
        let net = net(&env, GraphNetConfig { pair_walks: Some(1), ..config(conv) }, Kind::Double);
        graph.check_equivariance(&env, &GraphPolicy(&net), None, 100, &mut Rng::seeded(1)).unwrap();
        let result = graph.check_equivariance(
            &env,
            &GraphPolicy(SeesLabels::new(&net, &env)),
            None,
            100,
            &mut Rng::seeded(1),
        );
        assert!(matches!(result, Err(Error::Contract { .. })), "{conv:?}");
    }
}

#[test]
fn batch_mates_change_nothing() {
    for (kind, config) in
        KINDS.iter().flat_map(|&kind| configs().into_iter().map(move |config| (kind, config)))
    {
        let env = everything(kind, 40);
        let conv = config.conv;
        // If two nodes are nearly equal, a graph norm amplifies rounding errors, so these networks are tested
        // in double precision.
        let floats = if config.norm == NormKind::Graph { Kind::Double } else { Kind::Float };
        let net = net(&env, GraphNetConfig { pair_walks: Some(2), ..config }, floats);
        let mut rng = Rng::seeded(7);
        // The first batch has graphs of very different sizes. The second has many graphs of one size, for
        // which the network arranges its matrix products differently.
        for sizes in [vec![1, 40, 2, 0, 9, 17, 5, 5, 33], vec![5; 30]] {
            let graphs: Vec<GraphState> =
                sizes.iter().map(|&n| random_graph(kind, n, 3.0 / (n as f64 + 1.0), &mut rng)).collect();
            let together = evaluate(&env, &net, &graphs);
            for (g, graph) in graphs.iter().enumerate() {
                let alone = evaluate(&env, &net, std::slice::from_ref(graph));
                let flows = (
                    together.values.get(Quantity::LogFlow).unwrap(),
                    alone.values.get(Quantity::LogFlow).unwrap(),
                );
                let change = (flows.0.double_value(&[g as i64]) - flows.1.double_value(&[0])).abs();
                assert!(change < 1e-5, "{kind:?} {conv:?} {g}: log F by {change}");
                for (alone, together) in [(alone.pf, &together.pf), (alone.pb, &together.pb)] {
                    let alone = alone.unwrap();
                    let together = together.as_ref().unwrap();
                    let range = together.legal_offsets()[g]..together.legal_offsets()[g + 1];
                    assert_eq!(alone.legal_slots(), &together.legal_slots()[range.clone()]);
                    let pairs = alone
                        .host_log_probs()
                        .unwrap()
                        .iter()
                        .zip(&together.host_log_probs().unwrap()[range]);
                    let change = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(change < 1e-5, "{kind:?} {conv:?} {g}: {change}");
                }
            }
        }
    }
}

#[test]
fn graphs_without_nodes_or_edges_have_finite_logits_of_the_right_shape() {
    for (kind, config) in
        KINDS.iter().flat_map(|&kind| configs().into_iter().map(move |config| (kind, config)))
    {
        let env = everything(kind, 5);
        let conv = config.conv;
        let empty = GraphState::new(kind);
        let bare = GraphState::with_nodes(kind, 3);
        let full = random_graph(kind, 4, 1.0, &mut Rng::seeded(0));
        let batches = [
            vec![],
            vec![empty.clone()],
            vec![empty.clone(); 3],
            vec![bare.clone()],
            vec![empty, bare, full],
        ];
        for (floats, global, layers) in
            [(Kind::Float, true, 2), (Kind::Double, false, 1), (Kind::Double, true, 0)]
        {
            let net =
                net(&env, GraphNetConfig { pair_walks: Some(1), global, layers, ..config.clone() }, floats);
            for graphs in &batches {
                // The shapes of the logits needn't be checked here, because the constructor of distributions
                // refuses wrong shapes.
                let found = evaluate(&env, &net, graphs);
                let flow = found.values.get(Quantity::LogFlow).unwrap();
                assert_eq!((flow.size(), flow.kind()), (vec![graphs.len() as i64], floats));
                let dists = [found.pf.unwrap(), found.pb.unwrap()];
                for dist in dists {
                    let log_probs = dist.host_log_probs().unwrap();
                    assert!(log_probs.iter().all(|p| p.is_finite() && *p <= 0.0), "{kind:?} {conv:?}");
                    assert_eq!(dist.len(), graphs.len());
                }
            }
        }
    }
}

/// A network with a function that changes the network's output.
struct ChangedOutput(GraphNet, fn(&mut NetworkOutput));

impl GraphNetwork for ChangedOutput {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        let mut output = self.0.forward(batch, wants)?;
        (self.1)(&mut output);
        Ok(output)
    }
    fn sees_symmetry(&self, direction: Direction) -> Option<gfn::graph::SymmetryCount> {
        self.0.sees_symmetry(direction)
    }
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }
}

#[test]
fn wrong_shapes_are_refused_with_the_action_types_name() {
    let env = everything(GraphKind::Undirected, 4);
    type Tamper = fn(&mut NetworkOutput);
    let cases: [(Tamper, &str); 4] = [
        (|out| out.pf.as_mut().unwrap().truncate(2), "list of logit blocks"),
        (
            |out| out.pf.as_mut().unwrap()[1] = out.pf.as_ref().unwrap()[1].narrow(0, 0, 8),
            "add_edge (forward)",
        ),
        (
            |out| out.pf.as_mut().unwrap()[0] = out.pf.as_ref().unwrap()[0].repeat([1, 2]),
            "add_node (forward)",
        ),
        (|out| out.pb.as_mut().unwrap()[1] = out.pb.as_ref().unwrap()[1].view([-1]), "add_edge (backward)"),
    ];
    let states = GraphStates::from(vec![random_graph(GraphKind::Undirected, 3, 1.0, &mut Rng::seeded(0)); 2]);
    for (tamper, named) in cases {
        let policy = GraphPolicy(ChangedOutput(net(&env, config(ConvKind::Gin), Kind::Float), tamper));
        let error = policy.evaluate(&env, &states, None, all()).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }) && error.to_string().contains(named), "{error}");
    }
    let policy = GraphPolicy(ChangedOutput(net(&env, config(ConvKind::Gin), Kind::Float), |_| {}));
    policy.evaluate(&env, &states, None, all()).unwrap();
}

/// Checks that a network's copy on the host gives the same log-probabilities as the network itself, which
/// computes with tensors. A network that has no implementation on the host must return `None`.
#[test]
fn frozen_networks_give_what_networks_give() {
    let rng = &mut Rng::seeded(8);
    let labels = [Semantics::Labelled, Semantics::UpToIsomorphism];
    for (kind, semantics) in KINDS.into_iter().flat_map(|kind| labels.map(|semantics| (kind, semantics))) {
        let env = everything_under(semantics, kind, 7);
        let sizes = [3, 0, 1, 7, 5, 2];
        let graphs: Vec<_> = sizes.iter().map(|&n| random_graph(kind, n, 0.4, rng)).collect();
        // The batch has enough graphs to be evaluated on several threads.
        let states = GraphStates::from(vec![graphs; 12].concat());
        let walks = GraphNetConfig { pair_walks: Some(2), ..config(ConvKind::Gin) };
        let makes = [
            config(ConvKind::Gin),
            GraphNetConfig { backward: BackwardPolicy::SharedTorso, ..walks.clone() },
            GraphNetConfig { layers: 0, global: false, ..walks },
        ];
        let of_convs =
            CONVS.into_iter().flat_map(|conv| makes.clone().map(|make| GraphNetConfig { conv, ..make }));
        for make in of_convs.chain(configs()) {
            let net = net(&env, make.clone(), Kind::Float);
            let conv = make.conv;
            // The weights are changed, because initial values of 0 or 1 would hide terms that are missing in
            // the network's copy on the host.
            let shaken: Vec<_> = net.parameters().iter().map(|p| p.tensor.shallow_clone()).collect();
            tch::no_grad(|| {
                for mut tensor in shaken {
                    let size = tensor.size();
                    let noise: Vec<f32> = (0..tensor.numel()).map(|_| 0.1 * rng.normal() as f32).collect();
                    tensor += tch::Tensor::from_slice(&noise).view(&size[..]);
                }
            });
            let policy = GraphPolicy(&net);
            for direction in [Direction::Forward, Direction::Backward] {
                let frozen = Policy::<GraphEnv>::on_host(&policy, direction);
                assert_eq!(frozen.is_none(), matches!(conv, ConvKind::Transformer { .. }), "{conv:?}");
                let Some(frozen) = frozen else { continue };
                let got = frozen.distribution(&env, &states).unwrap();
                let wants = if direction == Direction::Forward { Quantities::PF } else { Quantities::PB };
                let evaluation = tch::no_grad(|| policy.evaluate(&env, &states, None, wants)).unwrap();
                let expected = evaluation.pf.or(evaluation.pb).unwrap();
                assert_eq!(got.legal_slots(), expected.legal_slots());
                let offsets = expected.legal_offsets().to_vec();
                let got = got.host_log_probs().unwrap();
                let expected = expected.host_log_probs().unwrap();
                let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-4, "{kind:?}, {conv:?}, {make:?}, {direction:?}: {off}");
                // The test makes sense only if probabilities differ. The spread is measured within each
                // state, where it is 0 for a uniform policy.
                let spreads = offsets.windows(2).map(|ends| {
                    let of_state = expected[ends[0]..ends[1]].iter().copied();
                    of_state.clone().fold(f64::NEG_INFINITY, f64::max)
                        - of_state.fold(f64::INFINITY, f64::min)
                });
                let spread = spreads.fold(0.0, f64::max);
                assert!(spread > 0.1, "all alike: {spread}");
                let none = frozen.distribution(&env, &GraphStates::from(Vec::new())).unwrap();
                assert!(none.legal_slots().is_empty());
            }
        }
        // The layer that passes the graph's embedding to nodes is set to NaN. The NaN must be detected when
        // log-probabilities are computed from the logits.
        let broken = net(&env, config(ConvKind::Gin), Kind::Float);
        for parameter in broken.parameters().iter().filter(|p| p.name.starts_with("torso.global")) {
            let _ = tch::no_grad(|| parameter.tensor.shallow_clone().fill_(f64::NAN));
        }
        let policy = GraphPolicy(&broken);
        let frozen = Policy::<GraphEnv>::on_host(&policy, Direction::Forward).unwrap();
        assert!(frozen.distribution(&env, &states).unwrap().host_log_probs().is_err());
        let double = net(&env, config(ConvKind::Gin), Kind::Double);
        assert!(double.on_host(Direction::Forward).is_none());
        let uniform = GraphNetConfig { backward: BackwardPolicy::Uniform, ..config(ConvKind::Gin) };
        assert!(net(&env, uniform, Kind::Float).on_host(Direction::Backward).is_none());
    }
}

/// Returns the logit of the exit, which depends only on the embedding of the whole graph.
fn exit_logit(env: &GraphEnv, net: &GraphNet, graph: &GraphState) -> f64 {
    let pf = blocks(env, net, std::slice::from_ref(graph), None).pf.unwrap();
    pf.last().unwrap().double_value(&[0, 0])
}

#[test]
fn edge_classes_attributes_and_directions_enter_where_they_should() {
    let env = everything(GraphKind::Directed, 4);
    let nodes = [Node::from_class(0), Node::from_class(1), Node::from_class(0)];
    let graph = |a, b, edge| GraphState::from_parts(GraphKind::Directed, &nodes, &[(a, b, edge)]).unwrap();
    let plain = graph(0, 1, Edge::default());
    let mut marked = Edge::default();
    marked.attributes.set(0, 2);
    let cases = [
        ("class", graph(0, 1, Edge::from_class(1)), [false, false, true, false, true, true, true]),
        ("attribute", graph(0, 1, marked), [false, false, true, false, true, true, true]),
        ("direction", graph(1, 0, Edge::default()), [false, false, true, true, true, true, true]),
        ("presence", GraphState::from_parts(GraphKind::Directed, &nodes, &[]).unwrap(), [true; 7]),
    ];
    for config in configs() {
        // A norm over the nodes of a graph must not make the mean over the nodes constant, so the exit's
        // logit must change with an edge.
        let net = net(&env, config.clone(), Kind::Double);
        let change = (exit_logit(&env, &net, &plain) - exit_logit(&env, &net, &cases[3].1)).abs();
        assert!(change > 1e-4, "{config:?}: {change}");
    }
    for (what, other, enters) in cases {
        for (conv, enters) in CONVS.into_iter().zip(enters) {
            let net = net(&env, GraphNetConfig { layers: 1, ..config(conv) }, Kind::Double);
            let change = (exit_logit(&env, &net, &plain) - exit_logit(&env, &net, &other)).abs();
            assert_eq!(change > 1e-6, enters, "{what} {conv:?}: {change}");
        }
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let env = everything(GraphKind::Directed, 4);
    let scaled = EstimatorsConfig { logit_scale: Some(MlpConfig::default()), ..EstimatorsConfig::default() };
    let transformer = config(ConvKind::Transformer { heads: 4 });
    let cases = [
        (GraphNetConfig { embedding: 0, ..GraphNetConfig::default() }, "embedding is 0"),
        (
            GraphNetConfig { estimators: EstimatorsConfig::conditional(-1), ..GraphNetConfig::default() },
            "n_conditions is -1",
        ),
        (GraphNetConfig { estimators: scaled, ..GraphNetConfig::default() }, "n_conditions is 0"),
        (GraphNetConfig { embedding: 10, ..config(ConvKind::Transformer { heads: 4 }) }, "heads is 4"),
        (config(ConvKind::Transformer { heads: 0 }), "heads is 0"),
        (config(ConvKind::Gat { heads: 5 }), "heads is 5"),
        (config(ConvKind::Gps { heads: -1 }), "heads is -1"),
        (
            GraphNetConfig { norm: NormKind::Graph, ..transformer.clone() },
            "norm and jumping is Graph and Last",
        ),
        (
            GraphNetConfig { jumping: JumpingKnowledge::Max, ..transformer },
            "norm and jumping is Layer and Max",
        ),
    ];
    for (config, named) in cases {
        let error = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap_err();
        assert!(error.to_string().starts_with(named), "{error}");
    }
}
