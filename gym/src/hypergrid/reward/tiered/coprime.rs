use std::collections::HashMap;
use std::sync::Arc;

use gfn::{Error, Result, Rng};

use super::{RewardKind, TieredReward, Tiers, check_dims, count_folds, free_points};
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
        let factored = |target: u64| {
            let refused = || {
                Error::config(
                    "a least common multiple",
                    format!("{target} for the primes {primes:?}"),
                    "a product of allowed primes that the height reaches",
                )
            };
            exponents(target, &primes).ok_or_else(refused)
        };
        let mut caps = Vec::new();
        let mut targets = Vec::new();
        for tier in &self.tiers {
            let cap = cut(tier.cap, &primes, grid);
            caps.push(cap);
            targets.push(match tier.lcm {
                LcmTarget::Any => None,
                LcmTarget::Full => Some(vec![cap; primes.len()]),
                LcmTarget::Of(target) => Some(factored(target)?),
            });
        }
        let mut rules = self.rules.iter().map(|rule| rule.map(factored).transpose()).collect::<Result<Vec<_>>>()?;
        if rules.is_empty() {
            rules.push(None);
        }
        let numbers = (1..=grid.height() as u64).map(|v| exponents(v, &primes)).collect();
        let tiers = FactorTiers { grid: *grid, config: self.clone(), caps, targets, rules, numbers };
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

/// Returns the exponents of the primes in a number; `None` if it has another prime factor, or is 0.
fn exponents(number: u64, primes: &[u32]) -> Option<Vec<u32>> {
    let mut rest = number;
    let mut out = vec![0; primes.len()];
    for (exponent, &p) in out.iter_mut().zip(primes) {
        while rest > 0 && rest.is_multiple_of(u64::from(p)) {
            rest /= u64::from(p);
            *exponent += 1;
        }
    }
    (rest == 1).then_some(out)
}

fn bits(flags: impl Iterator<Item = bool>) -> u32 {
    flags.enumerate().fold(0, |set, (i, flag)| set | u32::from(flag) << i)
}

/// The primes that divide a number, as bits.
fn divisors(exponents: &[u32]) -> u32 {
    bits(exponents.iter().map(|&e| e > 0))
}

fn highest(exponents: &[u32]) -> u32 {
    exponents.iter().copied().max().unwrap_or(0)
}

/// The tiers of [`MultiplicativeCoprime`], with numbers as exponents of the allowed primes.
#[derive(Clone, Debug)]
struct FactorTiers {
    grid: HyperGrid,
    config: MultiplicativeCoprime,
    /// The cap of each tier.
    caps: Vec<u32>,
    /// The least common multiple that each tier asks for.
    targets: Vec<Option<Vec<u32>>>,
    /// The least common multiple that the last tier asks for of each rule.
    rules: Vec<Option<Vec<u32>>>,
    /// The number of each coordinate, x + 1.
    numbers: Vec<Option<Vec<u32>>>,
}

