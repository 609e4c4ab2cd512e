//! Which states are one: a policy is asked about each distinct state once, by the sampler and by `score`.

use crate::Result;
use crate::env::{Classes, Direction, Env, Grouping, Rows};

/// The states of a batch that are one: equal, or of one class up to isomorphism.
pub(crate) struct Alike<S> {
    pub(crate) grouping: Grouping,
    /// The renaming of actions, where states are alike that aren't equal.
    classes: Option<Classes>,
    /// The first state of each group, unless each state is a group of its own.
    distinct: Option<S>,
}

/// Groups the states that are one. Without `merges` each is one of its own: equal states differ where their conditions do, and asking
/// about them costs nothing where there is no network.
pub(crate) fn alike<E: Env>(env: &E, states: &E::States, merges: bool) -> Alike<E::States> {
    let classes = if merges { env.symmetry().classes(states) } else { None };
    let grouping = match &classes {
        Some(classes) => classes.grouping.clone(),
        None if merges => states.group(),
        None => Grouping::identity(states.len()),
    };
    let distinct = grouping.merges().then(|| states.select(&grouping.first));
    Alike { grouping, classes, distinct }
}

impl<S: Rows> Alike<S> {
    /// The distinct ones of the states that were grouped.
    pub(crate) fn distinct<'a>(&'a self, states: &'a S) -> &'a S {
        self.distinct.as_ref().unwrap_or(states)
    }

    /// Actions of rows as the first state of each one's group names them; with `back`, the other way round.
    pub(crate) fn named<E: Env<States = S>>(
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
