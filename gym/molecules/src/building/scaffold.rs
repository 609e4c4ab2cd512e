//! Growth from a scaffold: the atoms of the scaffold stay, and new atoms are bonded to its stems.

use gfn::graph::{GraphKind, GraphState, Node, Scaffold};
use gfn::{Error, Result};

use super::MoleculeConfig;
use super::codec::{AtomState, Rules, bond_attribute, bond_edge};
use crate::fragments::Fragment;
use crate::{Atom, Bond, BondOrder, Molecule};

/// The edge attribute of a scaffold's aromatic bonds. The smaller attributes belong to single, double and
/// triple bonds. All aromatic bonds have the same attribute, whatever their order in the current Kekule
/// form, so that the graph has all symmetries of the scaffold.
const AROMATIC: u8 = 3;
/// The smallest of the artificial charges by which scaffold atoms are distinguished. It is so large that
/// rings of atoms with these charges aren't aromatic.
const FIRST_MARK: usize = 8;
/// The number of artificial charges by which scaffold atoms are distinguished. If a scaffold needs more,
/// atoms with equal artificial charges get different artificial hydrogen counts.
const CHARGES: usize = 100;

/// The properties of a scaffold atom that determine its node class. Scaffold atoms with equal properties
/// have the same node class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    atom: Atom,
    orders: u8,
    /// The largest sum of bond orders that the atom's bonds to new atoms may have.
    room: u8,
}

/// A scaffold as a part of states. Its atoms are the first nodes of a state, and their node classes come
/// after the classes of the elements.
#[derive(Debug)]
pub(super) struct Fixed {
    molecule: Molecule,
    kinds: Vec<Kind>,
    /// The index of each scaffold atom's entry in `kinds`.
    kind_of_node: Vec<usize>,
    n_elements: usize,
    treatment: Scaffold,
}

impl Fixed {
    pub(super) fn new(config: &MoleculeConfig, fragment: &Fragment) -> Self {
        let molecule = fragment.molecule().clone();
        let room = |a: usize| fragment.stems().iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
        let kind =
            |a: usize| Kind { atom: molecule.atoms()[a], orders: molecule.bond_orders(a), room: room(a) };
        let mut kinds = Vec::new();
        let mut of = Vec::new();
        for kind in (0..molecule.atoms().len()).map(kind) {
            let known = kinds.iter().position(|other| *other == kind);
            of.push(known.unwrap_or(kinds.len()));
            if known.is_none() {
                kinds.push(kind);
            }
        }
        Self {
            kinds,
            kind_of_node: of,
            molecule,
            n_elements: config.elements.len(),
            treatment: config.scaffold_atoms,
        }
    }

    /// Returns a name for each node class of scaffold atoms.
    pub(super) fn class_names(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().map(|Kind { atom, room, .. }| {
            let charge = if atom.charge == 0 { String::new() } else { format!("{:+}", atom.charge) };
            let aromatic = if atom.aromatic { ", aromatic" } else { "" };
            format!(
                "scaffold {}H{}{charge}{aromatic}, room for {room}",
                atom.element.symbol(),
                atom.hydrogens
            )
        })
    }

    /// Returns the number of atoms in the scaffold.
    pub(super) fn n_atoms(&self) -> usize {
        self.kind_of_node.len()
    }

    /// Returns `true` if an atom is part of the scaffold.
    pub(super) fn has(&self, atom: u32) -> bool {
        (atom as usize) < self.kind_of_node.len()
    }

    /// Returns the graph of the scaffold, which is the initial state.
    pub(super) fn graph(&self) -> Result<GraphState> {
        let class = |kind: &usize| Node::from_class((self.n_elements + kind) as u16);
        let nodes: Vec<Node> = self.kind_of_node.iter().map(class).collect();
        let edge = |bond: &Bond| {
            let attribute = if bond.aromatic { AROMATIC } else { bond.order.value() - 1 };
            (bond.a as u32, bond.b as u32, bond_edge(attribute))
        };
        let edges: Vec<_> = self.molecule.bonds().iter().map(edge).collect();
        GraphState::from_parts(GraphKind::Undirected, &nodes, &edges)
    }

    /// Returns the branch of each atom; `None` for atoms of the scaffold. A branch is a connected component
    /// of the graph without the scaffold, and is identified by its first atom. Rings are closed only within
    /// a branch, because a ring through two branches would contain an atom of the scaffold.
    pub(super) fn branches(&self, graph: &GraphState) -> Vec<Option<usize>> {
        let mut branch = vec![None; graph.n_nodes()];
        for first in self.n_atoms()..graph.n_nodes() {
            let mut open = if branch[first].is_none() { vec![first] } else { Vec::new() };
            while let Some(a) = open.pop() {
                branch[a] = Some(first);
                open.extend(
                    graph.adjacency().neighbours(a).filter(|&b| b >= self.n_atoms() && branch[b].is_none()),
                );
            }
        }
        branch
    }

