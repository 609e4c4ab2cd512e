use std::collections::HashMap;

use gfn::Result;
use gfn::env::Rows;
use gfn::graph::{GraphState, GraphStates};
use rayon::prelude::*;

use crate::{Ancestry, NodeSet};

/// The largest number of sets of nodes that are visited for a graph.
const MAX_SETS: usize = 1 << 20;

/// Returns the logarithm of the number of orders of the nodes in which all edges of a graph lead from earlier
/// to later nodes (its linear extensions). Returns `None` if more than a million sets of nodes would have to
/// be visited, or for more than 64 nodes.
///
/// Orders of each connected part are counted from the front: the number of orders of a set that is closed
/// under parents is the sum, over its nodes without children in the set, of the number without the node. The
/// orders of the parts are then merged in all ways.
///
/// ```
/// use gfn_dags::{acyclic, log_linear_extensions};
/// let log_count = log_linear_extensions(&acyclic(3, &[(0, 1), (0, 2)])?)?;
/// assert!(log_count.is_some_and(|log| (log - 2f64.ln()).abs() < 1e-12));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// Errors of [`Ancestry::from_graph`].
pub fn log_linear_extensions(graph: &GraphState) -> Result<Option<f64>> {
    let ancestry = Ancestry::from_graph(graph)?;
    let n = graph.n_nodes();
    if n > 64 {
        return Ok(None);
    }
    let parents: Vec<u64> = (0..n).map(|node| ancestry.parents(node).bits()).collect();
    let log_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    let mut log_count = log_factorial(n);
    for part in connected_parts(&parents) {
        let Some(count) = count_orders(&parents, part) else { return Ok(None) };
        log_count += count.ln() - log_factorial(part.count_ones() as usize);
    }
    Ok(Some(log_count))
}

/// Returns the sets of nodes of the connected parts of a graph.
fn connected_parts(parents: &[u64]) -> Vec<u64> {
    let mut parts: Vec<u64> = Vec::new();
    for (node, of_node) in parents.iter().enumerate() {
        // The node joins itself, its parents, and all parts that have one of them.
        let mut part = of_node | 1 << node;
        parts.retain(|other| {
            let is_apart = other & part == 0;
            if !is_apart {
                part |= other;
            }
            is_apart
        });
        parts.push(part);
    }
    parts
}

/// Counts the orders of the nodes of a part; `None` if more than `MAX_SETS` sets would be visited.
fn count_orders(parents: &[u64], part: u64) -> Option<f64> {
    let mut counts = HashMap::from([(0u64, 1f64)]);
    let mut visited = 0;
    for _ in 0..part.count_ones() {
        let mut longer = HashMap::with_capacity(counts.len());
        for (set, count) in counts {
            for node in NodeSet::from_bits(part & !set).iter().filter(|&node| parents[node] & !set == 0) {
                *longer.entry(set | 1 << node).or_insert(0.0) += count;
            }
            if visited + longer.len() > MAX_SETS {
                return None;
            }
        }
        visited += longer.len();
        counts = longer;
    }
    counts.into_values().next()
}

/// Returns a weight for each graph that corrects samples of an [`OrderChain`](crate::OrderChain): the inverse
/// of the graph's number of linear extensions, divided by the largest of these. Returns `None` if the
/// linear extensions of a graph are too many to count ([`log_linear_extensions`]).
///
/// # Errors
/// Errors of [`log_linear_extensions`].
pub fn order_weights(states: &GraphStates) -> Result<Option<Vec<f64>>> {
    let groups = states.group();
    let log_count = |&row: &usize| log_linear_extensions(&states.graphs()[row]);
    let logs = groups.first.par_iter().map(log_count).collect::<Result<Option<Vec<f64>>>>()?;
    let Some(logs) = logs else { return Ok(None) };
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Some(groups.group_of.iter().map(|&group| (least - logs[group]).exp()).collect()))
}
