use gfn::Result;
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, AddNode, BackwardRule, GraphEnv, GraphKind, GraphRules, GraphSchema,
    GraphState, MoveMask, Semantics, SetEdgeAttr, SetNodeAttr,
};

use super::{GraphBuildingConfig, Growth};

/// Graphs that grow from an initial graph by nodes, edges and attributes, within limits.
///
/// The logits of the action types have this order: adding the first node (if `Growth::Attached` starts from
/// the empty graph), adding a node (if the initial graph has fewer than `max_nodes` nodes), adding an edge,
/// setting a node attribute and setting an edge attribute (if attributes exist), and the exit.
#[derive(Clone, Debug)]
pub struct GraphBuilding {
    env: GraphEnv,
    config: GraphBuildingConfig,
}

/// The rules that restrict actions, so that graphs stay within the limits of the settings.
struct Limits {
    config: GraphBuildingConfig,
    /// The action type that adds a node together with an edge; `None` for `Growth::Free`.
    attached: Option<ActionKind>,
    /// The number of nodes of the initial graph.
    start: usize,
}

impl GraphBuilding {
    /// Builds the environment of these settings.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for invalid settings: a `max_nodes` of 0, a number of classes
    /// that is 0, limits that the initial graph exceeds, more than seven attributes, attributes without
    /// values, and others.
    pub fn new(config: GraphBuildingConfig) -> Result<Self> {
        config.check()?;
        let initial = config.start();
        let mut attached = None;
        let mut actions = ActionSet::new(config.semantics);
        if initial.n_nodes() < config.max_nodes {
            match config.growth {
                Growth::Free => actions = actions.with(AddNode::free(config.node_classes, config.max_nodes)),
                Growth::Attached => {
                    if initial.n_nodes() == 0 {
                        actions = actions.with(AddNode::first(config.node_classes));
                    }
                    attached = Some(ActionKind(actions.types().len() - 1));
                    let add = AddNode::attached(config.node_classes, config.edge_classes, config.max_nodes);
                    actions = actions.with(add);
                }
            }
        }
        let by_type = masks_are_exact(&config, &initial);
        let mut add_edge = AddEdge::new(config.edge_classes);
        if let Some(limit) = config.max_edges {
            add_edge = add_edge.at_most(limit);
        }
        if config.growth == Growth::Attached && by_type {
            add_edge = add_edge.keeping_connected();
        }
        actions = actions.with(add_edge);
        if !config.node_attributes.is_empty() {
            actions = actions.with(SetNodeAttr::new(&config.node_attributes)?);
        }
        if !config.edge_attributes.is_empty() {
            actions = actions.with(SetEdgeAttr::new(&config.edge_attributes)?);
        }
        let schema = GraphSchema {
            node_classes: usize::from(config.node_classes),
            edge_classes: usize::from(config.edge_classes),
            node_attributes: config.node_attributes.clone(),
            edge_attributes: config.edge_attributes.clone(),
            ..GraphSchema::plain(config.kind, config.max_nodes)
        };
        let rule = if by_type { BackwardRule::ByType } else { BackwardRule::Derived };
        let corrects_symmetry = config.corrects_symmetry;
        let rules = Limits { config: config.clone(), attached, start: initial.n_nodes() };
        let env = GraphEnv::new(rules, actions, initial).and_then(|env| env.with_schema(schema))?;
        Ok(Self { env: env.with_backward(rule).with_symmetry_correction(corrects_symmetry), config })
    }

    /// Returns a reference to the environment, for trainers and samplers.
    #[must_use]
    pub fn env(&self) -> &GraphEnv {
        &self.env
    }

    /// Returns the underlying [`GraphEnv`] by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// Returns the settings with which the environment was built.
    #[must_use]
    pub fn config(&self) -> &GraphBuildingConfig {
        &self.config
    }
}

/// Returns `true` if the backward masks that the action types compute without the environment's rules are
/// exact. These masks permit too many actions if nodes or edges of the initial graph must stay. Under
/// `Growth::Attached` they do so for labelled or directed graphs, too, because the nodes of such a graph can
/// be added in some orders only.
fn masks_are_exact(config: &GraphBuildingConfig, initial: &GraphState) -> bool {
    match config.growth {
        Growth::Free if initial.n_nodes() == config.max_nodes => is_bare(initial),
        Growth::Free => initial.n_nodes() == 0,
        Growth::Attached => {
            let any_order =
                config.semantics == Semantics::UpToIsomorphism && config.kind == GraphKind::Undirected;
            any_order && initial.n_nodes() == 0
        }
    }
}

/// Returns `true` if the graph has no edges and no attribute of a node is set.
fn is_bare(graph: &GraphState) -> bool {
    graph.n_edges() == 0 && graph.nodes().all(|node| node.attributes.is_unset())
}

impl GraphRules for Limits {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let attached = Some(moves.kind()) == self.attached;
        if attached && self.config.max_edges.is_some_and(|limit| graph.n_edges() >= limit) {
            moves.forbid_all();
        }
    }
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() >= self.config.min_nodes
    }
    fn is_reachable(&self, graph: &GraphState) -> bool {
        match (self.config.growth, self.config.semantics) {
            (Growth::Free, _) => true,
            (Growth::Attached, Semantics::Labelled) => grown_in_order(graph, self.start.max(1)),
            (Growth::Attached, Semantics::UpToIsomorphism) => match self.start {
                0 => (0..graph.n_nodes()).any(|root| reaches_all(graph, [root])) || graph.n_nodes() == 0,
                n => reaches_all(graph, 0..n),
            },
        }
    }
}

/// Returns `true` if each node from `first` on has an edge from an earlier node. In labelled graphs the
/// labels are the order in which nodes were added.
fn grown_in_order(graph: &GraphState, first: usize) -> bool {
    let n = graph.n_nodes();
    (first..n).all(|b| (0..b).any(|a| graph.adjacency().get(a, b)))
}

/// Returns `true` if every node can be reached from `roots` along edges in their direction.
fn reaches_all(graph: &GraphState, roots: impl IntoIterator<Item = usize>) -> bool {
    let mut seen = vec![false; graph.n_nodes()];
    let mut open: Vec<usize> = roots.into_iter().collect();
    for &root in &open {
        seen[root] = true;
    }
    while let Some(a) = open.pop() {
        for b in graph.adjacency().neighbours(a) {
            if !seen[b] {
                seen[b] = true;
                open.push(b);
            }
        }
    }
    seen.iter().all(|seen| *seen)
}
