//! Attention is compared with the outputs of PyTorch Geometric.

use tch::{Device, Kind};

use super::*;

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// The two nodes and the class of each edge.
type EdgesOfClass = Vec<(u32, u32, u16)>;

#[derive(serde::Deserialize)]
struct Case {
    conv: ConvKind,
    norm: NormKind,
    directed: bool,
    edge_classes: usize,
    graphs: Vec<(usize, EdgesOfClass)>,
    width: i64,
    parameters: std::collections::HashMap<String, Vec<f64>>,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// Compares attention with the outputs of PyTorch Geometric in `golden/convolutions.json`.
#[test]
fn attention_agrees_with_pytorch_geometric() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/convolutions.json"));
    for case in serde_json::from_str::<Golden>(text).unwrap().cases {
        let kind = if case.directed { GraphKind::Directed } else { GraphKind::Undirected };
        let schema = GraphSchema { edge_classes: case.edge_classes, ..GraphSchema::plain(kind, 4) };
        let graph = |(n, edges): &(usize, Vec<(u32, u32, u16)>)| {
            let edges: Vec<_> = edges.iter().map(|&(a, b, class)| (a, b, Edge::from_class(class))).collect();
            GraphState::from_parts(kind, &vec![Node::default(); *n], &edges).unwrap()
        };
        let states = GraphStates::from(case.graphs.iter().map(graph).collect::<Vec<_>>());
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let conv =
            Conv::new(&mut parameters.scope(&mut Rng::seeded(1)), case.conv, case.norm, &schema, case.width);
        assert_eq!(parameters.iter().count(), case.parameters.len());
        for parameter in &parameters {
            let values =
                Tensor::from_slice(&case.parameters[&parameter.name]).view(&parameter.tensor.size()[..]);
            tch::no_grad(|| parameter.tensor.shallow_clone().copy_(&values));
        }
        let engine = TensorGraphs::new(&batch, Kind::Double);
        // The stored values have a row for each node. If `reads_whole_graph` is set, nodes with equal values
        // share rows only before the first round. So the second of two rounds, to which each node brings a
        // separate row, is tested.
        let plan = Plan {
            labels: Labels::default(),
            counts: Counts::default(),
            rounds: 2,
            messages: conv.message_kind(),
            reads_whole_graph: true,
        };
        let rounds = MessageRounds::new(&engine, &plan);
        let got =
            conv.forward(&engine, &rounds.rounds[1], &Tensor::from_slice(&case.x).view([-1, case.width]));
        let off = (got.view(-1) - Tensor::from_slice(&case.y)).abs().max().double_value(&[]);
        assert!(off < 1e-12, "{:?}, {:?}: {off}", case.conv, case.norm);
    }
}
