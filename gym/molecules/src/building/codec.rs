use std::sync::Arc;

use gfn::graph::{Edge, GraphKind, GraphState, Node};
use gfn::{Error, Result};

use super::MoleculeConfig;
use super::scaffold::Fixed;
use crate::molecule::small_rings_span;
use crate::{AtomSpec, Bond, BondOrder, Element, Molecule};

/// Converts graphs of a [`MoleculeEnv`](super::MoleculeEnv) to molecules and back. A clone is cheap,
/// because it shares the settings.
///
/// - Nodes: the class of a node is the index of its element in the configuration. If the configuration allows
///   charges, one attribute is the index of the atom's charge in [`charges`](MoleculeCodec::charges). If the
///   configuration allows higher valences, the next attribute chooses the valence of the atom: 0 is the
///   smallest valence of the element that fits the atom's bonds, 1 is the next larger valence, and so on.
/// - Edges: the only attribute is 0 for a single, 1 for a double and 2 for a triple bond.
/// - Scaffold: the atoms of the scaffold come first and have separate classes
///   ([`class_names`](MoleculeCodec::class_names)). The attribute of an aromatic bond of the scaffold is 3.
/// - [Stereochemistry](MoleculeConfig::stereo): the sign of a stereo element (which of its two arrangements
///   it has) is stored as nodes of the last two classes, joined by edges of classes 1 to 4. A double bond has
///   2 such nodes, a centre with four heavy neighbours has 12, and any other centre has 3.
#[derive(Clone, Debug)]
pub struct MoleculeCodec(Arc<Rules>);

/// The configuration of an environment of molecules, and the settings derived from the configuration.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) config: MoleculeConfig,
    /// The distinct charges of the configuration, 0 first.
    charges: Vec<i8>,
    pub(super) scaffold: Option<Fixed>,
}

/// The node class and the attributes of one atom in a state, and the sum of its bond orders (without bonds
/// inside a scaffold). They determine how many hydrogens the atom has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AtomState {
    pub(super) class: usize,
    charge: usize,
    step: usize,
    pub(super) bonds: u8,
}

impl MoleculeCodec {
    pub(super) fn new(config: MoleculeConfig) -> Self {
        let mut charges = vec![0];
        for &(_, charge) in &config.charges {
            if !charges.contains(&charge) {
                charges.push(charge);
            }
        }
        let scaffold = config.scaffold.as_ref().map(|fragment| Fixed::new(&config, fragment));
        Self(Arc::new(Rules { config, charges, scaffold }))
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.0
    }

    /// Returns the configuration that the codec was created from.
    #[must_use]
    pub fn config(&self) -> &MoleculeConfig {
        &self.0.config
    }

    /// Returns the charges that an atom can have. The charge attribute of a node is an index into this
    /// slice; index 0 is the charge 0.
    #[must_use]
    pub fn charges(&self) -> &[i8] {
        &self.0.charges
    }

    /// Returns the names of the node classes. The elements come first. The classes of scaffold atoms follow
    /// if there is a scaffold. The two classes of nodes that store signs of stereo elements follow if the
    /// environment has stereochemistry.
    #[must_use]
    pub fn class_names(&self) -> Vec<String> {
        let elements = self.0.config.elements.iter().map(|element| element.symbol().to_owned());
        let marks = self.0.config.stereo.then_some(["step around a centre", "side of a double bond"]);
        let marks = marks.into_iter().flatten().map(str::to_owned);
        elements.chain(self.0.scaffold.iter().flat_map(Fixed::class_names)).chain(marks).collect()
    }