impl FactorTiers {
    /// Counts the points of the constrained dimensions whose numbers keep to the cap, whose pairs are coprime if `paired`, and whose
    /// least common multiple is the target, by the sum of the numbers modulo the number of rules.
    fn count(&self, cap: Option<u32>, paired: bool, target: Option<&Vec<u32>>) -> Option<Vec<u64>> {
        let n_rules = self.rules.len() as u64;
        // What counts depend on: the primes of a number, those that it has in the power of the target, and itself modulo the rules.
        let mut kinds = HashMap::<(u32, u32, u64), u64>::new();
        for (x, number) in self.numbers.iter().enumerate() {
            let is_allowed = match (number, cap) {
                (Some(number), Some(cap)) => highest(number) <= cap,
                (None, Some(_)) => false,
                (_, None) => true,
            };
            let reached = match (target, number) {
                (None, _) => Some(0),
                (Some(target), Some(number)) if number.iter().zip(target).all(|(e, t)| e <= t) => {
                    Some(bits(number.iter().zip(target).map(|(e, t)| e == t)))
                }
                _ => None,
            };
            if let (true, Some(reached)) = (is_allowed, reached) {
                let primes = number.as_ref().filter(|_| paired).map_or(0, |number| divisors(number));
                *kinds.entry((primes, reached, (x as u64 + 1) % n_rules)).or_default() += 1;
            }
        }
        let pairs: &[(usize, usize)] = if paired { &self.config.pairs } else { &[] };
        let n_dims = self.config.dims.len();
        let has_later = |a: usize, d: usize| pairs.iter().any(|&(p, q)| p == a && q > d || q == a && p > d);
        // A state holds the primes of those dimensions that have partners still to come.
        let start = (vec![0u32; n_dims], 0u32, 0u64);
        let counts = count_folds(n_dims, &kinds, start, |d, (primes, reached, sum), &(mine, reaches, number)| {
            let mut primes: Vec<u32> = primes.clone();
            primes[d] = mine;
            if pairs.iter().any(|&(p, q)| p.max(q) == d && primes[p] & primes[q] != 0) {
                return None;
            }
            (0..=d).filter(|&a| !has_later(a, d)).for_each(|a| primes[a] = 0);
            Some((primes, reached | reaches, (sum + number) % n_rules))
        })?;
        let all = target.map_or(0, |target| bits(target.iter().map(|_| true)));
        let mut out = vec![0; self.rules.len()];
        for ((_, reached, sum), count) in counts {
            if reached == all {
                out[sum as usize] += count;
            }
        }
        Some(out)
    }
}

impl Tiers for FactorTiers {
    fn n_tiers(&self) -> usize {
        self.caps.len()
    }

    fn passed(&self, point: &[u16]) -> u32 {
        let numbers = self.config.dims.iter().map(|&dim| self.numbers[usize::from(point[dim])].as_ref());
        let Some(numbers) = numbers.collect::<Option<Vec<&Vec<u32>>>>() else { return 0 };
        let coprime = self.config.pairs.iter().all(|&(a, b)| divisors(numbers[a]) & divisors(numbers[b]) == 0);
        let highest = numbers.iter().map(|number| highest(number)).max().unwrap_or(0);
        let is_lcm = |target: &Vec<u32>| {
            let exponent = |p: usize| numbers.iter().map(|number| number[p]).max().unwrap_or(0);
            target.iter().enumerate().all(|(p, &e)| exponent(p) == e)
        };
        let head = self.rules[self.rule(point)].as_ref().is_none_or(is_lcm);
        bits((0..self.n_tiers()).map(|t| {
            highest <= self.caps[t]
                && (coprime || t < self.config.pairs_from)
                && self.targets[t].as_ref().is_none_or(is_lcm)
                && (head || t + 1 < self.n_tiers())
        }))
    }

    fn n_rules(&self) -> usize {
        self.rules.len()
    }

    fn rule(&self, point: &[u16]) -> usize {
        self.config.dims.iter().map(|&dim| usize::from(point[dim]) + 1).sum::<usize>() % self.rules.len()
    }

    fn counts(&self, tiers: u32) -> Option<Vec<u64>> {
        let asked: Vec<usize> = (0..self.n_tiers()).filter(|t| tiers >> t & 1 == 1).collect();
        let cap = asked.iter().map(|&t| self.caps[t]).min();
        let paired = asked.iter().any(|&t| t >= self.config.pairs_from);
        let free = free_points(&self.grid, &self.config.dims);
        let mut by_target = HashMap::<Option<&Vec<u32>>, Vec<u64>>::new();
        let mut counts = vec![0; self.rules.len()];
        for (rule, count) in counts.iter_mut().enumerate() {
            let mut targets: Vec<&Vec<u32>> = asked.iter().filter_map(|&t| self.targets[t].as_ref()).collect();
            if asked.last() == Some(&(self.n_tiers() - 1)) {
                targets.extend(&self.rules[rule]);
            }
            targets.dedup();
            let target = targets.first().copied();
            if targets.len() > 1 {
                continue;
            }
            let of_target = match by_target.get(&target) {
                Some(known) => known,
                None => {
                    let counted = self.count(cap, paired, target)?;
                    &*by_target.entry(target).or_insert(counted)
                }
            };
            *count = of_target[rule] * free;
        }
        Some(counts)
    }
}
