use std::collections::HashSet;

use gfn::graph::{ActionSet, BackwardRule, GraphEnv, GraphRules, GraphState, ReducedGraph, Semantics};
use gfn::{Error, Result};

use super::reduced::reduced;
use super::{Instances, Mark, MarkNode, Problem};

/// An environment that builds solutions of a problem, node by node, on each of its input graphs.
///
/// An instance's number ([`Env::initial`](gfn::env::Env::initial)) is the index of its graph in the
/// [`Instances`]. Nodes are labelled, because marks belong to nodes. But give networks no node identity
/// (`identity: false`), so that a policy generalises from some graphs to others. If the reward depends on a
/// solution's size alone, build the environment by [`for_size`](Self::for_size).
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

/// The rules of a problem, which decide about marks and the exit.
#[derive(Clone, Copy, Debug)]
struct MarkRules {
    problem: Problem,
    /// `true` if rewards depend on a solution's size alone.
    for_size: bool,
}

impl GraphProblem {
    /// Builds the problem on these graphs.
    ///
    /// # Errors
    /// [`Error::Config`] for no graph; [`Error::Contract`] for a repeated graph.
    pub fn new(problem: Problem, instances: &Instances) -> Result<Self> {
        MarkRules { problem, for_size: false }.on(instances)
    }

    /// Builds the problem for rewards that depend on a solution's size alone, as
    /// [`SizeReward`](super::SizeReward) does. Policies see only the part of a state
    /// ([`GraphRules::reduced`]) that such a reward and the legal actions depend on. Don't use it with
    /// another reward: policies wouldn't see all that it depends on, and would learn another distribution.
    ///
    /// | problem | nodes that a policy sees | edges between them that it sees |
    /// |---|---|---|
    /// | independent set, clique | the undecided, the chosen | those of undecided nodes |
    /// | dominating set | all | those of an undecided node, but for ones to nodes that are out and dominated |
    /// | cut | all | all but those between nodes that have changed sides |
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn for_size(problem: Problem, instances: &Instances) -> Result<Self> {
        MarkRules { problem, for_size: true }.on(instances)
    }

    /// Builds the same problem, for the same rewards, on other graphs.
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

    /// Returns the environment by value.
    #[must_use]
    pub fn into_env(self) -> GraphEnv {
        self.env
    }

    /// The problem.
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
        self.problem == Problem::Cut || graph.nodes().all(|node| Mark::of(node) != Mark::Undecided)
    }

    fn reduced(&self, graph: &GraphState) -> Option<ReducedGraph> {
        self.for_size.then(|| reduced(self.problem, graph))
    }

    /// Returns `true` if these nodes can be chosen, and all marks are those that follow from them.
    fn is_reachable(&self, graph: &GraphState) -> bool {
        let marking = MarkNode(self.problem);
        let marks = marking.marks(graph, &marking.chosen_nodes(graph));
        let can_be_chosen = self.problem.check(graph, &self.problem.solution(graph)).is_ok();
        can_be_chosen && graph.nodes().zip(marks).all(|(node, mark)| Mark::of(node) == mark)
    }
}
