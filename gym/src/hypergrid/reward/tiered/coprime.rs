use std::sync::Arc;

use gfn::{Error, Result, Rng};

use super::prime_factors::{FactorTiers, Factors, Tier};
use super::{RewardKind, TieredReward, check_dims};
use crate::hypergrid::HyperGrid;

/// Tiers of conditions on the prime factors of the coordinates.
///
/// With `v = x + 1`, tier `t` asks that every constrained `v` is a product of the allowed primes, each with an exponent of at most
/// the tier's cap; from [`pairs_from`](Self::pairs_from) on, that the `v` of the given pairs have no allowed prime in common; and
/// that the least common multiple of all constrained `v` is the tier's target, if it has one.
/// `R = r0 + sum_t w_t [tiers 0..=t hold]`; modes pass all tiers.
///
/// With [`rules`](Self::rules), the last tier also asks for the least common multiple of the point's rule, which is the sum of the
/// constrained `v` modulo the number of rules.
///
/// Primes above the height are left out, and caps are cut to the greatest exponent that all remaining primes reach within the
/// height. log Z and the number of modes are counted exactly by dynamic programming over the dimensions; it takes too many steps
/// only with many primes and targets, or pairs of dimensions far apart.
///
/// ```
/// use gfn_gym::hypergrid::{GridReward, HyperGrid, MultiplicativeCoprime, Preset};
/// let grid = HyperGrid::new(3, 8)?;
/// let reward = MultiplicativeCoprime::preset(&grid, Preset::Easy)?.build(&grid)?;
/// assert_eq!(reward.n_modes(), Some(63));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct MultiplicativeCoprime {
    /// The base reward.
    pub r0: f64,
    /// The constrained dimensions.
    pub dims: Vec<usize>,
    /// The allowed primes.
    pub primes: Vec<u32>,
    /// The tiers.
    pub tiers: Vec<CoprimeTier>,
    /// Pairs of constrained dimensions, by their places in [`dims`](Self::dims), that are to be coprime.
    pub pairs: Vec<(usize, usize)>,
    /// The first tier that asks for coprime pairs.
    pub pairs_from: usize,
    /// The least common multiple that the last tier asks for of each rule, if any; no rules is the same as one without a target.
    pub rules: Vec<Option<u64>>,
}

/// A tier of [`MultiplicativeCoprime`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoprimeTier {
    /// Its part of the reward.
    pub weight: f64,
    /// The greatest exponent of a prime.
    pub cap: u32,
    /// The least common multiple that the constrained coordinates are to have.
    pub lcm: LcmTarget,
}

/// The least common multiple that a tier asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LcmTarget {
    /// Any.
    Any,
    /// The product of all allowed primes, each to the power of the tier's cap.
    Full,
    /// This number.
    Of(u64),
}

