//! A smallest set of smallest rings.

use super::Basis;

/// A smallest set of smallest rings, each as its atoms in order (Horton, "A polynomial-time algorithm to find the shortest cycle
/// basis of a graph", 1987); `bonds` are those in rings.
pub(crate) fn smallest_rings(n: usize, bonds: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); n];
    for (k, &(a, b)) in bonds.iter().enumerate() {
        neighbours[a].push((b, k));
        neighbours[b].push((a, k));
    }
    let mut candidates: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for root in (0..n).filter(|&a| !neighbours[a].is_empty()) {
        // The tree of shortest ways to the root: the next atom and bond on it.
        let mut back: Vec<Option<(usize, usize)>> = vec![None; n];
        // Which atom beside the root that way comes by; nothing leads to other components.
        let mut branch: Vec<Option<usize>> = vec![None; n];
        branch[root] = Some(root);
        let mut order = vec![root];
        let mut next = 0;
        while let Some(&a) = order.get(next) {
            next += 1;
            for &(b, k) in &neighbours[a] {
                if branch[b].is_none() {
                    branch[b] = if a == root { Some(b) } else { branch[a] };
                    back[b] = Some((a, k));
                    order.push(b);
                }
            }
        }
        let way = |mut a: usize| {
            let (mut atoms, mut on_way) = (vec![a], Vec::new());
            while let Some((b, k)) = back[a] {
                atoms.push(b);
                on_way.push(k);
                a = b;
            }
            (atoms, on_way)
        };
        for (k, &(a, b)) in bonds.iter().enumerate() {
            // A ring if the ways of both ends meet in the root only: if they come by different atoms beside it. All bonds of
            // the root are part of the ways, as are others within a branch.
            if a == root || b == root || branch[a] == branch[b] {
                continue;
            }
            let ((mut atoms, mut ring), (others, other_bonds)) = (way(a), way(b));
            atoms.extend(others.iter().rev().skip(1));
            ring.push(k);
            ring.extend(other_bonds);
            candidates.push((atoms, ring));
        }
    }
    candidates.sort_by_key(|(atoms, _)| atoms.len());
    let mut basis = Basis::new(bonds.len());
    candidates.retain(|(_, ring)| basis.add(ring.iter().copied()));
    candidates.into_iter().map(|(atoms, _)| atoms).collect()
}
