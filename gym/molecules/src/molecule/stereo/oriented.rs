//! Graphs of molecules with marks of stereochemistry. The canonical form and the symmetries of such a graph
//! are those of the molecule with its marks. A mark is represented by additional nodes: one for each step
//! from a neighbour of a centre to the next, or one for each side of a double bond.

use gfn::graph::{Canonical, Edge, GraphState, Node, labelled_key, with_canonizer};

use super::{StereoElement, StereoMark, is_odd};
use crate::molecule::{Molecule, ranks};

/// The smallest class of nodes that represent marks of stereochemistry. The classes of atoms are smaller.
const FIRST_CLASS: u16 = 1_000;
/// The smallest class of edges at nodes that represent marks. The classes of bonds are smaller.
const FIRST_EDGE_CLASS: u16 = 4;
/// The class of an additional node that represents a step around a marked centre, from one neighbour of the
/// centre to the next. The class in a molecule's graph is this number plus [`FIRST_CLASS`].
const TURN: u16 = 0;
/// The class of an additional node that represents one side of a marked double bond. The class in a
/// molecule's graph is this number plus [`FIRST_CLASS`].
const SIDE: u16 = 1;
/// The class of an edge from a mark's node to the neighbour from which a step around a centre starts, or to
/// an atom on a side of a double bond. The class in a molecule's graph is this number plus
/// [`FIRST_EDGE_CLASS`].
const LEAVES: u16 = 0;
/// The class of an edge from a mark's node to the neighbour at which a step around a centre ends. The class
/// in a molecule's graph is this number plus [`FIRST_EDGE_CLASS`].
const ARRIVES: u16 = 1;
/// The class of an edge from a mark's node to the neighbour from which the direction of a step around a
/// centre is seen. The class in a molecule's graph is this number plus [`FIRST_EDGE_CLASS`].
const SEEN_FROM: u16 = 2;
/// The class of an edge from a mark's node to the marked centre, or to an end of the marked double bond. The
/// class in a molecule's graph is this number plus [`FIRST_EDGE_CLASS`].
const OWN: u16 = 3;

/// A node that represents a stereo mark in the graph of a molecule. The pair has the node's class and the
/// atoms that the node is joined to. Each atom comes with the class of the edge to it.
pub(crate) type MarkNode = (u16, Vec<(usize, u16)>);

/// Returns the steps around a centre as triples `(seen from, leaves, arrives)`. A step leads from one
/// neighbour to the next one, as seen from a third neighbour. The numbers are positions among the centre's
/// neighbours in ascending order, with hydrogen and lone pair first. If the sign is positive, the steps are
/// counterclockwise. The steps are seen from the first neighbour or, if all neighbours are heavy atoms, from
/// each neighbour.
///
/// Seen from any corner of a tetrahedron, the three other corners have a rotational order, so there are
/// twelve steps in all. Even permutations of the four corners preserve the set of these steps. Odd
/// permutations map it to the set of steps for the opposite sign.
fn turns(n_heavy: usize, positive: bool) -> Vec<(usize, usize, usize)> {
    let implicit = 4 - n_heavy;
    let from = if implicit > 0 { 0..1 } else { 0..4 };
    let mut out = Vec::new();
    for seen_from in from {
        let mut others: Vec<usize> = (0..4).filter(|&other| other != seen_from).collect();
        if positive == (seen_from % 2 == 1) {
            others.reverse();
        }
        let steps = (0..3).map(|k| (seen_from, others[k], others[(k + 1) % 3]));
        out.extend(steps.filter(|&(_, leaves, arrives)| leaves.min(arrives) >= implicit));
    }
    out
}

