//! Stereochemistry in states: the nodes that represent marks (signs of stereo elements), and the actions
//! that set signs.

use gfn::env::Direction;
use gfn::graph::{
    Anchor, Edge, GraphActionType, GraphSchema, GraphState, GraphView, Head, Move, Node, Semantics,
    with_canonizer,
};
use gfn::{Error, Result};

use super::MoleculeCodec;
use super::codec::Rules;
use crate::molecule::{MarkNode, ranks};
use crate::{Molecule, StereoElement, StereoMark};

/// The largest number of nodes that represent one mark (the sign of a stereo element) in a state.
const MOST: usize = 12;
/// The number of node classes that are reserved for the nodes that represent stereo marks.
const CLASSES: usize = 2;
/// The number of edge classes. Class 0 is for bonds, and classes 1 to 4 are for edges at nodes that represent
/// stereo marks.
const EDGE_CLASSES: usize = 5;

impl Rules {
    /// Returns `true` if a state has stereo marks. A state with marks can't grow.
    pub(super) fn is_marked(&self, graph: &GraphState) -> bool {
        graph.nodes().any(|node| self.is_extra(node))
    }

    /// Returns `true` if the node is one of those that represent a stereo mark. Without stereochemistry there
    /// are no such nodes: node classes after those of the elements then belong to a scaffold.
    fn is_extra(&self, node: Node) -> bool {
        self.config.stereo && usize::from(node.class) >= self.config.elements.len()
    }

    /// Returns the nodes of a state that represent atoms, in ascending order. The other nodes represent
    /// stereo marks.
    pub(super) fn atom_nodes(&self, graph: &GraphState) -> Vec<u32> {
        (0u32..).zip(graph.nodes()).filter(|(_, node)| !self.is_extra(*node)).map(|(a, _)| a).collect()
    }

    /// Returns the nodes that represent a stereo mark in a state. Each node is given by its class and its
    /// edges, and each edge by its other end and its class. `names[a]` is the node of the molecule's atom
    /// `a`.
    fn extra_nodes(&self, molecule: &Molecule, mark: StereoMark, names: &[u32]) -> Vec<MarkNode> {
        let first = self.config.elements.len() as u16;
        let named = |(class, edges): MarkNode| {
            let mut edges: Vec<_> =
                edges.into_iter().map(|(a, class)| (names[a] as usize, 1 + class)).collect();
            edges.sort_unstable();
            (first + class, edges)
        };
        molecule.extra_nodes(mark).into_iter().map(named).collect()
    }

    /// Adds the nodes that represent a mark to a state. `names[a]` is the node of the molecule's atom `a`.
    pub(super) fn add_mark(
        &self,
        graph: &mut GraphState,
        molecule: &Molecule,
        mark: StereoMark,
        names: &[u32],
    ) -> Result<()> {
        for (class, edges) in self.extra_nodes(molecule, mark, names) {
            let node = graph.add_node(Node::from_class(class));
            for (a, class) in edges {
                graph.add_edge(node, a as u32, Edge::from_class(class))?;
            }
        }
        Ok(())
    }
}

/// A state that was converted into a molecule with marks.
pub(super) struct MarkedState {
    /// The molecule, with a mark for each sign that is set in the state.
    pub(super) molecule: Molecule,
    /// The node that represents each atom of the molecule in the state.
    pub(super) names: Vec<u32>,
    /// The nodes that represent each mark, in the order in which [`Rules::add_mark`] adds them.
    nodes: Vec<Vec<u32>>,
}

impl MarkedState {
    /// Returns the number of nodes that represent the atoms and marks found in the state.
    pub(super) fn n_nodes(&self) -> usize {
        self.names.len() + self.nodes.iter().map(Vec::len).sum::<usize>()
    }
}

impl MoleculeCodec {
    /// Converts a state into a molecule that has a mark for each sign that is set in the state.
    pub(super) fn marked_state(&self, graph: &GraphState) -> Result<MarkedState> {
        let rules = self.rules();
        let mut marks = Vec::new();
        let mut nodes = Vec::new();
        let names = rules.atom_nodes(graph);
        if names.len() == graph.n_nodes() {
            return Ok(MarkedState { molecule: self.plain(graph)?, names, nodes });
        }
        let molecule = self.plain(&graph.induced(&names))?;
        let look = |(node, weight): (u32, Node)| {
            let edge = |a: usize| (a, graph.edge(node, a as u32).unwrap_or_default().class);
            (node, (weight.class, graph.adjacency().neighbours(node as usize).map(edge).collect()))
        };
        let extra = (0u32..).zip(graph.nodes()).filter(|(_, node)| rules.is_extra(*node));
        let looks: Vec<(u32, MarkNode)> = extra.map(look).collect();
        let find = |look: MarkNode| looks.iter().find(|(_, other)| *other == look).map(|(node, _)| *node);
        for element in molecule.stereo_elements() {
            for positive in [true, false] {
                let mark = StereoMark { element, positive };
                let found =
                    rules.extra_nodes(&molecule, mark, &names).into_iter().map(find).collect::<Option<_>>();
                if let Some(found) = found {
                    marks.push(mark);
                    nodes.push(found);
                    break;
                }
            }
        }
        Ok(MarkedState { molecule: molecule.with_stereo_marks(marks), names, nodes })
    }
}

/// The action type that sets the sign of a stereo element: of centres, or of double bonds if `of_bonds` is
/// `true`. A backward move removes the sign.
///
/// The sign that a move sets is relative to the order of the element's neighbours in the canonical order of
/// the state. If a symmetry of the state makes this order ambiguous, both signs lead to isomorphic states.
#[derive(Clone, Debug)]
pub(super) struct SetSign {
    pub(super) codec: MoleculeCodec,
    pub(super) of_bonds: bool,
}

