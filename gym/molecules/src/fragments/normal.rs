//! Normal forms and automorphisms of trees of fragments, up to the symmetries of the fragments.

use gfn::Result;
use gfn::graph::GraphState;

use super::tree::{Tree, arc};
use super::{Fragment, FragmentLibrary};

/// The normal form of a tree of fragments, up to isomorphism and the symmetries of the fragments.
pub(super) struct Normal {
    /// The symmetry that the normal form applies to each node's fragment, as an index of the fragment's list
    /// of symmetries.
    pub(super) turns: Vec<usize>,
    /// The natural logarithm of the number of automorphisms: permutations of the nodes combined with
    /// symmetries of their fragments.
    log_automorphisms: f64,
}

/// A subtree whose root is attached to another fragment, or the whole tree. The branch is described by a list
/// of numbers, its code. The symmetry of the root's fragment is chosen so that this code is the smallest.
pub(super) struct Branch {
    /// A code that identifies the branch: two branches have the same code exactly if they are equal. No
    /// code is a proper prefix of another code.
    pub(super) code: Vec<u16>,
    /// The symmetry that is applied to the root's fragment, as an index of the fragment's list of symmetries.
    turn: usize,
    log_automorphisms: f64,
}

impl Normal {
    /// Finds the normal form of a tree for which [`check`](Tree::check) found no error. The normal form
    /// applies a symmetry to each fragment, such that the code of the tree, written from its centre, is the
    /// smallest.
    ///
    /// The method is the isomorphism test of rooted trees by Aho, Hopcroft and Ullman (1974). The code of a
    /// branch consists of its root's fragment, the root's stem that is attached to the parent, and the
    /// subtrees with their stems in order. Among the symmetries of the fragment, one that gives the
    /// smallest code is chosen. The number of automorphisms is the number of symmetries that give this
    /// code, times the number of permutations of equal subtrees on the same stem. If the centre of the tree
    /// is a bond, the tree is written from both ends of the bond, so that the result doesn't depend on the
    /// order of the nodes.
    pub(super) fn new(library: &FragmentLibrary, tree: &Tree) -> Self {
        let mut turns = vec![0; tree.fragments.len()];
        let mut branch = |node, parent| turned(library, tree, node, parent, &mut turns);
        let log_automorphisms = match centre(tree)[..] {
            [] => 0.0,
            [a, b] => {
                let one = branch(a, Some(b));
                let other = branch(b, Some(a));
                let swap = if one.code == other.code { 2f64.ln() } else { 0.0 };
                one.log_automorphisms + other.log_automorphisms + swap
            }
            [node, ..] => branch(node, None).log_automorphisms,
        };
        Self { turns, log_automorphisms }
    }

    /// Returns the natural logarithm of |Aut(tree)| / prod |Aut(fragment)|. The training target is corrected
    /// for symmetries by this quotient.
    pub(super) fn log_symmetry(&self, library: &FragmentLibrary, tree: &Tree) -> f64 {
        let own = tree.fragments.iter().map(|&k| (library.fragments()[k].n_symmetries() as f64).ln());
        self.log_automorphisms - own.sum::<f64>()
    }
}

/// Applies symmetries to the fragments of a graph, so that the graph gets its normal form. Returns the
/// index of each fragment's symmetry, or an error if the graph isn't a tree of fragments.
pub(super) fn normalise(library: &FragmentLibrary, graph: &mut GraphState) -> Result<Vec<usize>> {
    let tree = Tree::from_graph(graph);
    tree.check(library, graph)?;
    let turns = Normal::new(library, &tree).turns;
    let turn = |node: usize, stem: u8| {
        library.fragments()[tree.fragments[node]].symmetries()[turns[node]][usize::from(stem)]
    };
    for (node, links) in tree.links.iter().enumerate() {
        for link in links {
            let stem = turn(node, link.stem);
            let other = turn(link.to, link.other_stem);
            if (stem, other) != (link.stem, link.other_stem) {
                graph.set_edge(node as u32, link.to as u32, arc(stem, other))?;
            }
        }
    }
    Ok(turns)
}

