use std::collections::HashMap;
use std::sync::Arc;

use gfn::{Error, Result, Rng};

use super::{RewardKind, TieredReward, Tiers, check_dims, count_folds, free_points};
use crate::hypergrid::HyperGrid;

/// Tiers of digits, from coarse to fine, where what is asked of a digit depends on the coarser ones.
///
/// Coordinates are written in base `b` with `L` digits, `H = b^L`; `d_t` is the `(t+1)`-th most significant one. Tier `t` asks of
/// every constrained coordinate `(d_t + s_t + sum_{k<t} a_tk d_k) mod b < f`, with a shift `s_t`, a filter width `f` and
/// coefficients `a`; and, if it has a `cross_mod` m, that the `d_t` of all constrained coordinates add up to 0 modulo m.
/// `R = r0 + sum_t w_t [tiers 0..=t hold]`.
///
/// There may be several rules, each with coefficients of its own. The rule is `sum_i u_i f^i` modulo their number, where `u_i` is
/// `(d_0 + s_0) mod b mod f` of the `i`-th constrained coordinate.
///
/// A *mode* passes so many tiers that `(f / b)^(tiers x dims)` falls below a tenth, or all of them. log Z and the number of modes
/// are counted exactly by dynamic programming over the dimensions. (torchgfn's closed form is wrong where a `cross_mod` doesn't
/// divide the base.)
///
/// ```
/// use gfn_gym::hypergrid::{ConditionalMultiscale, GridReward, HyperGrid, Preset};
/// let grid = HyperGrid::new(6, 64)?;
/// let reward = ConditionalMultiscale::preset(&grid, Preset::K16)?.build(&grid)?;
/// assert_eq!(reward.counts(3).map(|of_rules| (of_rules.len(), of_rules.iter().sum())), Some((16, 65_536_u64)));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ConditionalMultiscale {
    /// The base reward.
    pub r0: f64,
    /// The constrained dimensions.
    pub dims: Vec<usize>,
    /// The base b; the height is a power of it.
    pub base: u32,
    /// The width f of the filter.
    pub filter_width: u32,
    /// The tiers, at most as many as there are digits.
    pub tiers: Vec<MultiscaleTier>,
    /// The coefficients a of each rule: `t` of them for tier `t`.
    pub coefficients: Vec<Vec<Vec<u32>>>,
}

/// A tier of [`ConditionalMultiscale`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MultiscaleTier {
    /// Its part of the reward.
    pub weight: f64,
    /// The shift of its filter.
    pub shift: u32,
    /// A number that the sum over dimensions of its digits is a multiple of, if any.
    pub cross_mod: Option<u32>,
}

impl MultiscaleTier {
    /// A tier with neither shift nor cross-dimensional condition.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        Self { weight, shift: 0, cross_mod: None }
    }
}

