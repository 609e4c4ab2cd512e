use std::collections::HashSet;

use crate::env::{EnumerableEnv, Env};

/// The set of stored objects, so that a buffer keeps each of them once under each condition.
pub(super) trait Distinct<E: Env>: Send {
    /// Adds the only state of a batch under its condition; returns whether it is new.
    fn admit(&mut self, env: &E, state: &E::States, condition: &[f64]) -> bool;

    /// Removes a state under its condition.
    fn forget(&mut self, env: &E, state: &E::States, condition: &[f64]);

    /// An empty set of the same kind.
    fn emptied(&self) -> Box<dyn Distinct<E>>;
}

/// Identifies states by their keys and the bits of their conditions.
pub(super) struct SeenKeys<K>(HashSet<(Vec<K>, Vec<u64>)>);

impl<K> Default for SeenKeys<K> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

fn full_key<E: EnumerableEnv>(env: &E, state: &E::States, condition: &[f64]) -> (Vec<E::Key>, Vec<u64>) {
    // Adding 0 turns -0 into 0.
    (env.keys(state), condition.iter().map(|value| (value + 0.0).to_bits()).collect())
}

impl<E: EnumerableEnv> Distinct<E> for SeenKeys<E::Key>
where
    E::Key: 'static,
{
    fn admit(&mut self, env: &E, state: &E::States, condition: &[f64]) -> bool {
        self.0.insert(full_key(env, state, condition))
    }
    fn forget(&mut self, env: &E, state: &E::States, condition: &[f64]) {
        self.0.remove(&full_key(env, state, condition));
    }
    fn emptied(&self) -> Box<dyn Distinct<E>> {
        Box::new(Self::default())
    }
}
