use super::blocks::Blocks;
use super::partition::Labelled;
use super::search::Symmetry;
use crate::molecule::Molecule;

/// A molecule as a tree of atoms and parts, rooted at its centre, with a number for all that is alike.
pub(in crate::molecule) struct Tree {
    parts: Vec<Part>,
    /// The parts below each atom, those that are alike beside each other.
    below: Vec<Vec<usize>>,
    /// Atoms (`0..n`) and parts (`n..`), the root first, each behind what it hangs on.
    nodes: Vec<usize>,
    /// The same for subtrees that are the same graph, of nodes equally far from the root.
    rank: Vec<u32>,
}

/// A ring system, or a bond that is in no ring.
pub(in crate::molecule) struct Part {
    /// Its atoms.
    pub(in crate::molecule) atoms: Vec<usize>,
    /// Which of them it hangs on; `None` if it is the root.
    pub(in crate::molecule) hangs_on: Option<usize>,
    /// Its symmetry, with all that hangs on its atoms; the atom that it hangs on stays in place.
    pub(in crate::molecule) symmetry: Symmetry,
}

impl Tree {
    /// The tree of a molecule whose atoms have `labels` and whose bonds have classes of at most 3; `None` where some part is so
    /// symmetric that searching it takes too long.
    pub(in crate::molecule) fn new(molecule: &Molecule, labels: &[u32], class: impl Fn(usize) -> u8) -> Option<Self> {
        let (n, blocks) = (molecule.atoms().len(), Blocks::new(molecule));
        let beside = |node: usize| -> &[usize] { if node < n { &blocks.of[node] } else { &blocks.atoms[node - n] } };
        let other_kind = |node: usize, k: usize| if node < n { n + k } else { k };
        let root = centre(n + blocks.atoms.len(), |node| beside(node).iter().map(move |&k| other_kind(node, k)));
        let mut up = vec![usize::MAX; n + blocks.atoms.len()];
        let (mut nodes, mut levels, mut begin) = (vec![root], Vec::new(), 0);
        while begin < nodes.len() {
            let end = nodes.len();
            levels.push(begin..end);
            for place in begin..end {
                let (node, above) = (nodes[place], up[nodes[place]]);
                for next in beside(node).iter().map(|&k| other_kind(node, k)).filter(|&next| next != above) {
                    up[next] = node;
                    nodes.push(next);
                }
            }
            begin = end;
        }
        let mut below: Vec<Vec<usize>> = (0..n).map(|a| blocks.of[a].clone()).collect();
        below.iter_mut().enumerate().for_each(|(a, parts)| parts.retain(|&k| n + k != up[a]));
        let mut rank = vec![0; nodes.len()];
        let mut symmetries: Vec<Option<Symmetry>> = blocks.atoms.iter().map(|_| None).collect();
        let mut local = vec![0; n];
        for level in levels.into_iter().rev() {
            let mut codes = Vec::with_capacity(level.len());
            for &node in &nodes[level] {
                if node < n {
                    below[node].sort_by_key(|&k| rank[n + k]);
                    let parts = below[node].iter().map(|&k| rank[n + k]);
                    codes.push((std::iter::once(labels[node]).chain(parts).collect(), node));
                    continue;
                }
                let atoms = &blocks.atoms[node - n];
                let label = |a: usize| if up[node] == a { 0 } else { rank[a] + 1 };
                let symmetry = Symmetry::new(&graph_of(molecule, atoms, &mut local, label, &class))?;
                codes.push((symmetry.certificate.clone(), node));
                symmetries[node - n] = Some(symmetry);
            }
            number(codes, &mut rank);
        }
        let parts = blocks.atoms.into_iter().zip(symmetries).enumerate().map(|(k, (atoms, symmetry))| {
            let hangs_on = atoms.iter().position(|&a| a == up[n + k]);
            Some(Part { atoms, hangs_on, symmetry: symmetry? })
        });
        let parts = parts.collect::<Option<_>>()?;
        Some(Self { parts, below, nodes, rank })
    }

    fn n_atoms(&self) -> usize {
        self.below.len()
    }

    /// The atoms in canonical order: the same labelled graph for all molecules that are the same.
    pub(in crate::molecule) fn order(&self) -> Vec<u32> {
        let n = self.n_atoms();
        let mut order = Vec::with_capacity(n);
        let mut stack = vec![self.nodes[0]];
        while let Some(node) = stack.pop() {
            if node < n {
                order.push(node as u32);
                stack.extend(self.below[node].iter().rev().map(|&k| n + k));
                continue;
            }
            let part = &self.parts[node - n];
            let free = part.symmetry.order.iter().rev().filter(|&&k| Some(k as usize) != part.hangs_on);
            stack.extend(free.map(|&k| part.atoms[k as usize]));
        }
        order
    }

