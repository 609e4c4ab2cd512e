//! `GraphEnv`: an action set and what it permits. The environment traits follow by blanket impl.

mod classes;
mod contract;
mod enumerable;
mod fits;
mod relabel;
mod schema;

pub(crate) use contract::check_settings;
// What only `testing` takes from here.
#[cfg(any(test, feature = "testing"))]
pub(crate) use contract::{check_by_type, check_fits};
pub(crate) use fits::misfit;
pub use schema::GraphSchema;

use super::symmetry::MIN_PER_THREAD;
use crate::env::{Block, Classes, Direction, DiscreteEnv, Env, InsertionOrder, Masks, Rows, Slots, Step};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{ActionKind, ActionSet, GraphActionType, GraphState, GraphStates, Move, Semantics, with_canonizer};
use crate::{Error, Result, parallel};

/// How the legal backward actions of an environment are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackwardRule {
    /// Each candidate of the action types is undone on a copy, and kept if the parent is reachable, keeps of the initial graph
    /// what is whole, and permits the forward move. Right for any environment and any action type; slow.
    Derived,
    /// The backward masks of the action types are exact as they stand. [`testing::check_graph_env`](crate::testing::check_graph_env)
    /// compares them with the derived ones.
    ByType,
}

/// An environment that builds graphs: its action types, where it starts, and what it permits.
///
/// [`Env`], [`DiscreteEnv`] and [`EnumerableEnv`](crate::env::EnumerableEnv) follow by blanket impl.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env};
/// use gfn::graph::*;
///
/// struct Tournament { actions: ActionSet, schema: GraphSchema, initial: GraphState }
/// impl GraphEnv for Tournament {
///     fn actions(&self) -> &ActionSet { &self.actions }
///     fn schema(&self) -> &GraphSchema { &self.schema }
///     fn initial_graph(&self) -> &GraphState { &self.initial }
///     // An edge and its opposite exclude each other.
///     fn restrict(&self, _: ActionKind, graph: &GraphState, mask: &mut [bool]) {
///         let n = graph.n_nodes();
///         for (a, b) in graph.edges() {
///             if let Some(legal) = mask.get_mut(b as usize * n + a as usize) { *legal = false }
///         }
///     }
/// }
/// let env = Tournament {
///     actions: ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)),
///     schema: GraphSchema::plain(GraphKind::Directed, 3),
///     initial: GraphState::with_nodes(GraphKind::Directed, 3),
/// };
/// let masks = env.masks(Direction::Forward, &env.initial(1));
/// assert_eq!(masks.n_legal(0), 6 + 1);
/// ```
pub trait GraphEnv: Send + Sync {
    /// The action types; their semantics decides when two graphs are the same object.
    fn actions(&self) -> &ActionSet;

    /// What the graphs are made of.
    fn schema(&self) -> &GraphSchema;

    /// Where every trajectory starts: the empty graph, `n` nodes without edges, a scaffold.
    ///
    /// Its nodes and edges stay for good, and up to isomorphism its nodes are told apart.
    fn initial_graph(&self) -> &GraphState;

    /// Takes away from what an action type allows going forward: set to false what is not permitted here.
    fn restrict(&self, _kind: ActionKind, _graph: &GraphState, _mask: &mut [bool]) {}

    /// Whether the graph may be a finished object.
    fn can_exit(&self, _graph: &GraphState) -> bool {
        true
    }

    /// False for graphs that no sequence of forward moves builds (a disconnected one, where growth is by attachment).
    fn is_reachable(&self, _graph: &GraphState) -> bool {
        true
    }

    /// How legal backward actions are found.
    fn backward_rule(&self) -> BackwardRule {
        BackwardRule::Derived
    }

    /// Whether training corrects for symmetry, up to isomorphism: |Aut(G)| R(G) in place of R(G).
    fn corrects_symmetry(&self) -> bool {
        true
    }

    /// What training corrects for: ln |Aut| of a graph, the nodes of the initial one held in place.
    ///
    /// An environment whose nodes stand for what has symmetries of its own (a fragment of a molecule) gives another number.
    /// `N_forward |Aut(child)| = N_backward |Aut(parent)|` must hold for it between any two states, as
    /// [`testing::check_env`](crate::testing::check_env) tests.
    ///
    /// # Errors
    /// Those of [`Canonizer::log_automorphisms`](crate::graph::Canonizer::log_automorphisms).
    fn log_automorphisms(&self, graph: &GraphState) -> Result<f64> {
        with_canonizer(|canonizer| canonizer.log_automorphisms(graph, self.initial_graph().n_nodes()))
    }
}

/// Fills one block of one graph, as the environment permits.
fn fill<G: GraphEnv>(
    env: &G,
    direction: Direction,
    graph: &GraphState,
    (kind, action_type): (ActionKind, &dyn GraphActionType),
    mask: &mut [bool],
) {
    if direction == Direction::Forward && action_type.is_exit() {
        mask.fill(env.can_exit(graph));
        return;
    }
    action_type.mask(direction, env.actions().semantics(), graph, mask);
    match direction {
        Direction::Forward => env.restrict(kind, graph, mask),
        Direction::Backward if env.backward_rule() == BackwardRule::Derived => {
            derive_backward(env, graph, (kind, action_type), mask);
        }
        Direction::Backward => {}
    }
}

