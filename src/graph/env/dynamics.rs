//! The environment traits of `GraphEnv`: steps, masks and symmetry for batches of graphs.

use serde_json::Value;

use super::backward::fill_mask;
use super::{GraphEnv, settings};
use crate::distribution::GraphActionCategorical;
use crate::env::{
    Block, Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step, Symmetry, TensorForm,
    restrict,
};
use crate::graph::batch::new_ptr;
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::{BatchMove, GraphState, GraphStates, GraphView, Move, Semantics, reverse_move};
use crate::{Error, Result, parallel};

/// Applies an action to one graph. Returns the slot of the reverse action, and `true` if the action is the
/// exit.
fn step_graph(
    env: &GraphEnv,
    direction: Direction,
    graph: &mut GraphState,
    slot: u32,
) -> Result<(u32, bool)> {
    let (kind, action_type, action) = env.actions.decode(direction, graph, slot)?;
    if action_type.is_exit() {
        return Ok((0, true));
    }
    // Up to isomorphism, nodes of the initial graph are recognised by their labels, which are the smallest.
    // If such a node were removed, a later node would get one of these labels, so the removal is refused.
    let n_protected = if env.merges_isomorphic() { env.initial_of(graph).n_nodes() } else { 0 };
    let removed = action_type.removed_nodes(direction, graph, action);
    if let Some(a) = removed.into_iter().find(|&a| (a as usize) < n_protected) {
        return Err(Error::contract(
            "up to isomorphism no move removes a node of the initial graph (mark the node as removed by an \
             attribute, `SetNodeAttr`, or distinguish nodes by their labels, `Semantics::Labelled`)",
            format!("`{}` removes node {a} of {graph}", action_type.name()),
        ));
    }
    let reverse = reverse_move(action_type, direction, graph, action);
    action_type.apply(direction, graph, action)?;
    Ok((env.actions.encode(direction.opposite(), graph, kind, reverse)?, false))
}

impl GraphEnv {
    /// Adds a second form of this environment, whose states are a tensor, so that roll-outs stay on a device.
    /// The form must have the same states, moves and slots as the environment, which
    /// [`check_tensors`](crate::contract::check_tensors) tests.
    ///
    /// # Errors
    /// [`Error::Config`] for an environment up to isomorphism and for several initial graphs.
    pub fn with_tensors(self, form: TensorForm<GraphStates>) -> Result<Self> {
        if self.initial.len() == 1 && self.actions.semantics() == Semantics::Labelled {
            return Ok(Self { tensors: Some(form), ..self });
        }
        let found = format!("{:?} with {} initial graphs", self.actions.semantics(), self.initial.len());
        let expected = "labelled graphs with one initial graph";
        Err(Error::config("the environment of a tensor form", found, expected))
    }
}

impl Env for GraphEnv {
    type States = GraphStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn settings(&self) -> Value {
        settings::settings(self)
    }

    fn tensor_form(&self) -> Option<&TensorForm<GraphStates>> {
        self.tensors.as_ref()
    }

    fn describe_state(&self, states: &GraphStates, row: usize) -> Option<String> {
        let graph = states.graphs().get(row)?;
        Some(match self.rules.name(graph) {
            None => graph.to_string(),
            Some(name) => format!("{name} ({graph})"),
        })
    }

    fn n_instances(&self) -> u32 {
        self.initial.len() as u32
    }

    fn initial(&self, instances: &[u32]) -> GraphStates {
        instances.iter().map(|&instance| self.initial[instance as usize].clone()).collect::<Vec<_>>().into()
    }

    fn instances(&self, states: &GraphStates) -> Vec<u32> {
        states.graphs().iter().map(GraphState::instance).collect()
    }

    fn step(&self, direction: Direction, states: &mut GraphStates, actions: &Slots) -> Result<Step<Slots>> {
        let n_states = states.len() as i64;
        let n_actions = actions.len() as i64;
        if n_states != n_actions {
            return Err(Error::shape("actions", [n_states], [n_actions], "give one action per state"));
        }
        let graphs = states.graphs_mut();
        let stepped = parallel::try_map_mut(graphs, &actions.0, MIN_GRAPHS_PER_THREAD, |graph, &slot| {
            let (reverse, exit) = step_graph(self, direction, graph, slot)?;
            let is_back = direction == Direction::Backward && self.is_start(graph);
            Ok((reverse, exit, exit || is_back))
        })?;
        Ok(Step {
            reverse: Slots(stepped.iter().map(|row| row.0).collect()),
            exit: stepped.iter().map(|row| row.1).collect(),
            done: stepped.iter().map(|row| row.2).collect(),
        })
    }