impl SetSign {
    /// Returns the stereo element whose sign a move sets or removes.
    fn element(&self, state: &MarkedState, action: Move) -> Result<StereoElement> {
        let molecule = &state.molecule;
        let atom = |a: u32| state.names.iter().position(|name| *name == a);
        let found = if self.of_bonds {
            atom(action.a).zip(atom(action.b)).and_then(|(a, b)| {
                let joins = |k: &usize| molecule.bonds()[*k].other_end(a) == b;
                molecule.bonds_at(a).iter().copied().find(joins).map(StereoElement::DoubleBond)
            })
        } else {
            atom(action.a).map(StereoElement::Centre)
        };
        let refuse = || {
            Error::config(
                "the place of a sign of stereochemistry",
                format!("{action:?}"),
                "an atom or a double bond of the molecule",
            )
        };
        found.ok_or_else(refuse)
    }

    /// Returns the sign that the move with `class` 0 at this stereo element sets. The move with `class` 1
    /// sets the opposite sign.
    fn first_sign(graph: &GraphState, molecule: &Molecule, names: &[u32], element: StereoElement) -> bool {
        let order = with_canonizer(|canonizer| canonizer.canonical(graph, 0)).order;
        let places = ranks(&order);
        let rank: Vec<usize> = names.iter().map(|&a| places[a as usize]).collect();
        molecule.sign_among(StereoMark { element, positive: true }, &rank)
    }

    /// Returns the graph as a molecule with marks, and the index of the mark that the backward move `action`
    /// removes. Returns `None` if the stereo element of the move has no mark.
    fn set_sign(&self, graph: &GraphState, action: Move) -> Result<Option<(MarkedState, usize)>> {
        let state = self.codec.marked_state(graph)?;
        let element = self.element(&state, action)?;
        let place = state.molecule.marks().iter().position(|mark| mark.element == element);
        Ok(place.map(|place| (state, place)))
    }

    /// Returns the nodes that represent the stereo mark (the sign) which a backward move removes. The list is
    /// empty if the centre or double bond of the move has no mark.
    fn nodes_of_sign(&self, graph: &GraphState, action: Move) -> Result<Vec<u32>> {
        let set = self.set_sign(graph, action)?;
        Ok(set.map_or_else(Vec::new, |(mut state, place)| state.nodes.swap_remove(place)))
    }
}

impl GraphActionType for SetSign {
    fn name(&self) -> &str {
        if self.of_bonds { "set_double_bond_sign" } else { "set_centre_sign" }
    }

    fn widen(&self, schema: &mut GraphSchema) {
        let config = self.codec.config();
        schema.node_classes = schema.node_classes.max(config.elements.len() + CLASSES);
        schema.edge_classes = schema.edge_classes.max(EDGE_CLASSES);
        schema.max_nodes = schema.max_nodes.max((1 + MOST) * config.max_atoms);
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let anchor = if self.of_bonds { Anchor::Edge } else { Anchor::Node };
        Some(Head { anchor, width: if direction == Direction::Forward { 2 } else { 1 } })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        if graph.n_nodes() == 0 || (direction == Direction::Backward && !self.codec.rules().is_marked(&graph))
        {
            return;
        }
        // A graph that isn't a molecule has no legal moves of this type.
        let Ok(MarkedState { molecule, names, .. }) = self.codec.marked_state(&graph) else { return };
        let open =
            |element: &StereoElement| molecule.sign(*element).is_none() == (direction == Direction::Forward);
        let width = if direction == Direction::Forward { 2 } else { 1 };
        for element in molecule.stereo_elements().into_iter().filter(open) {
            let row = match element {
                StereoElement::Centre(a) => (!self.of_bonds).then_some(names[a] as usize),
                StereoElement::DoubleBond(k) => {
                    let bond = molecule.bonds()[k];
                    let a = names[bond.a].min(names[bond.b]);
                    let b = names[bond.a].max(names[bond.b]);
                    let place = || graph.weighted_edges().position(|(c, d, _)| (c, d) == (a, b));
                    if self.of_bonds { place() } else { None }
                }
            };
            if let Some(legal) = row.and_then(|row| mask.get_mut(width * row..width * (row + 1))) {
                legal.fill(true);
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        if direction == Direction::Forward {
            let state = self.codec.marked_state(graph)?;
            let element = self.element(&state, action)?;
            let MarkedState { molecule, names, .. } = state;
            let positive = Self::first_sign(graph, &molecule, &names, element) == (action.class == 0);
            return self.codec.rules().add_mark(graph, &molecule, StereoMark { element, positive }, &names);
        }
        let mut nodes = self.nodes_of_sign(graph, action)?;
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.into_iter().try_for_each(|node| graph.remove_node(node).map(|_| ()))
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        if direction == Direction::Forward {
            return Move { class: 0, ..action };
        }
        let Ok(Some((state, place))) = self.set_sign(before, action) else { return action };
        let molecule = &state.molecule;
        let mark = state.molecule.marks()[place];
        let left: Vec<u32> =
            (0..before.n_nodes() as u32).filter(|a| !state.nodes[place].contains(a)).collect();
        let parent = before.induced(&left);
        let names = self.codec.rules().atom_nodes(&parent);
        let first = Self::first_sign(&parent, molecule, &names, mark.element);
        Move { class: u32::from(first != mark.positive), ..action }
    }

    fn removed_nodes(&self, direction: Direction, before: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Forward {
            return Vec::new();
        }
        self.nodes_of_sign(before, action).unwrap_or_default()
    }
}
