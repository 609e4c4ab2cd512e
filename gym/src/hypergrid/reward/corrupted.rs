use gfn::{Error, Result, Rng};
use tch::{Kind, Tensor};

use super::point_hash::PointHash;
use super::{GridReward, PointReward, RewardKind, random_point};
use crate::rewards::DeviceTables;

/// The number of random points used to estimate which share of all points meets the conditions of a tier, if
/// no closed form gives this share. A tier adds to the reward of points that meet its conditions and those of
/// all earlier tiers.
const SAMPLES: usize = 1 << 16;

#[derive(Debug)]
struct Corrupted {
    base: GridReward,
    rate: f64,
    tiers: Vec<Corruption>,
    tables: DeviceTables<3>,
}

/// The corruption of one tier (conditions that increase the reward of the points that meet them). One hash
/// decides which points are moved out of the tier, another which points are moved into it.
#[derive(Clone, Copy, Debug)]
struct Corruption {
    demotes: PointHash,
    promotes: PointHash,
    /// The probability with which a point outside the tier is moved into it.
    promoted: f64,
}

impl Corrupted {
    /// Returns the set of tiers that a point belongs to after points were moved into and out of tiers. The
    /// argument `tiers` is the set of tiers whose conditions the point meets. Bit `1 << t` of either set
    /// represents tier `t`.
    fn corrupt(&self, point: &[u16], tiers: u32) -> u32 {
        let mut out = tiers;
        for (t, tier) in self.tiers.iter().enumerate() {
            let (hash, share) =
                if tiers >> t & 1 == 1 { (tier.demotes, self.rate) } else { (tier.promotes, tier.promoted) };
            out ^= u32::from(hash.uniform(self.base.grid().index(point)) < share) << t;
        }
        out
    }

    /// Does the same for points `[n, ndim]`. `tiers` has a column for each tier, `[n, n_tiers]` (bool).
    fn corrupt_on_tensors(&self, points: &Tensor, tiers: &Tensor) -> Tensor {
        let [demotes, promotes, promoted] = self.tables.get(points.device(), || {
            let promoted: Vec<f64> = self.tiers.iter().map(|tier| tier.promoted).collect();
            [
                PointHash::keys(self.tiers.iter().map(|tier| &tier.demotes)),
                PointHash::keys(self.tiers.iter().map(|tier| &tier.promotes)),
                Tensor::from_slice(&promoted),
            ]
        });
        let index = self.base.grid().index_on_tensors(points);
        let demoted = PointHash::uniform_on_tensors(&demotes, &index).lt(self.rate);
        let promoted = PointHash::uniform_on_tensors(&promotes, &index).lt_tensor(&promoted);
        tiers.logical_xor(&demoted.where_self(tiers, &promoted))
    }
}

/// Returns, for each tier of the base reward, which share of all points meets the conditions of this tier.
fn shares(base: &GridReward, sample: &mut Rng) -> Vec<f64> {
    let grid = base.grid();
    let n = base.grid().n_states() as f64;
    let mut sampled = |is_in: &dyn Fn(&[u16]) -> bool| {
        let found = (0..SAMPLES).filter(|_| is_in(&random_point(grid, sample))).count();
        found as f64 / SAMPLES as f64
    };
    let Some(tiered) = base.tiered() else {
        return vec![match base.n_modes() {
            Some(modes) => modes as f64 / n,
            None => sampled(&|point| base.is_mode_at(point)),
        }];
    };
    let share = |t: usize| match tiered.counts_of_tiers(1 << t) {
        Some(counts) => counts.iter().sum::<u64>() as f64 / n,
        None => sampled(&|point| tiered.passed_tiers(point) >> t & 1 == 1),
    };
    (0..tiered.weights.len()).map(share).collect()
}

