use tch::{Device, Kind, Tensor};

use super::{Engine, HostGraphs, TensorGraphs};
use crate::Rng;
use crate::graph::{Edge, GraphBatch, GraphKind, GraphSchema, GraphState, GraphStates};
use crate::nn::host::Packed;

/// Returns random graphs of 0 to 6 nodes, and an isolated node in each graph of at least one node.
fn random_graphs(kind: GraphKind, rng: &mut Rng) -> GraphStates {
    let mut graphs = Vec::new();
    for n in [3u32, 0, 6, 1, 5] {
        let mut graph = GraphState::with_nodes(kind, n as usize);
        for (a, b) in (1..n).flat_map(|a| (1..a).map(move |b| (a, b))) {
            if rng.uniform() < 0.6 {
                graph.add_edge(a, b, Edge::default()).unwrap();
            }
            if kind == GraphKind::Directed && rng.uniform() < 0.3 {
                graph.add_edge(b, a, Edge::default()).unwrap();
            }
        }
        graphs.push(graph);
    }
    GraphStates::from(graphs)
}

/// Returns the index in `values` of each entry of the maximum over neighbours, by a search through all pairs
/// of nodes; `None` if the node has no neighbours.
fn largest_neighbours(states: &GraphStates, values: &[f64], width: usize) -> Vec<Option<usize>> {
    let mut out = Vec::new();
    let mut first = 0;
    for graph in states.graphs() {
        let n = graph.n_nodes();
        for node in 0..n as u32 {
            let neighbours: Vec<u32> = (0..n as u32)
                .filter(|&other| graph.has_edge(node, other) || graph.has_edge(other, node))
                .collect();
            for column in 0..width {
                let entries = neighbours.iter().map(|&other| (first + other as usize) * width + column);
                out.push(entries.max_by(|&a, &b| values[a].total_cmp(&values[b])));
            }
        }
        first += n;
    }
    out
}

/// Compares the maximum over neighbours, and its gradient, with a search through all pairs of nodes.
#[test]
fn the_maximum_over_neighbours_is_that_of_a_search() {
    const WIDTH: usize = 3;
    let rng = &mut Rng::seeded(0);
    for kind in [GraphKind::Directed, GraphKind::Undirected] {
        let states = random_graphs(kind, rng);
        let arrays = states.arrays();
        // All values are negative, so that 0 would be a wrong maximum.
        let values: Vec<f64> = (0..arrays.nodes.len() * WIDTH).map(|_| -1.0 - rng.uniform()).collect();
        let weights: Vec<f64> = values.iter().map(|_| rng.normal()).collect();
        let largest = largest_neighbours(&states, &values, WIDTH);
        assert!(
            largest.iter().any(Option::is_none) && largest.iter().filter(|one| one.is_some()).count() > 9
        );
        let mut expected_gradient = vec![0.0; values.len()];
        for (entry, weight) in largest.iter().zip(&weights) {
            if let Some(entry) = entry {
                expected_gradient[*entry] += weight;
            }
        }
        let expected: Vec<f64> =
            largest.iter().map(|entry| entry.map_or(0.0, |entry| values[entry])).collect();

        let schema = GraphSchema::plain(kind, 6);
        let batch = GraphBatch::new(&schema, arrays, None, Device::Cpu).unwrap();
        let engine = TensorGraphs::new(&batch, Kind::Double);
        let nodes = engine.rows(&values, WIDTH).set_requires_grad(true);
        let most = engine.max_over_neighbours(&nodes);
        (&most * engine.rows(&weights, WIDTH)).sum(Kind::Double).backward();
        let check = |got: &Tensor, expected: &[f64]| {
            let off = (got.view(-1) - Tensor::from_slice(expected)).abs().max().double_value(&[]);
            assert!(off < 1e-6, "{kind:?}: {off}");
        };
        check(&most, &expected);
        check(&nodes.grad(), &expected_gradient);

        let packed = Packed::default();
        let host = HostGraphs::new(arrays, &packed);
        let got = host.max_over_neighbours(&host.rows(&values, WIDTH));
        check(&Tensor::from_slice(&got.values).to_kind(Kind::Double), &expected);
    }
}

/// Checks by hand that equal neighbours share the gradient, each of them once, that a maximum of 0 passes the
/// whole gradient to its neighbours, and that graphs without edges give 0.
#[test]
fn equal_neighbours_share_the_gradient() {
    let mut star = GraphState::undirected(3);
    star.add_edge(0, 1, Edge::default()).unwrap();
    star.add_edge(0, 2, Edge::default()).unwrap();
    let mut both_ways = GraphState::directed(3);
    for (a, b) in [(0, 1), (1, 0), (2, 0)] {
        both_ways.add_edge(a, b, Edge::default()).unwrap();
    }
    let lonely = GraphState::undirected(3);
    for (graph, values, expected, gradient) in [
        (star.clone(), [1.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 0.5, 0.5]),
        (star.clone(), [1.0, 0.0, -1.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0]),
        (star, [1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.5, 0.5]),
        (both_ways, [1.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 0.5, 0.5]),
        (lonely, [1.0, 2.0, 2.0], [0.0; 3], [0.0; 3]),
    ] {
        let kind = graph.kind();
        let states = GraphStates::from(vec![graph]);
        let schema = GraphSchema::plain(kind, 3);
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let engine = TensorGraphs::new(&batch, Kind::Double);
        let nodes = engine.rows(&values, 1).set_requires_grad(true);
        let most = engine.max_over_neighbours(&nodes);
        assert_eq!(Vec::<f64>::try_from(most.view(-1)).unwrap(), expected);
        (&most + &nodes * 0.0).sum(Kind::Double).backward();
        assert_eq!(Vec::<f64>::try_from(nodes.grad().view(-1)).unwrap(), gradient);
    }
}
