//! Groups of equal states. The sampler and `score` evaluate a policy only once for each group.

use crate::Result;
use crate::env::{Classes, Direction, Env, Grouping, Rows};

/// A division of the states of a batch into groups of equal states. In an environment up to isomorphism, a
/// group consists of isomorphic states.
pub(crate) struct StateGroups<S> {
    pub(crate) grouping: Grouping,
    /// The data from which actions are renamed between the node labels of isomorphic states; `None` if only
    /// equal states share a group.
    classes: Option<Classes>,
    /// The first state of each group; `None` if each group has a single state. In this case the batch itself
    /// holds these states.
    distinct: Option<S>,
}

/// Groups equal states, or isomorphic states in an environment up to isomorphism. If `merges` is `false`,
/// each state is a separate group. Pass `false` if equal states may have different conditions, or if the
/// policy has no network, so that evaluating a state twice costs almost nothing.
pub(crate) fn group_states<E: Env>(env: &E, states: &E::States, merges: bool) -> StateGroups<E::States> {
    let classes = if merges { env.symmetry().classes(states) } else { None };
    let grouping = match &classes {
        Some(classes) => classes.grouping.clone(),
        None if merges => states.group(),
        None => Grouping::identity(states.len()),
    };
    let distinct = grouping.merges().then(|| states.select(&grouping.first));
    StateGroups { grouping, classes, distinct }
}

impl<S: Rows> StateGroups<S> {
    /// Creates groups of a single state each.
    pub(crate) fn identity(n: usize) -> Self {
        Self { grouping: Grouping::identity(n), classes: None, distinct: None }
    }

    /// Returns the first state of each group. `states` are the states that were grouped.
    pub(crate) fn distinct<'a>(&'a self, states: &'a S) -> &'a S {
        self.distinct.as_ref().unwrap_or(states)
    }

    /// Renames actions between the labels of isomorphic states. Action `i` belongs to the state with the
    /// index `rows[i]`. If `back` is `false`, actions are renamed from the labels of this state to the labels
    /// of the first state of its group. If `back` is `true`, they are renamed in the opposite direction.
    pub(crate) fn rename<E: Env<States = S>>(
        &self,
        env: &E,
        direction: Direction,
        states: &S,
        rows: &[usize],
        actions: E::Actions,
        back: bool,
    ) -> Result<E::Actions> {
        match &self.classes {
            Some(classes) => env.symmetry().translate(direction, states, classes, rows, &actions, back),
            None => Ok(actions),
        }
    }
}
