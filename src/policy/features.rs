//! State features: the vectors that a network takes as inputs.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use tch::{Kind, Tensor};

use crate::env::{VectorEnv, VectorStates};

/// The input vectors of a batch of states.
#[derive(Clone, PartialEq, Debug)]
pub enum Features {
    /// The entries of all vectors, `[states, width]`, row by row.
    Dense(Vec<f32>),
    /// The indices of the entries that are 1, `[states, k]`, row by row, with the same `k` for every state.
    /// All other entries are 0.
    ///
    /// The first layer only sums the weights of these entries, so its cost doesn't depend on the length of
    /// the vectors. With vectors of 512 entries, a layer of 256 units takes a fifth of the time that it takes
    /// with [`Dense`](Self::Dense).
    Active(Vec<i64>),
}

/// The input vectors of a batch of states, computed on a device.
#[derive(Debug)]
pub enum TensorFeatures {
    /// The entries of all vectors, `[states, width]`.
    Dense(Tensor),
    /// The indices of the entries that are 1, `[states, k]` (i64). All other entries are 0.
    Active(Tensor),
}

/// An encoding of states as vectors.
///
/// ```
/// use gfn::{env::Slots, policy::{Features, StateFeatures}};
/// struct ScaledEntries;
/// impl StateFeatures<Slots> for ScaledEntries {
///     fn width(&self) -> usize {
///         1
///     }
///     fn encode(&self, states: &Slots) -> Features {
///         Features::Dense(states.0.iter().map(|&s| s as f32 / 10.0).collect())
///     }
/// }
/// assert_eq!(ScaledEntries.encode(&Slots(vec![5])), Features::Dense(vec![0.5]));
/// ```
pub trait StateFeatures<S>: Send + Sync {
    /// Returns the number of entries of the vector of a state.
    fn width(&self) -> usize;

    /// Returns the vector of each state. The vector of a state must not depend on the other states of the
    /// batch.
    fn encode(&self, states: &S) -> Features;

    /// Encodes states that are a tensor, `[states, width]` (i64), on their device. The vectors must be those
    /// of [`encode`](Self::encode). `None` (the default) means that these features, or states of this width,
    /// can be encoded only on the host.
    fn encode_tensor(&self, _states: &Tensor) -> Option<TensorFeatures> {
        None
    }

    /// Returns the settings of the features, which [`Policy::settings`](super::Policy::settings) of an
    /// [`MlpPolicy`](super::MlpPolicy) includes; null (the default) for custom features.
    fn settings(&self) -> Value {
        Value::Null
    }
}

impl<S> StateFeatures<S> for Box<dyn StateFeatures<S>> {
    fn width(&self) -> usize {
        self.as_ref().width()
    }

    fn encode(&self, states: &S) -> Features {
        self.as_ref().encode(states)
    }

    fn encode_tensor(&self, states: &Tensor) -> Option<TensorFeatures> {
        self.as_ref().encode_tensor(states)
    }

    fn settings(&self) -> Value {
        self.as_ref().settings()
    }
}

/// The concatenated one-hot vectors of a state's entries (torchgfn's k-hot): a block of `values` numbers per
/// entry, of which the number at the entry's value is 1 and all others are 0. The result is
/// [`Features::Active`].
///
/// ```
/// use gfn::{env::VectorStates, policy::{Features, KHot, StateFeatures}};
/// let features = KHot::new(2, 3);
/// assert_eq!(features.width(), 6);
/// assert_eq!(features.encode(&VectorStates::from_rows([[0, 2]])), Features::Active(vec![0, 3 + 2]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KHot {
    entries: usize,
    values: usize,
}

impl KHot {
    /// Creates features for states with `entries` entries, each in `0..values`.
    #[must_use]
    pub fn new(entries: usize, values: usize) -> Self {
        Self { entries, values }
    }

    /// Creates features for the states of an environment over vectors.
    #[must_use]
    pub fn from_env(env: &VectorEnv) -> Self {
        Self::new(env.width(), env.n_values())
    }
}

