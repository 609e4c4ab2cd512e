use std::collections::HashMap;
use std::sync::Arc;

use crate::Result;
use crate::error::check_setting;
use crate::policy::{Features, StateFeatures};

/// The distance between objects that a diverse buffer requires
/// ([`ReplayBuffer::diverse`](super::ReplayBuffer::diverse)): the p-norm of the difference between two
/// objects' vectors, conditions included, must exceed `cutoff`.
///
/// # Cost
/// An object that is to be added to a full buffer is compared with the stored objects in nearby cells of a
/// grid until one is too close. The grid has three dimensions, each of which is a signed sum of some
/// coordinates of an object's vector. If vectors have up to three coordinates, and their coordinates range
/// over many times the cutoff, nearby cells hold few objects, whatever the number of stored objects. With
/// more coordinates, or with a large cutoff, nearby cells hold a fixed share of all objects. Adding an object
/// to a buffer of a million objects may then take as long as a comparison with all of them; lower the cutoff
/// or the capacity in this case. Draws cost the same as in other buffers.
///
/// ```
/// use gfn::policy::{Features, StateFeatures};
/// use gfn::replay::{Diversity, Draw, Eviction, ReplayBuffer, ReplayConfig};
/// use gfn::examples::{Chain, Positions};
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
#[derive(Clone)]
pub struct Diversity<S> {
    cutoff: f64,
    p: f64,
    features: Arc<dyn StateFeatures<S>>,
}

impl<S> Diversity<S> {
    /// Creates the settings. `p` is 1 for the sum of absolute differences, 2 for the Euclidean distance, and
    /// infinity for the greatest difference. A cutoff of 0 refuses only objects with equal vectors.
    /// `features` turns an object into a vector.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless the cutoff is finite and not negative, and `p` is at
    /// least 1.
    pub fn new(cutoff: f64, p: f64, features: impl StateFeatures<S> + 'static) -> Result<Self> {
        let is_distance = cutoff.is_finite() && cutoff >= 0.0;
        check_setting("replay cutoff", cutoff, is_distance, "a finite distance of at least 0")?;
        check_setting("replay p-norm", p, p >= 1.0, "a number of at least 1, or infinity")?;
        Ok(Self { cutoff, p, features: Arc::new(features) })
    }

    /// Returns the vector of an object, which is the only state in `state`. The vector consists of a zero,
    /// the features and the condition. The zero keeps the vector from being empty.
    pub(super) fn vector(&self, state: &S, condition: &[f64]) -> Vec<f64> {
        let mut vector = vec![0.0];
        match self.features.encode(state) {
            Features::Dense(values) => vector.extend(values.into_iter().map(f64::from)),
            Features::Active(columns) => {
                let active = |column| f64::from(u8::from(columns.contains(&(column as i64))));
                vector.extend((0..self.features.width()).map(active));
            }
        }
        vector.extend_from_slice(condition);
        vector
    }

    /// Returns the position of a vector in a grid of cells of width 1. If the distance of two vectors is
    /// within the cutoff, the p-norm of the difference of their positions is below 1.
    ///
    /// Each of the three numbers of a position is a signed sum of some coordinates of the vector, divided by
    /// a width that depends on the cutoff.
    fn position(&self, vector: &[f64]) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for (i, x) in vector.iter().enumerate() {
            // Each coordinate has a fixed pseudo-random sign. If all signs were equal, all one-hot vectors
            // would fall into a few cells.
            let sign = if (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 { 1.0 } else { -1.0 };
            sums[i % 3] += sign * x;
        }
        let terms = vector.len().div_ceil(3).max(1) as f64;
        // Let two vectors have a distance of at most the cutoff. By Hoelder's inequality their signed sums of
        // `terms` coordinates differ by at most `width`. The factor 1.001 allows for rounding. With a cutoff
        // of 0 any positive width is valid, because only equal vectors must share a cell.
        let width =
            if self.cutoff == 0.0 { 1e-6 } else { self.cutoff * terms.powf(1.0 - self.p.recip()) * 1.001 };
        sums.map(|sum| sum / width)
    }

    /// Returns the grid cell that contains a vector's position.
    pub(super) fn cell(&self, vector: &[f64]) -> Cell {
        self.position(vector).map(|x| x.floor() as i64)
    }

    /// Returns the p-norm of a difference of two vectors, given the absolute values `apart` of its
    /// coordinates.
    fn norm(&self, apart: impl Iterator<Item = f64>) -> f64 {
        match self.p {
            1.0 => apart.sum(),
            2.0 => apart.map(|d| d * d).sum::<f64>().sqrt(),
            f64::INFINITY => apart.fold(0.0, f64::max),
            p => apart.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    /// Returns `true` if the distance between `vector` and the vector of any stored object is at most the
    /// cutoff.
    pub(super) fn is_near(&self, vector: &[f64], neighbours: &Neighbours) -> bool {
        let position = self.position(vector);
        let within = position.map(|x| x - x.floor());
        (0..27).map(|k| [k / 9, k / 3 % 3, k % 3]).any(|steps: [usize; 3]| {
            // The gap, in each dimension, between the position and the cell that `steps` selects. In each
            // dimension the step 0 selects the cell before the position's cell, 1 the position's cell, and 2
            // the cell after it.
            let gaps = (0..3).map(|d| [within[d], 0.0, 1.0 - within[d]][steps[d]]);
            let cell: Cell =
                std::array::from_fn(|d| (position[d].floor() as i64).saturating_add(steps[d] as i64 - 1));
            let distance = |held: &[f64]| self.norm(vector.iter().zip(held).map(|(a, b)| (a - b).abs()));
            self.norm(gaps) <= 1.0
                && neighbours.0.get(&cell).is_some_and(|members| {
                    members.vectors.chunks_exact(vector.len()).any(|held| distance(held) <= self.cutoff)
                })
        })
    }
}

pub(super) type Cell = [i64; 3];

/// The vectors of a buffer's entries by grid cell, so that only vectors in nearby cells need to be compared.
#[derive(Default)]
pub(super) struct Neighbours(HashMap<Cell, CellMembers>);

/// The entries in one grid cell, in no particular order. Their vectors are stored one after another, so that
/// comparisons are fast.
#[derive(Default)]
struct CellMembers {
    serials: Vec<u64>,
    vectors: Vec<f64>,
}

impl Neighbours {
    pub(super) fn insert(&mut self, cell: Cell, serial: u64, vector: &[f64]) {
        let members = self.0.entry(cell).or_default();
        members.serials.push(serial);
        members.vectors.extend_from_slice(vector);
    }

    pub(super) fn remove(&mut self, cell: Cell, serial: u64) {
        let Some(CellMembers { serials, vectors }) = self.0.get_mut(&cell) else { return };
        let Some(at) = serials.iter().position(|other| *other == serial) else { return };
        // The last entry of the cell takes the place of the removed entry.
        let width = vectors.len() / serials.len();
        serials.swap_remove(at);
        vectors.copy_within(serials.len() * width.., at * width);
        vectors.truncate(serials.len() * width);
        if serials.is_empty() {
            self.0.remove(&cell);
        }
    }
}
