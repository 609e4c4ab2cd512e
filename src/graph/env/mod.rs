//! `GraphEnv`: an action set, a schema, a start, and an author's rules. It implements the three environment
//! traits.

mod backward;
mod classes;
mod contract;
mod dynamics;
mod enumerable;
mod move_mask;
mod reduced;
mod relabel;
mod rules;
mod scaffold;
mod schema;

use std::sync::Arc;

#[cfg(any(test, feature = "testing"))]
pub(crate) use contract::{check_by_type, check_initial_kept, check_relabelled};
pub(crate) use contract::{check_fits, check_settings};
pub use move_mask::MoveMask;
pub use reduced::ReducedGraph;
pub(crate) use reduced::{ReducedStates, check_reduced};
pub use rules::{BatchMove, Free, GraphRules};
pub use scaffold::Scaffold;
pub use schema::GraphSchema;
pub(crate) use schema::misfit;
pub(in crate::graph) use schema::raise;

use crate::graph::symmetry::list_symmetries;
use crate::graph::{ActionSet, GraphState, Semantics};
use crate::{Error, Result};

/// The way in which the legal backward actions of an environment are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackwardRule {
    /// Each backward move that an action type names is made on a copy. It is legal if the parent is
    /// reachable, still contains the initial graph, and allows the forward move. Right for any environment
    /// and any action type, and slow.
    Derived,
    /// The backward masks of the action types are exact as they stand, less what
    /// [`GraphRules::restrict_backward`] forbids.
    /// [`testing::check_graph_env`](crate::testing::check_graph_env) compares them with the derived ones.
    ByType,
}

/// An environment that builds graphs: its action types, what graphs are made of, where it starts, and an
/// author's [`GraphRules`].
///
/// It implements [`Env`](crate::env::Env), [`DiscreteEnv`](crate::env::DiscreteEnv) and
/// [`EnumerableEnv`](crate::env::EnumerableEnv).
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// use gfn::graph::*;
///
/// /// An edge and its opposite exclude each other.
/// struct Tournament;
///
/// impl GraphRules for Tournament {
///     // Called once for each action type, of which there is but one.
///     fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
///         for (a, b) in graph.edges() {
///             moves.forbid(Move { a: b, b: a, class: 0 });
///         }
///     }
/// }
///
/// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
/// let env = GraphEnv::new(Tournament, actions, GraphState::directed(3))?;
/// let masks = env.masks(Direction::Forward, &env.initial(&[0]));
/// assert_eq!(masks.n_legal(0), 6 + 1);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone)]
pub struct GraphEnv {
    rules: Arc<dyn GraphRules>,
    actions: ActionSet,
    schema: GraphSchema,
    /// That of each instance, in order of their numbers.
    initial: Vec<GraphState>,
    /// The author's word on the nodes of the initial graphs, if any.
    asked: Option<Scaffold>,
    /// `true` if these nodes are alike, unjoined, and change places freely.
    together: bool,
    /// Of each initial graph whose nodes are alike, and joined or different.
    symmetries: Vec<Vec<Vec<u32>>>,
    backward: BackwardRule,
    corrects_symmetry: bool,
}

impl std::fmt::Debug for GraphEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { actions, schema, initial, backward, .. } = self;
        let mut out = f.debug_struct("GraphEnv");
        out.field("actions", actions).field("schema", schema).field("initial", initial).field("backward", backward);
        out.field("scaffold", &self.scaffold()).finish_non_exhaustive()
    }
}

impl GraphEnv {
    /// An environment without rules: [`new`](Self::new) with [`Free`].
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn free(actions: ActionSet, initial: GraphState) -> Result<Self> {
        Self::new(Free, actions, initial)
    }

