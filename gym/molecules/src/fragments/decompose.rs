//! Decomposition of molecules into trees of fragments. Units are the pieces that remain after all single
//! bonds outside of rings are cut. A fragment covers one or more units.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use gfn::Result;
use gfn::graph::{GraphKind, GraphState, Node, canonical_key};

use super::FragmentLibrary;
use super::normal::{self, normalise};
use super::symmetry::MarkedFragment;
use super::tree::arc;
use crate::{Atom, Bond, BondOrder, Element, Molecule};

/// The properties of an atom that stay the same if its single bonds are cut: the element, the charge, the
/// valence, and a flag that is `true` if the atom is aromatic.
type Kind = (Element, i8, u8, bool);

impl FragmentLibrary {
    /// Returns the trees of fragments that a molecule can be decomposed into, in the normal form of
    /// [`Fragments::state`](super::Fragments::state). Each tree is listed once. The list has at most `most`
    /// trees, even if the molecule has more trees. The list is empty if the molecule can't be built from
    /// the fragments of this library.
    ///
    /// Every atom is in exactly one fragment. A bond between two fragments is a single bond outside of rings.
    /// It joins a stem (attachment point) of each fragment, and it replaces one hydrogen of each of its two
    /// atoms. [`molecule`](Self::molecule) is the inverse of this function.
    ///
    /// The search cuts the molecule at all single bonds outside of rings. The resulting units form a tree,
    /// with the unit of atom 0 at its root. The search starts from the leaves of this tree and lists the
    /// distinct trees of fragments (branches) behind each cut bond. For that, it combines each fragment
    /// that covers the unit at the bond with the branches behind the fragment. Only complete branches are
    /// combined, so the search has no dead ends.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// use gfn_molecules::fragments::FragmentLibrary;
    /// let library = FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nC 0,0\nCC 0,1")?;
    /// // The chain of propylbenzene is built from C, C and C, from C and CC, or from CC and C.
    /// let trees = library.trees(&Molecule::from_smiles("CCCc1ccccc1")?, 100)?;
    /// assert_eq!(trees.len(), 3);
    /// assert!(library.trees(&Molecule::from_smiles("CCO")?, 100)?.is_empty());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// None in practice: every combination is a tree of fragments.
    pub fn trees(&self, molecule: &Molecule, most: usize) -> Result<Vec<GraphState>> {
        self.trees_within(molecule, usize::MAX, most)
    }

    /// Returns those of the molecule's trees, listed by [`trees`](Self::trees), that have at most
    /// `max_fragments` fragments.
    pub(super) fn trees_within(
        &self,
        molecule: &Molecule,
        max_fragments: usize,
        most: usize,
    ) -> Result<Vec<GraphState>> {
        let Some(mut search) = Search::new(self, molecule, max_fragments, most) else {
            return Ok(Vec::new());
        };
        for unit in (1..search.units.len()).rev() {
            search.branches[unit] = search.at(unit);
            search.branches[unit].sort_by_key(|branch| branch.size);
        }
        let mut met = HashSet::new();
        let mut out = Vec::new();
        for branch in search.at(0) {
            let mut graph = branch.graph()?;
            normalise(self, &mut graph)?;
            if out.len() < most && met.insert(canonical_key(&graph)) {
                out.push(graph);
            }
        }
        Ok(out)
    }
}

/// Returns `true` for a bond that may be cut: a single bond outside of rings.
pub(super) fn is_cuttable(bond: &Bond) -> bool {
    bond.order == BondOrder::Single && !bond.in_ring && !bond.aromatic
}

/// A unit: a set of atoms that stay together if all single bonds of the molecule outside of rings are cut.
/// The units of a molecule form a tree, whose root is the unit of atom 0.
#[derive(Default)]
struct Unit {
    atoms: Vec<usize>,
    /// The atom of this unit that is bonded to the parent unit, which is one step nearer to the root. The
    /// root has no parent unit, and has atom 0 here.
    hangs_by: usize,
    /// The bonds to the child units. Each entry has the bonded atom of this unit, and the index of the
    /// child unit.
    next: Vec<(usize, usize)>,
}

