use gfn::Result;
use gfn::env::Direction;
use gfn::graph::{AddEdge, Anchor, Edge, GraphActionType, GraphState, GraphView, Head, Move, Semantics};

/// Adds a plain edge, as [`AddEdge`] of one class does; the way back names a pair of nodes, too, not an edge.
///
/// So all graphs of `n` nodes have the same slots, `source * n + target` both ways, and networks on vectors, such as
/// [`MlpPolicy`](gfn::policy::MlpPolicy), can give a logit for each.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn::graph::{ActionSet, Free, GraphEnv, GraphKind, GraphSchema, GraphState, Semantics};
/// use gfn_dags::AddArc;
/// let (kind, actions) = (GraphKind::Directed, ActionSet::new(Semantics::Labelled).with(AddArc));
/// let env = GraphEnv::new(Free, actions, GraphState::with_nodes(kind, 3))?;
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![5]))?;
/// assert_eq!(env.masks(Direction::Backward, &states).legal_slots(0).collect::<Vec<_>>(), [5]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddArc;

impl GraphActionType for AddArc {
    fn name(&self) -> &str {
        "add_arc"
    }

    fn head(&self, _: Direction) -> Option<Head> {
        Some(Head { anchor: Anchor::NodePair, width: 1 })
    }

    fn mask(&self, direction: Direction, semantics: Semantics, graph: GraphView<'_>, mask: &mut [bool]) {
        match direction {
            Direction::Forward => AddEdge::new(1).mask(direction, semantics, graph, mask),
            Direction::Backward => {
                let n = graph.n_nodes();
                let plain = graph.weighted_edges().filter(|(_, _, edge)| *edge == Edge::default());
                plain.for_each(|(a, b, _)| mask[a as usize * n + b as usize] = true);
            }
        }
    }

    fn apply(&self, direction: Direction, graph: &mut GraphState, action: Move) -> Result<()> {
        AddEdge::new(1).apply(direction, graph, action)
    }

    fn reverse(&self, _: Direction, _: &GraphState, action: Move) -> Move {
        action
    }
}