impl PointReward for Corrupted {
    fn value(&self, point: &[u16]) -> f64 {
        if let Some(tiered) = self.base.tiered() {
            return tiered.value_of(self.corrupt(point, tiered.passed_tiers(point)));
        }
        match (self.base.is_mode_at(point), self.is_mode(point)) {
            (true, false) => self.base.base(),
            (false, true) => self.base.mode_threshold(),
            _ => self.base.value(point),
        }
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        match self.base.tiered() {
            Some(tiered) => tiered.is_mode_of(self.corrupt(point, tiered.passed_tiers(point))),
            None => self.corrupt(point, self.base.is_mode_at(point).into()) == 1,
        }
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        if let Some(tiered) = self.base.tiered() {
            let tiers = tiered.passed_tiers_on_tensors(points);
            return tiered.values_on_tensors(&self.corrupt_on_tensors(points, &tiers));
        }
        let (values, was_mode) = self.base.points.on_tensors(points);
        let is_mode = self.corrupt_on_tensors(points, &was_mode.unsqueeze(1)).squeeze_dim(1);
        let changed = was_mode.to_kind(Kind::Double) * self.base.base()
            + is_mode.to_kind(Kind::Double) * self.base.mode_threshold();
        (changed.where_self(&was_mode.logical_xor(&is_mode), &values), is_mode)
    }
    fn has_tensor_form(&self) -> bool {
        self.base.points.has_tensor_form()
    }
    fn n_modes(&self) -> Option<u64> {
        if self.rate == 0.0 { self.base.n_modes() } else { None }
    }
    fn log_z(&self) -> Option<f64> {
        if self.rate == 0.0 { self.base.log_z() } else { None }
    }
}

impl GridReward {
    /// Returns a reward with part of this reward's modes moved to random points.
    ///
    /// The reward on which this method is called is the base reward. A hash of the point changes which points
    /// belong to each tier. A share `rate` of the points that meet the tier's conditions is demoted, that is,
    /// removed from the tier. A share `rate s / (1 - s)` of the other points is promoted, that is, added to
    /// the tier. Here `s` is the share of all points that meet the conditions, so that on average a tier
    /// keeps its number of points. Then `R = r0 + sum_t w_t [x belongs to tiers 0..=t]`. A mode is a point
    /// that belongs to the tiers that a mode of the base reward needs. A base reward without tiers is treated
    /// as if its modes were a single tier: demoted points get the base reward's `r0`, promoted points get its
    /// mode threshold, and all other points keep their reward.
    ///
    /// The share `s` comes from a closed form, or from a fixed random sample of points if there is no closed
    /// form. (torchgfn always samples. For rewards without tiers torchgfn uses the share within the current
    /// batch, so that a point's reward depends on the other points of the batch. Its mode threshold is wrong
    /// for some rewards.) log Z and the number of modes aren't known in closed form, except at a rate of 0.
    ///
    /// # Errors
    /// [`Error::Config`] for a rate outside `[0, 1)`.
    ///
    /// ```
    /// use gfn_gym::hypergrid::{GridReward, HyperGrid, RewardKind};
    /// let original = RewardKind::Original.standard(&HyperGrid::new(2, 64)?)?;
    /// let corrupted = original.clone().with_corruption(0.5, 137)?;
    /// let kept = (0..64).flat_map(|x| (0..64).map(move |y| [x, y]))
    ///     .filter(|p| original.is_mode_at(p) && corrupted.is_mode_at(p)).count();
    /// assert_eq!(original.n_modes(), Some(144));
    /// assert!((50..95).contains(&kept));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    pub fn with_corruption(self, rate: f64, seed: u64) -> Result<Self> {
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::config("the rate of corruption", rate, "a number of at least 0 and below 1"));
        }
        let mut rng = Rng::seeded(seed);
        let mut sample = rng.split();
        let mut tiers = Vec::new();
        for share in shares(&self, &mut sample) {
            tiers.push(Corruption {
                demotes: PointHash::random(&mut rng),
                promotes: PointHash::random(&mut rng),
                promoted: if share < 1.0 { (rate * share / (1.0 - share)).min(1.0) } else { 0.0 },
            });
        }
        let grid = self.grid;
        let base = self.base;
        let threshold = self.mode_threshold;
        let corrupted = Corrupted { base: self, rate, tiers, tables: DeviceTables::default() };
        Ok(Self::new(RewardKind::Corrupted, &grid, base, threshold, corrupted))
    }
}
