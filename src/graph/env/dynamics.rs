//! The environment traits of `GraphEnv`: steps, masks and symmetry of batches of graphs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::backward::fill_mask;
use super::{GraphEnv, GraphRules, classes, relabel};
use crate::distribution::GraphActionCategorical;
use crate::env::{
    Block, Classes, Direction, DiscreteEnv, EnumerableEnv, Env, Forms, Masks, Rows, Slots, Step, Symmetry, restrict,
};
use crate::graph::state::MIN_GRAPHS_PER_THREAD;
use crate::graph::symmetry::MIN_SEARCHES_PER_THREAD;
use crate::graph::{BatchMove, GraphActionType, GraphState, GraphStates, GraphView, Move, reverse_move};
use crate::{Error, Result, Rng, parallel};

/// Steps one graph. Returns the reverse slot, and `true` if the action is the exit.
fn step_graph(env: &GraphEnv, direction: Direction, graph: &mut GraphState, slot: u32) -> Result<(u32, bool)> {
    let actions = env.actions();
    let (kind, action_type, action) = actions.decode(direction, graph, slot)?;
    if action_type.is_exit() {
        return Ok((0, true));
    }
    check_removed(env, direction, action_type, graph, action)?;
    let reverse = reverse_move(action_type, direction, graph, action);
    action_type.apply(direction, graph, action)?;
    Ok((actions.encode(direction.opposite(), graph, kind, reverse)?, false))
}

/// Checks that a move doesn't remove a node of the initial graph, if labels have no meaning. Nodes of the
/// initial graph come first, so the next node would take the place of the removed one.
fn check_removed(
    env: &GraphEnv,
    direction: Direction,
    action_type: &dyn GraphActionType,
    graph: &GraphState,
    action: Move,
) -> Result<()> {
    let n_protected = if env.merges_isomorphic() { env.initial_of(graph).n_nodes() } else { 0 };
    let removed = action_type.removed_nodes(direction, graph, action);
    if let Some(a) = removed.into_iter().find(|&a| (a as usize) < n_protected) {
        return Err(Error::contract(
            "up to isomorphism no move takes a node of the initial graph (mark it as gone by an attribute, \
             `SetNodeAttr`, or tell nodes apart by their labels, `Semantics::Labelled`)",
            format!("{} takes node {a} of {graph}", action_type.name()),
        ));
    }
    Ok(())
}

impl Env for GraphEnv {
    type States = GraphStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

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
        // If a graph has more slots than can be numbered, its exit can't be taken, and `step` returns an
        // error.
        let last = |graph: &GraphState| {
            Slots::slot(self.actions().n_slots(Direction::Forward, graph) - 1).unwrap_or(Slots::NONE)
        };
        Some(Slots(states.graphs().iter().map(last).collect()))
    }

    fn symmetry(&self) -> &dyn Symmetry<GraphStates, Slots> {
        self
    }
}

impl Symmetry<GraphStates, Slots> for GraphEnv {
    fn log_symmetry(&self, states: &GraphStates) -> Result<Option<Vec<f64>>> {
        if !self.merges_isomorphic() || !self.corrects_symmetry() {
            return Ok(None);
        }
        let count = |row: usize| self.log_automorphisms(&states.graphs()[row]);
        let mut out = parallel::try_map_range(states.graphs().len(), MIN_SEARCHES_PER_THREAD, count)?;
        // ln |Aut| of the initial graph is subtracted, so that log Z is that of the uncorrected reward.
        let mut of_initial = HashMap::new();
        for (graph, log) in states.graphs().iter().zip(&mut out) {
            *log -= match of_initial.entry(graph.instance()) {
                Entry::Occupied(cached) => *cached.get(),
                Entry::Vacant(new) => *new.insert(self.log_automorphisms(self.initial_of(graph))?),
            };
        }
        Ok(Some(out))
    }

