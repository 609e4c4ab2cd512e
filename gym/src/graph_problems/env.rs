use std::collections::HashSet;

use gfn::graph::{ActionSet, BackwardRule, GraphEnv, GraphRules, GraphState, ReducedGraph, Semantics};
use gfn::{Error, Result};

use super::reduced::reduced;
use super::{Instances, Mark, MarkNode, Problem};

/// An environment that builds solutions of a problem node by node, on a list of input graphs.
///
/// An instance's number ([`Env::initial`](gfn::env::Env::initial)) is the index of its graph in the
/// [`Instances`]. Nodes are labelled, because a state marks individual nodes. Give networks no node identity
/// (`identity: false`) nevertheless, so that a policy generalises from some graphs to others. If the reward
/// depends on a solution's size alone, build the environment by [`for_size`](Self::for_size).
///
/// ```
/// use gfn::{Rng, env::{Direction, DiscreteEnv, Env}};
/// use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, erdos_renyi};
/// let mut rng = Rng::seeded(0);
/// let graphs = (8..=12).map(|n| erdos_renyi(n, 0.3, &mut rng)).collect::<gfn::Result<_>>()?;
/// let env = GraphProblem::new(Problem::Clique, &Instances::new(graphs)?)?.into_env();
/// let start = env.initial(&[4]);
/// // Any of the 12 nodes can come first, and a clique of none isn't one that can't grow.
/// assert_eq!(env.masks(Direction::Forward, &start).n_legal(0), 12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphProblem {
    env: GraphEnv,
    marks: MarkRules,
}

/// The rules of a problem. The rules decide which nodes can be chosen, and when the exit is legal.
#[derive(Clone, Copy, Debug)]
struct MarkRules {
    problem: Problem,
    /// `true` if the reward depends on the size of a solution alone.
    for_size: bool,
}

impl GraphProblem {
    /// Builds the environment of a problem on these input graphs.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no graph; [`Error::Contract`] if a graph occurs twice.
    pub fn new(problem: Problem, instances: &Instances) -> Result<Self> {
        MarkRules { problem, for_size: false }.on(instances)
    }

    /// Builds the environment for rewards that depend on a solution's size alone, as
    /// [`SizeReward`](super::SizeReward) does. Policies see only the part of a state
    /// ([`GraphRules::reduced`]) that such a reward and the legal actions depend on. Don't use this
    /// environment with another reward: policies wouldn't see everything that the reward depends on, and
    /// would learn a wrong distribution.
    ///
    /// | problem | nodes that a policy sees | edges between them that it sees |
    /// |---|---|---|
    /// | independent set, clique | undecided and chosen nodes | edges between undecided nodes |
    /// | dominating set | all nodes | edges of undecided nodes, except edges to nodes that are out and dominated |
    /// | cut | all nodes | all edges, except edges between two nodes that have changed sides |
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn for_size(problem: Problem, instances: &Instances) -> Result<Self> {
        MarkRules { problem, for_size: true }.on(instances)
    }

    /// Builds an environment of the same problem and for the same rewards on other input graphs.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn on(&self, instances: &Instances) -> Result<Self> {
        self.marks.on(instances)
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

    /// Returns the problem that the environment's states are solutions of.
    #[must_use]
    pub fn problem(&self) -> Problem {
        self.marks.problem
    }
}

impl MarkRules {
    fn on(self, instances: &Instances) -> Result<GraphProblem> {
        let problem = self.problem;
        let marking = MarkNode(problem);
        let marked = |graph: &GraphState| {
            let mut graph = graph.clone();
            let chosen = marking.chosen_nodes(&graph);
            marking.mark(&mut graph, &chosen).map(|()| graph)
        };
        let graphs = instances.graphs().iter().map(marked).collect::<Result<Vec<_>>>()?;
        let Some(first) = graphs.first() else {
            return Err(Error::config("input graphs", "none", "at least one input graph"));
        };
        let mut seen = HashSet::new();
        if let Some(k) = instances.graphs().iter().position(|graph| !seen.insert(graph)) {
            let detail =
                format!("graph {k} is equal to an earlier one; `Instances::distinct` drops repetitions");
            return Err(Error::contract(
                "no input graph occurs twice, because a network couldn't distinguish the two",
                detail,
            ));
        }
        let actions = ActionSet::new(Semantics::Labelled).with(marking);
        let env = GraphEnv::new(self, actions, first.clone())?;
        let env = env.with_instances(graphs)?.with_backward(BackwardRule::ByType);
        Ok(GraphProblem { env, marks: self })
    }
}

impl GraphRules for MarkRules {
    fn can_exit(&self, graph: &GraphState) -> bool {
        self.problem == Problem::Cut || graph.nodes().all(|node| Mark::from_node(node) != Mark::Undecided)
    }

    fn reduced(&self, graph: &GraphState) -> Option<ReducedGraph> {
        self.for_size.then(|| reduced(self.problem, graph))
    }

    /// Returns `true` if the chosen nodes of a graph are a legal choice, and all marks of the graph are those
    /// that follow from these nodes.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        let marking = MarkNode(self.problem);
        let marks = marking.marks(graph, &marking.chosen_nodes(graph));
        let can_be_chosen = self.problem.check(graph, &self.problem.solution(graph)).is_ok();
        can_be_chosen && graph.nodes().zip(marks).all(|(node, mark)| Mark::from_node(node) == mark)
    }
}
