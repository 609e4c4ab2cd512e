use gfn::env::Direction;
use gfn::graph::{Anchor, GraphActionType, GraphState, GraphView, Head, Move, Node, Semantics};
use gfn::{Error, Result};

use super::FragmentLibrary;
use super::library::Port;
use super::normal::normalise;
use super::tree::{Tree, arc};

/// The action type that attaches a new fragment, by one of its stems, to a stem of an existing fragment.
/// The backward action removes a leaf and its bond.
///
/// A port is a stem of a fragment in the library, and the library has `n` ports. A node has a logit for each
/// pair of a stem and a port. Logit `k * n + p` attaches a new fragment by port `p` to stem `k` of the node's
/// fragment. The graph is in normal form before and after the action ([`normalise`]), so that equal trees
/// have the same logits.
#[derive(Debug)]
pub(super) struct Attach {
    pub(super) library: FragmentLibrary,
    pub(super) max_fragments: usize,
}

impl Attach {
    fn split(&self, class: u32) -> (u8, Port) {
        let n = self.library.ports().len();
        let class = class as usize;
        ((class / n) as u8, self.library.ports()[class % n])
    }

    fn class(&self, stem: u8, port: Port) -> u32 {
        let ports = self.library.ports();
        let place = ports.iter().position(|other| *other == port).unwrap_or(0);
        (usize::from(stem) * ports.len() + place) as u32
    }
}

impl GraphActionType for Attach {
    fn name(&self) -> &str {
        "attach_fragment"
    }

    fn head(&self, direction: Direction) -> Option<Head> {
        let width = match direction {
            Direction::Forward => self.library.max_stems() * self.library.ports().len(),
            Direction::Backward => 1,
        };
        Some(Head { anchor: Anchor::Node, width })
    }

    fn mask(&self, direction: Direction, _: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        let n = graph.n_nodes();
        if direction == Direction::Backward {
            let leaf = |a: usize| n > 1 && graph.out_degree(a as u32) == 1;
            for (a, legal) in mask.iter_mut().enumerate() {
                *legal = leaf(a);
            }
            return;
        }
        if n >= self.max_fragments {
            return;
        }
        let tree = Tree::from_graph(&graph);
        let n_ports = self.library.ports().len();
        for (a, columns) in mask.chunks_exact_mut(self.library.max_stems() * n_ports).enumerate() {
            for (room, stem) in tree.room(&self.library, a).into_iter().zip(columns.chunks_exact_mut(n_ports))
            {
                stem.fill(room > 0);
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        let refuse = |check, detail| Err(Error::contract(check, detail));
        let a = action.a;
        match direction {
            Direction::Backward => {
                if graph.n_nodes() < 2 || graph.out_degree(a) != 1 {
                    return refuse(
                        "only a leaf can be removed from a tree of fragments",
                        format!("node {a} of {graph:?}"),
                    );
                }
                graph.remove_node(a)?;
            }
            Direction::Forward => {
                let (stem, port) = self.split(action.class);
                let room = Tree::from_graph(graph).room(&self.library, a as usize);
                if graph.n_nodes() >= self.max_fragments
                    || room.get(usize::from(stem)).is_none_or(|&room| room == 0)
                {
                    let most = self.max_fragments;
                    let detail = format!(
                        "stem {stem} of node {a} has no room, or {graph:?} already has the most fragments, \
                         {most}"
                    );
                    return refuse(
                        "a fragment can only be attached to a stem with room, in a tree that may still grow",
                        detail,
                    );
                }
                let new = graph.add_node(Node::from_class(port.fragment));
                graph.add_edge(action.a, new, arc(stem, port.stem))?;
                graph.add_edge(new, action.a, arc(port.stem, stem))?;
            }
        }
        normalise(&self.library, graph).map(|_| ())
    }

    fn reverse(&self, direction: Direction, before: &GraphState, action: Move) -> Move {
        if direction == Direction::Forward {
            return Move { a: before.n_nodes() as u32, ..Move::default() };
        }
        // A fragment that is bonded to no other fragment or to several isn't a leaf that can be removed, so
        // the action is returned unchanged.
        let links = Tree::from_graph(before).links;
        let Some(&[link]) = links.get(action.a as usize).map(Vec::as_slice) else { return action };
        let node = link.to as u32;
        let stem = link.other_stem;
        let fragment = before.node(action.a).unwrap_or_default().class;
        // After the leaf is removed, the remaining tree is brought into normal form. This may change the
        // index of the stem that the leaf was attached to.
        let left: Vec<u32> = (0..before.n_nodes() as u32).filter(|&a| a != action.a).collect();
        let mut parent = before.induced(&left);
        let turned = normalise(&self.library, &mut parent).ok().and_then(|turns| {
            let on = self.library.fragments().get(usize::from(before.node(node)?.class))?;
            let place = left.iter().position(|&a| a == node)?;
            on.symmetries().get(*turns.get(place)?)?.get(usize::from(stem)).copied()
        });
        let turned = turned.unwrap_or(stem);
        Move { a: node, b: 0, class: self.class(turned, Port { fragment, stem: link.stem }) }
    }

    fn removed_nodes(&self, direction: Direction, _: &GraphState, action: Move) -> Vec<u32> {
        if direction == Direction::Backward { vec![action.a] } else { Vec::new() }
    }

    /// Translates an action from one graph of a tree to another graph of the same tree; both graphs are in
    /// normal form. The two graphs may bond equal branches to different stems of a fragment. The action's
    /// stem is therefore mapped by a symmetry of the fragment. This symmetry maps the stem that a neighbour
    /// is bonded to in one graph to the stem that the same neighbour is bonded to in the other graph.
    fn rename(
        &self,
        direction: Direction,
        action: Move,
        names: &[u32],
        from: &GraphState,
        to: &GraphState,
    ) -> Move {
        let a = names.get(action.a as usize).copied().unwrap_or(action.a);
        if direction == Direction::Backward {
            return Move { a, ..action };
        }
        let (stem, port) = self.split(action.class);
        let class = from.node(action.a).unwrap_or_default().class;
        let symmetries =
            self.library.fragments().get(usize::from(class)).map_or(&[][..], |on| on.symmetries());
        let stem_to = |graph: &GraphState, a: u32, b: u32| {
            graph.edge(a, b).map(|edge| usize::from(edge.attributes.get(0)).saturating_sub(1))
        };
        let carries = |symmetry: &&Vec<u8>| {
            from.adjacency().neighbours(action.a as usize).all(|b| {
                let name = names.get(b).copied().unwrap_or(b as u32);
                let image = stem_to(from, action.a, b as u32).and_then(|stem| symmetry.get(stem).copied());
                image.map(usize::from) == stem_to(to, a, name)
            })
        };
        let carried = symmetries.iter().find(carries).and_then(|symmetry| symmetry.get(usize::from(stem)));
        let stem = carried.copied().unwrap_or(stem);
        Move { a, b: 0, class: self.class(stem, port) }
    }
}
