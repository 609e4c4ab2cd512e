//! Stereochemistry in states: marks as nodes, and the moves that set them.

use gfn::env::Direction;
use gfn::graph::{
    Anchor, Edge, GraphActionType, GraphSchema, GraphState, GraphView, Head, Move, Node, Semantics, with_canonizer,
};
use gfn::{Error, Result};

use super::MoleculeCodec;
use super::codec::Rules;
use crate::molecule::ranks;
use crate::{Molecule, StereoElement, StereoMark};

/// The most nodes that a mark has.
const MOST: usize = 12;
/// Classes of these nodes, and those of their edges but for 0, which a bond has.
const CLASSES: usize = 2;
const EDGE_CLASSES: usize = 5;

impl Rules {
    /// `true` if a state has marks: it grows no more.
    pub(super) fn is_marked(&self, graph: &GraphState) -> bool {
        graph.nodes().any(|node| self.is_extra(node))
    }

    /// A node of a mark; where states have none, classes behind those of the elements are a scaffold's.
    fn is_extra(&self, node: Node) -> bool {
        self.config.stereo && usize::from(node.class) >= self.config.elements.len()
    }

    /// The nodes that are atoms, ascending.
    pub(super) fn atom_nodes(&self, graph: &GraphState) -> Vec<u32> {
        (0u32..).zip(graph.nodes()).filter(|(_, node)| !self.is_extra(*node)).map(|(a, _)| a).collect()
    }

    /// The nodes that a mark is, each with its edges: to which nodes, and of which class.
    fn extra_nodes(&self, molecule: &Molecule, mark: StereoMark, names: &[u32]) -> Vec<(u16, Vec<(u32, u16)>)> {
        let first = self.config.elements.len() as u16;
        let named = |edges: Vec<(usize, u16)>| {
            let mut edges: Vec<_> = edges.into_iter().map(|(a, class)| (names[a], 1 + class)).collect();
            edges.sort_unstable();
            edges
        };
        molecule.extra_nodes(mark).into_iter().map(|extra| (first + extra.class, named(extra.edges))).collect()
    }

    /// Adds the nodes of a mark; `names` are the atoms' nodes.
    pub(super) fn add_mark(
        &self,
        graph: &mut GraphState,
        molecule: &Molecule,
        mark: StereoMark,
        names: &[u32],
    ) -> Result<()> {
        for (class, edges) in self.extra_nodes(molecule, mark, names) {
            let node = graph.add_node(Node::of_class(class));
            for (a, class) in edges {
                graph.add_edge(node, a, Edge::of_class(class))?;
            }
        }
        Ok(())
    }

    /// The nodes of a mark in a state, in the order in which they would be added; none where it isn't set like this.
    fn nodes_of(&self, graph: &GraphState, molecule: &Molecule, mark: StereoMark, names: &[u32]) -> Vec<u32> {
        let look = |node: u32| -> Vec<(u32, u16)> {
            let beside = graph.adjacency().ones(node as usize).map(|a| a as u32);
            beside.map(|a| (a, graph.edge(node, a).unwrap_or_default().class)).collect()
        };
        let extra = (0u32..).zip(graph.nodes()).filter(|(_, node)| self.is_extra(*node));
        let looks: Vec<_> = extra.map(|(a, node)| (a, node.class, look(a))).collect();
        let find = |(class, edges): (u16, Vec<(u32, u16)>)| {
            looks.iter().find(|(_, other, look)| *other == class && *look == edges).map(|(a, ..)| *a)
        };
        let found: Option<Vec<u32>> = self.extra_nodes(molecule, mark, names).into_iter().map(find).collect();
        found.unwrap_or_default()
    }
}

impl MoleculeCodec {
    /// The molecule that a state is with its marks as they are set, and the nodes that are its atoms.
    pub(super) fn marked(&self, graph: &GraphState) -> Result<(Molecule, Vec<u32>)> {
        let rules = self.rules();
        if !rules.config.stereo || !rules.is_marked(graph) {
            return Ok((self.plain(graph)?, (0..graph.n_nodes() as u32).collect()));
        }
        let names = rules.atom_nodes(graph);
        let molecule = self.plain(&graph.induced(&names))?;
        let set = |element| {
            let marks = [true, false].map(|positive| StereoMark { element, positive });
            marks.into_iter().find(|mark| !rules.nodes_of(graph, &molecule, *mark, &names).is_empty())
        };
        let marks = molecule.stereo_elements().into_iter().filter_map(set).collect();
        Ok((molecule.marked(marks), names))
    }
}

