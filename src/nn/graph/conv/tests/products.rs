//! Tests of sums over neighbours that are computed as matrix products.

use super::*;

/// Checks that a graph convolution that sums over neighbours by matrix products gives the same values and
/// gradients as a direct sum. The batch has an empty graph, a small graph, and graphs with so many edges that
/// products are used.
#[test]
fn matrix_products_agree_with_formulas() {
    for (kind, conv) in [GraphKind::Directed, GraphKind::Undirected]
        .into_iter()
        .flat_map(|kind| [ConvKind::Gin, ConvKind::GinVirtual].map(|conv| (kind, conv)))
    {
        let schema = GraphSchema::plain(kind, 50);
        let mut graphs = Vec::new();
        for n in [40, 0, 45, 3] {
            let mut graph = GraphState::with_nodes(kind, n);
            let pairs = (0..n as u32).flat_map(|b| (0..n as u32).map(move |a| (a, b)));
            for (a, b) in pairs
                .filter(|&(a, b)| (a * a + 3 * b) % 4 != 0 && (a < b || a > b && kind == GraphKind::Directed))
            {
                graph.add_edge(a, b, Edge::default()).unwrap();
            }
            graphs.push(graph);
        }
        let states = GraphStates::from(graphs);
        let batch = GraphBatch::new(&schema, states.arrays(), None, Device::Cpu).unwrap();
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let conv =
            Conv::new(&mut parameters.scope(&mut Rng::seeded(1)), conv, NormKind::Layer, &schema, WIDTH);
        let n = batch.arrays.nodes.len() as i64;
        let rows = Tensor::from_slice(&(0..n * WIDTH).map(|k| (k as f64 * 0.7).sin()).collect::<Vec<_>>());
        let rows = rows.view([n, WIDTH]).set_requires_grad(true);
        let engine = TensorGraphs::new(&batch, Kind::Double);
        assert!(engine.sums_over_neighbours());
        let plan = Plan {
            labels: Labels::default(),
            counts: Counts::default(),
            rounds: 1,
            messages: conv.message_kind(),
            reads_whole_graph: true,
        };
        let rounds = MessageRounds::new(&engine, &plan);
        assert_eq!(rounds.features.len() as i64, n);
        let dense = conv.forward(&engine, &rounds.rounds[0], &rows);
        let naive = naive_round(&conv, &batch, &rows);
        let off = (&dense - &naive).abs().max().double_value(&[]);
        assert!(off < 1e-11, "{kind:?}: {off}");
        let weights = (Tensor::arange(n * WIDTH, (Kind::Double, Device::Cpu)) * 0.3).cos().view([n, WIDTH]);
        let gradient = |output: &Tensor| {
            let gradient =
                Tensor::f_run_backward(&[(output * &weights).sum(Kind::Double)], &[&rows], true, false)
                    .unwrap();
            gradient[0].shallow_clone()
        };
        let off = (gradient(&dense) - gradient(&naive)).abs().max().double_value(&[]);
        assert!(off < 1e-10, "{kind:?}: {off}");
    }
}
