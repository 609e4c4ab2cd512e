use std::collections::HashMap;
use std::sync::Arc;

use crate::env::Env;
use crate::policy::{Features, StateFeatures};
use crate::{Error, Result};

/// The distance between objects that a diverse buffer requires
/// ([`ReplayBuffer::diverse`](super::ReplayBuffer::diverse)): more than `cutoff` in the p-norm of the difference of
/// their vectors, conditions included.
///
/// # Cost
/// What is offered to a full buffer is compared with each object held whose three signed sums of coordinates are near its own, until one is
/// too close. Vectors of up to three numbers that are spread over many cutoffs have few such neighbours, however many are held. With more
/// numbers, or a cutoff that is wide for how far they spread, neighbours are a share of all that is held, and of a million objects each
/// offer may take as long as a pass over them: lower the cutoff or the capacity there. Draws cost what they cost in other buffers.
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
        let refuse = |setting, got: f64, expected| Err(Error::config(setting, got, expected));
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

    /// Where a vector lies among cells: of two vectors within the cutoff, the p-norm of the difference is below 1.
    ///
    /// Its numbers are signed sums of some coordinates each, scaled so that they differ by less than the vectors do.
    pub(super) fn place(&self, vector: &[f64]) -> [f64; SUMS] {
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
        sums.map(|sum| sum / width)
    }

    /// The p-norm of a difference.
    fn norm(&self, apart: impl Iterator<Item = f64>) -> f64 {
        match self.p {
            1.0 => apart.sum(),
            2.0 => apart.map(|d| d * d).sum::<f64>().sqrt(),
            f64::INFINITY => apart.fold(0.0, f64::max),
            p => apart.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    /// The cells that may hold a vector within the cutoff of one at this place.
    pub(super) fn around(&self, place: [f64; SUMS]) -> impl Iterator<Item = Cell> {
        let cell = cell_of(place);
        (0..3usize.pow(SUMS as u32)).filter_map(move |k| {
            let step = |d: usize| (k / 3usize.pow(d as u32) % 3) as i64 - 1;
            let gap = |d: usize| {
                let within = place[d] - place[d].floor();
                [within, 0.0, 1.0 - within][(step(d) + 1) as usize]
            };
            (self.norm((0..SUMS).map(gap)) <= 1.0).then(|| std::array::from_fn(|d| cell[d].saturating_add(step(d))))
        })
    }

    pub(super) fn too_close(&self, a: &[f64], b: &[f64]) -> bool {
        self.norm(a.iter().zip(b).map(|(x, y)| (x - y).abs())) <= self.cutoff
    }
}

/// The cell of a place.
pub(super) fn cell_of(place: [f64; SUMS]) -> Cell {
    place.map(|x| x.floor() as i64)
}

/// How many numbers name a cell.
const SUMS: usize = 3;

pub(super) type Cell = [i64; SUMS];

/// The vectors of a buffer's entries by cell, so that only neighbours need be compared.
#[derive(Default)]
pub(super) struct Near(HashMap<Cell, Members>);

/// The entries in one cell, in no order. Vectors stand here, one behind the other: looking each of them up by its serial would take
/// longer than to compare it.
#[derive(Default)]
struct Members {
    serials: Vec<u64>,
    vectors: Vec<f64>,
}

impl Near {
    pub(super) fn add(&mut self, cell: Cell, serial: u64, vector: &[f64]) {
        let members = self.0.entry(cell).or_default();
        members.serials.push(serial);
        members.vectors.extend_from_slice(vector);
    }

    pub(super) fn forget(&mut self, cell: Cell, serial: u64) {
        let Some(members) = self.0.get_mut(&cell) else { return };
        let Some(at) = members.serials.iter().position(|other| *other == serial) else { return };
        // The last one takes its place.
        let width = members.vectors.len() / members.serials.len();
        members.serials.swap_remove(at);
        let last = members.vectors.len() - width;
        members.vectors.copy_within(last.., at * width);
        members.vectors.truncate(last);
        if members.serials.is_empty() {
            self.0.remove(&cell);
        }
    }

    /// Whether the vector of some entry in one of these cells is `close`.
    pub(super) fn any(&self, mut cells: impl Iterator<Item = Cell>, mut close: impl FnMut(&[f64]) -> bool) -> bool {
        cells.any(|cell| {
            self.0.get(&cell).is_some_and(|members| match members.vectors.len() / members.serials.len() {
                0 => close(&[]),
                width => members.vectors.chunks_exact(width).any(&mut close),
            })
        })
    }
}