/// Sets the sign of a centre, or of a double bond; the way back takes it off.
///
/// A sign is relative to the order of the neighbours in the state's canonical order. Where a symmetry of the state makes that ambiguous,
/// both signs lead to the same state up to isomorphism.
#[derive(Clone, Debug)]
pub(super) struct SetSign {
    pub(super) codec: MoleculeCodec,
    pub(super) of_bonds: bool,
}

impl SetSign {
    /// The element that a move is of, in a molecule whose atoms are these nodes.
    fn element(&self, molecule: &Molecule, names: &[u32], action: Move) -> Result<StereoElement> {
        let atom = |a: u32| names.iter().position(|name| *name == a);
        let found = if self.of_bonds {
            atom(action.a).zip(atom(action.b)).and_then(|(a, b)| {
                let joins = |k: &usize| molecule.bonds()[*k].other(a) == b;
                molecule.bonds_at(a).iter().copied().find(joins).map(StereoElement::DoubleBond)
            })
        } else {
            atom(action.a).map(StereoElement::Centre)
        };
        let refuse =
            || Error::config("a sign to be set", format!("{action:?}"), "an atom or a double bond of the molecule");
        found.ok_or_else(refuse)
    }

    /// The sign that the first column stands for.
    fn first_sign(graph: &GraphState, molecule: &Molecule, names: &[u32], element: StereoElement) -> bool {
        let order = with_canonizer(|canonizer| canonizer.canonical(graph, 0)).order;
        let places = ranks(&order);
        let rank: Vec<usize> = names.iter().map(|&a| places[a as usize]).collect();
        molecule.sign_among(StereoMark { element, positive: true }, &rank)
    }

    /// The sign that a move takes off; none where there is none.
    fn set_sign(&self, graph: &GraphState, action: Move) -> Result<Option<SignSet>> {
        let (molecule, names) = self.codec.marked(graph)?;
        let element = self.element(&molecule, &names, action)?;
        Ok(molecule.sign(element).map(|positive| {
            let mark = StereoMark { element, positive };
            let nodes = self.codec.rules().nodes_of(graph, &molecule, mark, &names);
            SignSet { molecule, mark, nodes }
        }))
    }
}

/// A sign of a state.
struct SignSet {
    molecule: Molecule,
    mark: StereoMark,
    nodes: Vec<u32>,
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
        if graph.n_nodes() == 0 || (direction == Direction::Backward && !self.codec.rules().is_marked(&graph)) {
            return;
        }
        // A graph that is no molecule has no signs to set.
        let Ok((molecule, names)) = self.codec.marked(&graph) else { return };
        let open = |element: &StereoElement| molecule.sign(*element).is_none() == (direction == Direction::Forward);
        let width = if direction == Direction::Forward { 2 } else { 1 };
        for element in molecule.stereo_elements().into_iter().filter(open) {
            let row = match element {
                StereoElement::Centre(a) => (!self.of_bonds).then_some(names[a] as usize),
                StereoElement::DoubleBond(k) => {
                    let bond = molecule.bonds()[k];
                    let (a, b) = (names[bond.a].min(names[bond.b]), names[bond.a].max(names[bond.b]));
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
            let (molecule, names) = self.codec.marked(graph)?;
            let element = self.element(&molecule, &names, action)?;
            let positive = Self::first_sign(graph, &molecule, &names, element) == (action.class == 0);
            return self.codec.rules().add_mark(graph, &molecule, StereoMark { element, positive }, &names);
        }
        let mut nodes = self.set_sign(graph, action)?.map_or_else(Vec::new, |set| set.nodes);
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.into_iter().try_for_each(|node| graph.remove_node(node).map(|_| ()))
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        if direction == Direction::Forward {
            return Move { class: 0, ..action };
        }
        let Ok(Some(SignSet { molecule, mark, nodes })) = self.set_sign(before, action) else { return action };
        let left: Vec<u32> = (0..before.n_nodes() as u32).filter(|a| !nodes.contains(a)).collect();
        let parent = before.induced(&left);
        let names = self.codec.rules().atom_nodes(&parent);
        let first = Self::first_sign(&parent, &molecule, &names, mark.element);
        Move { class: u32::from(first != mark.positive), ..action }
    }

    fn removed_nodes(&self, direction: Direction, before: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Forward {
            return Vec::new();
        }
        self.set_sign(before, action).ok().flatten().map_or_else(Vec::new, |set| set.nodes)
    }
}