impl StateFeatures<VectorStates> for KHot {
    fn width(&self) -> usize {
        self.entries * self.values
    }
    fn encode(&self, states: &VectorStates) -> Features {
        let mut columns = Vec::with_capacity(states.values().len());
        for row in states.rows() {
            // An invalid entry of a state gets the index -1, so that the network refuses the state. Otherwise
            // a value that is too large would select an index that belongs to the next entry.
            let has_right_length = row.len() == self.entries;
            columns.extend(row.iter().enumerate().map(|(d, &x)| {
                if has_right_length && usize::from(x) < self.values {
                    (d * self.values) as i64 + i64::from(x)
                } else {
                    -1
                }
            }));
        }
        Features::Active(columns)
    }
    fn encode_tensor(&self, states: &Tensor) -> Option<TensorFeatures> {
        let entries = self.entries as i64;
        let values = self.values as i64;
        // A state of another width can't be encoded on a device; `encode` reports it by an error.
        (states.size()[1] == entries).then(|| {
            let start = Tensor::arange(entries, (Kind::Int64, states.device())) * values;
            TensorFeatures::Active(states + start)
        })
    }
    fn settings(&self) -> Value {
        json!({ "KHot": self })
    }
}

/// The entries of a state (torchgfn's identity), scaled from `0..values` to the interval from -1 to 1. Use
/// these features if similar values should give similar inputs. The vectors have only one number per entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledEntries {
    entries: usize,
    values: usize,
}

impl ScaledEntries {
    /// Creates features for states with `entries` entries, each in `0..values`.
    #[must_use]
    pub fn new(entries: usize, values: usize) -> Self {
        Self { entries, values }
    }
}

impl StateFeatures<VectorStates> for ScaledEntries {
    fn width(&self) -> usize {
        self.entries
    }
    fn encode(&self, states: &VectorStates) -> Features {
        let scale = 2.0 / self.values.saturating_sub(1).max(1) as f32;
        Features::Dense(states.values().iter().map(|&x| f32::from(x) * scale - 1.0).collect())
    }
    fn encode_tensor(&self, states: &Tensor) -> Option<TensorFeatures> {
        let scale = 2.0 / self.values.saturating_sub(1).max(1) as f64;
        Some(TensorFeatures::Dense(states.to_kind(Kind::Float) * scale - 1.0))
    }
    fn settings(&self) -> Value {
        json!({ "ScaledEntries": self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_entries_span_minus_one_to_one() {
        let encoded = ScaledEntries::new(3, 5).encode(&VectorStates::from_rows([[0, 2, 4]]));
        assert_eq!(encoded, Features::Dense(vec![-1.0, 0.0, 1.0]));
    }

    #[test]
    fn tensors_are_encoded_as_vectors_on_the_host_are() {
        let states = VectorStates::from_rows([[0, 2, 4], [1, 1, 0]]);
        let tensor = Tensor::from_slice(&[0i64, 2, 4, 1, 1, 0]).view([2, 3]);
        let flat = |tensor: Tensor| Vec::<f64>::try_from(tensor.to_kind(Kind::Double).view(-1)).unwrap();
        let features: [&dyn StateFeatures<VectorStates>; 2] = [&KHot::new(3, 5), &ScaledEntries::new(3, 5)];
        for features in features {
            let got = match features.encode_tensor(&tensor).unwrap() {
                TensorFeatures::Dense(values) => flat(values),
                TensorFeatures::Active(columns) => flat(columns),
            };
            let expected: Vec<f64> = match features.encode(&states) {
                Features::Dense(values) => values.into_iter().map(f64::from).collect(),
                Features::Active(columns) => columns.into_iter().map(|column| column as f64).collect(),
            };
            assert_eq!(got, expected);
        }
        assert!(KHot::new(2, 5).encode_tensor(&tensor).is_none());
    }
}