    /// Converts a state into a molecule. Stereo marks are removed from atoms and bonds that aren't stereo
    /// elements.
    ///
    /// # Errors
    /// [`Error::Config`] for a graph that isn't a molecule: the empty graph, or a graph from another
    /// environment.
    pub fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        Ok(self.marked_state(graph)?.molecule.normal())
    }

    /// Converts a state without signs of stereo elements into a molecule.
    pub(super) fn plain(&self, graph: &GraphState) -> Result<Molecule> {
        let rules = self.rules();
        let bonds: Vec<_> =
            graph.edges().map(|(a, b)| (a as usize, b as usize, rules.order(graph, a, b))).collect();
        Ok(Molecule::new(&rules.config.table, &rules.specs(graph)?, &bonds)?)
    }

    /// Converts a molecule, in its current Kekule form, into a state. The first nodes of the state are the
    /// molecule's atoms in the same order. The nodes that store marks of stereochemistry follow. If the
    /// molecule has marks, an unmarked stereo element also gets a sign if a symmetry of the molecule inverts
    /// this sign, so that it has no meaning.
    ///
    /// # Errors
    /// [`Error::Config`] for a molecule that the environment can't build, for a molecule with marks of
    /// stereochemistry if the environment has no stereochemistry, and for any molecule if the environment has
    /// a scaffold.
    pub fn graph(&self, molecule: &Molecule) -> Result<GraphState> {
        self.graph_as_marked(&molecule.clone().completed())
    }

    /// Converts a molecule into a state as [`graph`](Self::graph) does, but adds no signs to unmarked stereo
    /// elements.
    pub(super) fn graph_as_marked(&self, molecule: &Molecule) -> Result<GraphState> {
        let rules = self.rules();
        let config = &rules.config;
        if config.scaffold.is_some() {
            let expected = "an environment without a scaffold, because a molecule doesn't record which of \
                its atoms belong to the scaffold";
            return Err(Error::config(
                "the environment of the molecule",
                "an environment with a scaffold",
                expected,
            ));
        }
        let refuse = |what: String| {
            let got = format!("{} ({what})", molecule.smiles());
            Error::config(
                "the molecule that becomes a state",
                got,
                "a molecule within the environment's settings",
            )
        };
        if !molecule.marks().is_empty() && !config.stereo {
            return Err(refuse("it has marks of stereochemistry: remove them by `without_stereo`".into()));
        }
        let node = |a: usize| rules.node(molecule, a).map_err(refuse);
        let nodes: Vec<Node> = (0..molecule.atoms().len()).map(node).collect::<Result<_>>()?;
        let edge = |bond: &Bond| (bond.a as u32, bond.b as u32, bond_edge(bond.order.value() - 1));
        let edges: Vec<_> = molecule.bonds().iter().map(edge).collect();
        let mut graph = GraphState::from_parts(GraphKind::Undirected, &nodes, &edges)?;
        let highest = molecule.bonds().iter().map(|bond| bond.order.value()).max().unwrap_or(1);
        let atoms = config.max_atoms;
        let order = config.max_order.value();
        let rings = molecule.n_rings();
        if graph.n_nodes() > atoms {
            return Err(refuse(format!(
                "it has {} heavy atoms, but the environment builds at most {atoms}",
                graph.n_nodes()
            )));
        }
        if highest > order {
            return Err(refuse(format!(
                "it has a bond of order {highest}, but the highest order of the environment is {order}"
            )));
        }
        if let Some(most) = config.max_rings.filter(|most| rings > *most) {
            return Err(refuse(format!("it has {rings} rings, but the environment builds at most {most}")));
        }
        if !rules.rings_within(&graph) {
            return Err(refuse(format!(
                "it has a ring of more than {} atoms",
                config.max_ring_size.unwrap_or(0)
            )));
        }
        let names: Vec<u32> = (0..graph.n_nodes() as u32).collect();
        molecule.marks().iter().try_for_each(|mark| rules.add_mark(&mut graph, molecule, *mark, &names))?;
        Ok(graph)
    }
}

/// Returns the edge that represents a bond. The attribute is 0 for a single, 1 for a double, 2 for a triple
/// bond, and 3 for an aromatic bond of a scaffold.
pub(super) fn bond_edge(attribute: u8) -> Edge {
    let mut edge = Edge::default();
    edge.attributes.set(0, attribute);
    edge
}