    /// An environment whose trajectories start at `initial`: the empty graph, nodes without edges, a
    /// scaffold. Its nodes and edges stay for good; up to isomorphism a step that would take one of its nodes
    /// is an error. Its nodes are alike there where they are equal and unjoined, and told apart otherwise,
    /// unless [`with_scaffold`](Self::with_scaffold) says something else. [`Free`] are the rules that forbid
    /// nothing.
    ///
    /// Its [schema](Self::schema) is the least that the initial graph and its action types need. Backward
    /// moves are derived, and training corrects for symmetry, until another method says otherwise.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for no action type, one of no class, or of so large graphs
    /// that their slots can't be numbered in 32 bits.
    pub fn new(rules: impl GraphRules + 'static, actions: ActionSet, initial: GraphState) -> Result<Self> {
        let env = Self::assembled(Arc::new(rules), actions, initial);
        check_settings(&env)?;
        env.check_initial()?;
        Ok(env)
    }

    /// The same for graphs of this schema: of more nodes, classes or attributes than the initial graph and
    /// the library's action types tell, which a type of your own adds.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a schema that no graph can keep to, or so large graphs
    /// that their slots can't be numbered in 32 bits; [`Error::Contract`](crate::Error::Contract) for an
    /// initial graph that doesn't keep to it.
    pub fn with_schema(self, schema: GraphSchema) -> Result<Self> {
        let env = Self { schema, ..self };
        check_settings(&env)?;
        env.check_initial()?;
        Ok(env)
    }

    /// The same of parts that are known to fit.
    pub(crate) fn assembled(rules: Arc<dyn GraphRules>, actions: ActionSet, initial: GraphState) -> Self {
        // A graph of another environment may have a number there.
        let initial = vec![initial.with_instance(0)];
        let schema = GraphSchema::of(&actions, &initial);
        let (symmetries, backward) = (Vec::new(), BackwardRule::Derived);
        let (asked, together, corrects_symmetry) = (None, false, true);
        let env = Self { rules, actions, schema, initial, asked, together, symmetries, backward, corrects_symmetry };
        Self { together: env.is_loose(), ..env }
    }

    /// The same, with an instance for each of these initial graphs, numbered in this order. Each has
    /// trajectories, a log Z and a distribution of its own. The schema gets room for them. Backward moves are
    /// derived, until [`with_backward`](Self::with_backward) says otherwise: masks by type may count on the
    /// former start, as may what the rules say of themselves.
    ///
    /// A network sees a graph, not where it started: no two instances may lead to the same graph, unless
    /// their nodes have other classes. A trainer looks for such graphs before its first step.
    ///
    /// ```
    /// use gfn::env::Env;
    /// use gfn::graph::*;
    /// let start = |n| GraphState::with_nodes(GraphKind::Undirected, n);
    /// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    /// let env = GraphEnv::new(Free, actions, start(3))?;
    /// let env = env.with_instances([3, 4, 5].map(start).into())?;
    /// let states = env.initial(&[2, 0]);
    /// assert_eq!(states.graphs()[0].n_nodes(), 5);
    /// assert_eq!(env.instances(&states), [2, 0]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for no graph, and up to isomorphism for graphs of different
    /// numbers of nodes; [`Error::Contract`](crate::Error::Contract) for one of another kind than the others.
    pub fn with_instances(mut self, initial: Vec<GraphState>) -> Result<Self> {
        self.initial = initial.into_iter().zip(0..).map(|(graph, instance)| graph.with_instance(instance)).collect();
        self.schema.widen(&self.initial);
        check_settings(&self)?;
        self.check_initial()?;
        self.backward = BackwardRule::Derived;
        let scaffold = self.scaffold();
        Ok(Self { asked: self.asked, ..self.with_scaffold(scaffold)? })
    }