    fn kind(&self, state: AtomState) -> Option<&Kind> {
        self.kinds.get(state.class.checked_sub(self.n_elements)?)
    }

    /// Returns the element, the charge and the hydrogens that all scaffold atoms with the node class of
    /// `state` share; `None` if the class is that of atoms outside of the scaffold.
    pub(super) fn atom(&self, state: AtomState) -> Option<Atom> {
        self.kind(state).map(|kind| kind.atom)
    }

    /// Returns the part of a scaffold atom's valence that is left for hydrogens and for bonds to new atoms.
    /// This is the number of hydrogens that the atom has in the scaffold alone. Returns `Some(None)` if the
    /// bonds to new atoms, which `state` counts, exceed the atom's limit. Returns `None` if the atom isn't in
    /// the scaffold.
    pub(super) fn valence(&self, state: AtomState) -> Option<Option<u8>> {
        self.kind(state).map(|kind| (state.bonds <= kind.room).then_some(kind.atom.hydrogens))
    }

    /// Returns the order of a bond between two scaffold atoms in the Kekule form of the scaffold; `None`
    /// for other bonds.
    pub(super) fn order(&self, a: u32, b: u32) -> Option<BondOrder> {
        let mut beside = self.has(a).then(|| self.molecule.neighbours(a as usize))?;
        beside.find(|(other, _)| *other == b as usize).map(|(_, bond)| bond.order)
    }

    /// Returns a molecule whose Kekule forms correspond to the states that represent the same object as
    /// `graph`. In this molecule, the scaffold's atoms have artificial charges that no other atom has. The
    /// aromatic bonds of the scaffold become double bonds and its double bonds become triple bonds, so that
    /// these orders are the same in all Kekule forms.
    pub(super) fn molecule_with_marks(&self, rules: &Rules, graph: &GraphState) -> Result<Molecule> {
        let mut table = rules.config.table.clone();
        let mut atoms = rules.specs(graph)?;
        let any: Vec<u8> = (0..=u8::MAX).collect();
        for (a, (atom, &kind)) in atoms.iter_mut().zip(&self.kind_of_node).enumerate() {
            let mark = if self.treatment == Scaffold::Alike { kind } else { a };
            atom.charge = (FIRST_MARK + mark % CHARGES) as i8;
            atom.hydrogens = Some((mark / CHARGES) as u8);
            table = table.with(atom.element, atom.charge, &any);
        }
        let order = |a: u32, b: u32| match bond_attribute(graph, a, b) {
            AROMATIC => BondOrder::Double,
            1 if self.has(a) && self.has(b) => BondOrder::Triple,
            attribute => BondOrder::from_attribute(attribute),
        };
        let bonds: Vec<_> = graph.edges().map(|(a, b)| (a as usize, b as usize, order(a, b))).collect();
        Ok(Molecule::new(&table, &atoms, &bonds)?)
    }

    /// Returns the state in which the bonds outside of the scaffold have the orders that they have in
    /// `form`, a Kekule form of [`molecule_with_marks`](Self::molecule_with_marks).
    pub(super) fn with_form(&self, graph: &GraphState, form: &Molecule) -> Result<GraphState> {
        let mut out = graph.clone();
        for bond in form.bonds() {
            let a = bond.a as u32;
            let b = bond.b as u32;
            if !(self.has(a) && self.has(b)) {
                let mut edge = graph.edge(a, b).unwrap_or_default();
                edge.attributes.set(0, bond.order.value() - 1);
                out.set_edge(a, b, edge)?;
            }
        }
        Ok(out)
    }
}

impl MoleculeConfig {
    /// Returns an error unless the scaffold has fewer atoms than `max_atoms` and at most `max_rings` rings.
    pub(super) fn check_scaffold(&self, scaffold: &Fragment) -> Result<()> {
        let molecule = scaffold.molecule();
        let smiles = scaffold.smiles();
        let refuse = |got: String, expected| Err(Error::config("scaffold", got, expected));
        let atoms = molecule.atoms().len();
        let rings = molecule.n_rings();
        if atoms >= self.max_atoms {
            let got = format!("{smiles} with {atoms} atoms, although `max_atoms` is {}", self.max_atoms);
            return refuse(got, "fewer atoms than `max_atoms`, which counts the atoms of the scaffold, too");
        }
        if self.max_rings.is_some_and(|most| rings > most) {
            let got = format!(
                "{smiles} with {rings} rings, although `max_rings` is {}",
                self.max_rings.unwrap_or(0)
            );
            return refuse(got, "at most `max_rings` rings, which counts the rings of the scaffold, too");
        }
        Ok(())
    }
}
