//! Groups of equal states. The sampler and `score` evaluate a policy once per group.

use crate::Result;
use crate::env::{Classes, Direction, Env, Grouping, Rows};

/// The states of a batch in groups of equal states; up to isomorphism, in groups of isomorphic states.
pub(crate) struct StateGroups<S> {
    pub(crate) grouping: Grouping,
    /// The renaming of actions between isomorphic states; `None` if only equal states share a group.
    classes: Option<Classes>,
    /// The first state of each group; `None` if each group has one state.
    distinct: Option<S>,
}

/// Groups equal states, and isomorphic states up to isomorphism. Without `merges` each state forms a group.
/// Use this if equal states may have different conditions, or if there is no network, so that evaluating a
/// state costs nothing.
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
    /// Returns the first state of each group. `states` are the states that were grouped.
    pub(crate) fn distinct<'a>(&'a self, states: &'a S) -> &'a S {
        self.distinct.as_ref().unwrap_or(states)
    }

    /// Renames actions of rows from the labels of the row's state to the labels of its group's first state; with
    /// `back`, from those labels to the row's own.
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
