use gfn::graph::{Edge, GraphKind, GraphState};
use gfn::{Error, Result};

use super::FragmentLibrary;
use crate::{AtomSpec, BondOrder, Molecule, ValenceTable};

/// A bond between two fragments, as seen from one of the two fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// The node of the fragment at the other end of the bond.
    pub(super) to: usize,
    /// The index of the stem (attachment atom) in the fragment at this end of the bond.
    pub(super) stem: u8,
    /// The index of the stem (attachment atom) in the fragment at the other end of the bond.
    pub(super) other_stem: u8,
}

/// A junction tree as two lists: the fragment of each node, and the bonds of each node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tree {
    pub(super) fragments: Vec<usize>,
    pub(super) links: Vec<Vec<Link>>,
}

/// Returns the edge value that a graph stores for the arc between two fragments. Its two attributes are the
/// stem at its source and the stem at its target. The attributes number the stems from 1, and the arguments
/// from 0.
pub(super) fn arc(stem: u8, other: u8) -> Edge {
    let mut edge = Edge::default();
    edge.attributes.set(0, stem + 1);
    edge.attributes.set(1, other + 1);
    edge
}

impl Tree {
    /// Converts a graph into a tree without checking it. The graph need not be a valid tree of fragments.
    pub(super) fn from_graph(graph: &GraphState) -> Self {
        let fragments: Vec<usize> = graph.nodes().map(|node| usize::from(node.class)).collect();
        let mut links = vec![Vec::new(); fragments.len()];
        for edge in graph.as_directed().map_or(&[][..], |graph| graph.raw_edges()) {
            let stem = |k: usize| edge.weight.attributes.get(k).saturating_sub(1);
            let link = Link { to: edge.target().index(), stem: stem(0), other_stem: stem(1) };
            links[edge.source().index()].push(link);
        }
        // The order in which a graph lists its edges has no meaning. The bonds of each node are sorted, so
        // that the result doesn't depend on this order.
        for links in &mut links {
            links.sort_unstable_by_key(|link| link.to);
        }
        Self { fragments, links }
    }

    /// Returns the number of further attachments that each stem of a node has room for. The list is empty
    /// if the node's class isn't in the library.
    pub(super) fn room(&self, library: &FragmentLibrary, node: usize) -> Vec<u8> {
        let fragment = self.fragments.get(node).and_then(|&k| library.fragments().get(k));
        let stems = fragment.map_or(&[][..], |fragment| fragment.stems());
        let mut room: Vec<u8> = stems.iter().map(|stem| stem.room).collect();
        for link in self.links.get(node).into_iter().flatten() {
            if let Some(room) = room.get_mut(usize::from(link.stem)) {
                *room = room.saturating_sub(1);
            }
        }
        room
    }

    /// Returns the reason why the graph isn't a tree of fragments of this library; `None` if it is such a
    /// tree.
    fn problem(&self, library: &FragmentLibrary, graph: &GraphState) -> Option<String> {
        let n = self.fragments.len();
        if n == 0 || graph.kind() != GraphKind::Directed || graph.n_edges() != 2 * (n - 1) {
            return Some(format!("a {:?} graph of {n} nodes and {} edges", graph.kind(), graph.n_edges()));
        }
        if let Some(node) = self.fragments.iter().position(|&k| k >= library.fragments().len()) {
            return Some(format!("a graph whose node {node} has class {}", self.fragments[node]));
        }
        if let Some(node) = graph.nodes().position(|node| !node.attributes.is_unset()) {
            return Some(format!("a graph whose node {node} has attributes"));
        }
        let stems_alone = |arc: &Edge| {
            let [stem, other, rest @ ..] = arc.attributes.values();
            arc.class == 0 && *stem > 0 && *other > 0 && rest.iter().all(|&value| value == 0)
        };
        for arc in graph.as_directed().map_or(&[][..], |graph| graph.raw_edges()) {
            if !stems_alone(&arc.weight) {
                let Edge { class, attributes } = arc.weight;
                return Some(format!(
                    "a graph with an arc of class {class} and attributes {:?}",
                    attributes.values()
                ));
            }
        }
        for (node, links) in self.links.iter().enumerate() {
            let stems = library.fragments()[self.fragments[node]].stems();
            let mut used = vec![0; stems.len()];
            for link in links {
                let back = Link { to: node, stem: link.other_stem, other_stem: link.stem };
                let stem = usize::from(link.stem);
                if !self.links[link.to].contains(&back)
                    || stem >= stems.len()
                    || used[stem] >= stems[stem].room
                {
                    return Some(format!(
                        "a graph whose node {node} has stem {stem} bonded to node {}",
                        link.to
                    ));
                }
                used[stem] += 1;
            }
        }
        let connected = graph.as_directed().is_some_and(|g| petgraph::algo::connected_components(g) == 1);
        (!connected).then(|| format!("a graph of {n} nodes in several parts"))
    }

    /// Returns an error unless the graph is a tree of fragments in which no stem has more attachments than
    /// it has room for. The empty graph is an error, too.
    pub(super) fn check(&self, library: &FragmentLibrary, graph: &GraphState) -> Result<()> {
        let expected = "a tree of fragments of the library that are bonded at stems with room";
        match self.problem(library, graph) {
            None => Ok(()),
            Some(got) => Err(Error::config("a graph to be read as fragments", got, expected)),
        }
    }
}

impl FragmentLibrary {
    /// Converts a tree of fragments into a molecule, which is always valid. Every bond of the tree becomes
    /// a single bond between the atoms of two stems, and replaces a hydrogen of each atom. The molecule's
    /// atoms are in the order of their fragments.
    ///
    /// # Errors
    /// [`Error::Config`] for a graph that isn't a tree of this library's fragments: the empty graph, or a
    /// graph from another environment.
    pub fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        let tree = Tree::from_graph(graph);
        tree.check(self, graph)?;
        let mut atoms = Vec::new();
        let mut bonds = Vec::new();
        let mut first = Vec::new();
        for &fragment in &tree.fragments {
            let molecule = self.fragments()[fragment].molecule();
            let start = atoms.len();
            first.push(start);
            atoms.extend(molecule.atoms().iter().map(AtomSpec::from));
            bonds.extend(molecule.bonds().iter().map(|bond| (start + bond.a, start + bond.b, bond.order)));
        }
        for (node, links) in tree.links.iter().enumerate() {
            let at = |node: usize, stem: u8| {
                first[node] + self.fragments()[tree.fragments[node]].stems()[usize::from(stem)].atom
            };
            for link in links {
                let atom = at(node, link.stem);
                atoms[atom].hydrogens = atoms[atom].hydrogens.map(|hydrogens| hydrogens - 1);
                if node < link.to {
                    bonds.push((atom, at(link.to, link.other_stem), BondOrder::Single));
                }
            }
        }
        Ok(Molecule::new(&ValenceTable::default(), &atoms, &bonds)?)
    }
}
