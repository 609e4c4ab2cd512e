//! Maximal cliques of graphs of at most 64 nodes.

use gfn::graph::GraphState;

/// Returns the neighbours of a node as a set of bits. A single word is enough, because graphs have at most 64
/// nodes.
pub(super) fn neighbours(graph: &GraphState, a: usize) -> u64 {
    graph.adjacency().bits(a).map_or(0, |words| words[0])
}

/// Calls `found` with every maximal clique that contains all nodes of `chosen` and otherwise only nodes of
/// `candidates`. Cliques that a node of `excluded` could extend aren't maximal and are left out. The
/// algorithm is that of Bron and Kerbosch (1973) with pivoting.
pub(super) fn maximal_cliques(
    graph: &GraphState,
    chosen: u64,
    candidates: u64,
    excluded: u64,
    found: &mut impl FnMut(u64),
) {
    if candidates | excluded == 0 {
        if chosen != 0 {
            found(chosen);
        }
        return;
    }
    let mut candidates = candidates;
    let mut excluded = excluded;
    let pivot = bits(candidates | excluded).max_by_key(|&a| (neighbours(graph, a) & candidates).count_ones());
    let skipped = pivot.map_or(0, |a| neighbours(graph, a));
    for a in bits(candidates & !skipped) {
        let near = neighbours(graph, a);
        maximal_cliques(graph, chosen | 1 << a, candidates & near, excluded & near, found);
        candidates &= !(1 << a);
        excluded |= 1 << a;
    }
}

/// Returns the indices of the set bits of a word, ascending.
pub(super) fn bits(word: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
        .take_while(|rest| *rest != 0)
        .map(|rest| rest.trailing_zeros() as usize)
}
