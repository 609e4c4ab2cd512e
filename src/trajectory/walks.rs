use super::Trajectories;
use crate::Result;
use crate::env::{DiscreteEnv, Env, Rows, Slots};

/// Trajectories in short: terminal states and the forward actions that lead to them, without the states between.
///
/// The actions of walk `i` are `offsets[i]..offsets[i + 1]`, exits included. Up to isomorphism they are named in the order of
/// insertion, and the state that they lead to is isomorphic to the terminal one.
pub struct Walks<E: Env> {
    /// The forward actions, walk by walk.
    pub actions: E::Actions,
    /// Where each walk's actions start, `[n + 1]`.
    pub offsets: Vec<usize>,
    /// The finished objects.
    pub terminal: E::States,
}

impl<E: Env> Clone for Walks<E> {
    fn clone(&self) -> Self {
        Self { actions: self.actions.clone(), offsets: self.offsets.clone(), terminal: self.terminal.clone() }
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

    /// Whether there is no walk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The walks at these indices, in this order.
    #[must_use]
    pub fn select(&self, walks: &[usize]) -> Self {
        let mut rows = Vec::new();
        let mut offsets = vec![0];
        for &i in walks {
            rows.extend(self.offsets[i]..self.offsets[i + 1]);
            offsets.push(rows.len());
        }
        Self { actions: self.actions.select(&rows), offsets, terminal: self.terminal.select(walks) }
    }
}

impl<E: DiscreteEnv<Actions = Slots>> Walks<E> {
    /// The trajectories that these walks are.
    ///
    /// # Errors
    /// Those of [`Trajectories::replay`].
    pub fn replay(&self, env: &E) -> Result<Trajectories<E>> {
        Trajectories::replay(env, &self.actions, &self.offsets)
    }
}
