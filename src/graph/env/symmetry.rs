//! The symmetry of batches of graphs: the number of automorphisms of each graph, classes of isomorphic
//! graphs, and relabelled graphs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use smallvec::SmallVec;

use super::{GraphEnv, relabel};
use crate::env::{Classes, Direction, EnumerableEnv, Forms, Grouping, Slots, Symmetry};
use crate::graph::state::{MIN_GRAPHS_PER_THREAD, mix};
use crate::graph::symmetry::MIN_SEARCHES_PER_THREAD;
use crate::graph::{GraphState, GraphStates};
use crate::{Result, Rng, parallel};

/// The largest number of nodes of environments whose graphs are grouped by isomorphism. Larger graphs of a
/// batch are hardly ever isomorphic, so their canonical forms would cost more than the groups save.
const MAX_NODES: usize = 8;

/// Returns the results of a function for each graph, computed in parallel, or the first error.
fn try_map<T: Send>(
    states: &GraphStates,
    function: impl Fn(&GraphState) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    let graphs = states.graphs();
    parallel::try_map_range(graphs.len(), MIN_SEARCHES_PER_THREAD, |row| function(&graphs[row]))
}

impl Symmetry<GraphStates, Slots> for GraphEnv {
    fn log_symmetry(&self, states: &GraphStates) -> Result<Option<Vec<f64>>> {
        if !self.merges_isomorphic() || !self.corrects_symmetry() {
            return Ok(None);
        }
        let mut out = try_map(states, |graph| self.log_automorphisms(graph))?;
        // The ln |Aut| of the initial graph is subtracted. Otherwise log Z would exceed the log of the sum of
        // all rewards by this number.
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
        let logs = try_map(states, |graph| self.rules.log_multiplicity(graph))?;
        Ok(logs.iter().any(|log| *log != 0.0).then_some(logs))
    }

    fn forms(&self, states: &GraphStates) -> Result<Option<Forms<GraphStates>>> {
        let lists = try_map(states, |graph| self.rules.forms(graph))?;
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

    /// Groups isomorphic graphs. Returns `None` if graphs can have more than 8 nodes, because then grouping
    /// costs more than it saves.
    fn classes(&self, states: &GraphStates) -> Option<Classes> {
        if !self.merges_isomorphic() || self.schema.max_nodes > MAX_NODES {
            return None;
        }
        let canonical = parallel::map(states.graphs(), MIN_GRAPHS_PER_THREAD, |graph| self.canonical(graph));
        let hash = |words: &[u64]| words.iter().fold(0, |hash, word| mix(hash ^ word));
        let hashes: Vec<u64> = canonical.iter().map(|form| hash(form.key.words())).collect();
        let grouping = Grouping::by(&hashes, |i, j| canonical[i].key == canonical[j].key);
        Some(Classes { grouping, orders: canonical.into_iter().map(|form| form.order).collect() })
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
        is_from_first: bool,
    ) -> Result<Slots> {
        let pairs: Vec<(usize, u32)> = rows.iter().copied().zip(actions.0.iter().copied()).collect();
        let renamed = parallel::map(&pairs, MIN_GRAPHS_PER_THREAD, |&(row, slot)| {
            let first = classes.grouping.first[classes.grouping.group_of[row]];
            let (from, to) = if is_from_first { (first, row) } else { (row, first) };
            if from == to {
                return Ok(slot);
            }
            let mut names: SmallVec<[u32; 16]> = SmallVec::from_elem(0, classes.orders[from].len());
            for (&a, &b) in classes.orders[from].iter().zip(&classes.orders[to]) {
                names[a as usize] = b;
            }
            let from = &states.graphs()[from];
            let to = &states.graphs()[to];
            let (kind, action_type, action) = self.actions.decode(direction, from, slot)?;
            self.actions.encode(direction, to, kind, action_type.rename(direction, action, &names, from, to))
        });
        renamed.into_iter().collect::<Result<_>>().map(Slots)
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