/// The legal backward slots of a graph, derived: what the masks of [`BackwardRule::ByType`] must agree with.
pub(crate) fn derived_backward<G: GraphEnv>(env: &G, graph: &GraphState) -> Vec<bool> {
    let mut out = Vec::new();
    for (kind, action_type, head) in env.actions().heads(Direction::Backward) {
        let mut mask = vec![false; head.anchor.rows(graph) * head.width];
        action_type.mask(Direction::Backward, env.actions().semantics(), graph, &mut mask);
        derive_backward(env, graph, (kind, action_type), &mut mask);
        out.append(&mut mask);
    }
    out
}

/// Keeps of the candidates in `mask` those whose undoing leads to a reachable parent that permits the move back here.
fn derive_backward<G: GraphEnv>(
    env: &G,
    graph: &GraphState,
    (kind, action_type): (ActionKind, &dyn GraphActionType),
    mask: &mut [bool],
) {
    let Some(head) = action_type.head(Direction::Backward) else {
        return;
    };
    let mut forward_mask = Vec::new();
    for (slot, legal) in mask.iter_mut().enumerate().filter(|(_, legal)| **legal) {
        let undo = head.decode(graph, slot);
        *legal = parent_permits(env, graph, (kind, action_type), undo, &mut forward_mask);
    }
}

fn parent_permits<G: GraphEnv>(
    env: &G,
    graph: &GraphState,
    (kind, action_type): (ActionKind, &dyn GraphActionType),
    undo: Move,
    forward_mask: &mut Vec<bool>,
) -> bool {
    let initial = env.initial_graph();
    let removed = action_type.removed_nodes(Direction::Backward, graph, undo);
    if removed.iter().any(|&a| (a as usize) < initial.n_nodes()) {
        return false;
    }
    let redo = action_type.reverse(Direction::Backward, graph, undo);
    let mut parent = graph.clone();
    let undone = action_type.apply(Direction::Backward, &mut parent, undo);
    if undone.is_err() || !env.is_reachable(&parent) {
        return false;
    }
    // What is built keeps the initial graph; what takes away from it needn't give all of it back at once.
    if !contains(&parent, initial) && contains(graph, initial) {
        return false;
    }
    let Some(head) = action_type.head(Direction::Forward) else {
        return false;
    };
    // The column of a class that the type doesn't know would be another slot's.
    if redo.class as usize >= head.width {
        return false;
    }
    forward_mask.clear();
    forward_mask.resize(head.anchor.rows(&parent) * head.width, false);
    action_type.mask(Direction::Forward, env.actions().semantics(), &parent, forward_mask);
    env.restrict(kind, &parent, forward_mask);
    forward_mask.get(head.encode(&parent, redo)).copied() == Some(true)
}

/// Whether `graph` still has everything that `initial` has.
fn contains(graph: &GraphState, initial: &GraphState) -> bool {
    let keeps = |now: &[u8], then: &[u8]| then.iter().zip(now).all(|(t, n)| *t == 0 || t == n);
    graph.n_nodes() >= initial.n_nodes()
        && initial
            .nodes()
            .zip(graph.nodes())
            .all(|(then, now)| then.class == now.class && keeps(now.attributes.values(), then.attributes.values()))
        && initial.edges().all(|(a, b)| match (initial.edge(a, b), graph.edge(a, b)) {
            (Some(then), Some(now)) => {
                then.class == now.class && keeps(now.attributes.values(), then.attributes.values())
            }
            _ => false,
        })
}

/// Steps one graph: the reverse slot, and whether it was the exit.
fn step_one<G: GraphEnv>(env: &G, direction: Direction, graph: &mut GraphState, slot: u32) -> Result<(u32, bool)> {
    let actions = env.actions();
    let (kind, action_type, action) = actions.decode(direction, graph, slot)?;
    if action_type.is_exit() {
        return Ok((0, true));
    }
    let reverse = action_type.reverse(direction, graph, action);
    action_type.apply(direction, graph, action)?;
    Ok((actions.encode(direction.opposite(), graph, kind, reverse)?, false))
}

impl<G: GraphEnv> Env for G {
    type States = GraphStates;
    type Actions = Slots;

    fn initial(&self, n: usize) -> GraphStates {
        vec![self.initial_graph().clone(); n].into()
    }

    fn step(&self, direction: Direction, states: &mut GraphStates, actions: &Slots) -> Result<Step<Slots>> {
        if states.len() != actions.len() {
            return Err(Error::shape(
                "actions",
                [states.len() as i64],
                [actions.len() as i64],
                "give one action per state",
            ));
        }
        let graphs = states.graphs_mut();
        let stepped = parallel::try_map_mut(graphs, &actions.0, MIN_GRAPHS_PER_THREAD, |graph, &slot| {
            let (reverse, exit) = step_one(self, direction, graph, slot)?;
            let done = match direction {
                Direction::Forward => exit,
                Direction::Backward => graph == self.initial_graph(),
            };
            Ok((reverse, exit, done))
        })?;
        Ok(Step {
            reverse: Slots(stepped.iter().map(|row| row.0).collect()),
            exit: stepped.iter().map(|row| row.1).collect(),
            done: stepped.iter().map(|row| row.2).collect(),
        })
    }

