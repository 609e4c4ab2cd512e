//! State numbers as features: one row of parameters per state, or the number itself.

use super::{Features, StateFeatures};
use crate::env::{EnumerableEnv, StateGraph};

/// One-hot of a state's key (torchgfn's one-hot), for environments whose keys are `0..n_keys`.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByKey, Features, StateFeatures}, testing::Words};
/// // Keys of words of up to 2 of 2 letters are numbers in base 3.
/// let features = ByKey::new(Words::new(2, 2), 9);
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 0], [1, 2]])), Features::Active(vec![0, 5]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByKey<E> {
    env: E,
    n_keys: usize,
}

impl<E> ByKey<E> {
    /// Features by the keys of this environment, all below `n_keys`; a larger key is refused when it occurs.
    #[must_use]
    pub fn new(env: E, n_keys: usize) -> Self {
        Self { env, n_keys }
    }
}

impl<E: EnumerableEnv<Key = u64>> StateFeatures<E::States> for ByKey<E> {
    fn width(&self) -> usize {
        self.n_keys
    }
    fn encode(&self, states: &E::States) -> Features {
        // A key above the range of i64 becomes negative, and is refused like any other that is too large.
        Features::Active(self.env.keys(states).into_iter().map(|key| key as i64).collect())
    }
}

/// One-hot of a state's index among all states, for any environment that can be enumerated.
///
/// ```
/// use gfn::{env::StateGraph, policy::{ByIndex, Features, StateFeatures}, testing::{Chain, Positions}};
/// let env = Chain::new(5);
/// let features = ByIndex::new(env, StateGraph::build(&env, 100)?);
/// assert_eq!(features.width(), 5);
/// assert_eq!(features.encode(&Positions(vec![3, 0])), Features::Active(vec![3, 0]));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct ByIndex<E: EnumerableEnv> {
    env: E,
    space: StateGraph<E>,
}

impl<E: EnumerableEnv> ByIndex<E> {
    /// Features by the indices of these states; a state that isn't among them is refused when it occurs.
    #[must_use]
    pub fn new(env: E, space: StateGraph<E>) -> Self {
        Self { env, space }
    }
}

impl<E: EnumerableEnv> StateFeatures<E::States> for ByIndex<E> {
    fn width(&self) -> usize {
        self.space.len()
    }
    fn encode(&self, states: &E::States) -> Features {
        let indices = self.space.indices(&self.env, states);
        Features::Active(indices.into_iter().map(|index| index.map_or(-1, |index| index as i64)).collect())
    }
}

/// The number of a state as one input (torchgfn's enumeration), scaled from -1 for the first to 1 for the last.
///
/// torchgfn uses the index itself, which saturates the network; the scale is the only difference.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByKey, Enumeration, Features, StateFeatures}, testing::Words};
/// let features = Enumeration(ByKey::new(Words::new(2, 2), 9));
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 0], [2, 2]])), Features::Dense(vec![-1.0, 1.0]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration<F>(
    /// The numbering of states: [`ByKey`] or [`ByIndex`].
    pub F,
);

impl<S, F: StateFeatures<S>> StateFeatures<S> for Enumeration<F> {
    fn width(&self) -> usize {
        1
    }
    fn encode(&self, states: &S) -> Features {
        let width = self.0.width() as i64;
        let scale = 2.0 / (width - 1).max(1) as f64;
        match self.0.encode(states) {
            Features::Active(numbers) if numbers.iter().all(|number| (0..width).contains(number)) => {
                Features::Dense(numbers.iter().map(|&number| (number as f64 * scale - 1.0) as f32).collect())
            }
            // A state without a number stays an invalid column, also of one input, so that it is refused.
            other => other,
        }
    }
}