    fn log_multiplicity(&self, states: &GraphStates) -> Result<Option<Vec<f64>>> {
        let multiplicity = |row: usize| self.rules.log_multiplicity(&states.graphs()[row]);
        let logs = parallel::try_map_range(states.graphs().len(), MIN_SEARCHES_PER_THREAD, multiplicity)?;
        Ok(logs.iter().any(|log| *log != 0.0).then_some(logs))
    }

    fn forms(&self, states: &GraphStates) -> Result<Option<Forms<GraphStates>>> {
        let list_forms = |row: usize| self.rules.forms(&states.graphs()[row]);
        let lists = parallel::try_map_range(states.graphs().len(), MIN_SEARCHES_PER_THREAD, list_forms)?;
        if lists.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(lists.len());
        let mut offsets = vec![0];
        for (graph, forms) in states.graphs().iter().zip(lists) {
            all.extend(forms.unwrap_or_else(|| vec![graph.clone()]));
            offsets.push(all.len());
        }
        Ok(Some(Forms { states: all.into(), offsets }))
    }

    fn classes(&self, states: &GraphStates) -> Option<Classes> {
        if self.merges_isomorphic() { classes::group_isomorphic(self, states) } else { None }
    }

    fn relabelled(&self, states: &GraphStates, rng: &mut Rng) -> Option<(GraphStates, Classes)> {
        self.merges_isomorphic().then(|| relabel::append_relabelled(self, states, rng))
    }

    fn translate(
        &self,
        direction: Direction,
        states: &GraphStates,
        classes: &Classes,
        rows: &[usize],
        actions: &Slots,
        back: bool,
    ) -> Result<Slots> {
        classes::translate(self, direction, states, classes, rows, actions, back)
    }

    fn to_insertion_order(
        &self,
        states: &GraphStates,
        actions: &Slots,
        reverse: &Slots,
        offsets: &[usize],
    ) -> Result<Option<(Slots, GraphStates)>> {
        let renamed = || relabel::to_insertion_order(self, states, actions, reverse, offsets);
        self.merges_isomorphic().then(renamed).transpose()
    }
}

impl DiscreteEnv for GraphEnv {
    fn masks(&self, direction: Direction, states: &GraphStates) -> Masks {
        let heads: Vec<_> = self.actions().heads(direction).collect();
        let ptr = || {
            let mut ptr = Vec::with_capacity(states.len() + 1);
            ptr.push(0);
            ptr
        };
        let block = |action_type: &dyn GraphActionType, width: usize| Block {
            name: action_type.name().to_owned(),
            width,
            row_ptr: ptr(),
        };
        let mut blocks: Vec<Block> =
            heads.iter().map(|&(_, action_type, head)| block(action_type, head.width)).collect();
        let mut slot_ptr = ptr();
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
        let fill_graph = |graph: GraphView<'_>, mut mask: &mut [bool]| {
            for &(kind, action_type, head) in &heads {
                let (block, rest) = mask.split_at_mut(head.anchor.rows(&graph) * head.width);
                fill_mask(self, direction, graph, kind, action_type, head, block);
                mask = rest;
            }
        };
        let mut rest = legal.as_mut_slice();
        let mut rows = Vec::with_capacity(states.len());
        for (row, slots) in slot_ptr.windows(2).enumerate() {
            let (mask, tail) = rest.split_at_mut(slots[1] - slots[0]);
            rows.push((states.view(row), mask));
            rest = tail;
        }
        parallel::for_each(rows, MIN_GRAPHS_PER_THREAD, |(graph, mask)| fill_graph(graph, mask));
        let mut masks = Masks { direction, blocks, slot_ptr, legal, has_exit: direction == Direction::Forward };
        if let Some(rules) = self.rules.batched() {
            // Batch rules take forward moves, so a backward move becomes the forward move of its parent.
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
                format!("{undo}{name} (node {a}, node {b}, column {class}) in a graph of {} nodes", graph.n_nodes())
            }
            Err(error) => error.to_string(),
        }
    }
}