/// Returns the units of a molecule. The unit of atom 0 comes first, and each unit comes before its child
/// units.
fn units(molecule: &Molecule) -> Vec<Unit> {
    let mut out = vec![Unit::default()];
    let mut seen = vec![false; molecule.atoms().len()];
    let mut k = 0;
    while k < out.len() {
        let atoms = molecule.reach(out[k].hangs_by, usize::MAX, |bond| !is_cuttable(&molecule.bonds()[bond]));
        for &a in &atoms {
            seen[a] = true;
        }
        for &a in &atoms {
            for (b, _) in molecule.neighbours(a).filter(|(b, bond)| is_cuttable(bond) && !seen[*b]) {
                let new = out.len();
                out.push(Unit { hangs_by: b, ..Unit::default() });
                out[k].next.push((a, new));
            }
        }
        out[k].atoms = atoms;
        k += 1;
    }
    out
}

/// Returns the signature of a unit: the sorted properties of the unit's atoms, and twice the number of
/// bonds in the unit. Isomorphic units have equal signatures. Units that aren't isomorphic may have equal
/// signatures, too.
fn signature(molecule: &Molecule, unit: &Unit) -> (Vec<Kind>, usize) {
    let kind = |&a: &usize| {
        let Atom { element, charge, aromatic, .. } = molecule.atoms()[a];
        (element, charge, molecule.valence(a), aromatic)
    };
    let mut kinds: Vec<Kind> = unit.atoms.iter().map(kind).collect();
    kinds.sort_unstable();
    let ends =
        unit.atoms.iter().map(|&a| molecule.neighbours(a).filter(|(_, bond)| !is_cuttable(bond)).count());
    (kinds, ends.sum())
}

/// A rooted tree of fragments. Its root is either attached to a stem of another fragment, or it is the root
/// of a whole decomposition.
struct Hanging {
    fragment: usize,
    /// The stem by which the root is bonded to the fragment above this tree; `None` if this tree is a whole
    /// decomposition.
    root_stem: Option<u8>,
    /// The subtrees below the root. Each comes with the stem of the root that the subtree is bonded to.
    branches: Vec<(u8, Rc<Hanging>)>,
    /// The number of fragments in the tree.
    size: usize,
    /// A code of the whole tree: two trees are equal exactly if their codes are equal.
    code: Vec<u16>,
}

impl Hanging {
    fn new(
        library: &FragmentLibrary,
        fragment: usize,
        root_stem: Option<u8>,
        branches: Vec<(u8, Rc<Self>)>,
    ) -> Self {
        let codes = branches.iter().map(|(stem, branch)| (*stem, branch.code.clone())).collect();
        let code = normal::Branch::new(&library.fragments()[fragment], fragment, root_stem, codes, 0.0).code;
        let size = 1 + branches.iter().map(|(_, branch)| branch.size).sum::<usize>();
        Self { fragment, root_stem, branches, size, code }
    }

    fn graph(&self) -> Result<GraphState> {
        let mut nodes = vec![Node::from_class(self.fragment as u16)];
        let mut arcs = Vec::new();
        let mut open = vec![(0, self)];
        while let Some((node, at)) = open.pop() {
            for (stem, branch) in &at.branches {
                let new = nodes.len() as u32;
                let own = branch.root_stem.unwrap_or(0);
                nodes.push(Node::from_class(branch.fragment as u16));
                arcs.extend([(node, new, arc(*stem, own)), (new, node, arc(own, *stem))]);
                open.push((new, branch));
            }
        }
        GraphState::from_parts(GraphKind::Directed, &nodes, &arcs)
    }
}

struct Search<'a> {
    library: &'a FragmentLibrary,
    molecule: &'a Molecule,
    units: Vec<Unit>,
    /// The signature of each unit of the molecule, as an index into the list of the distinct signatures of
    /// all units of the library's fragments.
    kinds: Vec<usize>,
    /// A map for each fragment: from the index of a signature to how many units of the fragment have this
    /// signature.
    made_of: Vec<BTreeMap<usize, usize>>,
    /// The labelled graph of each fragment, which is built when it is first needed.
    marked_fragments: Vec<OnceCell<MarkedFragment>>,
    /// The branches of each unit: the trees of fragments that cover the unit and all units below it. Small
    /// trees come first.
    branches: Vec<Vec<Rc<Hanging>>>,
    /// The largest number of fragments that a tree or a branch may have.
    max_fragments: usize,
    /// The largest number of branches that are listed per unit: the requested number of trees times the
    /// number of units. A tree has at most one fragment per unit, and the search may find the same tree once
    /// for each of its fragments. This many branches are therefore enough for the requested number of
    /// distinct trees.
    most: usize,
}