impl Molecule {
    /// Returns the nodes that represent a stereo mark in the graph of the molecule. A permutation of the
    /// atoms preserves these nodes exactly if it preserves the mark.
    pub(crate) fn extra_nodes(&self, mark: StereoMark) -> Vec<MarkNode> {
        match mark.element {
            StereoElement::Centre(a) => {
                let heavy = self.heavy_neighbours(a);
                let atom = |place: usize| (place + heavy.len()).checked_sub(4).map(|k| heavy[k]);
                let node = |(from, leaves, arrives)| {
                    let mut edges = vec![(a, OWN)];
                    for (place, class) in [(from, SEEN_FROM), (leaves, LEAVES), (arrives, ARRIVES)] {
                        edges.extend(atom(place).map(|atom| (atom, class)));
                    }
                    (TURN, edges)
                };
                turns(heavy.len(), mark.positive).into_iter().map(node).collect()
            }
            StereoElement::DoubleBond(k) => {
                let bond = self.bonds()[k];
                let one = self.beside(bond.a, k);
                let other = self.beside(bond.b, k);
                let node = |side: usize| {
                    let across = if mark.positive { side } else { 1 - side };
                    let mut edges = vec![(bond.a, OWN), (bond.b, OWN)];
                    edges.extend(
                        [one.get(side), other.get(across)].into_iter().flatten().map(|&a| (a, LEAVES)),
                    );
                    (SIDE, edges)
                };
                (0..2).map(node).collect()
            }
        }
    }

    /// Adds the nodes that represent the given stereo marks to the graph of a molecule.
    fn orient(&self, graph: &mut GraphState, marks: &[StereoMark]) {
        for (class, edges) in marks.iter().flat_map(|mark| self.extra_nodes(*mark)) {
            let node = graph.add_node(Node::from_class(FIRST_CLASS + class));
            for (a, class) in edges {
                // Adding the edge can't fail, because the node is new and its atoms differ from each other.
                let added = graph.add_edge(node, a as u32, Edge::from_class(FIRST_EDGE_CLASS + class));
                debug_assert!(added.is_ok());
            }
        }
    }

    /// Computes the canonical form of the molecule with its marks. `graph` is the graph of the molecule
    /// without marks.
    pub(in crate::molecule) fn canonical_marked(&self, mut graph: GraphState) -> Canonical {
        if self.marks().is_empty() {
            return with_canonizer(|canonizer| canonizer.canonical(&graph, 0));
        }
        let n = graph.n_nodes();
        let mut oriented = graph.clone();
        self.orient(&mut oriented, self.marks());
        let mut found = with_canonizer(|canonizer| canonizer.canonical(&oriented, 0));
        found.order.retain(|a| (*a as usize) < n);
        let rank = ranks(&found.order);
        for mark in self.marks() {
            let value = 1 + u8::from(self.sign_among(*mark, &rank));
            // Setting the attribute can't fail, because the node or edge exists in the molecule's graph.
            let set = match mark.element {
                StereoElement::Centre(a) => {
                    let mut node = graph.node(a as u32).unwrap_or_default();
                    node.attributes.set(3, value);
                    graph.set_node(a as u32, node)
                }
                StereoElement::DoubleBond(k) => {
                    let a = self.bonds()[k].a as u32;
                    let b = self.bonds()[k].b as u32;
                    let mut edge = graph.edge(a, b).unwrap_or_default();
                    edge.attributes.set(0, value);
                    graph.set_edge(a, b, edge)
                }
            };
            debug_assert!(set.is_ok());
        }
        found.key = labelled_key(&graph.induced(&found.order));
        found
    }

    /// Returns the sign that a stereo mark has relative to another order of the atoms. `rank[a]` is the
    /// position of atom `a` in this order.
    pub(crate) fn sign_among(&self, mark: StereoMark, rank: &[usize]) -> bool {
        let turned = |atoms: Vec<usize>| is_odd(&atoms.into_iter().map(|a| rank[a]).collect::<Vec<_>>());
        self.ligands(mark.element).into_iter().fold(mark.positive, |sign, atoms| sign ^ turned(atoms))
    }

    /// Returns `true` if both signs of a stereo element are equivalent, because a symmetry of the given graph
    /// exchanges them. Attributes of the graph's nodes may restrict its symmetries.
    pub(super) fn turns_in(&self, graph: &GraphState, element: StereoElement) -> bool {
        let [one, other] = [true, false].map(|positive| {
            let mut graph = graph.clone();
            self.orient(&mut graph, &[StereoMark { element, positive }]);
            with_canonizer(|canonizer| canonizer.canonical(&graph, 0)).key
        });
        one == other
    }
}
