use gfn::Result;
use gfn::graph::{
    ActionKind, ActionSet, AddEdge, BackwardRule, GraphEnv, GraphSchema, GraphState, GraphStates, Semantics,
};

use super::{BayesianStructure, DagStates};

/// The environment of [`BayesianStructure`] on petgraph states, through [`GraphEnv`]: the same moves, forward in the same slots.
///
/// It computes the closure anew for each mask, so it is slow. It serves code that is written for graph environments, and tests compare
/// with it. `docs/decisions.md` has the figures.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// use gfn_dags::{BayesianStructure, DagGraphs, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig::new(4))?;
/// let graphs = DagGraphs::new(&env)?;
/// let masks = env.masks(Direction::Forward, &env.initial(1));
/// assert_eq!(graphs.masks(Direction::Forward, &graphs.initial(1)).legal, masks.legal);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct DagGraphs {
    env: BayesianStructure,
    actions: ActionSet,
    initial: GraphState,
}

impl DagGraphs {
    /// The same environment on petgraph states.
    ///
    /// # Errors
    /// Those of [`DagStates::to_graphs`].
    pub fn new(env: &BayesianStructure) -> Result<Self> {
        use gfn::env::Env;
        let initial = env.initial(1).to_graphs()?.into_graphs().swap_remove(0);
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        Ok(Self { env: env.clone(), actions, initial })
    }
}

impl GraphEnv for DagGraphs {
    fn actions(&self) -> &ActionSet {
        &self.actions
    }
    fn schema(&self) -> &GraphSchema {
        self.env.schema()
    }
    fn initial_graph(&self) -> &GraphState {
        &self.initial
    }
    fn restrict(&self, _: ActionKind, graph: &GraphState, mask: &mut [bool]) {
        use gfn::env::{Direction, DiscreteEnv};
        match DagStates::from_graphs(self.env.n_nodes(), &GraphStates::from(vec![graph.clone()])) {
            Ok(states) => {
                let legal = self.env.masks(Direction::Forward, &states);
                mask.copy_from_slice(&legal.row(0)[..mask.len()]);
            }
            // No graph of this environment: nothing leads on.
            Err(_) => mask.fill(false),
        }
    }
    fn backward_rule(&self) -> BackwardRule {
        match self.env.config().required.is_empty() {
            true => BackwardRule::ByType,
            false => BackwardRule::Derived,
        }
    }
}
