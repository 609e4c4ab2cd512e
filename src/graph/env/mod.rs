//! The environment `GraphEnv`, which consists of an action set, a schema, initial graphs and custom rules.

mod backward;
mod dynamics;
mod enumerable;
mod move_mask;
mod reduced_graph;
mod relabel;
mod rules;
mod scaffold;
mod schema;
mod settings;
mod symmetry;

use std::sync::Arc;

pub use backward::BackwardRule;
pub(crate) use backward::contains;
pub use move_mask::MoveMask;
pub use reduced_graph::ReducedGraph;
pub(crate) use reduced_graph::{ReducedStates, check_reduced};
pub use rules::{BatchMove, Free, GraphRules};
pub use scaffold::Scaffold;
pub use schema::GraphSchema;
pub(crate) use schema::misfit;
pub(in crate::graph) use schema::raise;

use crate::env::{Direction, Slots, TensorForm};
use crate::graph::symmetry::{FixedNodes, list_symmetries};
use crate::graph::{ActionSet, GraphState, GraphStates, Semantics};
use crate::{Error, Result};

/// An environment that builds graphs from action types, initial graphs and custom [`GraphRules`].
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// use gfn::graph::*;
///
/// /// An edge and its opposite exclude each other.
/// struct Tournament;
///
/// impl GraphRules for Tournament {
///     // It is called once for each action type, and there is only one.
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
    /// The initial graph of each instance.
    initial: Vec<GraphState>,
    /// The argument of [`with_scaffold`](Self::with_scaffold), if it was called.
    requested_scaffold: Option<Scaffold>,
    /// The initial nodes. Automorphisms may exchange them in any way ([`FixedNodes::AsSet`]) if they are
    /// equal, without edges and [`Scaffold::Alike`]; otherwise they count as fixed ([`FixedNodes::InPlace`]).
    fixed_nodes: FixedNodes,
    /// The symmetries of the initial graphs, each as a permutation of their nodes. Symmetries are listed only
    /// if [`Scaffold::Alike`] is set and the nodes are different or have edges between them.
    scaffold_symmetries: Vec<Vec<u32>>,
    backward: BackwardRule,
    corrects_symmetry: bool,
    /// The form of the environment whose states are a tensor, if there is one.
    tensors: Option<TensorForm<GraphStates>>,
}

impl std::fmt::Debug for GraphEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { actions, schema, initial, backward, .. } = self;
        let mut out = f.debug_struct("GraphEnv");
        out.field("actions", actions)
            .field("schema", schema)
            .field("initial", initial)
            .field("backward", backward);
        out.field("scaffold", &self.scaffold()).finish_non_exhaustive()
    }
}

impl GraphEnv {
    /// Creates an environment without rules: [`new`](Self::new) with [`Free`].
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn free(actions: ActionSet, initial: GraphState) -> Result<Self> {
        Self::new(Free, actions, initial)
    }

    /// Creates an environment whose trajectories start at `initial`, such as the empty graph, nodes without
    /// edges, or a scaffold. Pass [`Free`] as `rules` if no move is forbidden.
    ///
    /// Trajectories extend the initial graph: backward moves never remove its nodes and edges. Some forward
    /// moves, such as those of [`Reverse`](crate::graph::Reverse), may remove its edges.
    ///
    /// If states are graphs up to isomorphism, a step that would remove a node of the initial graph is an
    /// error. The nodes of the initial graph are by default interchangeable if they are equal and have no
    /// edges, and distinguished otherwise; [`with_scaffold`](Self::with_scaffold) changes this.
    ///
    /// The [schema](Self::schema) has the smallest limits that the initial graph and the action types need
    /// ([`with_schema`](Self::with_schema) replaces it). Backward moves are derived
    /// ([`with_backward`](Self::with_backward)), and training corrects for symmetry
    /// ([`with_symmetry_correction`](Self::with_symmetry_correction)).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there is no action type, if an action type has no class
    /// (`AddEdge::new(0)`), or if graphs are so large that their slots can't be numbered in 32 bits.
    pub fn new(rules: impl GraphRules + 'static, actions: ActionSet, initial: GraphState) -> Result<Self> {
        Self::assembled(Arc::new(rules), actions, initial).ensure_valid()
    }

    /// Sets the schema of the graphs. Call this method if a custom action type adds more nodes, classes or
    /// attributes than its [`widen`](crate::graph::GraphActionType::widen) declares.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if no graph can satisfy the schema, or if slots can't be
    /// numbered in 32 bits; [`Error::Contract`](crate::Error::Contract) if an initial graph violates it.
    pub fn with_schema(self, schema: GraphSchema) -> Result<Self> {
        Self { schema, ..self }.ensure_valid()
    }

