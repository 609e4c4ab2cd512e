use super::GraphState;
pub(crate) fn log_automorphisms_of(graphs: &[GraphState], _fixed: usize) -> Vec<f64> {
    vec![0.0; graphs.len()]
}
