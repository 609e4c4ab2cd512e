use tch::Tensor;

use super::container::parts::{Owned, Parts};
use super::trajectories::rows_of;
use super::{ReplayEnv, Trajectories};
use crate::condition::Conditions;
use crate::env::{Env, Rows};
use crate::{Error, Result};

/// Trajectories in compact form: terminal states and the forward actions that lead to them, without the states in
/// between.
///
/// The actions of walk `i` are `offsets[i]..offsets[i + 1]`, exits included. Up to isomorphism they use labels in the
/// order of insertion, and the state that they lead to is isomorphic to the terminal one. A buffer of terminal states
/// alone gives walks without actions.
///
/// [`Container`](super::Container) selects, samples and joins them.
pub struct Walks<E: Env> {
    /// The forward actions, walk by walk.
    pub actions: E::Actions,
    /// The first action of each walk, and the number of actions, `[n + 1]`.
    pub offsets: Vec<usize>,
    /// The finished objects.
    pub terminal: E::States,
    /// The condition vector of each walk, `[n, C]`, if there are any.
    pub conditions: Option<Conditions>,
}

// Deriving it would ask for an environment that can be cloned.
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
    /// The number of walks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// `true` if there is no walk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The condition vectors, `[n, C]`, if there are any.
    #[must_use]
    pub fn conditions(&self) -> Option<&Tensor> {
        self.conditions.as_ref().map(|c| &c.0)
    }

    /// `true` if every walk has its actions, not only its object.
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
    /// A walk to each of these finished objects: the first path that is legal backwards. Up to isomorphism the objects get labels in the
    /// order of insertion.
    pub(crate) fn first_to(env: &E, terminal: &E::States) -> Result<Self> {
        Trajectories::first_ways(env, terminal)?.walks(env)
    }

    /// Replays these walks to trajectories, under their conditions.
    ///
    /// # Errors
    /// [`Error::Missing`] for walks without actions, and those of [`Trajectories::replay`].
    pub fn replay(&self, env: &E) -> Result<Trajectories<E>> {
        if !self.has_paths() {
            return Err(Error::missing(
                "replaying walks as they were",
                "their actions",
                "draw new ways back from the objects, or store paths in the buffer",
            ));
        }
        let (conditions, instances) = (self.conditions.clone(), env.instances(&self.terminal));
        Ok(Trajectories { conditions, ..Trajectories::replay_of(env, &instances, &self.actions, &self.offsets)? })
    }
}
