//! The cosine, the sparse and the uniform random reward. Each is a formula of the point alone.

use std::f64::consts::TAU;

use gfn::{Error, Result, Rng};
use tch::{Kind, Tensor};

use super::point_hash::PointHash;
use super::{GridReward, PointReward, REWARD_FLOOR, RewardKind, floored, power};
use crate::hypergrid::HyperGrid;
use crate::rewards::DeviceTables;

#[derive(Debug)]
struct Cosine {
    grid: HyperGrid,
    r0: f64,
    r1: f64,
    /// The factor f(a) that each value of a coordinate contributes to the product in the cosine reward.
    factors: Vec<f64>,
    /// The smallest product of the coordinates' factors f(a) at which a point is a mode.
    mode_product: f64,
    tables: DeviceTables<1>,
}

impl Cosine {
    fn product(&self, point: &[u16]) -> f64 {
        point.iter().map(|&x| self.factors[usize::from(x)]).product()
    }

    /// Returns the smallest product of a mode. A small margin keeps rounding from deciding about products
    /// equal to the threshold.
    fn least_mode_product(&self) -> f64 {
        self.mode_product * (1.0 - 1e-9)
    }

    /// Returns `true` if the product of a point's factors is large enough for a mode.
    fn reaches(&self, product: f64) -> bool {
        product >= self.least_mode_product()
    }
}

impl PointReward for Cosine {
    fn value(&self, point: &[u16]) -> f64 {
        self.r0 + self.r1 * self.product(point)
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        self.reaches(self.product(point))
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        let [factors] = self.tables.get(points.device(), || [Tensor::from_slice(&self.factors)]);
        let product = factors.take(points).prod_dim_int(1, false, Kind::Double);
        let is_mode = product.ge(self.least_mode_product());
        (product * self.r1 + self.r0, is_mode)
    }
    /// Returns 0 if even the best point is no mode. Otherwise returns `None`, because the modes would have to
    /// be counted.
    fn n_modes(&self) -> Option<u64> {
        let best = self.factors.iter().copied().fold(0.0, f64::max);
        if self.reaches(best.powi(self.grid.ndim() as i32)) { None } else { Some(0) }
    }
    fn log_z(&self) -> Option<f64> {
        let sum: f64 = self.factors.iter().sum();
        Some((self.r0 * self.grid.n_states() as f64 + self.r1 * sum.powi(self.grid.ndim() as i32)).ln())
    }
}

#[derive(Debug)]
struct Sparse(HyperGrid);

impl Sparse {
    fn n_targets(&self) -> u64 {
        if self.0.height() == 3 { 1 } else { power(2, self.0.ndim()) - 1 }
    }
}

impl PointReward for Sparse {
    fn value(&self, point: &[u16]) -> f64 {
        REWARD_FLOOR + if self.is_mode(point) { 1.0 } else { 0.0 }
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        let far = (self.0.height() - 2) as u16;
        point.iter().all(|&x| x == 1 || x == far) && point.contains(&far)
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        let is_far = points.eq(self.0.height() as i64 - 2);
        let is_target = points.eq(1).logical_or(&is_far).all_dim(1, false);
        let is_mode = is_target.logical_and(&is_far.any_dim(1, false));
        (is_mode.to_kind(Kind::Double) + REWARD_FLOOR, is_mode)
    }
    fn n_modes(&self) -> Option<u64> {
        Some(self.n_targets())
    }
    fn log_z(&self) -> Option<f64> {
        Some((self.n_targets() as f64 + REWARD_FLOOR * self.0.n_states() as f64).ln())
    }
}

#[derive(Debug)]
struct UniformRandom {
    grid: HyperGrid,
    r0: f64,
    bonus: f64,
    mode_prob: f64,
    hash: PointHash,
    tables: DeviceTables<1>,
}

impl PointReward for UniformRandom {
    fn value(&self, point: &[u16]) -> f64 {
        if self.is_mode(point) { self.r0 + self.bonus } else { self.r0 }
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        self.hash.uniform(self.grid.index(point)) < self.mode_prob
    }
    fn on_tensors(&self, points: &Tensor) -> (Tensor, Tensor) {
        let [keys] = self.tables.get(points.device(), || [PointHash::keys([self.hash].iter())]);
        let number = PointHash::uniform_on_tensors(&keys, &self.grid.index_on_tensors(points));
        let is_mode = number.squeeze_dim(1).lt(self.mode_prob);
        (is_mode.to_kind(Kind::Double) * self.bonus + self.r0, is_mode)
    }
}

