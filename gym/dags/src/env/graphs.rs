use gfn::Result;
use gfn::env::{Direction, DiscreteEnv, Env};
use gfn::graph::{
    ActionSet, AddEdge, BackwardRule, GraphEnv, GraphRules, GraphState, GraphStates, MoveMask, Semantics,
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
/// let masks = env.masks(Direction::Forward, &env.initial(&[0]));
/// assert_eq!(graphs.masks(Direction::Forward, &graphs.initial(&[0])).legal, masks.legal);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DagGraphs {
    env: BayesianStructure,
}

impl DagGraphs {
    /// The same environment on petgraph states.
    ///
    /// # Errors
    /// Those of [`DagStates::to_graphs`].
    pub fn new(env: &BayesianStructure) -> Result<GraphEnv<Self>> {
        let initial = env.initial(&[0]).to_graphs()?.into_graphs().swap_remove(0);
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        let rule = match env.config().required.is_empty() {
            true => BackwardRule::ByType,
            false => BackwardRule::Derived,
        };
        let rules = Self { env: env.clone() };
        Ok(GraphEnv::new(rules, actions, env.schema().clone(), initial)?.with_backward(rule))
    }
}

impl GraphRules for DagGraphs {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        let n = graph.n_nodes();
        match DagStates::from_graphs(self.env.n_nodes(), &GraphStates::from(vec![graph.clone()])) {
            Ok(states) => {
                let masks = self.env.masks(Direction::Forward, &states);
                let legal = masks.row(0);
                moves.retain(|action| legal[action.a as usize * n + action.b as usize]);
            }
            // No graph of this environment: nothing leads on.
            Err(_) => moves.forbid_all(),
        }
    }
}
