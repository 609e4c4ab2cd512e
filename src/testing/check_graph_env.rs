use super::broken;
use super::check_env::{check_env, visited_states};
use crate::env::{Direction, DiscreteEnv};
use crate::graph::{BackwardRule, GraphEnv, GraphSchema, GraphState, derived_backward};
use crate::{Result, Rng};

/// Checks a graph environment: all of [`check_env`], and what only graphs have.
///
/// - Graphs keep to the schema: kind, number of nodes, classes, attributes.
/// - Every graph is reachable by what the environment says of it.
/// - Backward masks that are given by type ([`BackwardRule::ByType`]) are those that derivation finds.
///
/// ```
/// use gfn::{testing::{check_graph_env, Triangles}, Rng};
/// check_graph_env(&Triangles::new(), 20, &mut Rng::seeded(0))?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`](crate::Error::Contract) naming the check and the state.
pub fn check_graph_env<G: GraphEnv>(env: &G, n: usize, rng: &mut Rng) -> Result<()> {
    let mut walks = rng.clone();
    check_env(env, n, rng)?;
    // The same walks as those of `check_env`.
    let visited = visited_states(env, n, &mut walks)?;
    let backward = env.masks(Direction::Backward, &visited);
    for (row, graph) in visited.graphs().iter().enumerate() {
        check_schema(env.schema(), graph)?;
        if !env.is_reachable(graph) {
            return Err(broken("`is_reachable` holds for every graph that forward moves build", format!("{graph:?}")));
        }
        if env.backward_rule() == BackwardRule::ByType && derived_backward(env, graph) != backward.row(row) {
            let detail = format!(
                "{graph:?}: by type {:?}, derived {:?}",
                backward.legal_slots(row).collect::<Vec<_>>(),
                derived_backward(env, graph)
            );
            return Err(broken("backward masks by type are those that undoing each move finds", detail));
        }
    }
    Ok(())
}

fn check_schema(schema: &GraphSchema, graph: &GraphState) -> Result<()> {
    let fits = |values: &[u8], most: &[u8]| {
        values.iter().enumerate().all(|(k, &value)| value <= most.get(k).copied().unwrap_or(0))
    };
    let nodes = graph.nodes().all(|node| {
        usize::from(node.class) < schema.node_classes && fits(node.attributes.values(), &schema.node_attributes)
    });
    let edges = graph.edges().filter_map(|(a, b)| graph.edge(a, b)).all(|edge| {
        usize::from(edge.class) < schema.edge_classes && fits(edge.attributes.values(), &schema.edge_attributes)
    });
    if graph.kind() == schema.kind && graph.n_nodes() <= schema.max_nodes && nodes && edges {
        return Ok(());
    }
    Err(broken("graphs keep to the environment's schema", format!("{graph:?}, {schema:?}")))
}