/// Returns the attribute of the bond between two atoms: 0 for a single, 1 for a double, 2 for a triple bond,
/// and 3 for an aromatic bond of a scaffold.
pub(super) fn bond_attribute(graph: &GraphState, a: u32, b: u32) -> u8 {
    graph.edge(a, b).unwrap_or_default().attributes.get(0)
}

impl Rules {
    /// Returns the element and the charge of an atom with the node class and the attributes in `state`.
    pub(super) fn element(&self, state: AtomState) -> (Element, i8) {
        match self.scaffold.as_ref().and_then(|scaffold| scaffold.atom(state)) {
            Some(atom) => (atom.element, atom.charge),
            None => (self.config.elements[state.class], self.charges[state.charge]),
        }
    }

    /// Returns the order of the bond between two atoms.
    fn order(&self, graph: &GraphState, a: u32, b: u32) -> BondOrder {
        let fixed = self.scaffold.as_ref().and_then(|scaffold| scaffold.order(a, b));
        fixed.unwrap_or_else(|| BondOrder::from_attribute(bond_attribute(graph, a, b)))
    }

    /// Returns the element, the charge and the hydrogens of each atom of a graph without marks of
    /// stereochemistry. Returns an error if the graph isn't a molecule.
    pub(super) fn specs(&self, graph: &GraphState) -> Result<Vec<AtomSpec>> {
        let spec = |(node, state): (Node, AtomState)| {
            let Some(valence) = self.valence(state) else {
                let got = format!("a graph with {node:?} that has {} bonds", state.bonds);
                let expected = "a state of the environment of this codec";
                return Err(Error::config("a graph to be read as a molecule", got, expected));
            };
            let (element, charge) = self.element(state);
            Ok(AtomSpec { element, charge, hydrogens: Some(valence - state.bonds) })
        };
        graph.nodes().zip(self.atoms(graph)).map(spec).collect()
    }

    /// Returns the node that represents an atom, or the reason why the environment can't build the atom.
    fn node(&self, molecule: &Molecule, a: usize) -> std::result::Result<Node, String> {
        let atom = molecule.atoms()[a];
        let config = &self.config;
        let bonds = molecule.bond_orders(a);
        let valence = molecule.valence(a);
        let name = || format!("it has an atom {} of charge {}", atom.element.symbol(), atom.charge);
        let Some(class) = config.elements.iter().position(|element| *element == atom.element) else {
            let listed: Vec<&str> = config.elements.iter().map(|element| element.symbol()).collect();
            return Err(format!("{}, but the elements of the environment are {}", name(), listed.join(", ")));
        };
        let charge = self.charges.iter().position(|charge| *charge == atom.charge);
        let valences = charge.map_or(&[][..], |charge| self.valences(class, charge));
        let (Some(charge), false) = (charge, valences.is_empty()) else {
            return Err(format!("{}, but the environment doesn't have that charge", name()));
        };
        let step = valences.iter().filter(|other| (bonds..=valence).contains(other)).count();
        let extra = config.extra_valences;
        if !valences.contains(&valence) || step > 1 + usize::from(extra) {
            return Err(format!(
                "{} and valence {valence}, but the environment has the valences {valences:?}, of which it \
                 builds the smallest that the bonds need and the next {extra} (`extra_valences`)",
                name()
            ));
        }
        let mut node = Node::from_class(class as u16);
        for (place, value) in [(self.charge_place(), charge), (self.step_place(), step - 1)] {
            if let Some(place) = place {
                node.attributes.set(place, value as u8);
            }
        }
        Ok(node)
    }

    /// Returns the valences of an element with a charge. The element is given by its node class, and the
    /// charge by its index in `charges`. The slice is empty if the configuration doesn't allow this
    /// combination.
    fn valences(&self, class: usize, charge: usize) -> &[u8] {
        match (self.config.elements.get(class), self.charges.get(charge)) {
            (Some(&element), Some(&charge))
                if charge == 0 || self.config.charges.contains(&(element, charge)) =>
            {
                self.config.table.valences(element, charge)
            }
            _ => &[],
        }
    }

