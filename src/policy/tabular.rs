//! Features from the number of a state: a one-hot vector, or the number itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Features, StateFeatures};
use crate::env::{EnumerableEnv, StateGraph, VectorStates};

/// The one-hot vector of the number of a state (torchgfn's one-hot). The entries of a state are the digits of
/// its number, the most significant digit first.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByNumber, Features, StateFeatures}};
/// // Two digits in base 3.
/// let features = ByNumber::new(2, 3);
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 0], [1, 2]])), Features::Active(vec![0, 5]));
/// // A state with a digit of 3, or with a single entry, has no number.
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 3]])), Features::Active(vec![-1]));
/// assert_eq!(features.encode(&VectorStates::from_rows([[1u16]])), Features::Active(vec![-1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByNumber {
    width: u32,
    values: u16,
}

impl ByNumber {
    /// Creates features for vectors of `width` entries, each below `values`. A vector with fewer entries or
    /// with an entry of at least `values` has no number. The network refuses such a vector, and a vector
    /// whose number is at least `values` to the power of `width`.
    #[must_use]
    pub fn new(width: u32, values: u16) -> Self {
        Self { width, values }
    }

    /// Returns the number of a state; -1 if the state has no number.
    fn number(&self, row: &[u16]) -> i64 {
        let next = |number: i64, &entry: &u16| {
            let number = number.checked_mul(i64::from(self.values))?.checked_add(i64::from(entry))?;
            Some(number).filter(|_| entry < self.values)
        };
        let number = row.iter().try_fold(0, next).filter(|_| row.len() >= self.width as usize);
        number.unwrap_or(-1)
    }
}

impl StateFeatures<VectorStates> for ByNumber {
    fn width(&self) -> usize {
        usize::from(self.values).saturating_pow(self.width)
    }
    fn encode(&self, states: &VectorStates) -> Features {
        Features::Active(states.rows().map(|row| self.number(row)).collect())
    }
    fn settings(&self) -> Value {
        json!({ "ByNumber": self })
    }
}

/// The one-hot vector of the index of a state among all states, for any environment whose states can be
/// listed.
///
/// ```
/// use gfn::{env::StateGraph, policy::{ByIndex, Features, StateFeatures}, examples::{Chain, Positions}};
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
    /// Creates features that number each state by its index in `space`. The network refuses a state that
    /// isn't in `space`.
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

/// The number of a state as a single input (torchgfn's enumeration), scaled so that the first state has -1
/// and the last state 1.
///
/// torchgfn uses the number without scaling, but large numbers saturate a network.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByNumber, Enumeration, Features, StateFeatures}};
/// let features = Enumeration(ByNumber::new(2, 3));
/// let states = VectorStates::from_rows([[0u16, 0], [2, 2]]);
/// assert_eq!(features.encode(&states), Features::Dense(vec![-1.0, 1.0]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration<F>(
    /// The features that number the states: [`ByNumber`] or [`ByIndex`].
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
            // A state without a number has an invalid index, which is returned unchanged, so that the network
            // refuses the state.
            other => other,
        }
    }
    fn settings(&self) -> Value {
        let numbers = self.0.settings();
        numbers.get("ByNumber").map_or(Value::Null, |numbers| json!({ "Enumeration": numbers }))
    }
}