    /// The number of automorphisms, if it is within `u64`, and its logarithm.
    pub(in crate::molecule) fn automorphisms(&self) -> (Option<u64>, f64) {
        let of_parts = self.parts.iter().flat_map(|part| part.symmetry.orbits.iter().copied());
        // Parts that are alike and hang on one atom change places.
        let swaps = (0..self.n_atoms()).flat_map(|a| self.alike(a)).flat_map(|(_, times)| 2..=times as u64);
        let factors: Vec<u64> = of_parts.chain(swaps).collect();
        let product = factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor));
        (product, factors.iter().map(|&factor| (factor as f64).ln()).sum())
    }

    /// One of each kind of part below an atom, and how often that kind is there.
    fn alike(&self, atom: usize) -> impl Iterator<Item = (usize, usize)> {
        let same = |a: &usize, b: &usize| self.rank[self.n_atoms() + a] == self.rank[self.n_atoms() + b];
        self.below[atom].chunk_by(same).map(|parts| (parts[0], parts.len()))
    }

    /// Counts decorations of the molecule that no automorphism takes to one another: `of_part` counts those of a part, given for each
    /// of its atoms how many there are of all that hangs on it. `None` where it gives none, or beyond `u64`.
    pub(in crate::molecule) fn count(&self, of_part: impl Fn(&Part, &[u64]) -> Option<u64>) -> Option<u64> {
        let n = self.n_atoms();
        let mut counts = vec![1u64; self.nodes.len()];
        for &node in self.nodes.iter().rev() {
            counts[node] = if node < n {
                let kinds = self.alike(node).map(|(k, times)| multisets(counts[n + k], times as u64));
                kinds.into_iter().try_fold(1u64, |product, count| product.checked_mul(count?))?
            } else {
                let part = &self.parts[node - n];
                let own = |(k, &a): (usize, &usize)| if Some(k) == part.hangs_on { 1 } else { counts[a] };
                of_part(part, &part.atoms.iter().enumerate().map(own).collect::<Vec<_>>())?
            };
        }
        Some(counts[self.nodes[0]])
    }
}

/// How many ways there are to take `times` of `kinds` things, each as often as one likes.
fn multisets(kinds: u64, times: u64) -> Option<u64> {
    let mut out = 1u128;
    for k in 0..u128::from(times) {
        out = out.checked_mul(u128::from(kinds) + k)? / (k + 1);
    }
    out.try_into().ok()
}

/// The middle of a tree whose leaves are all an even number of steps apart, so that there is one.
fn centre<I: Iterator<Item = usize>>(n: usize, beside: impl Fn(usize) -> I) -> usize {
    let mut degree: Vec<usize> = (0..n).map(|a| beside(a).count()).collect();
    let mut outer: Vec<usize> = (0..n).filter(|&a| degree[a] <= 1).collect();
    let mut last = 0;
    while !outer.is_empty() {
        last = outer[0];
        let mut inner = Vec::new();
        for a in outer {
            degree[a] = 0;
            for b in beside(a) {
                degree[b] = degree[b].saturating_sub(1);
                if degree[b] == 1 {
                    inner.push(b);
                }
            }
        }
        outer = inner;
    }
    last
}

/// Numbers nodes by their codes, from 0.
fn number(mut codes: Vec<(Vec<u32>, usize)>, rank: &mut [u32]) {
    codes.sort_unstable();
    let mut next = 0;
    for k in 0..codes.len() {
        next += u32::from(k > 0 && codes[k - 1].0 != codes[k].0);
        rank[codes[k].1] = next;
    }
}

/// A part as a graph of its own.
fn graph_of(
    molecule: &Molecule,
    atoms: &[usize],
    local: &mut [u32],
    label: impl Fn(usize) -> u32,
    class: impl Fn(usize) -> u8,
) -> Labelled {
    // Places from 1, and 0 again for all when the part is done.
    atoms.iter().zip(1..).for_each(|(&a, k)| local[a] = k);
    let neighbours = |a: usize| {
        let bonds = molecule.bonds_at(a).iter().map(|&k| (local[molecule.bonds()[k].other(a)], k));
        bonds.filter(|&(b, _)| b > 0).map(|(b, k)| (b - 1, class(k))).collect()
    };
    let beside = atoms.iter().map(|&a| neighbours(a)).collect();
    let labels = atoms.iter().map(|&a| label(a)).collect();
    atoms.iter().for_each(|&a| local[a] = 0);
    Labelled { labels, beside }
}
