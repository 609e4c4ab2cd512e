//! Tiers of conditions on the prime factors of the coordinates.

use gfn::{Error, Result, Rng};

use super::coordinates::CoordinateConditions;
use super::{build_table, check_dims};
use crate::hypergrid::HyperGrid;
use crate::hypergrid::reward::{GridReward, RewardKind};
use crate::rewards::DeviceTables;

/// Tiers of conditions on the prime factors of the coordinates.
///
/// With `v = x + 1`, tier `t` has three conditions. Every constrained `v` is a product of the allowed primes,
/// each with an exponent of at most the tier's cap. From [`pairs_from`](Self::pairs_from) on, the `v` of the
/// given pairs have no allowed prime in common. The least common multiple of all constrained `v` is the
/// tier's target, if it has one. Modes meet the conditions of all tiers.
///
/// If there are several [`rules`](Self::rules), the last tier also needs the least common multiple of the
/// point's rule. The rule is the sum of the constrained `v` modulo the number of rules.
///
/// Primes above the height are left out. If a remaining prime to the power of a cap exceeds the height, the
/// cap is lowered to the largest exponent at which no remaining prime does. log Z and the number of modes are
/// counted exactly by dynamic programming over the dimensions. These numbers stay unknown if counting takes
/// too many steps, because there are many primes and targets or the dimensions of a pair are far apart.
///
/// ```
/// use gfn_gym::hypergrid::{HyperGrid, MultiplicativeCoprime, Preset};
/// let grid = HyperGrid::new(3, 8)?;
/// let reward = MultiplicativeCoprime::preset(&grid, Preset::Easy)?.build(&grid)?;
/// assert_eq!(reward.n_modes(), Some(63));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct MultiplicativeCoprime {
    /// The reward of a point that doesn't meet the conditions of the first tier.
    pub r0: f64,
    /// The indices of the grid's dimensions on which there are conditions: the constrained dimensions.
    pub dims: Vec<usize>,
    /// The allowed prime factors of `x + 1`, for each constrained coordinate `x`.
    pub primes: Vec<u32>,
    /// The tiers, each with a reward and its conditions.
    pub tiers: Vec<CoprimeTier>,
    /// The pairs of constrained dimensions that must be coprime, by their indices into [`dims`](Self::dims).
    pub pairs: Vec<(usize, usize)>,
    /// The index of the first tier that requires the pairs in `pairs` to be coprime.
    pub pairs_from: usize,
    /// The least common multiple of the numbers `x + 1` that the last tier requires under each rule; `None`
    /// for a rule that accepts any. An empty list means a single rule that accepts any.
    pub rules: Vec<Option<u64>>,
}

/// A tier of [`MultiplicativeCoprime`]: a reward, and the conditions under which a point earns it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoprimeTier {
    /// The amount that the tier adds to the reward of a point that passes it.
    pub weight: f64,
    /// The largest exponent of each allowed prime in the factorisation of `x + 1`, for each constrained
    /// coordinate `x`.
    pub cap: u32,
    /// The least common multiple that the numbers `x + 1` of all constrained coordinates `x` must have.
    pub lcm: LcmTarget,
}

/// The least common multiple that a tier requires of the numbers `x + 1`, with `x` the constrained
/// coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LcmTarget {
    /// The tier accepts any least common multiple.
    Any,
    /// The least common multiple must be the product of all allowed primes, each with the tier's largest
    /// exponent (its cap).
    Full,
    /// The least common multiple must be this number.
    Of(u64),
}

