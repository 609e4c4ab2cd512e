//! Smallest rings of a graph, and tests of ring sizes.

use gfn::graph::GraphState;

/// Returns a smallest set of smallest rings (Horton, "A polynomial-time algorithm to find the shortest
/// cycle basis of a graph", 1987). Each ring is a list of its atoms in their order around the ring. The
/// graph has `n` atoms, and `bonds` lists those of its bonds that are in rings.
pub(crate) fn smallest_rings(n: usize, bonds: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut candidates: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for_each_ring(usize::MAX, n, bonds, |atoms, ring| {
        candidates.push((atoms, ring));
        true
    });
    candidates.sort_by_key(|(atoms, _)| atoms.len());
    let mut rows = Vec::new();
    candidates.retain(|(_, ring)| is_independent(&mut rows, ring, bonds.len()));
    candidates.into_iter().map(|(atoms, _)| atoms).collect()
}

/// Calls `found` with the atoms and the bonds of each candidate ring of at most `longest` atoms, until
/// `found` returns `false`. If `longest` is `usize::MAX`, the candidates include a smallest set of smallest
/// rings.
fn for_each_ring(
    longest: usize,
    n: usize,
    bonds: &[(usize, usize)],
    mut found: impl FnMut(Vec<usize>, Vec<usize>) -> bool,
) {
    let mut neighbours = vec![Vec::new(); n];
    for (k, &(a, b)) in bonds.iter().enumerate() {
        neighbours[a].push((b, k));
        neighbours[b].push((a, k));
    }
    for root in (0..n).filter(|&a| !neighbours[a].is_empty()) {
        // The tree of shortest paths to the root. Each entry has the next atom and the next bond on the
        // path from an atom to the root.
        let mut back: Vec<Option<(usize, usize)>> = vec![None; n];
        // The neighbour of the root through which the shortest path from each atom leads. The entry is
        // `None` for atoms that haven't been reached.
        let mut branch: Vec<Option<usize>> = vec![None; n];
        branch[root] = Some(root);
        let mut order = vec![(root, 0)];
        let mut next = 0;
        while let Some(&(a, distance)) = order.get(next) {
            next += 1;
            // The length of a ring is the sum of the lengths of two paths to the root, plus 1 for the bond
            // between their starts. Atoms whose distance is half of the largest length therefore need no
            // further steps.
            if 2 * distance >= longest {
                break;
            }
            for &(b, k) in &neighbours[a] {
                if branch[b].is_none() {
                    branch[b] = if a == root { Some(b) } else { branch[a] };
                    back[b] = Some((a, k));
                    order.push((b, distance + 1));
                }
            }
        }
        let way = |mut a: usize| {
            let mut atoms = vec![a];
            let mut on_way = Vec::new();
            while let Some((b, k)) = back[a] {
                atoms.push(b);
                on_way.push(k);
                a = b;
            }
            (atoms, on_way)
        };
        for (k, &(a, b)) in bonds.iter().enumerate() {
            // A bond and the paths from its ends to the root form a ring if the paths meet only at the root.
            // This is the case if the paths lead through different neighbours of the root. All other bonds
            // are skipped, and bonds of atoms that haven't been reached, too.
            if a == root || b == root || branch[a] == branch[b] || branch[a].is_none() || branch[b].is_none()
            {
                continue;
            }
            let ((mut atoms, mut ring), (others, other_bonds)) = (way(a), way(b));
            atoms.extend(others.iter().rev().skip(1));
            ring.push(k);
            ring.extend(other_bonds);
            if atoms.len() <= longest && !found(atoms, ring) {
                return;
            }
        }
    }
}

/// Adds a ring to the independent rings in `rows`. Returns `false` if the ring is a sum of these rings: a
/// bond is in the sum if an odd number of them has it. A row holds the bonds of a ring, or of such a sum, as
/// bits. The leading bond of a row is in no later row.
fn is_independent(rows: &mut Vec<(usize, Vec<u64>)>, ring: &[usize], n_bonds: usize) -> bool {
    let mut row = vec![0u64; n_bonds.div_ceil(64)];
    for bond in ring {
        row[bond / 64] ^= 1 << (bond % 64);
    }
    for (leading, other) in rows.iter() {
        if row[leading / 64] >> (leading % 64) & 1 == 1 {
            for (word, other) in row.iter_mut().zip(other) {
                *word ^= other;
            }
        }
    }
    let leading = row.iter().enumerate().find(|(_, word)| **word != 0);
    let Some((place, word)) = leading else { return false };
    rows.push((64 * place + word.trailing_zeros() as usize, row));
    true
}

/// Returns `true` if the rings of at most `size` nodes generate all cycles of a connected graph: each cycle
/// is a sum of such rings. If `without` is an edge, this edge is removed first. The property means that the
/// largest ring of a minimum cycle basis has at most `size` nodes.
///
/// Closing a ring of at most `size` nodes preserves this property. If the property holds before and after
/// an edge is removed, the edge had closed such a ring. The graphs with this property are therefore exactly
/// those that can be built by closing rings of at most `size` nodes, in any order.
pub(crate) fn small_rings_span(graph: &GraphState, size: usize, without: Option<(u32, u32)>) -> bool {
    let gone = without.map(|(a, b)| (a.min(b), a.max(b)));
    let left = graph.edges().filter(|edge| Some(*edge) != gone);
    let edges: Vec<(usize, usize)> = left.map(|(a, b)| (a as usize, b as usize)).collect();
    let independent = (edges.len() + 1).saturating_sub(graph.n_nodes());
    let mut rows = Vec::new();
    if independent > 0 {
        for_each_ring(size, graph.n_nodes(), &edges, |_, ring| {
            is_independent(&mut rows, &ring, edges.len());
            rows.len() < independent
        });
    }
    graph.n_nodes() == 0 || rows.len() >= independent
}
