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
/// `found` returns `false`. A candidate consists of a bond and of the shortest paths from its ends to an
/// atom, the root. If `longest` is `usize::MAX`, the candidates include a smallest set of smallest rings.
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
        // The shortest paths from all atoms to the atom `root`. The entry of an atom has the next atom and
        // the next bond on its path to `root`.
        let mut back: Vec<Option<(usize, usize)>> = vec![None; n];
        // For each atom, the neighbour of `root` through which the atom's shortest path to `root` leads. The
        // entry is `None` for atoms that haven't been reached.
        let mut branch: Vec<Option<usize>> = vec![None; n];
        branch[root] = Some(root);
        let mut order = vec![(root, 0)];
        let mut next = 0;
        while let Some(&(a, distance)) = order.get(next) {
            next += 1;
            // A ring consists of two paths to `root` and of the bond between their first atoms. The lengths
            // of the two paths differ by at most 1, so a path longer than `longest / 2` isn't needed.
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
            // A bond and the shortest paths from its ends to the atom `root` form a ring if the paths meet
            // only there. This is the case if the paths lead through different neighbours of `root`. All
            // other bonds are skipped, also those of atoms that have no path to `root` within the limit on
            // the ring's size.
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
/// bond is in the sum if an odd number of them has it. Each row represents a ring or a sum of rings by one
/// bit per bond, together with the index of the first of its bonds. No later row has this first bond.
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
