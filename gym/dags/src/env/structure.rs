use gfn::graph::{ActionSet, BackwardRule, GraphEnv, GraphRules, GraphState, MoveMask, Semantics};
use gfn::{Error, Result};

use super::tensors::{MAX_TENSOR_NODES, tensor_form};
use super::{AddArc, NodeSet, StructureConfig, parent_sets};
use crate::LocalScore;

/// An environment of directed acyclic graphs on labelled nodes. The initial graph has the required edges,
/// and each action adds one edge. Every state can be finished.
///
/// *Slots.* The slot `source * n + target` adds an edge if the direction is forward, and removes it if the
/// direction is backward. The slot `n * n` is the exit. Edges that would close a cycle aren't legal, so
/// every state is acyclic. Nothing is cached between steps: each mask computes the descendants anew.
///
/// *Tensor form.* Up to 32 nodes, the environment has a second form whose states are adjacency matrices,
/// `[batch, n * n]`, for roll-outs that stay on a device. It supports all settings of a [`StructureConfig`].
/// Custom rules ([`GraphEnv::with_rules`]) remove it.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_dags::{BayesianStructure, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig { forbidden: vec![(0, 2)], ..StructureConfig::new(3) })?
///     .into_env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// // Legal are 1 -> 2, 2 -> 0, 2 -> 1 and the exit. The edge 1 -> 0 would close a cycle.
/// let masks = env.masks(Direction::Forward, &states);
/// assert_eq!(masks.legal_slots(0).collect::<Vec<_>>(), [5, 6, 7, 9]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BayesianStructure {
    env: GraphEnv,
    config: StructureConfig,
}

/// The rules that enforce expert knowledge: required edges, forbidden edges and the limit on the number of
/// parents.
struct Knowledge {
    config: StructureConfig,
    /// The targets that each source node may have an edge to.
    allowed: Vec<NodeSet>,
    /// The targets that each source node must have an edge to.
    required: Vec<NodeSet>,
}

impl BayesianStructure {
    /// Creates the environment of a configuration.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) for 0 nodes, for more than [`MAX_NODES`](super::MAX_NODES)
    /// nodes, for an edge that doesn't join two different nodes of the graph, and for contradictory
    /// knowledge: required edges that form a cycle, are forbidden, or exceed `max_parents`.
    pub fn new(config: StructureConfig) -> Result<Self> {
        let initial = config.initial()?;
        let n = config.nodes;
        let (mut allowed, mut required): (Vec<NodeSet>, _) =
            (vec![(0..n).collect(); n], vec![NodeSet::EMPTY; n]);
        for &(a, b) in &config.forbidden {
            allowed[a as usize] = allowed[a as usize].without(b as usize);
        }
        for &(a, b) in &config.required {
            required[a as usize].insert(b as usize);
        }
        let actions = ActionSet::new(Semantics::Labelled).with(AddArc);
        let rules = Knowledge { config: config.clone(), allowed, required };
        let mut env = GraphEnv::new(rules, actions, initial)?.with_backward(BackwardRule::ByType);
        if n <= MAX_TENSOR_NODES {
            env = env.with_tensors(tensor_form(config.clone()))?;
        }
        Ok(Self { env, config })
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

    /// Returns the configuration that the environment was created from.
    #[must_use]
    pub fn config(&self) -> &StructureConfig {
        &self.config
    }

    /// Returns the number of nodes of the graphs.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.config.nodes
    }

    /// Returns an error unless the local scores are those of graphs with the same number of nodes.
    pub(crate) fn check_scores(&self, score: &impl LocalScore) -> Result<()> {
        let n = self.n_nodes();
        let got = score.n_nodes();
        if n == got {
            return Ok(());
        }
        let remedy = "give the scores of one variable for each node";
        Err(Error::shape("local scores", [n as i64], [got as i64], remedy))
    }
}

impl GraphRules for Knowledge {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_nodes() != self.config.nodes {
            // A graph with another number of nodes isn't a state of this environment, so it has no legal
            // moves.
            return moves.forbid_all();
        }
        if let Some(most) = self.config.max_parents {
            let parents = parent_sets(graph);
            moves.retain(|action| parents[action.b as usize].len() < most);
        }
        if !self.config.forbidden.is_empty() {
            moves.retain(|action| self.allowed[action.a as usize].contains(action.b as usize));
        }
    }

    fn restrict_backward(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if graph.n_nodes() != self.config.nodes {
            moves.forbid_all();
        } else if !self.config.required.is_empty() {
            moves.retain(|action| !self.required[action.a as usize].contains(action.b as usize));
        }
    }
}