    fn is_initial(&self, states: &GraphStates) -> Vec<bool> {
        states.graphs().iter().map(|graph| self.is_start(graph)).collect()
    }

    fn exit_actions(&self, states: &GraphStates) -> Option<Slots> {
        // The exit is the last slot. If that slot's number doesn't fit into 32 bits, the exit can't be taken,
        // and `step` returns an error.
        let last = |graph: &GraphState| {
            Slots::slot(self.actions().n_slots(Direction::Forward, graph) - 1).unwrap_or(Slots::NONE)
        };
        Some(Slots(states.graphs().iter().map(last).collect()))
    }

    fn symmetry(&self) -> &dyn Symmetry<GraphStates, Slots> {
        self
    }
}

impl DiscreteEnv for GraphEnv {
    fn masks(&self, direction: Direction, states: &GraphStates) -> Masks {
        let heads: Vec<_> = self.actions().heads(direction).collect();
        let mut slot_ptr = new_ptr(states.len());
        let mut blocks = Vec::with_capacity(heads.len());
        for (_, action_type, head) in &heads {
            let row_ptr = new_ptr(states.len());
            blocks.push(Block { name: action_type.name().to_owned(), width: head.width, row_ptr });
        }
        let mut n_slots = 0;
        for graph in states.graphs() {
            for (block, (_, _, head)) in blocks.iter_mut().zip(&heads) {
                let rows = head.anchor.rows(graph);
                block.row_ptr.push(block.rows() + rows);
                n_slots += rows * head.width;
            }
            slot_ptr.push(n_slots);
        }
        let mut legal = vec![false; n_slots];
        let mut rest = legal.as_mut_slice();
        let mut rows = Vec::with_capacity(states.len());
        for (row, slots) in slot_ptr.windows(2).enumerate() {
            let (mask, tail) = rest.split_at_mut(slots[1] - slots[0]);
            rows.push((states.view(row), mask));
            rest = tail;
        }
        parallel::for_each(rows, MIN_GRAPHS_PER_THREAD, |(graph, mut mask): (GraphView<'_>, &mut [bool])| {
            for &type_head in &heads {
                let (_, _, head) = type_head;
                let (block, rest) = mask.split_at_mut(head.anchor.rows(&graph) * head.width);
                fill_mask(self, direction, graph, type_head, block);
                mask = rest;
            }
        });
        let mut masks =
            Masks { direction, blocks, slot_ptr, legal, has_exit: direction == Direction::Forward };
        if let Some(rules) = self.rules.batched() {
            // Rules that are evaluated for a batch (`BatchRules`) are defined for forward moves. A backward
            // move is therefore checked through the forward move that it undoes, in the parent.
            let forward = |row: usize, slot: u32, at: usize| {
                let graph = &states.graphs()[row];
                let (kind, action_type, action) = self.actions.decode(direction, graph, slot).ok()?;
                if direction == Direction::Forward {
                    return Some((BatchMove { row, kind, action }, None));
                }
                let redo = reverse_move(action_type, direction, graph, action);
                let mut parent = graph.clone();
                action_type.apply(direction, &mut parent, action).ok()?;
                Some((BatchMove { row: at, kind, action: redo }, Some(parent)))
            };
            restrict(rules, states, &mut masks, forward, GraphStates::from);
        }
        masks
    }

    fn describe(&self, direction: Direction, states: &GraphStates, row: usize, slot: u32) -> String {
        let Some(graph) = states.graphs().get(row) else {
            return format!("there is no state {row}");
        };
        match self.actions().decode(direction, graph, slot) {
            Ok((_, action_type, action)) => {
                let Move { a, b, class } = action;
                let name = action_type.name();
                let undo = if direction == Direction::Backward { "undo " } else { "" };
                format!(
                    "{undo}{name} (node {a}, node {b}, column {class}) in a graph of {} nodes",
                    graph.n_nodes()
                )
            }
            Err(error) => error.to_string(),
        }
    }
}
