use gfn::graph::{
    ActionSet, AddNode, BackwardRule, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState, Semantics,
};
use gfn::{Error, Result};

use super::FragmentLibrary;
use super::action::Attach;
use super::normal::{Normal, normalise};
use super::tree::Tree;
use crate::Molecule;

/// The largest number of fragments of a tree. Trees are traversed by recursion, so larger trees could
/// overflow the stack.
const MAX_FRAGMENTS: usize = 1_000;

/// An environment of junction trees. A junction tree consists of fragments of a library, which are joined
/// by single bonds between their stems. Actions add one fragment at a time.
///
/// The first fragment is any fragment of the library. Each later fragment is bonded, by one of its stems,
/// to a stem that is still free. Every tree but the empty graph can be finished, and every tree is a valid
/// molecule ([`FragmentLibrary::molecule`]). A backward action removes a leaf and its bond.
///
/// # Identity of trees
/// Two trees are the same if they are isomorphic up to symmetries of each fragment. For example, all trees
/// with two attachments at neighbouring atoms of a benzene fragment are the same, but trees with
/// attachments at opposite atoms are different from them. States are kept in a normal form, so that each
/// tree is one state up to isomorphism. **The target is a distribution over junction trees.** Several trees
/// are the same molecule if the molecule can be cut into fragments in several ways.
///
/// # Symmetry
/// Every stem has separate actions, even if a symmetry makes several stems equivalent. Without a correction,
/// trees would therefore be sampled in proportion to R(G) prod |Aut(F)| / |Aut(G)|, where |Aut| counts the
/// automorphisms of a fragment F or of the tree G. Training corrects for that with the factor |Aut(G)| / prod
/// |Aut(F)| (Kim et al., *Symmetry-Aware GFlowNets*, 2025, theorem for fragments), unless
/// [`GraphEnv::with_symmetry_correction`] disables the correction. |Aut(G)| counts permutations of the
/// fragments combined with symmetries of each fragment.
///
/// # Graphs
/// The class of a node is the index of its fragment in the library. A bond is stored as two opposite arcs.
/// The attributes of an arc are the stems at its source and at its target, numbered from 1 (0 means that a
/// stem isn't set). An undirected edge isn't enough, because its attributes don't tell which stem is at which
/// of its two ends.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// use gfn_molecules::fragments::{FragmentLibrary, Fragments};
/// let library = FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nC 0")?;
/// let env = Fragments::new(&library, 4)?.into_env();
/// let mut states = env.initial(&[0]);
/// // Benzene, then a methyl group on one of its six atoms.
/// env.step(Direction::Forward, &mut states, &gfn::env::Slots(vec![0]))?;
/// assert_eq!(env.masks(Direction::Forward, &states).n_legal(0), 6 * 7 + 1);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fragments {
    env: GraphEnv,
    trees: Trees,
}

/// The rules that restrict the graph environment to trees of at most `max_fragments` fragments of a
/// library.
#[derive(Clone, Debug)]
struct Trees {
    library: FragmentLibrary,
    max_fragments: usize,
}