/// A connected set of units (pieces between the bonds that may be cut), which grows during the search until
/// one fragment covers it.
#[derive(Clone, Default)]
struct Part {
    units: Vec<usize>,
    /// The units adjacent to this set that the search may still add to it. Each comes with the atom of the
    /// set that it is bonded to.
    open: Vec<(usize, usize)>,
    /// The units adjacent to this set that other fragments will cover. Each comes with the atom of the set
    /// that it is bonded to.
    left: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    /// Prepares the search. Returns `None` if a unit of the molecule (a piece between the bonds that may be
    /// cut) occurs in no fragment.
    fn new(
        library: &'a FragmentLibrary,
        molecule: &'a Molecule,
        max_fragments: usize,
        most: usize,
    ) -> Option<Self> {
        let mut known = BTreeMap::new();
        let made_of = library.fragments().iter().map(|fragment| {
            let mut counts = BTreeMap::new();
            for unit in units(fragment.molecule()) {
                let new = known.len();
                let kind = *known.entry(signature(fragment.molecule(), &unit)).or_insert(new);
                *counts.entry(kind).or_insert(0) += 1;
            }
            counts
        });
        let made_of = made_of.collect();
        let units = units(molecule);
        let kinds: Option<Vec<usize>> =
            units.iter().map(|unit| known.get(&signature(molecule, unit)).copied()).collect();
        let most = most.saturating_mul(units.len());
        let marked_fragments = library.fragments().iter().map(|_| OnceCell::new()).collect();
        let branches = vec![Vec::new(); units.len()];
        Some(Self {
            library,
            molecule,
            kinds: kinds?,
            units,
            made_of,
            marked_fragments,
            branches,
            max_fragments,
            most,
        })
    }

    /// Returns the distinct trees of fragments that cover this unit and all units below it. The root of each
    /// tree is the fragment that covers this unit.
    fn at(&self, unit: usize) -> Vec<Rc<Hanging>> {
        let mut met = HashSet::new();
        let mut out = Vec::new();
        let has = |fragment: &usize| self.made_of[*fragment].contains_key(&self.kinds[unit]);
        let first = Part { units: vec![unit], open: self.units[unit].next.clone(), left: Vec::new() };
        let mut open = vec![(first, (0..self.marked_fragments.len()).filter(has).collect::<Vec<usize>>())];
        while let Some((mut part, fragments)) = open.pop() {
            let Some((atom, next)) = part.open.pop() else {
                for fragment in fragments {
                    if self.made_of[fragment].values().sum::<usize>() == part.units.len() {
                        self.hang(unit, &part, fragment, &mut met, &mut out);
                    }
                    if out.len() >= self.most {
                        return out;
                    }
                }
                continue;
            };
            let kind = self.kinds[next];
            let count = 1 + part.units.iter().filter(|&&unit| self.kinds[unit] == kind).count();
            let enough =
                |&fragment: &usize| self.made_of[fragment].get(&kind).is_some_and(|&has| has >= count);
            let larger: Vec<usize> = fragments.iter().copied().filter(enough).collect();
            let mut with = part.clone();
            if !self.branches[next].is_empty() {
                part.left.push((atom, next));
                open.push((part, fragments));
            }
            // The set of units with `next` is pushed last, so the search continues with it. Larger fragments
            // come first this way, so trees with few fragments are found first.
            if !larger.is_empty() {
                with.units.push(next);
                with.open.extend(&self.units[next].next);
                open.push((with, larger));
            }
        }
        out
    }