    /// The same, with the nodes of the initial graph told apart or not. By default they are alike where they
    /// are equal and unjoined (in each instance). Where nodes are labelled, they are told apart in any case.
    ///
    /// A network sees which nodes are of the initial graph; of nodes that are alike it sees no more than
    /// which of them a symmetry takes to each other. Two graphs that differ only in which edges are of the
    /// initial graph look the same to it.
    ///
    /// ```
    /// use gfn::env::StateGraph;
    /// use gfn::graph::*;
    /// let ring = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (a, b, Edge::default()));
    /// let ring = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 3], &ring)?;
    /// let grown = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::attached(1, 1, 4));
    /// let env = GraphEnv::new(Free, grown, ring)?;
    /// // The ring, and the ring with a node on any of its three.
    /// assert_eq!(StateGraph::build(&env, 10)?.len(), 1 + 3);
    /// let env = env.with_scaffold(Scaffold::Alike)?;
    /// assert_eq!(StateGraph::build(&env, 10)?.len(), 1 + 1);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) where nodes are alike for an initial graph of more than 256
    /// nodes or 1,000 symmetries, and for several instances whose symmetries differ; those of
    /// [`Canonizer::try_canonical`](crate::graph::Canonizer::try_canonical).
    pub fn with_scaffold(mut self, scaffold: Scaffold) -> Result<Self> {
        let alike = scaffold == Scaffold::Alike && self.actions.semantics() == Semantics::UpToIsomorphism;
        self.asked = Some(scaffold);
        self.together = alike && self.is_loose();
        let graphs = self.initial.iter().filter(|_| alike && !self.together);
        self.symmetries = graphs.map(list_symmetries).collect::<Result<_>>()?;
        if self.symmetries.windows(2).any(|pair| pair[0] != pair[1]) {
            let expected = "instances of one initial shape where nodes are alike, or nodes told apart";
            return Err(Error::config("symmetries of the initial graphs", "different ones", expected));
        }
        Ok(self)
    }

    /// `true` if initial graphs are of equal nodes without edges, to which labels give no meaning. A single
    /// node is told apart from later ones in any case.
    fn is_loose(&self) -> bool {
        let equal = |graph: &GraphState| graph.nodes().all(|node| Some(node) == graph.node(0));
        let loose = |graph: &GraphState| graph.n_edges() == 0 && equal(graph);
        self.actions.semantics() == Semantics::UpToIsomorphism && self.n_fixed() > 1 && self.initial.iter().all(loose)
    }

    fn check_initial(&self) -> Result<()> {
        let n_nodes: Vec<usize> = self.initial.iter().map(GraphState::n_nodes).collect();
        if n_nodes.is_empty() {
            return Err(Error::config("initial graphs", "none", "one for each instance"));
        }
        // Nodes of the initial graph are told from later ones by their label.
        if self.actions.semantics() == Semantics::UpToIsomorphism && n_nodes.iter().any(|&n| n != n_nodes[0]) {
            let expected = "up to isomorphism, as many nodes in each: nodes of the initial graph come first, and are told \
                            from later ones by their label";
            return Err(Error::config("nodes of the initial graphs", format!("{n_nodes:?}"), expected));
        }
        self.initial.iter().try_for_each(|graph| check_fits(&self.schema, graph))
    }

    /// The same, with its legal backward moves found in this way.
    #[must_use]
    pub fn with_backward(mut self, rule: BackwardRule) -> Self {
        self.backward = rule;
        self
    }

    /// The same, with training corrected for symmetry (the default) or not: |Aut(G)| R(G) in place of R(G),
    /// up to isomorphism.
    #[must_use]
    pub fn with_symmetry_correction(mut self, corrects_symmetry: bool) -> Self {
        self.corrects_symmetry = corrects_symmetry;
        self
    }