impl ConditionalMultiscale {
    /// All dimensions in base 4 with a filter of width 2, weights 1, 10 and 100 (fewer, if the height has fewer digits), and
    /// coefficients from seed 42.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        Self::drawn(grid, grid.ndim(), 2, &[1.0, 10.0, 100.0].map(MultiscaleTier::new), 1, 42)
    }

    /// The first `n_dims` dimensions in base 4, the first of these tiers that the height has digits for, and random coefficients.
    /// The first rules of a seed are the same for any number of rules.
    #[must_use]
    pub fn drawn(
        grid: &HyperGrid,
        n_dims: usize,
        filter_width: u32,
        tiers: &[MultiscaleTier],
        n_rules: usize,
        seed: u64,
    ) -> Self {
        let (base, n_digits) = (4, (grid.height().ilog2() / 2) as usize);
        let tiers = tiers[..tiers.len().min(n_digits)].to_vec();
        let mut rng = Rng::seeded(seed);
        let mut coefficients_of = |t: usize| (0..t).map(|_| rng.below(base) as u32).collect();
        let coefficients = (0..n_rules).map(|_| (0..tiers.len()).map(&mut coefficients_of).collect()).collect();
        Self {
            r0: 0.0,
            dims: (0..n_dims.min(grid.ndim() + 1)).collect(),
            base: base as u32,
            filter_width,
            tiers,
            coefficients,
        }
    }

    /// The reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid hasn't, a height that is no power of the base, more tiers than digits, a
    /// filter width outside `1..=base`, coefficients that don't fit the tiers, a cross-dimensional modulus outside
    /// `2..=65536`, more rules than the filter leaves patterns for, a rule that no point of the first tier has, and
    /// whatever [`TieredReward::new`] refuses.
    pub fn build(&self, grid: &HyperGrid) -> Result<TieredReward> {
        check_dims(grid, &self.dims)?;
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        let (height, base) = (grid.height() as u64, u64::from(self.base));
        let n_digits = (1..=16).find(|&n| base.checked_pow(n) == Some(height)).unwrap_or(0);
        if self.base < 2 || n_digits == 0 {
            return refuse(
                "the digits' base",
                format!("{base} at height {height}"),
                "a number of at least 2 that the height is a power of",
            );
        }
        let n_tiers = self.tiers.len();
        if n_tiers == 0 || n_tiers > n_digits as usize {
            return refuse(
                "the tiers",
                format!("{n_tiers} for {n_digits} digits in base {base}"),
                "at least one tier and at most one per digit: raise the height or take fewer tiers",
            );
        }
        let mods = self.tiers.iter().filter_map(|tier| tier.cross_mod);
        if !(1..=self.base).contains(&self.filter_width) || mods.clone().any(|m| !(2..=1 << 16).contains(&m)) {
            return refuse(
                "the filter",
                format!("width {} in base {base}, cross_mod {:?}", self.filter_width, mods.collect::<Vec<_>>()),
                "a width of 1 to the base, and cross-dimensional moduli of 2 to 65,536",
            );
        }
        let patterns = u64::from(self.filter_width).saturating_pow(self.dims.len() as u32);
        let n_rules = self.coefficients.len();
        let fits = |rule: &Vec<Vec<u32>>| rule.iter().map(Vec::len).eq(0..n_tiers);
        if n_rules == 0 || n_rules as u64 > patterns.min(1 << 16) || !self.coefficients.iter().all(fits) {
            return refuse(
                "the rules' coefficients",
                format!("{n_rules} rules for {n_tiers} tiers and {patterns} patterns of leading digits"),
                "at least one rule, at most as many as there are patterns that pass the first tier (or 65,536), \
                 and t coefficients for tier t",
            );
        }
        let tiers = DigitTiers::new(self, grid, n_digits);
        // That a single rule has no point is for `check_modes` to say.
        let first_tier = if n_rules > 1 { tiers.counts(1) } else { None };
        if let Some(missing) = first_tier.and_then(|counts| counts.iter().position(|&n| n == 0)) {
            return refuse(
                "the rules",
                format!("{n_rules}, of which no point that passes the first tier has number {missing}"),
                "rules that points have: take fewer, or no cross-dimensional condition in the first tier",
            );
        }
        let weights = self.tiers.iter().map(|tier| tier.weight).collect();
        let kind = RewardKind::ConditionalMultiscale;
        TieredReward::new(kind, grid, self.r0, weights, self.mode_tiers(), Arc::new(tiers))
    }

    fn mode_tiers(&self) -> usize {
        let share = f64::from(self.filter_width) / f64::from(self.base);
        let rare = |&t: &usize| share.powi((t * self.dims.len()) as i32) < 0.1;
        (1..=self.tiers.len()).find(rare).unwrap_or(self.tiers.len())
    }
}

#[derive(Clone, Debug)]
struct DigitTiers {
    grid: HyperGrid,
    config: ConditionalMultiscale,
    /// The digits of each coordinate, coarsest first.
    digits: Vec<Vec<u64>>,
    /// The tiers with a cross-dimensional condition, and their moduli.
    cross: Vec<(usize, u64)>,
}

impl DigitTiers {
    fn new(config: &ConditionalMultiscale, grid: &HyperGrid, n_digits: u32) -> Self {
        let base = u64::from(config.base);
        let digits = |x: u64| (0..n_digits).rev().map(|place| x / base.pow(place) % base).collect();
        let cross = |(t, tier): (usize, &MultiscaleTier)| Some((t, u64::from(tier.cross_mod?)));
        Self {
            grid: *grid,
            config: config.clone(),
            digits: (0..grid.height() as u64).map(digits).collect(),
            cross: config.tiers.iter().enumerate().filter_map(cross).collect(),
        }
    }

