use std::collections::HashMap;
use std::sync::Arc;

use crate::env::Env;
use crate::policy::{Features, StateFeatures};
use crate::{Error, Result};

/// The distance between objects that a diverse buffer requires
/// ([`ReplayBuffer::diverse`](super::ReplayBuffer::diverse)): more than `cutoff` in the p-norm of the difference of
/// their vectors, conditions included.
///
/// ```
/// use gfn::policy::{Features, StateFeatures};
/// use gfn::replay::{Diversity, Draw, Eviction, ReplayBuffer, ReplayConfig};
/// use gfn::testing::{Chain, Positions};
/// struct Place;
/// impl StateFeatures<Positions> for Place {
///     fn width(&self) -> usize {
///         1
///     }
///     fn encode(&self, states: &Positions) -> Features {
///         Features::Dense(states.0.iter().map(|&x| x as f32).collect())
///     }
/// }
/// let config = ReplayConfig { capacity: 100, eviction: Eviction::BestReward, draw: Draw::Uniform };
/// let buffer = ReplayBuffer::<Chain>::new(config)?.diverse(Diversity::new(1.5, 2.0, Place)?);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Diversity<E: Env> {
    cutoff: f64,
    p: f64,
    features: Arc<dyn StateFeatures<E::States>>,
}

impl<E: Env> Clone for Diversity<E> {
    fn clone(&self) -> Self {
        Self { features: Arc::clone(&self.features), ..*self }
    }
}

impl<E: Env> std::fmt::Debug for Diversity<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diversity").field("cutoff", &self.cutoff).field("p", &self.p).finish_non_exhaustive()
    }
}

impl<E: Env> Diversity<E> {
    /// `p` is 1 for the sum of absolute differences, 2 for the Euclidean distance, infinity for the greatest
    /// difference. A cutoff of 0 refuses only equal vectors.
    ///
    /// # Errors
    /// [`Error::Config`] unless the cutoff is finite and not negative, and p at least 1.
    pub fn new(cutoff: f64, p: f64, features: impl StateFeatures<E::States> + 'static) -> Result<Self> {
        let refuse = |setting, got: f64, expected| Err(Error::Config { setting, got: got.to_string(), expected });
        if !(cutoff.is_finite() && cutoff >= 0.0) {
            return refuse("replay cutoff", cutoff, "a finite distance of at least 0");
        }
        if p.is_nan() || p < 1.0 {
            return refuse("replay p-norm", p, "a number of at least 1, or infinity");
        }
        Ok(Self { cutoff, p, features: Arc::new(features) })
    }

    /// The vector of a batch's only state, followed by its condition.
    pub(super) fn vector(&self, state: &E::States, condition: &[f64]) -> Vec<f64> {
        let mut vector = match self.features.encode(state) {
            Features::Dense(values) => values.into_iter().map(f64::from).collect(),
            Features::Active(columns) => {
                let mut vector = vec![0.0; self.features.width()];
                for column in columns {
                    if let Some(entry) = usize::try_from(column).ok().and_then(|column| vector.get_mut(column)) {
                        *entry = 1.0;
                    }
                }
                vector
            }
        };
        vector.extend_from_slice(condition);
        vector
    }

    /// The hash cell of a vector. Two vectors within the cutoff have cells that differ by at most 1 in each number.
    ///
    /// A cell's numbers are signed sums of coordinates, scaled so that they differ by no more than the vectors'
    /// distance.
    pub(super) fn cell(&self, vector: &[f64]) -> Cell {
        let mut sums = [0.0; SUMS];
        for (i, x) in vector.iter().enumerate() {
            // A fixed pseudo-random sign for each coordinate: with equal signs all vectors with one active column would
            // share a cell.
            let sign = if (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 { 1.0 } else { -1.0 };
            sums[i % SUMS] += sign * x;
        }
        let terms = vector.len().div_ceil(SUMS).max(1) as f64;
        // The width follows from Hoelder's inequality, slightly enlarged for rounding. With a cutoff of 0 only equal
        // vectors must share a cell, so any width will do.
        let width = if self.cutoff == 0.0 { 1e-6 } else { self.cutoff * terms.powf(1.0 - self.p.recip()) * 1.001 };
        sums.map(|sum| (sum / width).floor() as i64)
    }

    pub(super) fn too_close(&self, a: &[f64], b: &[f64]) -> bool {
        let apart = a.iter().zip(b).map(|(x, y)| (x - y).abs());
        let distance = match self.p {
            1.0 => apart.sum(),
            f64::INFINITY => apart.fold(0.0, f64::max),
            p => apart.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p),
        };
        distance <= self.cutoff
    }
}

/// Number of integers in a cell.
const SUMS: usize = 3;

pub(super) type Cell = [i64; SUMS];

/// The serial numbers of a buffer's entries by cell, so that only neighbours are compared.
#[derive(Default)]
pub(super) struct Near(HashMap<Cell, Vec<u64>>);

impl Near {
    pub(super) fn add(&mut self, cell: Cell, serial: u64) {
        self.0.entry(cell).or_default().push(serial);
    }

    pub(super) fn forget(&mut self, cell: Cell, serial: u64) {
        if let Some(serials) = self.0.get_mut(&cell) {
            serials.retain(|other| *other != serial);
            if serials.is_empty() {
                self.0.remove(&cell);
            }
        }
    }

    /// The entries in a cell and in neighbouring cells.
    pub(super) fn around(&self, cell: Cell) -> impl Iterator<Item = u64> {
        (0..3usize.pow(SUMS as u32)).flat_map(move |k| {
            let neighbour = std::array::from_fn(|d| cell[d].saturating_add((k / 3usize.pow(d as u32) % 3) as i64 - 1));
            self.0.get(&neighbour).into_iter().flatten().copied()
        })
    }
}