    /// Replaces the rules by those that `make` builds from them. The new rules must forward every method that
    /// they don't change: a method that they leave out has its default.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gfn::graph::{GraphRules, GraphState, MoveMask};
    /// use gfn::testing::Triangles;
    ///
    /// /// A graph of one edge isn't finished.
    /// struct NoEdgeAlone(Arc<dyn GraphRules>);
    /// impl GraphRules for NoEdgeAlone {
    ///     fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
    ///         self.0.restrict(graph, moves);
    ///     }
    ///     fn is_reachable(&self, graph: &GraphState) -> bool {
    ///         self.0.is_reachable(graph)
    ///     }
    ///     fn can_exit(&self, graph: &GraphState) -> bool {
    ///         graph.n_edges() != 1 && self.0.can_exit(graph)
    ///     }
    /// }
    /// let env = Triangles::env().with_rules(NoEdgeAlone);
    /// assert_eq!(gfn::env::StateGraph::build(&env, 100)?.ends().len(), 5);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    #[must_use]
    pub fn with_rules<T: GraphRules + 'static>(self, make: impl FnOnce(Arc<dyn GraphRules>) -> T) -> Self {
        Self { rules: Arc::new(make(self.rules)), ..self }
    }

    /// The author's rules.
    #[must_use]
    pub fn rules(&self) -> &dyn GraphRules {
        self.rules.as_ref()
    }

    /// The action types; their semantics decides when two graphs are the same object.
    #[must_use]
    pub fn actions(&self) -> &ActionSet {
        &self.actions
    }

    /// The parts that the graphs are made of.
    #[must_use]
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// Where the trajectories of each instance start.
    #[must_use]
    pub fn initial_graphs(&self) -> &[GraphState] {
        &self.initial
    }

    /// `true` for the graph that trajectories of its instance start at.
    pub(crate) fn is_start(&self, graph: &GraphState) -> bool {
        self.initial.get(graph.instance() as usize) == Some(graph)
    }

    /// The graph that the trajectory of this one started at; the graph itself if it is of no instance of this
    /// environment.
    pub(crate) fn initial_of<'a>(&'a self, graph: &'a GraphState) -> &'a GraphState {
        self.initial.get(graph.instance() as usize).unwrap_or(graph)
    }

    /// The treatment of the nodes of the initial graph.
    #[must_use]
    pub fn scaffold(&self) -> Scaffold {
        self.asked.unwrap_or(if self.is_loose() { Scaffold::Alike } else { Scaffold::ToldApart })
    }

    /// The way in which legal backward moves are found.
    #[must_use]
    pub fn backward_rule(&self) -> BackwardRule {
        self.backward
    }

    /// `true` if training corrects for symmetry, up to isomorphism.
    #[must_use]
    pub fn corrects_symmetry(&self) -> bool {
        self.corrects_symmetry
    }

    /// The class of each label: labels of one class look the same to a network. Up to isomorphism all nodes
    /// behind the initial ones share the last class.
    pub(crate) fn label_classes(&self) -> Vec<u32> {
        let fixed = self.n_fixed() as u32;
        match (self.actions.semantics(), self.symmetries.first()) {
            (Semantics::Labelled, _) => (0..self.schema.max_nodes as u32).collect(),
            (Semantics::UpToIsomorphism, _) if fixed == 0 => Vec::new(),
            (Semantics::UpToIsomorphism, _) if self.together => {
                (0..=fixed).map(|a| u32::from(a == fixed)).take(self.schema.max_nodes).collect()
            }
            (Semantics::UpToIsomorphism, None) => (0..=fixed).take(self.schema.max_nodes).collect(),
            // The smallest label that a symmetry takes to this one.
            (Semantics::UpToIsomorphism, Some(symmetries)) => {
                let orbit = |a: usize| symmetries.iter().map(|order| order[a]).min().unwrap_or(a as u32);
                (0..fixed as usize).map(orbit).chain([fixed]).collect()
            }
        }
    }

    /// The correction of training, up to isomorphism: [`GraphRules::log_automorphisms`] with the nodes of the
    /// initial graph held, and the symmetries of these where they are alike.
    ///
    /// # Errors
    /// Those of the rules.
    pub fn log_automorphisms(&self, graph: &GraphState) -> Result<f64> {
        Ok(self.rules.log_automorphisms(graph, self.n_fixed())? + self.log_scaffold_symmetries(graph)?)
    }

    /// Nodes that symmetries leave where they are: those of the initial graph, which come first.
    pub(crate) fn n_fixed(&self) -> usize {
        self.initial[0].n_nodes()
    }
}