    /// Checks that the schema, the action types and the initial graphs are valid, and that slots can be
    /// numbered in 32 bits. If labels have no meaning, all initial graphs must have the same number of nodes.
    fn ensure_valid(self) -> Result<Self> {
        let schema = &self.schema;
        schema.check()?;
        self.actions.check()?;
        if self.actions.types().len() == 1 {
            let expected = "an action type, such as `AddEdge` (`ActionSet::with`): without one there is only \
                one graph";
            return Err(Error::config(
                "the list of action types of a graph environment",
                "empty except for the exit",
                expected,
            ));
        }
        for direction in [Direction::Forward, Direction::Backward] {
            Slots::slot(self.actions.most_slots(direction, schema.kind, schema.max_nodes))?;
        }
        let n_nodes: Vec<usize> = self.initial.iter().map(GraphState::n_nodes).collect();
        if n_nodes.is_empty() {
            return Err(Error::config("initial graphs", "none", "one initial graph for each instance"));
        }
        // Nodes of the initial graph are distinguished from later nodes by their labels, so the number of
        // initial nodes must be the same in all instances.
        if self.actions.semantics() == Semantics::UpToIsomorphism && n_nodes.iter().any(|&n| n != n_nodes[0])
        {
            let expected = "the same number of nodes in each initial graph: up to isomorphism the nodes of \
                the initial graph come first, and only their position distinguishes them from later nodes";
            return Err(Error::config("nodes of the initial graphs", format!("{n_nodes:?}"), expected));
        }
        self.initial.iter().try_for_each(|graph| schema.check_graph(graph))?;
        Ok(self)
    }

    /// Creates an environment as [`new`](Self::new) does, but without the checks of `new`.
    pub(crate) fn assembled(rules: Arc<dyn GraphRules>, actions: ActionSet, initial: GraphState) -> Self {
        // A graph of another environment may have another instance number, so the number is reset.
        let initial = vec![initial.with_instance(0)];
        let schema = GraphSchema::from_parts(&actions, &initial);
        let env = Self {
            rules,
            actions,
            schema,
            fixed_nodes: FixedNodes::InPlace(initial[0].n_nodes()),
            initial,
            requested_scaffold: None,
            scaffold_symmetries: Vec::new(),
            backward: BackwardRule::Derived,
            corrects_symmetry: true,
            tensors: None,
        };
        Self { fixed_nodes: env.scaffold_nodes(), ..env }
    }

    /// Sets the initial graph of each instance. Instances are numbered in the order of `initial`. Each
    /// instance has its own trajectories, log Z and distribution.
    ///
    /// The schema is widened so that it includes the graphs. The backward rule is reset to derived moves,
    /// because backward masks of the action types, or of the rules, may depend on the former initial graph;
    /// [`with_backward`](Self::with_backward) sets it again. For the same reason the environment no longer
    /// has a [tensor form](Self::with_tensors).
    ///
    /// A network doesn't see the instance of a graph, so no two instances may lead to the same graph.
    /// Initial graphs with different node classes prevent this. A trainer tests some graphs before step 1.
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
    /// [`Error::Config`](crate::Error::Config) if there is no graph, or if states are graphs up to
    /// isomorphism and the initial graphs have different numbers of nodes;
    /// [`Error::Contract`](crate::Error::Contract) if some graphs are directed and others aren't; the errors
    /// of [`with_scaffold`](Self::with_scaffold).
    pub fn with_instances(mut self, initial: Vec<GraphState>) -> Result<Self> {
        self.initial =
            initial.into_iter().zip(0..).map(|(graph, instance)| graph.with_instance(instance)).collect();
        self.schema.widen(&self.initial);
        self.backward = BackwardRule::Derived;
        self.tensors = None;
        self.ensure_valid()?.with_scaffold_symmetries()
    }

    /// Sets whether the nodes of the initial graph are distinguished from each other. By default the nodes
    /// are interchangeable if, in each instance, they are equal and have no edges. Labelled nodes are always
    /// distinguished.
    ///
    /// A network sees which nodes belong to the initial graph. If these nodes are distinguished, the network
    /// also sees which node is which; otherwise it sees only which nodes a symmetry maps to each other. A
    /// network can't distinguish two graphs that differ only in which edges belong to the initial graph.
    ///
    /// ```
    /// use gfn::env::StateGraph;
    /// use gfn::graph::*;
    /// let ring = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (a, b, Edge::default()));
    /// let ring = GraphState::from_parts(GraphKind::Undirected, &[Node::default(); 3], &ring)?;
    /// let grown = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::attached(1, 1, 4));
    /// let env = GraphEnv::new(Free, grown, ring)?;
    /// // The states are the ring, and the ring with a node at any of its three nodes.
    /// assert_eq!(StateGraph::build(&env, 10)?.len(), 1 + 3);
    /// let env = env.with_scaffold(Scaffold::Alike)?;
    /// assert_eq!(StateGraph::build(&env, 10)?.len(), 1 + 1);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns these errors only for [`Scaffold::Alike`]: [`Error::Config`](crate::Error::Config) if an
    /// initial graph has more than 256 nodes or 1,000 symmetries, or if the symmetries of the instances
    /// differ, and the errors of [`Canonizer::try_canonical`](crate::graph::Canonizer::try_canonical).
    pub fn with_scaffold(mut self, scaffold: Scaffold) -> Result<Self> {
        self.requested_scaffold = Some(scaffold);
        self.with_scaffold_symmetries()
    }

