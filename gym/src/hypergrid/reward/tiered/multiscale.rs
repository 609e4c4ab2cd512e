//! Tiers of conditions on the digits of the coordinates.

use gfn::{Error, Result, Rng};

use super::coordinates::CoordinateConditions;
use super::{Conditions, build_table, check_dims};
use crate::hypergrid::HyperGrid;
use crate::hypergrid::reward::{GridReward, RewardKind};
use crate::rewards::DeviceTables;

/// Tiers of conditions on digits, from coarse to fine. The condition on a digit depends on the coarser
/// digits.
///
/// Coordinates are written in base `b` with `L` digits, so that the height is `b^L`; `d_t` is the `(t+1)`-th
/// most significant digit. A point passes tier `t` if `(d_t + s_t + sum_{k<t} a_tk d_k) mod b < f` for every
/// constrained coordinate, with a shift `s_t`, a filter width `f` and coefficients `a`. If the tier has a
/// `cross_mod` m, the `d_t` of all constrained coordinates must also add up to 0 modulo m.
///
/// There may be several rules, each with its own coefficients. The rule of a point is `sum_i u_i f^i` modulo
/// the number of rules, with `u_i` the number `(d_0 + s_0) mod b mod f` of the `i`-th constrained coordinate.
///
/// A *mode* is a point that passes the first `n` tiers. Here `n` is the smallest number for which
/// `(f / b)^(n k)` is below a tenth, with `k` the number of constrained dimensions, or the number of all
/// tiers if no number is large enough. log Z and the number of modes are counted exactly by dynamic
/// programming over the dimensions. (torchgfn's closed form is wrong if a `cross_mod` doesn't divide the
/// base.)
///
/// ```
/// use gfn_gym::hypergrid::{ConditionalMultiscale, HyperGrid, Preset};
/// let grid = HyperGrid::new(6, 64)?;
/// let reward = ConditionalMultiscale::preset(&grid, Preset::K16)?.build(&grid)?;
/// let counts = reward.tiered().and_then(|table| table.counts(3));
/// assert_eq!(counts.map(|by_rule| (by_rule.len(), by_rule.iter().sum())), Some((16, 65_536_u64)));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ConditionalMultiscale {
    /// The reward of a point that passes no tier.
    pub r0: f64,
    /// The indices of the grid's dimensions on which there are conditions: the constrained dimensions.
    pub dims: Vec<usize>,
    /// The base b of the digits. The height is a power of b.
    pub base: u32,
    /// The width f of the filter: a digit passes if its shifted value modulo the base is below f.
    pub filter_width: u32,
    /// The tiers. The first one has a condition on the most significant digit, the next one on the next
    /// digit. There may be at most as many tiers as digits.
    pub tiers: Vec<MultiscaleTier>,
    /// The coefficients a, indexed by rule, tier and digit. Tier `t` has `t` coefficients: one for each digit
    /// that is more significant than the tier's own.
    pub coefficients: Vec<Vec<Vec<u32>>>,
}

/// A tier of [`ConditionalMultiscale`]: a reward, and the condition on a digit under which a point earns it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MultiscaleTier {
    /// The amount that the tier adds to the reward of a point that passes it.
    pub weight: f64,
    /// The shift s in the tier's condition on a digit of each constrained coordinate. It is a term of the sum
    /// that must be below the filter width, modulo the base of the digits.
    pub shift: u32,
    /// The modulus m that must divide the sum of the tier's digits over the constrained dimensions. `None`
    /// means that the sum may be any number.
    pub cross_mod: Option<u32>,
}

impl MultiscaleTier {
    /// Builds a tier whose shift is 0 and whose `cross_mod` is `None`.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        Self { weight, shift: 0, cross_mod: None }
    }
}