impl MultiplicativeCoprime {
    /// Returns conditions on all dimensions with the primes 2, 3 and 5. There are three tiers of weights 1,
    /// 10 and 100. In all of them, exponents are at most 2, no pairs must be coprime, and any least common
    /// multiple is accepted.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        Self {
            pairs: Vec::new(),
            pairs_from: 0,
            ..Self::chain(grid, grid.ndim(), 3, &[2; 3], LcmTarget::Any)
        }
    }

    /// Returns conditions on the first `n_dims` dimensions with the first `n_primes` primes. Entry `t` of
    /// `caps` gives a tier of weight `10^t`, with this number as the largest exponent of a prime (cap). From
    /// the third tier on, the numbers `x + 1` of neighbouring dimensions must be coprime. The last tier has
    /// the requirement `last` on the least common multiple.
    pub(in crate::hypergrid::reward) fn chain(
        grid: &HyperGrid,
        n_dims: usize,
        n_primes: usize,
        caps: &[u32],
        last: LcmTarget,
    ) -> Self {
        let n_dims = grid.ndim().min(n_dims);
        let lcm = |t| if t + 1 == caps.len() { last } else { LcmTarget::Any };
        let tier = |(t, &cap)| CoprimeTier { weight: 10f64.powi(t as i32), cap, lcm: lcm(t) };
        Self {
            r0: 0.0,
            dims: (0..n_dims).collect(),
            primes: [2, 3, 5, 7, 11, 13, 17, 19, 23, 29][..n_primes].to_vec(),
            tiers: caps.iter().enumerate().map(tier).collect(),
            pairs: (1..n_dims).map(|d| (d - 1, d)).collect(),
            pairs_from: 2,
            rules: Vec::new(),
        }
    }

    /// Adds `n_rules` rules, each of which applies to some of the points and has another target for the least
    /// common multiple. The targets are drawn from the products of all allowed primes with exponents from 1
    /// to the last tier's cap.
    ///
    /// # Errors
    /// [`Error::Config`] if there are fewer such products than rules, for more than 1,024 rules, and for
    /// primes that [`build`](Self::build) refuses.
    pub fn with_random_rules(mut self, grid: &HyperGrid, n_rules: usize, seed: u64) -> Result<Self> {
        let primes = self.primes_within(grid)?;
        let cap = self.tiers.last().map_or(0, |tier| cut(tier.cap, &primes, grid));
        let n_products = u64::from(cap).saturating_pow(primes.len() as u32);
        let largest =
            primes.iter().try_fold(1u64, |product, &p| product.checked_mul(u64::from(p).checked_pow(cap)?));
        if n_rules as u64 > n_products.min(1024) || largest.is_none() {
            return Err(Error::config(
                "the number of rules",
                format!("{n_rules}, with exponents of 1 to {cap} for the primes {primes:?}"),
                "at most 1,024 rules, at most one rule for each product of all primes, and products below \
                 2^64: use fewer rules or primes, or a greater height",
            ));
        }
        let mut rng = Rng::seeded(seed);
        self.rules.clear();
        while self.rules.len() < n_rules {
            let target =
                primes.iter().map(|&p| u64::from(p).pow(1 + rng.below(cap as usize) as u32)).product();
            if !self.rules.contains(&Some(target)) {
                self.rules.push(Some(target));
            }
        }
        Ok(self)
    }

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks; for pairs beyond the constrained dimensions; for
    /// a listed prime that is repeated or not a prime number; if none or more than 32 of the primes are at
    /// most the height; for a target that isn't a product of these primes; for no tier or more than 32 tiers;
    /// for a weight that isn't finite and positive; for an `r0` that is negative or not finite.
    pub fn build(&self, grid: &HyperGrid) -> Result<GridReward> {
        check_dims(grid, &self.dims)?;
        let primes = self.primes_within(grid)?;
        let n = self.dims.len();
        if let Some(&(a, b)) = self.pairs.iter().find(|&&(a, b)| a == b || a >= n || b >= n) {
            return Err(Error::config(
                "the coprime pairs",
                format!("({a}, {b}) among {n} constrained dimensions"),
                "two different positions in the list of constrained dimensions",
            ));
        }
        let factored = |target: u64| {
            exponents(target, &primes).ok_or_else(|| {
                let got = format!("{target} for the primes {primes:?}");
                Error::config(
                    "a least common multiple",
                    got,
                    "a product of the allowed primes that are at most the height",
                )
            })
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
        let mut rules =
            self.rules.iter().map(|rule| rule.map(factored).transpose()).collect::<Result<Vec<_>>>()?;
        if rules.is_empty() {
            rules.push(None);
        }
        let n_rules = rules.len();
        let numbers: Vec<_> = (1..=grid.height() as u64).map(|v| exponents(v, &primes)).collect();
        let divisors =
            |number: &Vec<u32>| (0..).zip(number).fold(0, |set, (p, &e)| set | u64::from(e > 0) << p);
        let factors = numbers.iter().map(|number| number.as_ref().map_or(0, divisors)).collect();
        let cover = move |t: usize, rule: usize, x: usize| {
            let number = numbers[x].as_ref().filter(|number| number.iter().all(|e| *e <= caps[t]))?;
            let of_rule = rules[rule].as_ref().filter(|_| t + 1 == caps.len());
            Some(
                covered_primes(number, targets[t].as_ref())?
                    & covered_primes(number, of_rule)?.rotate_left(32),
            )
        };
        let conditions = CoordinateConditions {
            dims: self.dims.clone(),
            height: grid.height(),
            cover: Box::new(cover),
            sums: vec![(vec![0; grid.height()], 1); self.tiers.len()],
            factors,
            pairs: self.pairs.clone(),
            pairs_from: self.pairs_from,
            n_rules,
            selector: (1..=grid.height() as u64).map(|v| v % n_rules as u64).collect(),
            places: vec![1; n],
            tables: DeviceTables::default(),
            rule_tables: DeviceTables::default(),
            pair_tables: DeviceTables::default(),
        };
        let weights: Vec<f64> = self.tiers.iter().map(|tier| tier.weight).collect();
        let kind = RewardKind::MultiplicativeCoprime;
        let mode_tiers = weights.len();
        build_table(kind, grid, self.r0, n, weights, mode_tiers, conditions)
    }

    /// Returns the allowed primes that are no greater than the grid's height. Larger primes divide no
    /// `x + 1`, because a coordinate `x` is below the height.
    fn primes_within(&self, grid: &HyperGrid) -> Result<Vec<u32>> {
        let within: Vec<u32> = self.primes.iter().copied().filter(|&p| p as usize <= grid.height()).collect();
        let is_prime = |&p: &u32| p >= 2 && (2..).take_while(|d| d * d <= p).all(|d| p % d != 0);
        let has_duplicate = within.iter().enumerate().any(|(i, p)| within[..i].contains(p));
        if within.is_empty() || within.len() > 32 || has_duplicate || !within.iter().all(is_prime) {
            return Err(Error::config(
                "the primes",
                format!(
                    "{:?}, of which {} are at most the height {}",
                    self.primes,
                    within.len(),
                    grid.height()
                ),
                "different primes, of which 1 to 32 are at most the height",
            ));
        }
        Ok(within)
    }
}

/// Returns the smaller of two numbers: `cap`, and the largest exponent at which no power of a prime exceeds
/// the height.
fn cut(cap: u32, primes: &[u32], grid: &HyperGrid) -> u32 {
    primes.iter().map(|&p| grid.height().ilog(p as usize)).fold(cap, u32::min)
}

/// Returns the exponent of each prime in the factorisation of a number. Returns `None` if the number is 0 or
/// has another prime factor.
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

/// Returns the set of primes that a number covers: a prime is covered if its exponent in the number is as
/// large as its exponent in the target, the required least common multiple. Bits that represent no prime are
/// set, too. All bits are set if there is no target. Returns `None` if the number doesn't divide the target.
fn covered_primes(number: &[u32], target: Option<&Vec<u32>>) -> Option<u64> {
    let mut missing = 0;
    for (p, (exponent, most)) in number.iter().zip(target.into_iter().flatten()).enumerate() {
        if exponent > most {
            return None;
        }
        missing |= u64::from(exponent < most) << p;
    }
    Some(!missing)
}