    /// Adds the trees whose root is this fragment, if the fragment is isomorphic to the atoms of the units in
    /// `part`. Otherwise, nothing is added.
    fn hang(
        &self,
        unit: usize,
        part: &Part,
        fragment: usize,
        met: &mut HashSet<Vec<u16>>,
        out: &mut Vec<Rc<Hanging>>,
    ) {
        let atoms: Vec<usize> =
            part.units.iter().flat_map(|&unit| self.units[unit].atoms.iter().copied()).collect();
        // The list `cuts` holds the positions in `atoms` of the atoms at cut bonds. The atom bonded to the
        // parent unit comes first.
        let place = |atom: usize| atoms.iter().position(|&a| a == atom).unwrap_or(0);
        let above = (unit > 0).then(|| place(self.units[unit].hangs_by));
        let cuts: Vec<usize> =
            above.into_iter().chain(part.left.iter().map(|(atom, _)| place(*atom))).collect();
        let marked = MarkedFragment::from_atoms(self.molecule, &atoms, |a| {
            let cut = cuts.iter().filter(|&&k| atoms[k] == a).count() as u8;
            let atom = self.molecule.atoms()[a];
            (Atom { hydrogens: atom.hydrogens + cut, ..atom }, self.molecule.bond_orders(a) - cut, cut)
        });
        let mut at = cuts.clone();
        at.sort_unstable();
        at.dedup();
        let fragment_of = &self.library.fragments()[fragment];
        let mut known = HashSet::new();
        let other = self.marked_fragments[fragment]
            .get_or_init(|| MarkedFragment::new(fragment_of.molecule(), fragment_of.stems()));
        for image in marked.images(&at, other, usize::MAX) {
            let stem = |k: &usize| {
                let atom = at.binary_search(k).map_or(0, |i| image.get(i).copied().unwrap_or(0));
                fragment_of.stems().iter().position(|stem| stem.atom == atom).unwrap_or(0) as u8
            };
            let stems: Vec<u8> = cuts.iter().map(stem).collect();
            // `stems` assigns a stem to each cut bond. Two assignments are equivalent if a symmetry of the
            // fragment maps one to the other. Only the first of equivalent assignments is used.
            let turned = |symmetry: &Vec<u8>| {
                stems.iter().map(|&stem| symmetry[usize::from(stem)]).collect::<Vec<u8>>()
            };
            if known.insert(fragment_of.symmetries().iter().map(turned).min()) {
                self.combine(fragment, &stems, part, met, out);
            }
        }
    }

    /// Adds the trees that consist of a fragment and of branches bonded to the given stems. If the covered
    /// units have a parent unit, the first stem is bonded to the fragment that covers this parent, and only
    /// the other stems carry branches.
    fn combine(
        &self,
        fragment: usize,
        stems: &[u8],
        part: &Part,
        met: &mut HashSet<Vec<u16>>,
        out: &mut Vec<Rc<Hanging>>,
    ) {
        let hangs = stems.len() - part.left.len();
        let own = stems[..hangs].first().copied();
        let on = &stems[hangs..];
        let lists: Vec<&[Rc<Hanging>]> =
            part.left.iter().map(|&(_, unit)| self.branches[unit].as_slice()).collect();
        // `lists` has a list of branches for each stem, and `choice` holds the index of the chosen branch in
        // each list. The loop iterates over all combinations, and the last index changes fastest.
        let mut choice = vec![0; lists.len()];
        while out.len() < self.most {
            let chosen = lists.iter().zip(&choice).map(|(list, &k)| &list[k]);
            // The branches of each list are sorted by size, so the tree grows with each index in `choice`. If
            // a tree is too large, the trees with a larger last nonzero index are too large, too. The search
            // skips them: it advances an earlier index and sets all indices after that one to 0.
            let mut change = choice.iter().rposition(|&k| k > 0).unwrap_or(0);
            if chosen.clone().map(|branch| branch.size).sum::<usize>() < self.max_fragments {
                change = lists.len();
                let branches = on.iter().copied().zip(chosen.map(Rc::clone)).collect();
                let tree = Hanging::new(self.library, fragment, own, branches);
                if met.insert(tree.code.clone()) {
                    out.push(Rc::new(tree));
                }
            }
            let Some(k) = (0..change).rev().find(|&k| choice[k] + 1 < lists[k].len()) else { break };
            choice[k] += 1;
            choice[k + 1..].fill(0);
        }
    }
}