impl Fragments {
    /// Creates the environment of trees with at most `max_fragments` fragments of a library.
    ///
    /// # Errors
    /// [`Error::Config`] for `max_fragments` of 0 or more than 1,000.
    pub fn new(library: &FragmentLibrary, max_fragments: usize) -> Result<Self> {
        if !(1..=MAX_FRAGMENTS).contains(&max_fragments) {
            let setting = "max_fragments";
            let got = max_fragments.to_string();
            return Err(Error::config(setting, got, "1 to 1,000 fragments"));
        }
        let classes = library.fragments().len();
        let mut actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::first(classes as u16));
        let mut edge_attributes = Vec::new();
        if max_fragments > 1 {
            actions = actions.with(Attach { library: library.clone(), max_fragments });
            edge_attributes = vec![library.max_stems() as u8; 2];
        }
        let kind = GraphKind::Directed;
        let schema =
            GraphSchema { node_classes: classes, edge_attributes, ..GraphSchema::plain(kind, max_fragments) };
        let trees = Trees { library: library.clone(), max_fragments };
        let env = GraphEnv::new(trees.clone(), actions, GraphState::new(kind))
            .and_then(|env| env.with_schema(schema))?;
        Ok(Self { env: env.with_backward(BackwardRule::ByType), trees })
    }

    /// Returns a reference to the graph environment, which trainers and samplers take.
    #[must_use]
    pub fn env(&self) -> &GraphEnv {
        &self.env
    }

    /// Returns the graph environment by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// Converts a tree of fragments into a state, which is the tree in its normal form. The nodes keep
    /// their order.
    ///
    /// ```
    /// use gfn::graph::{Attributes, Edge, GraphKind, GraphRules, GraphState, Node};
    /// use gfn_molecules::fragments::{FragmentLibrary, Fragments};
    /// let env = Fragments::new(&FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nC 0")?, 4)?;
    /// // Toluene: the methyl group is attached to the last atom of the ring.
    /// let arc = |stems: [u8; 2]| Attributes::new(&stems).map(|attributes| Edge { class: 0, attributes });
    /// let arcs = [(0, 1, arc([6, 1])?), (1, 0, arc([1, 6])?)];
    /// let graph =
    ///     GraphState::from_parts(GraphKind::Directed, &[Node::from_class(0), Node::from_class(1)], &arcs)?;
    /// let rules = env.env().rules();
    /// assert!(!rules.is_reachable(&graph));
    /// assert!(rules.is_reachable(&env.state(&graph)?));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a graph that is neither empty nor a tree of fragments of the library, and for
    /// more than `max_fragments` fragments.
    pub fn state(&self, graph: &GraphState) -> Result<GraphState> {
        self.trees.state(graph)
    }

    /// Returns the states that represent a molecule: its trees of at most `max_fragments` fragments, as
    /// [`FragmentLibrary::trees`] returns them. At most `most` trees are returned. This number limits the
    /// search, too: if the molecule has far more trees, the search prefers trees of few fragments and may
    /// miss others.
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// use gfn_molecules::fragments::{FragmentLibrary, Fragments};
    /// let env = Fragments::new(&FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nC 0,0\nCC 0,1")?, 3)?;
    /// // One of the three trees of propylbenzene has four fragments.
    /// assert_eq!(env.trees(&Molecule::from_smiles("CCCc1ccccc1")?, 100)?.len(), 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// None in practice: every combination is a tree of fragments.
    pub fn trees(&self, molecule: &Molecule, most: usize) -> Result<Vec<GraphState>> {
        self.trees.library.trees_within(molecule, self.trees.max_fragments, most)
    }

    /// Returns the library of fragments.
    #[must_use]
    pub fn library(&self) -> &FragmentLibrary {
        &self.trees.library
    }

    /// Returns the largest number of fragments of a tree.
    #[must_use]
    pub fn max_fragments(&self) -> usize {
        self.trees.max_fragments
    }
}

impl Trees {
    fn state(&self, graph: &GraphState) -> Result<GraphState> {
        let mut out = graph.clone();
        if is_empty(&out) {
            return Ok(out);
        }
        let n = out.n_nodes();
        let most = self.max_fragments;
        if n > most {
            let setting = "a graph to be read as fragments";
            let got = format!("a graph of {n} nodes, although `max_fragments` is {most}");
            return Err(Error::config(setting, got, "at most `max_fragments` fragments"));
        }
        normalise(&self.library, &mut out)?;
        Ok(out)
    }
}

/// Returns `true` if the graph is the initial state: the empty directed graph.
fn is_empty(graph: &GraphState) -> bool {
    graph.is_directed() && graph.n_nodes() == 0
}

impl GraphRules for Trees {
    fn name(&self, graph: &GraphState) -> Option<String> {
        Some(self.library.molecule(graph).ok()?.smiles())
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() > 0
    }
    /// Returns `true` if the graph is a state: a tree in the normal form of [`Fragments::state`] that has
    /// at most `max_fragments` fragments.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        self.state(graph).is_ok_and(|state| state == *graph)
    }
    /// Computes the natural logarithm of |Aut(G)| / prod |Aut(F)|, with G the tree and F its fragments.
    /// Returns [`Error::Config`] for a graph that isn't a tree of fragments.
    fn log_automorphisms(&self, graph: &GraphState, _: usize) -> Result<f64> {
        if is_empty(graph) {
            return Ok(0.0);
        }
        let tree = Tree::from_graph(graph);
        tree.check(&self.library, graph)?;
        Ok(Normal::new(&self.library, &tree).log_symmetry(&self.library, &tree))
    }
}