impl MultiplicativeCoprime {
    /// All dimensions, the primes 2, 3 and 5, three tiers of weights 1, 10 and 100, all of cap 2 and without further conditions.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        let tier = |weight| CoprimeTier { weight, cap: 2, lcm: LcmTarget::Any };
        Self {
            r0: 0.0,
            dims: (0..grid.ndim()).collect(),
            primes: vec![2, 3, 5],
            tiers: [1.0, 10.0, 100.0].map(tier).to_vec(),
            pairs: Vec::new(),
            pairs_from: 0,
            rules: Vec::new(),
        }
    }

    /// The same with rules: `n_rules` different targets, drawn from the products of all allowed primes with exponents from 1 to
    /// the last tier's cap.
    ///
    /// # Errors
    /// [`Error::Config`] if there are fewer such products than rules, for more than 1,024 rules, and for what
    /// [`build`](Self::build) refuses of primes.
    pub fn with_drawn_rules(mut self, grid: &HyperGrid, n_rules: usize, seed: u64) -> Result<Self> {
        let primes = self.primes_within(grid)?;
        let cap = self.tiers.last().map_or(0, |tier| cut(tier.cap, &primes, grid));
        let n_products = u64::from(cap).saturating_pow(primes.len() as u32);
        let largest = primes.iter().try_fold(1u64, |product, &p| product.checked_mul(u64::from(p).checked_pow(cap)?));
        if n_rules as u64 > n_products.min(1024) || largest.is_none() {
            return Err(Error::config(
                "the number of rules",
                format!("{n_rules}, with exponents of 1 to {cap} for the primes {primes:?}"),
                "at most 1,024, at most one for each product of all primes, and products below 2^64: \
                    take fewer rules or primes, or a greater height",
            ));
        }
        let mut rng = Rng::seeded(seed);
        self.rules.clear();
        while self.rules.len() < n_rules {
            let target = primes.iter().map(|&p| u64::from(p).pow(1 + rng.below(cap as usize) as u32)).product();
            if !self.rules.contains(&Some(target)) {
                self.rules.push(Some(target));
            }
        }
        Ok(self)
    }

    /// The reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid hasn't, for pairs beyond the constrained dimensions, for a number among the
    /// primes that is none or stands there twice, if none or more than 32 of them are left, for a target with other prime factors
    /// than the allowed ones, and whatever [`TieredReward::new`] refuses.
    pub fn build(&self, grid: &HyperGrid) -> Result<TieredReward> {
        check_dims(grid, &self.dims)?;
        let primes = self.primes_within(grid)?;
        let n = self.dims.len();
        if let Some(&(a, b)) = self.pairs.iter().find(|&&(a, b)| a == b || a >= n || b >= n) {
            return Err(Error::config(
                "the coprime pairs",
                format!("({a}, {b}) among {n} constrained dimensions"),
                "two different places in the list of constrained dimensions",
            ));
        }
        let factored = |target: u64| match Factors::of(target, &primes) {
            Some(factors) => Ok(factors.exponents),
            None => Err(Error::config(
                "a least common multiple",
                format!("{target} for the primes {primes:?}"),
                "a product of allowed primes that the height reaches",
            )),
        };
        let mut tiers = Vec::new();
        for tier in &self.tiers {
            let cap = cut(tier.cap, &primes, grid);
            let lcm = match tier.lcm {
                LcmTarget::Any => None,
                LcmTarget::Full => Some(vec![cap; primes.len()]),
                LcmTarget::Of(target) => Some(factored(target)?),
            };
            tiers.push(Tier { cap, lcm });
        }
        let mut rules = self.rules.iter().map(|rule| rule.map(factored).transpose()).collect::<Result<Vec<_>>>()?;
        if rules.is_empty() {
            rules.push(None);
        }
        let tiers = FactorTiers {
            grid: *grid,
            dims: self.dims.clone(),
            pairs: self.pairs.clone(),
            pairs_from: self.pairs_from,
            tiers,
            rules,
            factors: (1..=grid.height() as u64).map(|v| Factors::of(v, &primes)).collect(),
        };
        let weights = self.tiers.iter().map(|tier| tier.weight).collect();
        let kind = RewardKind::MultiplicativeCoprime;
        TieredReward::new(kind, grid, self.r0, weights, self.tiers.len(), Arc::new(tiers))
    }

    /// The primes that a coordinate of this grid can be a multiple of.
    fn primes_within(&self, grid: &HyperGrid) -> Result<Vec<u32>> {
        let within: Vec<u32> = self.primes.iter().copied().filter(|&p| p as usize <= grid.height()).collect();
        let is_prime = |&p: &u32| p >= 2 && (2..).take_while(|d| d * d <= p).all(|d| p % d != 0);
        let twice = within.iter().enumerate().any(|(i, p)| within[..i].contains(p));
        if within.is_empty() || within.len() > 32 || twice || !within.iter().all(is_prime) {
            return Err(Error::config(
                "the primes",
                format!("{:?}, of which {} are within a height of {}", self.primes, within.len(), grid.height()),
                "different primes, 1 to 32 of them no greater than the height",
            ));
        }
        Ok(within)
    }
}

/// A cap no greater than the exponent that each of the primes reaches within the height.
fn cut(cap: u32, primes: &[u32], grid: &HyperGrid) -> u32 {
    primes.iter().map(|&p| grid.height().ilog(p as usize)).fold(cap, u32::min)
}