impl ConditionalMultiscale {
    /// Returns conditions on all dimensions in base 4, with random coefficients from seed 42. Each condition
    /// allows two of the four values of a digit (a filter of width 2), and the tiers have the weights 1, 10
    /// and 100. If a coordinate has fewer than three digits, only the first tiers are used, one per digit.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        Self::random(grid, grid.ndim(), 2, &[1.0, 10.0, 100.0].map(MultiscaleTier::new), 1, 42)
    }

    /// Returns conditions on the first `n_dims` dimensions in base 4, with random coefficients. If there are
    /// more tiers than a coordinate has digits, the last tiers are left out. With the same seed, a smaller
    /// `n_rules` gives the first rules of a larger `n_rules`.
    #[must_use]
    pub fn random(
        grid: &HyperGrid,
        n_dims: usize,
        filter_width: u32,
        tiers: &[MultiscaleTier],
        n_rules: usize,
        seed: u64,
    ) -> Self {
        let base = 4;
        let n_digits = (grid.height().ilog2() / 2) as usize;
        let tiers = tiers[..tiers.len().min(n_digits)].to_vec();
        let mut rng = Rng::seeded(seed);
        let mut coefficients_of = |t: usize| (0..t).map(|_| rng.below(base) as u32).collect();
        let coefficients =
            (0..n_rules).map(|_| (0..tiers.len()).map(&mut coefficients_of).collect()).collect();
        Self {
            r0: 0.0,
            dims: (0..n_dims.min(grid.ndim() + 1)).collect(),
            base: base as u32,
            filter_width,
            tiers,
            coefficients,
        }
    }

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks, a height that is no power of the base, more
    /// tiers than digits, a filter width outside `1..=base`, coefficients that don't fit the tiers, a
    /// cross-dimensional modulus outside `2..=65536`, more than 65,536 rules or more than `filter_width^n`
    /// for `n` constrained dimensions, a rule for which no point passes the first tier, weights that aren't
    /// finite and positive, and an `r0` that is negative or not finite.
    pub fn build(&self, grid: &HyperGrid) -> Result<GridReward> {
        check_dims(grid, &self.dims)?;
        let n_digits = self.check(grid)?;
        let conditions = self.conditions(grid, n_digits);
        // A reward with a single rule is accepted even if no point passes its first tier: `check_modes`
        // reports this case.
        let first_tier = if self.coefficients.len() > 1 { conditions.counts(&[0]) } else { None };
        if let Some(missing) = first_tier.and_then(|counts| counts.iter().position(|&n| n == 0)) {
            let n_rules = self.coefficients.len();
            return Err(Error::config(
                "the rules",
                format!("{n_rules} rules, but no point that passes the first tier has rule number {missing}"),
                "rules that each have at least one point: use fewer rules, or no cross-dimensional condition \
                 in the first tier",
            ));
        }
        let n_tiers = self.tiers.len();
        let n_constrained = self.dims.len();
        let share = f64::from(self.filter_width) / f64::from(self.base);
        let is_rare = |&t: &usize| share.powi((t * n_constrained) as i32) < 0.1;
        let mode_tiers = (1..=n_tiers).find(is_rare).unwrap_or(n_tiers);
        let weights = self.tiers.iter().map(|tier| tier.weight).collect();
        let kind = RewardKind::ConditionalMultiscale;
        build_table(kind, grid, self.r0, n_constrained, weights, mode_tiers, conditions)
    }

    /// Checks the parameters against a grid and returns the number of digits of its coordinates.
    fn check(&self, grid: &HyperGrid) -> Result<u32> {
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        let height = grid.height() as u64;
        let base = u64::from(self.base);
        let n_digits = (1..=16).find(|&n| base.checked_pow(n) == Some(height)).unwrap_or(0);
        if self.base < 2 || n_digits == 0 {
            let got = format!("{base} at height {height}");
            return refuse("the digits' base", got, "a base of at least 2, of which the height is a power");
        }
        let n_tiers = self.tiers.len();
        if n_tiers == 0 || n_tiers > n_digits as usize {
            let got = format!("{n_tiers} tiers for {n_digits} digits in base {base}");
            let expected =
                "at least one tier and at most one tier per digit: raise the height, or use fewer tiers";
            return refuse("the tiers", got, expected);
        }
        let mods: Vec<u32> = self.tiers.iter().filter_map(|tier| tier.cross_mod).collect();
        if !(1..=self.base).contains(&self.filter_width) || mods.iter().any(|m| !(2..=1 << 16).contains(m)) {
            let got = format!("width {} in base {base}, cross_mod {mods:?}", self.filter_width);
            return refuse(
                "the filter",
                got,
                "a width from 1 to the base, and cross-dimensional moduli from 2 to 65,536",
            );
        }
        let patterns = u64::from(self.filter_width).saturating_pow(self.dims.len() as u32);
        let n_rules = self.coefficients.len();
        let fits = |rule: &Vec<Vec<u32>>| rule.iter().map(Vec::len).eq(0..n_tiers);
        if n_rules == 0 || n_rules as u64 > patterns.min(1 << 16) || !self.coefficients.iter().all(fits) {
            return refuse(
                "the rules' coefficients",
                format!("{n_rules} rules for {n_tiers} tiers and {patterns} patterns of leading digits"),
                "at least one rule, at most one rule per pattern that passes the first tier (and at most \
                 65,536), and t coefficients for tier t",
            );
        }
        Ok(n_digits)
    }

    fn conditions(&self, grid: &HyperGrid, n_digits: u32) -> CoordinateConditions {
        let base = u64::from(self.base);
        let width = u64::from(self.filter_width);
        let height = grid.height() as u64;
        let n_rules = self.coefficients.len();
        let digit = move |x: u64, t: u32| x / base.pow(n_digits - 1 - t) % base;
        let sum = |(t, tier): (u32, &MultiscaleTier)| {
            ((0..height).map(|x| digit(x, t)).collect(), u64::from(tier.cross_mod.unwrap_or(1)))
        };
        let first_shift = u64::from(self.tiers[0].shift);
        let places =
            std::iter::successors(Some(1 % n_rules as u64), |place| Some(place * width % n_rules as u64));
        let Self { tiers, coefficients, .. } = self.clone();
        let sums = (0..).zip(&tiers).map(sum).collect();
        let cover = move |t: usize, rule: usize, x: usize| {
            let digits = (0..).map(|k| digit(x as u64, k));
            let coarser: u64 = coefficients[rule][t].iter().zip(digits).map(|(&a, d)| u64::from(a) * d).sum();
            let shifted = digit(x as u64, t as u32) + u64::from(tiers[t].shift) + coarser;
            (shifted % base < width).then_some(u64::MAX)
        };
        CoordinateConditions {
            dims: self.dims.clone(),
            height: grid.height(),
            cover: Box::new(cover),
            sums,
            factors: vec![0; grid.height()],
            pairs: Vec::new(),
            pairs_from: 0,
            n_rules,
            selector: (0..height).map(|x| (digit(x, 0) + first_shift) % base % width).collect(),
            places: places.take(self.dims.len()).collect(),
            tables: DeviceTables::default(),
            rule_tables: DeviceTables::default(),
            pair_tables: DeviceTables::default(),
        }
    }
}