    /// The tiers whose filter one coordinate passes under a rule.
    fn filter(&self, x: u16, rule: usize) -> u32 {
        let (config, digits) = (&self.config, &self.digits[usize::from(x)]);
        let passes = |t: usize| {
            let coarser: u64 = config.coefficients[rule][t].iter().zip(digits).map(|(&a, d)| u64::from(a) * d).sum();
            let shifted = digits[t] + u64::from(config.tiers[t].shift) + coarser;
            shifted % u64::from(config.base) < u64::from(config.filter_width)
        };
        (0..config.tiers.len()).fold(0, |set, t| set | u32::from(passes(t)) << t)
    }

    /// The amount that a coordinate adds to the selector, before the power of its place.
    fn pattern(&self, x: u16) -> u64 {
        let shifted =
            (self.digits[usize::from(x)][0] + u64::from(self.config.tiers[0].shift)) % u64::from(self.config.base);
        shifted % u64::from(self.config.filter_width)
    }

    /// The powers of the filter width modulo the number of rules.
    fn places(&self) -> impl Iterator<Item = u64> {
        let (n, width) = (self.n_rules() as u64, u64::from(self.config.filter_width));
        std::iter::successors(Some(1 % n), move |place| Some(place * width % n))
    }

    /// The cross-dimensional conditions of these tiers.
    fn cross_of(&self, tiers: u32) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.cross.iter().copied().filter(move |(t, _)| tiers >> t & 1 == 1)
    }

    /// Counts the points that pass the tiers under the coefficients of one rule, by what the selector says of them.
    fn count_under(&self, tiers: u32, rule: usize) -> Option<Vec<u64>> {
        let mods: Vec<(usize, u64)> = self.cross_of(tiers).collect();
        let n_rules = self.n_rules() as u64;
        // What a coordinate adds to the selector and to each sum.
        let mut kinds = HashMap::<(u64, Vec<u64>), u64>::new();
        let coordinates = (0..self.digits.len()).map(|x| x as u16);
        for x in coordinates.filter(|&x| self.filter(x, rule) & tiers == tiers) {
            let sums = mods.iter().map(|&(t, m)| self.digits[usize::from(x)][t] % m).collect();
            *kinds.entry((self.pattern(x), sums)).or_default() += 1;
        }
        let places: Vec<u64> = self.places().take(self.config.dims.len()).collect();
        let start = (0u64, vec![0u64; mods.len()]);
        let counts = count_folds(places.len(), &kinds, start, |d, (selector, sums), (pattern, more)| {
            let sums = sums.iter().zip(more).zip(&mods).map(|((sum, add), (_, m))| (sum + add) % m).collect();
            Some(((selector + pattern * places[d]) % n_rules, sums))
        })?;
        let mut out = vec![0; self.n_rules()];
        for ((selector, sums), count) in counts {
            if sums.iter().all(|&sum| sum == 0) {
                out[selector as usize] += count;
            }
        }
        Some(out)
    }
}

impl Tiers for DigitTiers {
    fn n_tiers(&self) -> usize {
        self.config.tiers.len()
    }

    fn passed(&self, point: &[u16]) -> u32 {
        let rule = self.rule(point);
        let coordinates = || self.config.dims.iter().map(|&dim| point[dim]);
        let passed = coordinates().fold(u32::MAX >> (32 - self.n_tiers()), |set, x| set & self.filter(x, rule));
        let fails = |t: usize, m: u64| coordinates().map(|x| self.digits[usize::from(x)][t]).sum::<u64>() % m != 0;
        self.cross_of(passed).filter(|&(t, m)| fails(t, m)).fold(passed, |set, (t, _)| set & !(1 << t))
    }

    fn n_rules(&self) -> usize {
        self.config.coefficients.len()
    }

    fn rule(&self, point: &[u16]) -> usize {
        let n = self.n_rules() as u64;
        let terms = self.config.dims.iter().zip(self.places());
        let sum = terms.fold(0, |sum, (&dim, place)| (sum + self.pattern(point[dim]) * place) % n);
        sum as usize
    }

    fn counts(&self, tiers: u32) -> Option<Vec<u64>> {
        let free = free_points(&self.grid, &self.config.dims);
        let counts: Vec<u64> = if tiers <= 1 {
            // The first tier is that of all rules.
            self.count_under(tiers, 0)?
        } else {
            (0..self.n_rules()).map(|rule| Some(self.count_under(tiers, rule)?[rule])).collect::<Option<_>>()?
        };
        Some(counts.into_iter().map(|count| count * free).collect())
    }
}