/// Returns the centre of a tree. If all leaves of the tree are removed repeatedly, one node or two bonded
/// nodes remain; these are the centre.
fn centre(tree: &Tree) -> Vec<usize> {
    let mut degree: Vec<usize> = tree.links.iter().map(Vec::len).collect();
    let mut left = degree.len();
    let mut leaves: Vec<usize> = (0..left).filter(|&a| degree[a] <= 1).collect();
    while left > 2 {
        left -= leaves.len();
        let mut next = Vec::new();
        for &leaf in &leaves {
            for link in &tree.links[leaf] {
                // The neighbour may be a leaf that was removed before. Its degree is 0 then, and must not
                // become negative.
                degree[link.to] = degree[link.to].saturating_sub(1);
                if degree[link.to] == 1 {
                    next.push(link.to);
                }
            }
            degree[leaf] = 0;
        }
        leaves = next;
    }
    leaves
}

fn turned(
    library: &FragmentLibrary,
    tree: &Tree,
    node: usize,
    parent: Option<usize>,
    turns: &mut [usize],
) -> Branch {
    let fragment = &library.fragments()[tree.fragments[node]];
    let mut log_automorphisms = 0.0;
    let mut hangs_on = None;
    let mut branches: Vec<(u8, Vec<u16>)> = Vec::new();
    for link in &tree.links[node] {
        if Some(link.to) == parent {
            hangs_on = Some(link.stem);
            continue;
        }
        let branch = turned(library, tree, link.to, Some(node), turns);
        log_automorphisms += branch.log_automorphisms;
        branches.push((link.stem, branch.code));
    }
    let branch = Branch::new(fragment, tree.fragments[node], hangs_on, branches, log_automorphisms);
    turns[node] = branch.turn;
    branch
}

impl Branch {
    /// Creates a branch from its root and its subtrees.
    ///
    /// `fragment` is the fragment of the root, and `place` is its index in the library. `hangs_on` is the
    /// root's stem that is attached to another fragment. Each entry of `branches` has the root's stem that
    /// a subtree is attached to, and the code of this subtree. `log_automorphisms` is the natural logarithm
    /// of the product of the subtrees' numbers of automorphisms.
    pub(super) fn new(
        fragment: &Fragment,
        place: usize,
        hangs_on: Option<u8>,
        mut branches: Vec<(u8, Vec<u16>)>,
        mut log_automorphisms: f64,
    ) -> Self {
        branches.sort_unstable();
        // Each code is replaced by its rank among the distinct codes, because small numbers are faster to
        // compare than lists.
        let mut codes: Vec<&Vec<u16>> = branches.iter().map(|(_, code)| code).collect();
        codes.sort_unstable();
        codes.dedup();
        let kinds: Vec<(u8, usize)> = branches
            .iter()
            .map(|(stem, code)| (*stem, codes.partition_point(|other| *other < code)))
            .collect();
        let mut best: Option<(u8, Vec<(u8, usize)>)> = None;
        let mut ways = 0usize;
        let mut chosen = 0;
        for (k, symmetry) in fragment.symmetries().iter().enumerate() {
            let turn = |stem: u8| symmetry[usize::from(stem)];
            let mut images: Vec<(u8, usize)> = kinds.iter().map(|&(stem, kind)| (turn(stem), kind)).collect();
            images.sort_unstable();
            let word = (hangs_on.map_or(0, |stem| turn(stem) + 1), images);
            match best.as_ref().map(|best| word.cmp(best)) {
                Some(std::cmp::Ordering::Greater) => {}
                Some(std::cmp::Ordering::Equal) => ways += 1,
                _ => {
                    (best, ways) = (Some(word), 1);
                    chosen = k;
                }
            }
        }
        let (hangs_on, images) = best.unwrap_or_default();
        for same in images.chunk_by(|a, b| a == b) {
            log_automorphisms += (1..=same.len()).map(|k| (k as f64).ln()).sum::<f64>();
        }
        let mut code = vec![place as u16, u16::from(hangs_on), images.len() as u16];
        for (stem, kind) in images {
            code.push(u16::from(stem));
            code.extend(codes[kind]);
        }
        Self { code, turn: chosen, log_automorphisms: log_automorphisms + (ways as f64).ln() }
    }
}
