use tch::Tensor;

use super::container::parts::{Owned, Parts};
use super::trajectories::rows_of;
use super::{ReplayEnv, Trajectories};
use crate::condition::Conditions;
use crate::env::{Env, Rows};
use crate::{Error, Result};

/// A batch of walks. A walk is a trajectory in compact form: its forward actions and its terminal state,
/// without the states in between.
///
/// The actions of walk `i` are the rows `offsets[i]..offsets[i + 1]` of `actions`, exits included. In an
/// environment up to isomorphism the actions label nodes in the order of their insertion, and lead to a state
/// that is isomorphic to the terminal state. Walks from a buffer that returns only terminal states have no
/// actions.
///
/// [`Container`](super::Container) selects, samples and joins walks.
pub struct Walks<E: Env> {
    /// The forward actions, walk by walk.
    pub actions: E::Actions,
    /// The index of the first action of each walk, followed by the number of actions, `[n + 1]`.
    pub offsets: Vec<usize>,
    /// The finished objects, one per walk.
    pub terminal: E::States,
    /// The condition vector of each walk, `[n, C]`; `None` without conditions.
    pub conditions: Option<Conditions>,
}

// `Clone` is implemented by hand, because a derived implementation would require `E: Clone`.
impl<E: Env> Clone for Walks<E> {
    fn clone(&self) -> Self {
        self.pick(&(0..self.len()).collect::<Vec<_>>())
    }
}

impl<E: Env> std::fmt::Debug for Walks<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walks").field("offsets", &self.offsets).finish_non_exhaustive()
    }
}

impl<E: Env> Walks<E> {
    /// Returns the number of walks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns `true` if there is no walk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the condition vectors, `[n, C]`; `None` without conditions.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// Returns `true` if every walk has actions.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        self.offsets.windows(2).all(|ends| ends[0] < ends[1])
    }
}

impl<E: Env> Parts for Walks<E> {
    fn count(&self) -> usize {
        self.len()
    }
    fn pick(&self, walks: &[usize]) -> Self {
        let (rows, offsets) = rows_of(&self.offsets, walks);
        Self {
            actions: self.actions.select(&rows),
            offsets,
            terminal: self.terminal.select(walks),
            conditions: self.conditions.as_ref().map(|c| c.pick(walks)),
        }
    }
}

impl<E: Env> Owned for Walks<E> {
    fn join(&mut self, other: Self) {
        let shift = self.actions.len();
        self.offsets.extend(other.offsets[1..].iter().map(|offset| offset + shift));
        self.actions.append(other.actions);
        self.terminal.append(other.terminal);
    }
    fn vectors(&mut self) -> &mut Option<Conditions> {
        &mut self.conditions
    }
}

impl<E: ReplayEnv> Walks<E> {
    /// Returns a walk to each of these finished objects. The actions of a walk undo the backward actions that
    /// [`ReplayEnv::way_back`] chooses. In an environment up to isomorphism nodes are labelled in the order
    /// in which they were inserted.
    pub(crate) fn default_paths(env: &E, terminal: &E::States) -> Result<Self> {
        Trajectories::default_paths(env, terminal)?.walks(env)
    }

    /// Replays these walks step by step, and returns the trajectories, with the conditions of the walks.
    ///
    /// # Errors
    /// [`Error::Missing`] for walks without actions; the errors of [`Trajectories::replay`].
    pub fn replay(&self, env: &E) -> Result<Trajectories<E>> {
        if !self.has_paths() {
            return Err(Error::missing(
                "replaying trajectories by their own paths",
                "the actions of the trajectories",
                "sample backward trajectories from the objects, or store paths in the buffer",
            ));
        }
        let conditions = self.conditions.clone();
        let instances = env.instances(&self.terminal);
        Ok(Trajectories {
            conditions,
            ..Trajectories::replay_of(env, &instances, &self.actions, &self.offsets)?
        })
    }
}