impl GridReward {
    /// Builds the cosine reward: a product of cosine waves with a Gaussian envelope, highest in the middle of
    /// the grid.
    ///
    /// The reward is `R = r0 + r1 prod_d f(a_d)`, with `a_d = |x_d / (height - 1) - 1/2|` and
    /// `f(a) = (cos(50 a) + 1) N(5 a; 0, 1)`. The sum over all points of a grid of height `H` in `D`
    /// dimensions factors, so that `Z = r0 H^D + r1 (sum_x f)^D`.
    ///
    /// A *mode* is a point whose product reaches `(gamma f(0))^D`, with `f(0) = 2 / sqrt(2 pi)`. Thus `gamma`
    /// is the share of the peak `f(0)` that the geometric mean of a mode's factors must reach. On a coarse
    /// grid of even height no point is near enough to the middle, so that there is no mode: see
    /// [`check_modes`](Self::check_modes). An `r0` below [`REWARD_FLOOR`] is replaced by that floor.
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0` and `r1` are finite and not negative and `gamma` lies in `(0, 1]`.
    ///
    /// ```
    /// use gfn_gym::hypergrid::{GridReward, HyperGrid};
    /// let coarse = GridReward::cosine(&HyperGrid::new(2, 8)?, 0.1, 0.5, 0.8)?;
    /// assert_eq!(coarse.n_modes(), Some(0));
    /// assert!((coarse.log_z().unwrap() - 1.8952597013).abs() < 1e-9);
    /// let fine = GridReward::cosine(&HyperGrid::new(2, 65)?, 0.1, 0.5, 0.8)?;
    /// assert_eq!(fine.totals(65 * 65)?.n_modes, 33);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    pub fn cosine(grid: &HyperGrid, r0: f64, r1: f64, gamma: f64) -> Result<Self> {
        if !(r1.is_finite() && r1 >= 0.0 && gamma > 0.0 && gamma <= 1.0) {
            return Err(Error::config(
                "r1, gamma",
                format!("{r1}, {gamma}"),
                "a finite r1 of at least 0, and gamma in (0, 1]",
            ));
        }
        let r0 = floored(r0)?;
        let top = (grid.height() - 1) as f64;
        let factor = |x: usize| {
            let a = (x as f64 / top - 0.5).abs();
            ((50.0 * a).cos() + 1.0) * (-(5.0 * a).powi(2) / 2.0).exp() / TAU.sqrt()
        };
        let factors = (0..grid.height()).map(factor).collect();
        let mode_product = (gamma * 2.0 / TAU.sqrt()).powi(grid.ndim() as i32);
        let points = Cosine { grid: *grid, r0, r1, factors, mode_product, tables: DeviceTables::default() };
        Ok(Self::new(RewardKind::Cosine, grid, r0, r0 + r1 * mode_product, points))
    }

    /// Builds the sparse reward of Pan et al. (*Generative Augmented Flow Networks*, 2022): every point earns
    /// [`REWARD_FLOOR`], and a few points near the corners earn an additional 1.
    ///
    /// The points that earn the additional 1 are the *modes*: all their coordinates are 1 or `H - 2`, with
    /// `H` the height, and at least one coordinate is `H - 2`. There are `2^D - 1` modes in `D` dimensions.
    /// At height 3 there is a single mode, because there 1 and `H - 2` are equal. Modes are recognised by
    /// their coordinates, not listed, so that the cost doesn't grow with their number. The mode threshold is
    /// one half.
    ///
    /// ```
    /// use gfn_gym::hypergrid::{GridReward, HyperGrid};
    /// let reward = GridReward::sparse(&HyperGrid::new(10, 8)?);
    /// assert_eq!(reward.n_modes(), Some(1023));
    /// assert!(reward.is_mode_at(&[6, 1, 1, 1, 1, 1, 1, 1, 1, 6]) && !reward.is_mode_at(&[1; 10]));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    #[must_use]
    pub fn sparse(grid: &HyperGrid) -> Self {
        Self::new(RewardKind::Sparse, grid, REWARD_FLOOR, 0.5, Sparse(*grid))
    }

    /// Builds a reward whose modes have no structure: each point is a mode with equal probability, decided by
    /// a hash of its coordinates.
    ///
    /// The reward is `R = r0 + bonus [hash(x) < mode_prob]`. A policy can only memorise the modes, so use
    /// this reward as a control for rewards with structure. The number of modes is near `mode_prob` times the
    /// number of points, and only [`totals`](Self::totals) counts it. An `r0` below [`REWARD_FLOOR`] is
    /// replaced by that floor.
    ///
    /// The hash is keyed from the seed and mixes all bits. (torchgfn uses a polynomial of the coordinates
    /// modulo 2^31 - 1 in single precision; its modes differ.)
    ///
    /// # Errors
    /// [`Error::Config`] unless `r0` is finite and not negative, the bonus finite and positive, and the
    /// probability in `(0, 1)`.
    ///
    /// ```
    /// use gfn_gym::hypergrid::{GridReward, HyperGrid};
    /// let grid = HyperGrid::new(2, 100)?;
    /// let n_modes = GridReward::uniform_random(&grid, 0.1, 2.0, 0.01, 42)?.totals(10_000)?.n_modes;
    /// assert!((70..130).contains(&n_modes));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    pub fn uniform_random(grid: &HyperGrid, r0: f64, bonus: f64, mode_prob: f64, seed: u64) -> Result<Self> {
        if !(bonus > 0.0 && bonus.is_finite() && mode_prob > 0.0 && mode_prob < 1.0) {
            return Err(Error::config(
                "bonus, mode_prob",
                format!("{bonus}, {mode_prob}"),
                "a finite, positive bonus, and a probability above 0 and below 1",
            ));
        }
        let r0 = floored(r0)?;
        let hash = PointHash::random(&mut Rng::seeded(seed));
        let points =
            UniformRandom { grid: *grid, r0, bonus, mode_prob, hash, tables: DeviceTables::default() };
        Ok(Self::new(RewardKind::UniformRandom, grid, r0, r0 + bonus, points))
    }
}
