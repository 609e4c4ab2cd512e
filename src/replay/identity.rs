use std::collections::HashSet;

use crate::env::EnumerableEnv;

/// Tells finished objects apart, so that a buffer holds each of them once.
pub trait Distinct<E: crate::env::Env>: Send {
    /// For each state whether it is new; new ones are known from then on.
    fn admit(&mut self, env: &E, states: &E::States) -> Vec<bool>;

    /// Forgets a state.
    fn forget(&mut self, env: &E, states: &E::States);

    /// One that knows nothing yet.
    fn emptied(&self) -> Box<dyn Distinct<E>>;
}

/// Knows states by their keys.
pub(super) struct ByKey<K>(HashSet<K>);

impl<K> Default for ByKey<K> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<E: EnumerableEnv> Distinct<E> for ByKey<E::Key>
where
    E::Key: 'static,
{
    fn admit(&mut self, env: &E, states: &E::States) -> Vec<bool> {
        env.keys(states).into_iter().map(|key| self.0.insert(key)).collect()
    }
    fn forget(&mut self, env: &E, states: &E::States) {
        for key in env.keys(states) {
            self.0.remove(&key);
        }
    }
    fn emptied(&self) -> Box<dyn Distinct<E>> {
        Box::new(Self::default())
    }
}