    fn is_initial(&self, states: &GraphStates) -> Vec<bool> {
        let graphs = states.graphs().iter();
        graphs.map(|graph| graph == self.initial_graph()).collect()
    }

    fn exit_actions(&self, states: &GraphStates) -> Option<Slots> {
        // A graph with more slots than can be numbered has no exit that could be taken; `step` refuses it.
        let last = |graph: &GraphState| {
            Slots::slot(self.actions().n_slots(Direction::Forward, graph) - 1).unwrap_or(Slots::NONE)
        };
        Some(Slots(states.graphs().iter().map(last).collect()))
    }

    fn log_symmetry(&self, states: &GraphStates) -> Result<Option<Vec<f64>>> {
        if self.actions().semantics() == Semantics::Labelled || !self.corrects_symmetry() {
            return Ok(None);
        }
        let of_graph = |row: usize| self.log_automorphisms(&states.graphs()[row]);
        parallel::try_map_range(states.graphs().len(), MIN_PER_THREAD, of_graph).map(Some)
    }

    fn classes(&self, states: &GraphStates) -> Option<Classes> {
        match self.actions().semantics() {
            Semantics::Labelled => None,
            Semantics::UpToIsomorphism => classes::classes(self, states),
        }
    }

    fn translate(
        &self,
        direction: Direction,
        states: &GraphStates,
        classes: (&Classes, &[usize]),
        actions: &Slots,
        back: bool,
    ) -> Result<Slots> {
        classes::translate(self, direction, states, classes, actions, back)
    }

    fn to_insertion_order(
        &self,
        states: &GraphStates,
        actions: &Slots,
        reverse: &Slots,
        offsets: &[usize],
    ) -> Result<Option<InsertionOrder<Slots, GraphStates>>> {
        match self.actions().semantics() {
            Semantics::Labelled => Ok(None),
            Semantics::UpToIsomorphism => {
                relabel::to_insertion_order(self, states, actions, reverse, offsets).map(Some)
            }
        }
    }

    fn with_labels(&self, states: &GraphStates, labels: &[u32]) -> Result<GraphStates> {
        relabel::with_labels(states.graphs(), labels)
    }

    fn check_contract(&self) -> Result<()> {
        contract::check_sampled(self)
    }
}

impl<G: GraphEnv> DiscreteEnv for G {
    fn masks(&self, direction: Direction, states: &GraphStates) -> Masks {
        let heads: Vec<_> = self.actions().heads(direction).collect();
        let mut blocks: Vec<Block> = heads
            .iter()
            .map(|(_, action_type, head)| Block {
                name: action_type.name().to_owned(),
                width: head.width,
                row_ptr: Vec::with_capacity(states.len() + 1),
            })
            .collect();
        let mut slot_ptr = Vec::with_capacity(states.len() + 1);
        let mut n_slots = 0;
        slot_ptr.push(0);
        for block in &mut blocks {
            block.row_ptr.push(0);
        }
        for graph in states.graphs() {
            for (block, (_, _, head)) in blocks.iter_mut().zip(&heads) {
                let rows = head.anchor.rows(graph);
                block.row_ptr.push(block.rows() + rows);
                n_slots += rows * head.width;
            }
            slot_ptr.push(n_slots);
        }
        let mut legal = vec![false; n_slots];
        let fill_graph = |graph: &GraphState, mut mask: &mut [bool]| {
            for &(kind, action_type, head) in &heads {
                let (block, rest) = mask.split_at_mut(head.anchor.rows(graph) * head.width);
                fill(self, direction, graph, (kind, action_type), block);
                mask = rest;
            }
        };
        let mut rest = legal.as_mut_slice();
        let mut rows = Vec::with_capacity(states.len());
        for (graph, slots) in states.graphs().iter().zip(slot_ptr.windows(2)) {
            let (mask, tail) = rest.split_at_mut(slots[1] - slots[0]);
            rows.push((graph, mask));
            rest = tail;
        }
        parallel::for_each(rows, MIN_GRAPHS_PER_THREAD, |(graph, mask)| fill_graph(graph, mask));
        Masks { direction, blocks, slot_ptr, legal, has_exit: direction == Direction::Forward }
    }

    fn describe(&self, direction: Direction, states: &GraphStates, row: usize, slot: u32) -> String {
        let Some(graph) = states.graphs().get(row) else {
            return format!("there is no state {row}");
        };
        match self.actions().decode(direction, graph, slot) {
            Ok((_, action_type, action)) => {
                let Move { a, b, class } = action;
                let (name, undo) = (action_type.name(), if direction == Direction::Backward { "undo " } else { "" });
                format!("{undo}{name} (node {a}, node {b}, column {class}) in a graph of {} nodes", graph.n_nodes())
            }
            Err(error) => error.to_string(),
        }
    }
}