    /// Computes the fields that depend on the setting [`scaffold`](Self::scaffold): the fixed nodes and the
    /// symmetries of the initial graphs.
    fn with_scaffold_symmetries(mut self) -> Result<Self> {
        self.fixed_nodes = self.scaffold_nodes();
        self.scaffold_symmetries = Vec::new();
        let is_alike =
            self.scaffold() == Scaffold::Alike && self.actions.semantics() == Semantics::UpToIsomorphism;
        if !is_alike || matches!(self.fixed_nodes, FixedNodes::AsSet(_)) {
            return Ok(self);
        }
        let mut symmetries = self.initial.iter().map(list_symmetries).collect::<Result<Vec<_>>>()?;
        symmetries.dedup();
        if symmetries.len() > 1 {
            let expected = "equal symmetries in all instances, or distinct nodes (`Scaffold::ToldApart`)";
            let setting = "the set of symmetries of the initial graph";
            return Err(Error::config(setting, "different in some instances", expected));
        }
        self.scaffold_symmetries = symmetries.concat();
        Ok(self)
    }

    /// Returns the value of the field `fixed_nodes`, which the initial graphs and the scaffold setting
    /// determine.
    fn scaffold_nodes(&self) -> FixedNodes {
        let n = self.initial[0].n_nodes();
        let is_set = self.scaffold() == Scaffold::Alike && self.has_equal_unjoined_scaffold();
        if is_set { FixedNodes::AsSet(n) } else { FixedNodes::InPlace(n) }
    }

    /// `true` if labels have no meaning, and the initial graphs have several nodes, all equal and without
    /// edges. The result is `false` for a single initial node, which can't be exchanged with another one.
    fn has_equal_unjoined_scaffold(&self) -> bool {
        let has_equal_nodes = |graph: &GraphState| graph.nodes().all(|node| Some(node) == graph.node(0));
        self.actions.semantics() == Semantics::UpToIsomorphism
            && self.n_fixed() > 1
            && self.initial.iter().all(|graph| graph.n_edges() == 0 && has_equal_nodes(graph))
    }

    /// Sets the method by which legal backward moves are found. The default is [`BackwardRule::Derived`].
    #[must_use]
    pub fn with_backward(mut self, rule: BackwardRule) -> Self {
        self.backward = rule;
        self
    }

    /// Sets whether training corrects for symmetry; the default is `true`. With the correction, training up
    /// to isomorphism uses |Aut(G)| R(G) instead of R(G).
    #[must_use]
    pub fn with_symmetry_correction(mut self, corrects_symmetry: bool) -> Self {
        self.corrects_symmetry = corrects_symmetry;
        self
    }

    /// Replaces the rules of the environment by the rules that `make` builds from the old rules.
    ///
    /// The new rules must forward every method that they don't change. A method that they don't implement has
    /// the default of the trait, not the implementation of the old rules. The exception is
    /// [`GraphRules::settings`]: the new rules must not return the settings of the old rules unchanged,
    /// because a checkpoint would be loaded with the old rules. A [tensor form](Self::with_tensors) has the
    /// old rules, so the environment no longer has it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gfn::graph::{GraphRules, GraphState, MoveMask};
    /// use gfn::examples::Triangles;
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
        Self { rules: Arc::new(make(self.rules)), tensors: None, ..self }
    }

    /// The rules of the environment.
    #[must_use]
    pub fn rules(&self) -> &dyn GraphRules {
        self.rules.as_ref()
    }

    /// The action types. Their [semantics](ActionSet::semantics) decide when two graphs are the same object.
    #[must_use]
    pub fn actions(&self) -> &ActionSet {
        &self.actions
    }

    /// The limits of the environment's graphs, such as the largest number of nodes and of classes.
    #[must_use]
    pub fn schema(&self) -> &GraphSchema {
        &self.schema
    }

    /// The graph at which the trajectories of each instance start.
    #[must_use]
    pub fn initial_graphs(&self) -> &[GraphState] {
        &self.initial
    }

    /// Returns `true` if the graph is the initial graph of its instance.
    pub(crate) fn is_start(&self, graph: &GraphState) -> bool {
        self.initial.get(graph.instance() as usize) == Some(graph)
    }

    /// Returns the initial graph of the instance of `graph`; `graph` itself if there is no such instance.
    pub(crate) fn initial_of<'a>(&'a self, graph: &'a GraphState) -> &'a GraphState {
        self.initial.get(graph.instance() as usize).unwrap_or(graph)
    }

    /// The setting that decides whether the nodes of the initial graph are distinguished from each other.
    #[must_use]
    pub fn scaffold(&self) -> Scaffold {
        self.requested_scaffold.unwrap_or(if self.has_equal_unjoined_scaffold() {
            Scaffold::Alike
        } else {
            Scaffold::ToldApart
        })
    }

    /// The method by which legal backward moves are found.
    #[must_use]
    pub fn backward_rule(&self) -> BackwardRule {
        self.backward
    }

    /// `true` if training corrects for symmetry when states are graphs up to isomorphism.
    #[must_use]
    pub fn corrects_symmetry(&self) -> bool {
        self.corrects_symmetry
    }
}