    /// Returns the index of the node attribute that holds the charge; `None` if the configuration has no
    /// charges.
    pub(super) fn charge_place(&self) -> Option<usize> {
        (self.charges.len() > 1).then_some(0)
    }

    /// Returns the index of the node attribute that chooses a higher valence than the smallest that fits the
    /// atom's bonds; `None` if the configuration has no such attribute.
    pub(super) fn step_place(&self) -> Option<usize> {
        (self.config.extra_valences > 0).then_some(usize::from(self.charges.len() > 1))
    }

    /// Returns the largest value that each node attribute can be set to.
    pub(super) fn node_attributes(&self) -> Vec<u8> {
        let charges = self.charge_place().map(|_| (self.charges.len() - 1) as u8);
        let steps = self.step_place().map(|_| self.config.extra_valences);
        charges.into_iter().chain(steps).collect()
    }

    /// Returns the [`AtomState`] of each atom of a graph, computed in one pass over the bonds.
    pub(super) fn atoms(&self, graph: &GraphState) -> Vec<AtomState> {
        let mut atoms: Vec<AtomState> = graph
            .nodes()
            .map(|node| {
                let value =
                    |place: Option<usize>| place.map_or(0, |place| usize::from(node.attributes.get(place)));
                let charge = value(self.charge_place());
                let step = value(self.step_place());
                AtomState { class: usize::from(node.class), charge, step, bonds: 0 }
            })
            .collect();
        let fixed = self.scaffold.as_ref().map_or(0, Fixed::n_atoms);
        for edge in graph.as_undirected().map_or(&[][..], |graph| graph.raw_edges()) {
            if edge.source().index().max(edge.target().index()) < fixed {
                continue;
            }
            let order = edge.weight.attributes.get(0) + 1;
            atoms[edge.source().index()].bonds += order;
            atoms[edge.target().index()].bonds += order;
        }
        atoms
    }

    /// Returns the valence of an atom, hydrogens included; `None` if no valence of the atom is large enough
    /// for its bonds.
    pub(super) fn valence(&self, atom: AtomState) -> Option<u8> {
        if let Some(valence) = self.scaffold.as_ref().and_then(|scaffold| scaffold.valence(atom)) {
            return valence;
        }
        let valences = self.valences(atom.class, atom.charge);
        let smallest = valences.iter().position(|&valence| valence >= atom.bonds)?;
        valences.get(smallest + atom.step).copied()
    }

    /// Returns `true` if an atom has a valence that allows its sum of bond orders to grow by `more`.
    pub(super) fn has_room(&self, atom: AtomState, more: u8) -> bool {
        self.valence(AtomState { bonds: atom.bonds + more, ..atom }).is_some()
    }

    /// Returns `true` if a new atom of this class, whose attributes aren't set yet, can have a bond.
    pub(super) fn attaches(&self, class: usize) -> bool {
        self.valence(AtomState { class, charge: 0, step: 0, bonds: 1 }).is_some()
    }

    /// Returns `true` if an atom can have this value of the node attribute with the index `place` (the charge
    /// or the choice of a higher valence).
    pub(super) fn permits(&self, atom: AtomState, place: usize, value: usize) -> bool {
        if atom.class >= self.config.elements.len() {
            return false;
        }
        let changed = if Some(place) == self.charge_place() {
            AtomState { charge: value, ..atom }
        } else {
            AtomState { step: value, ..atom }
        };
        self.valence(changed).is_some()
    }

    /// Returns `true` if the number and the sizes of the rings are within the configuration's limits.
    pub(super) fn rings_within(&self, graph: &GraphState) -> bool {
        let rings = (graph.n_edges() + usize::from(graph.n_nodes() > 0)).saturating_sub(graph.n_nodes());
        let few = self.config.max_rings.is_none_or(|most| rings <= most);
        few && self.config.max_ring_size.is_none_or(|size| small_rings_span(graph, size, None))
    }
}
