//! State numbers as features: one row of parameters per state, or the number itself.

use super::{Features, StateFeatures};
use crate::env::{EnumerableEnv, StateGraph, VectorStates};

/// One-hot of a vector's number (torchgfn's one-hot): its entries are the digits of a number, the first the
/// most significant.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByNumber, Features, StateFeatures}};
/// // Two digits in base 3.
/// let features = ByNumber::new(2, 3);
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 0], [1, 2]])), Features::Active(vec![0, 5]));
/// // Neither three in base 3 nor a vector of one entry has a number here.
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 3]])), Features::Active(vec![-1]));
/// assert_eq!(features.encode(&VectorStates::from_rows([[1u16]])), Features::Active(vec![-1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByNumber {
    width: u32,
    values: u16,
}

impl ByNumber {
    /// Features of vectors of `width` entries, each below `values`. A vector of fewer entries, with a larger
    /// entry, or with a number that `width` entries don't have is refused when it occurs.
    #[must_use]
    pub fn new(width: u32, values: u16) -> Self {
        Self { width, values }
    }

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

/// The number of a state as one input (torchgfn's enumeration), scaled from -1 for the first to 1 for the
/// last.
///
/// torchgfn uses the index itself, which saturates the network; the scale is the only difference.
///
/// ```
/// use gfn::{env::VectorStates, policy::{ByNumber, Enumeration, Features, StateFeatures}};
/// let features = Enumeration(ByNumber::new(2, 3));
/// assert_eq!(features.encode(&VectorStates::from_rows([[0u16, 0], [2, 2]])), Features::Dense(vec![-1.0, 1.0]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration<F>(
    /// The numbering of states: [`ByNumber`] or [`ByIndex`].
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
