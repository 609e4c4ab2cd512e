//! Rewards that grow with the tiers of conditions that a point passes, and three families of conditions.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Debug, Formatter};

use gfn::{Error, Result, Rng};

use super::linear_system::{LinearSystem, parity};
use super::{GridReward, PointReward, RewardKind, floored, power};
use crate::hypergrid::HyperGrid;

/// The largest number of steps of counting points by dynamic programming: a few seconds.
const MAX_STEPS: usize = 1 << 24;

/// The number of attempts to draw checks that don't follow from the tiers.
const TRIES: usize = 64;

/// The conditions of a table of tiers, and the counts of points that meet them.
///
/// Tiers are numbered from 0 and sets of them are bits, tier `t` the bit `1 << t`. A family with several
/// *rules* sorts the points by a selector, and some tiers have another condition for each rule.
trait Conditions: Debug + Send + Sync {
    /// Returns the number of rules.
    fn n_rules(&self) -> usize;

    /// Returns the rule of a point.
    fn rule(&self, point: &[u16]) -> usize;

    /// Returns `true` if a point with this rule meets the condition of a tier.
    fn is_met(&self, tier: usize, rule: usize, point: &[u16]) -> bool;

    /// Returns the number of points that meet all these tiers, by rule, with all unconstrained dimensions at
    /// 0; `None` if points could only be counted by visiting all of them.
    fn counts(&self, tiers: &[usize]) -> Option<Vec<u64>>;
}

/// A table of tiers. The reward grows with each tier that a point passes, and a point passes a tier only with
/// all tiers before it: `R = r0 + sum_t w_t [x meets the conditions of tiers 0..=t]`.
///
/// [`BitwiseXor`], [`MultiplicativeCoprime`] and [`ConditionalMultiscale`] fill the table;
/// [`GridReward::tiered`] returns it. With `n_t` the number of points that pass the tiers up to `t`,
/// `Z = r0 H^D + sum_t w_t n_t`. A *mode* passes the first `mode_tiers` tiers, which are all tiers for most
/// families.
///
/// ```
/// use gfn_gym::hypergrid::{BitwiseXor, HyperGrid};
/// let grid = HyperGrid::new(3, 8)?;
/// let reward = BitwiseXor::standard(&grid).build(&grid)?;
/// let table = reward.tiered().unwrap();
/// assert_eq!((&table.weights[..], reward.n_modes()), ([1.0, 10.0, 100.0].as_slice(), Some(64)));
/// assert_eq!(table.passed_tiers(&[1, 2, 3]), 0b111);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct TieredReward {
    grid: HyperGrid,
    n_free: usize,
    /// The amount that each tier adds.
    pub weights: Vec<f64>,
    /// R by the number of tiers passed.
    values: Vec<f64>,
    /// The number of tiers, from the first on, that a mode passes.
    pub mode_tiers: usize,
    conditions: Box<dyn Conditions>,
}

impl TieredReward {
    /// Returns the number of rules.
    #[must_use]
    pub fn n_rules(&self) -> usize {
        self.conditions.n_rules()
    }

    /// Returns the rule of a point of the grid, below [`n_rules`](Self::n_rules).
    ///
    /// # Panics
    /// May panic if the point lies outside the grid.
    #[must_use]
    pub fn rule(&self, point: &[u16]) -> usize {
        self.conditions.rule(point)
    }

    /// Returns the set of tiers whose conditions a point of the grid meets, independently of the other tiers.
    ///
    /// # Panics
    /// May panic if the point lies outside the grid.
    #[must_use]
    pub fn passed_tiers(&self, point: &[u16]) -> u32 {
        let rule = self.rule(point);
        let is_met = |t: &usize| self.conditions.is_met(*t, rule, point);
        (0..self.weights.len()).filter(is_met).fold(0, |set, t| set | 1 << t)
    }

    /// Returns R of a point that meets the conditions of these tiers.
    pub(super) fn value_of(&self, tiers: u32) -> f64 {
        self.values[self.leading(tiers)]
    }

    /// Returns `true` if a point that meets the conditions of these tiers is a mode.
    pub(super) fn is_mode_of(&self, tiers: u32) -> bool {
        self.leading(tiers) >= self.mode_tiers
    }

    fn leading(&self, tiers: u32) -> usize {
        (tiers.trailing_ones() as usize).min(self.weights.len())
    }

    /// Returns the number of points of each rule that meet the conditions of a set of tiers; `None` if it
    /// isn't known without visiting all points.
    #[must_use]
    pub fn counts_of_tiers(&self, tiers: u32) -> Option<Vec<u64>> {
        let tiers: Vec<usize> = (0..self.weights.len()).filter(|t| tiers >> t & 1 == 1).collect();
        let free = power(self.grid.height() as u64, self.n_free);
        Some(self.conditions.counts(&tiers)?.into_iter().map(|count| count * free).collect())
    }

    /// Returns the number of points of each rule that pass the first `n` tiers; `None` if it isn't known
    /// without visiting all points.
    #[must_use]
    pub fn counts(&self, n: usize) -> Option<Vec<u64>> {
        self.counts_of_tiers(u32::MAX.checked_shr(32 - n.min(self.weights.len()) as u32).unwrap_or(0))
    }

    fn n_passing(&self, n: usize) -> Option<u64> {
        Some(self.counts(n)?.iter().sum())
    }
}

impl PointReward for TieredReward {
    fn value(&self, point: &[u16]) -> f64 {
        self.value_of(self.passed_tiers(point))
    }
    fn is_mode(&self, point: &[u16]) -> bool {
        self.is_mode_of(self.passed_tiers(point))
    }
    fn n_modes(&self) -> Option<u64> {
        self.n_passing(self.mode_tiers)
    }
    fn log_z(&self) -> Option<f64> {
        let mut z = self.values[0] * self.grid.n_states() as f64;
        for (t, weight) in self.weights.iter().enumerate() {
            z += weight * self.n_passing(t + 1)? as f64;
        }
        Some(z.ln())
    }
    fn tiered(&self) -> Option<&TieredReward> {
        Some(self)
    }
}

/// Builds the reward of a table whose conditions constrain some dimensions of the grid.
///
/// # Errors
/// [`Error::Config`] unless there are 1 to 32 tiers with finite and positive weights, a mode needs at least
/// one and at most all of them, and `r0` is finite and not negative.
fn build_table(
    kind: RewardKind,
    grid: &HyperGrid,
    r0: f64,
    n_constrained: usize,
    weights: Vec<f64>,
    mode_tiers: usize,
    conditions: impl Conditions + 'static,
) -> Result<GridReward> {
    let n = weights.len();
    let are_positive = weights.iter().all(|weight| weight.is_finite() && *weight > 0.0);
    if !(1..=32).contains(&n) || !are_positive || !(1..=n).contains(&mode_tiers) {
        return Err(Error::config(
            "the tiers",
            format!("{n} with the weights {weights:?}, {mode_tiers} of them for a mode"),
            "1 to 32 tiers, each with a finite and positive weight, of which at least 1 makes a mode",
        ));
    }
    let mut values = vec![floored(r0)?];
    for weight in &weights {
        values.push(values[values.len() - 1] + weight);
    }
    let n_free = grid.ndim() - n_constrained;
    let (base, mode_threshold) = (values[0], values[mode_tiers]);
    let points = TieredReward { grid: *grid, n_free, weights, values, mode_tiers, conditions: Box::new(conditions) };
    Ok(GridReward::new(kind, grid, base, mode_threshold, points))
}

/// Refuses dimensions that the grid lacks or that are listed twice.
fn check_dims(grid: &HyperGrid, dims: &[usize]) -> Result<()> {
    let has_duplicate = dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim));
    if dims.is_empty() || has_duplicate || dims.iter().any(|&dim| dim >= grid.ndim()) {
        return Err(Error::config(
            "the constrained dimensions",
            format!("{dims:?} on a grid of {} dimensions", grid.ndim()),
            "at least one, each below the number of dimensions and named once",
        ));
    }
    Ok(())
}

/// The bits that a coordinate covers under a tier and a rule: all bits if the tier needs none, `None` if the
/// coordinate isn't allowed. The arguments are the tier, the rule and the coordinate.
type Cover = Box<dyn Fn(usize, usize, usize) -> Option<u64> + Send + Sync>;

/// Conditions on coordinates in the form of tables: a point meets a tier if all its constrained coordinates
/// are allowed, together cover all 64 bits, and add up to a multiple of the tier's modulus, and if the
/// coordinates of each coprime pair share no factor.
///
/// Counting goes dimension by dimension, and points in the same state are counted together. A state has, for
/// each tier, the covered bits; for each tier, the sum; the sum of the selector; and for each dimension, the
/// factors of the coordinate if it has a partner in a later dimension.
struct CoordinateConditions {
    dims: Vec<usize>,
    height: usize,
    cover: Cover,
    /// The number that each coordinate adds to the sum, and the modulus, by tier.
    sums: Vec<(Vec<u64>, u64)>,
    /// The prime factors of each coordinate, as bits.
    factors: Vec<u64>,
    /// Pairs of indices into `dims` whose coordinates must share no factor, from the tier `pairs_from` on.
    pairs: Vec<(usize, usize)>,
    pairs_from: usize,
    n_rules: usize,
    /// The numbers of the coordinates that select the rule: the sum of each number times the dimension's
    /// entry in `places`, modulo `n_rules`.
    selector: Vec<u64>,
    places: Vec<u64>,
}

impl Debug for CoordinateConditions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinateConditions").field("dims", &self.dims).finish_non_exhaustive()
    }
}

impl CoordinateConditions {
    /// Returns the state after the coordinate `x` alone, in the `d`-th constrained dimension; `None` if it
    /// isn't allowed.
    fn state_of(&self, tiers: &[usize], rule: usize, d: usize, x: usize) -> Option<Vec<u64>> {
        let mut state = tiers.iter().map(|&t| (self.cover)(t, rule, x)).collect::<Option<Vec<u64>>>()?;
        state.extend(tiers.iter().map(|&t| self.sums[t].0[x] % self.sums[t].1));
        state.push(self.selector[x] * self.places[d] % self.n_rules as u64);
        let has_pairs = tiers.iter().any(|t| *t >= self.pairs_from);
        state.extend((0..self.dims.len()).map(|place| if place == d && has_pairs { self.factors[x] } else { 0 }));
        Some(state)
    }

    /// Returns the state after dimension `d` from the states of the earlier dimensions and of this one;
    /// `None` if a coprime pair shares a factor.
    fn join(&self, tiers: &[usize], d: usize, before: &[u64], here: &[u64]) -> Option<Vec<u64>> {
        let n = tiers.len();
        let mut state: Vec<u64> = before.iter().zip(here).map(|(a, b)| a | b).collect();
        let moduli = tiers.iter().map(|&t| self.sums[t].1).chain([self.n_rules as u64]);
        for (k, modulus) in (n..).zip(moduli) {
            state[k] = (before[k] + here[k]) % modulus;
        }
        let factors = &mut state[2 * n + 1..];
        if self.pairs.iter().any(|&(p, q)| p.max(q) == d && factors[p] & factors[q] != 0) {
            return None;
        }
        let has_later = |a: usize| self.pairs.iter().any(|&(p, q)| p == a && q > d || q == a && p > d);
        (0..=d).filter(|&a| !has_later(a)).for_each(|a| factors[a] = 0);
        Some(state)
    }

    fn start(&self, tiers: &[usize]) -> Vec<u64> {
        vec![0; 2 * tiers.len() + 1 + self.dims.len()]
    }

    fn meets(tiers: &[usize], state: &[u64]) -> bool {
        let (covered, rest) = state.split_at(tiers.len());
        covered.iter().all(|bits| *bits == u64::MAX) && rest[..tiers.len()].iter().all(|sum| *sum == 0)
    }

    /// Counts the points that meet the tiers, by the rule that the selector gives, from the number of
    /// coordinates with each state in each dimension.
    fn count(&self, tiers: &[usize], dimensions: &[BTreeMap<Vec<u64>, u64>]) -> Option<Vec<u64>> {
        let mut out = vec![0; self.n_rules];
        for t in 0..tiers.len() {
            if dimensions.iter().flat_map(BTreeMap::keys).fold(0, |all, state| all | state[t]) != u64::MAX {
                return Some(out);
            }
        }
        let mut states = HashMap::from([(self.start(tiers), 1)]);
        let mut n_steps = 0;
        for (d, coordinates) in dimensions.iter().enumerate() {
            n_steps += states.len() * coordinates.len();
            if n_steps > MAX_STEPS {
                return None;
            }
            let mut next = HashMap::new();
            for (before, count) in &states {
                for (here, many) in coordinates {
                    if let Some(state) = self.join(tiers, d, before, here) {
                        *next.entry(state).or_default() += count * many;
                    }
                }
            }
            states = next;
        }
        for (state, count) in states.into_iter().filter(|(state, _)| Self::meets(tiers, state)) {
            out[state[2 * tiers.len()] as usize] += count;
        }
        Some(out)
    }
}

impl Conditions for CoordinateConditions {
    fn n_rules(&self) -> usize {
        self.n_rules
    }

    fn rule(&self, point: &[u16]) -> usize {
        let n = self.n_rules as u64;
        let terms = self.dims.iter().zip(&self.places);
        terms.fold(0, |sum, (&dim, place)| (sum + self.selector[usize::from(point[dim])] * place) % n) as usize
    }

    fn is_met(&self, tier: usize, rule: usize, point: &[u16]) -> bool {
        let tiers = [tier];
        let mut state = Some(self.start(&tiers));
        for (d, &dim) in self.dims.iter().enumerate() {
            let here = self.state_of(&tiers, rule, d, point[dim].into());
            state = state.zip(here).and_then(|(before, here)| self.join(&tiers, d, &before, &here));
        }
        state.is_some_and(|state| Self::meets(&tiers, &state))
    }

    fn counts(&self, tiers: &[usize]) -> Option<Vec<u64>> {
        let mut counts_of = HashMap::<Vec<BTreeMap<Vec<u64>, u64>>, Vec<u64>>::new();
        let mut out = Vec::with_capacity(self.n_rules);
        for rule in 0..self.n_rules {
            let mut dimensions = vec![BTreeMap::new(); self.dims.len()];
            for (d, states) in dimensions.iter_mut().enumerate() {
                for state in (0..self.height).filter_map(|x| self.state_of(tiers, rule, d, x)) {
                    *states.entry(state).or_default() += 1;
                }
            }
            if !counts_of.contains_key(&dimensions) {
                let counts = self.count(tiers, &dimensions)?;
                counts_of.insert(dimensions.clone(), counts);
            }
            out.push(counts_of[&dimensions][rule]);
        }
        Some(out)
    }
}

/// Tiers of conditions on the prime factors of the coordinates.
///
/// With `v = x + 1`, tier `t` has three conditions. Every constrained `v` is a product of the allowed primes,
/// each with an exponent of at most the tier's cap. From [`pairs_from`](Self::pairs_from) on, the `v` of the
/// given pairs have no allowed prime in common. The least common multiple of all constrained `v` is the
/// tier's target, if it has one. Modes pass all tiers.
///
/// If there are several [`rules`](Self::rules), the last tier also needs the least common multiple of the
/// point's rule. The rule is the sum of the constrained `v` modulo the number of rules.
///
/// Primes above the height are left out, and caps are cut to the largest exponent that all remaining primes
/// reach within the height. log Z and the number of modes are counted exactly by dynamic programming over the
/// dimensions, unless there are many primes and targets, or pairs of dimensions far apart: that takes too
/// many steps.
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
    /// The base reward.
    pub r0: f64,
    /// The constrained dimensions.
    pub dims: Vec<usize>,
    /// The allowed primes.
    pub primes: Vec<u32>,
    /// The tiers.
    pub tiers: Vec<CoprimeTier>,
    /// The pairs of constrained dimensions that must be coprime, by their indices into [`dims`](Self::dims).
    pub pairs: Vec<(usize, usize)>,
    /// The first tier that needs coprime pairs.
    pub pairs_from: usize,
    /// The least common multiple that the last tier needs for each rule, if any; an empty list is equal to
    /// one rule without a target.
    pub rules: Vec<Option<u64>>,
}

/// A tier of [`MultiplicativeCoprime`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoprimeTier {
    /// The reward that the tier adds.
    pub weight: f64,
    /// The largest exponent of a prime.
    pub cap: u32,
    /// The least common multiple of the constrained coordinates.
    pub lcm: LcmTarget,
}

/// The least common multiple that a tier needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LcmTarget {
    /// Any least common multiple.
    Any,
    /// The product of all allowed primes, each to the power of the tier's cap.
    Full,
    /// The given number.
    Of(u64),
}

impl MultiplicativeCoprime {
    /// Returns all dimensions, the primes 2, 3 and 5, three tiers of weights 1, 10 and 100, all of cap 2 and
    /// without further conditions.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        Self { pairs: Vec::new(), ..Self::chain(grid, grid.ndim(), 3, &[2; 3], LcmTarget::Any) }
    }

    /// Returns the first `n_dims` dimensions and `n_primes` primes, a tier of weight `10^t` for each cap,
    /// neighbouring dimensions coprime from the third tier on, and a target of the last tier.
    pub(super) fn chain(grid: &HyperGrid, n_dims: usize, n_primes: usize, caps: &[u32], last: LcmTarget) -> Self {
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

    /// Adds rules: `n_rules` different targets, drawn from the products of all allowed primes with exponents
    /// from 1 to the last tier's cap.
    ///
    /// # Errors
    /// [`Error::Config`] if there are fewer such products than rules, for more than 1,024 rules, and for
    /// primes that [`build`](Self::build) refuses.
    pub fn with_random_rules(mut self, grid: &HyperGrid, n_rules: usize, seed: u64) -> Result<Self> {
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

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks, for pairs beyond the constrained dimensions, for
    /// a prime that is not prime or repeated, if none or more than 32 primes are left, for a target with
    /// other prime factors than the allowed ones, unless there are 1 to 32 tiers with finite and positive
    /// weights, and for an `r0` that is negative or not finite.
    pub fn build(&self, grid: &HyperGrid) -> Result<GridReward> {
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
            exponents(target, &primes).ok_or_else(|| {
                let got = format!("{target} for the primes {primes:?}");
                Error::config("a least common multiple", got, "a product of allowed primes that the height reaches")
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
        let mut rules = self.rules.iter().map(|rule| rule.map(factored).transpose()).collect::<Result<Vec<_>>>()?;
        if rules.is_empty() {
            rules.push(None);
        }
        let n_rules = rules.len();
        let numbers: Vec<_> = (1..=grid.height() as u64).map(|v| exponents(v, &primes)).collect();
        let divisors = |number: &Vec<u32>| (0..).zip(number).fold(0, |set, (p, &e)| set | u64::from(e > 0) << p);
        let factors = numbers.iter().map(|number| number.as_ref().map_or(0, divisors)).collect();
        let cover = move |t: usize, rule: usize, x: usize| {
            let number = numbers[x].as_ref().filter(|number| number.iter().all(|e| *e <= caps[t]))?;
            let of_rule = rules[rule].as_ref().filter(|_| t + 1 == caps.len());
            Some(covered_primes(number, targets[t].as_ref())? & covered_primes(number, of_rule)?.rotate_left(32))
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
        };
        let weights: Vec<f64> = self.tiers.iter().map(|tier| tier.weight).collect();
        let (kind, mode_tiers) = (RewardKind::MultiplicativeCoprime, weights.len());
        build_table(kind, grid, self.r0, n, weights, mode_tiers, conditions)
    }

    /// Returns the allowed primes that have a multiple among the values of a coordinate of this grid.
    fn primes_within(&self, grid: &HyperGrid) -> Result<Vec<u32>> {
        let within: Vec<u32> = self.primes.iter().copied().filter(|&p| p as usize <= grid.height()).collect();
        let is_prime = |&p: &u32| p >= 2 && (2..).take_while(|d| d * d <= p).all(|d| p % d != 0);
        let has_duplicate = within.iter().enumerate().any(|(i, p)| within[..i].contains(p));
        if within.is_empty() || within.len() > 32 || has_duplicate || !within.iter().all(is_prime) {
            return Err(Error::config(
                "the primes",
                format!("{:?}, of which {} are within a height of {}", self.primes, within.len(), grid.height()),
                "different primes, 1 to 32 of them no greater than the height",
            ));
        }
        Ok(within)
    }
}

/// Cuts a cap to the exponent that each of the primes reaches within the height.
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

/// Returns all bits except those of primes whose exponent in the number is below the target's; `None` if the
/// number doesn't divide the target.
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

/// Tiers of digits, from coarse to fine; the condition on a digit depends on the coarser digits.
///
/// Coordinates are written in base `b` with `L` digits, `H = b^L`; `d_t` is the `(t+1)`-th most significant
/// digit. Tier `t` needs for every constrained coordinate `(d_t + s_t + sum_{k<t} a_tk d_k) mod b < f`, with
/// a shift `s_t`, a filter width `f` and coefficients `a`. If it has a `cross_mod` m, the `d_t` of all
/// constrained coordinates must also add up to 0 modulo m.
///
/// There may be several rules, each with its coefficients. The rule is `sum_i u_i f^i` modulo the number of
/// rules, with `u_i` the number `(d_0 + s_0) mod b mod f` of the `i`-th constrained coordinate.
///
/// A *mode* passes enough tiers that `(f / b)^(tiers x dims)` is below a tenth, or all of them. log Z and the
/// number of modes are counted exactly by dynamic programming over the dimensions. (torchgfn's closed form is
/// wrong if a `cross_mod` doesn't divide the base.)
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
    /// The base reward.
    pub r0: f64,
    /// The constrained dimensions.
    pub dims: Vec<usize>,
    /// The base b; the height is a power of it.
    pub base: u32,
    /// The width f of the filter.
    pub filter_width: u32,
    /// The tiers, at most one per digit.
    pub tiers: Vec<MultiscaleTier>,
    /// The coefficients a of each rule, by tier: tier `t` has `t` coefficients.
    pub coefficients: Vec<Vec<Vec<u32>>>,
}

/// A tier of [`ConditionalMultiscale`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MultiscaleTier {
    /// The reward that the tier adds.
    pub weight: f64,
    /// The shift of its filter.
    pub shift: u32,
    /// The modulus that divides the sum of the tier's digits over the dimensions; `None` for no such
    /// condition.
    pub cross_mod: Option<u32>,
}

impl MultiscaleTier {
    /// Builds a tier with neither shift nor cross-dimensional condition.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        Self { weight, shift: 0, cross_mod: None }
    }
}

impl ConditionalMultiscale {
    /// Returns all dimensions in base 4 with a filter of width 2, weights 1, 10 and 100 (fewer, if the height
    /// has fewer digits), and coefficients from seed 42.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        Self::random(grid, grid.ndim(), 2, &[1.0, 10.0, 100.0].map(MultiscaleTier::new), 1, 42)
    }

    /// Returns the first `n_dims` dimensions in base 4, the first of these tiers that the height has digits
    /// for, and random coefficients. The first rules of a seed are equal for any number of rules.
    #[must_use]
    pub fn random(
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

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks, a height that is no power of the base, more
    /// tiers than digits, a filter width outside `1..=base`, coefficients that don't fit the tiers, a
    /// cross-dimensional modulus outside `2..=65536`, more rules than the filter leaves patterns for, a rule
    /// without a point in the first tier, weights that aren't finite and positive, and an `r0` that is
    /// negative or not finite.
    pub fn build(&self, grid: &HyperGrid) -> Result<GridReward> {
        check_dims(grid, &self.dims)?;
        let n_digits = self.check(grid)?;
        let conditions = self.conditions(grid, n_digits);
        // A single rule without points is reported by `check_modes`.
        let first_tier = if self.coefficients.len() > 1 { conditions.counts(&[0]) } else { None };
        if let Some(missing) = first_tier.and_then(|counts| counts.iter().position(|&n| n == 0)) {
            let n_rules = self.coefficients.len();
            return Err(Error::config(
                "the rules",
                format!("{n_rules}, of which no point that passes the first tier has number {missing}"),
                "rules that points have: take fewer, or no cross-dimensional condition in the first tier",
            ));
        }
        let (n_tiers, n_constrained) = (self.tiers.len(), self.dims.len());
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
        let (height, base) = (grid.height() as u64, u64::from(self.base));
        let n_digits = (1..=16).find(|&n| base.checked_pow(n) == Some(height)).unwrap_or(0);
        if self.base < 2 || n_digits == 0 {
            let got = format!("{base} at height {height}");
            return refuse("the digits' base", got, "a number of at least 2 that the height is a power of");
        }
        let n_tiers = self.tiers.len();
        if n_tiers == 0 || n_tiers > n_digits as usize {
            let got = format!("{n_tiers} for {n_digits} digits in base {base}");
            let expected = "at least one tier and at most one per digit: raise the height or take fewer tiers";
            return refuse("the tiers", got, expected);
        }
        let mods: Vec<u32> = self.tiers.iter().filter_map(|tier| tier.cross_mod).collect();
        if !(1..=self.base).contains(&self.filter_width) || mods.iter().any(|m| !(2..=1 << 16).contains(m)) {
            let got = format!("width {} in base {base}, cross_mod {mods:?}", self.filter_width);
            return refuse("the filter", got, "a width of 1 to the base, and cross-dimensional moduli of 2 to 65,536");
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
        Ok(n_digits)
    }

    fn conditions(&self, grid: &HyperGrid, n_digits: u32) -> CoordinateConditions {
        let (base, width, height) = (u64::from(self.base), u64::from(self.filter_width), grid.height() as u64);
        let n_rules = self.coefficients.len();
        let digit = move |x: u64, t: u32| x / base.pow(n_digits - 1 - t) % base;
        let sum = |(t, tier): (u32, &MultiscaleTier)| {
            ((0..height).map(|x| digit(x, t)).collect(), u64::from(tier.cross_mod.unwrap_or(1)))
        };
        let first_shift = u64::from(self.tiers[0].shift);
        let places = std::iter::successors(Some(1 % n_rules as u64), |place| Some(place * width % n_rules as u64));
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
        }
    }
}

/// Tiers of parity checks on the bits of the coordinates: equations over GF(2), the field of two elements.
///
/// Each tier applies its checks to every bit-plane of its range: at bit `b`, the bits of the coordinates that
/// a check lists add up to an odd or an even number. Modes pass all tiers. They are spread over the whole
/// grid: a sampler must learn equations, not a region.
///
/// There may be several rules: the parities of a point's bits under the [`selector`](Self::selector) choose a
/// rule, and a tier may have other checks for each rule.
///
/// If the height is a power of 2, a consistent system of rank `r` on `M` coordinates of `B` bits has
/// `2^(M B - r)` solutions, so that log Z and the number of modes are known on any grid. At other heights
/// they are unknown, because part of the solutions lies outside the grid. (torchgfn counts these as well, and
/// assigns some points no rule if the number of rules is no power of 2. Its checks of rules aren't a tier, so
/// that its corruption drops them.)
///
/// ```
/// use gfn_gym::hypergrid::{BitwiseXor, HyperGrid, Preset};
/// let grid = HyperGrid::new(10, 16)?;
/// let reward = BitwiseXor::preset(&grid, Preset::Challenging)?.build(&grid)?;
/// assert_eq!(reward.n_modes(), Some(4096));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct BitwiseXor {
    /// The base reward.
    pub r0: f64,
    /// The constrained dimensions.
    pub dims: Vec<usize>,
    /// The tiers.
    pub tiers: Vec<ParityTier>,
    /// The sets of bits whose parities, lowest first, are the binary digits of a number; modulo the number of
    /// rules it is the rule. Bit `b` of the `i`-th constrained coordinate has index `i * B + b`, with `B` the
    /// number of bits that the height needs (4 at height 16).
    pub selector: Vec<u128>,
}

/// A tier of [`BitwiseXor`].
#[derive(Clone, PartialEq, Debug)]
pub struct ParityTier {
    /// The reward that the tier adds.
    pub weight: f64,
    /// The lowest and the highest bit-plane checked; clipped to the bits that the height needs.
    pub bits: (u32, u32),
    /// The checks on these planes for each rule, or one list for all rules. All points pass an empty list.
    pub checks: Vec<Vec<ParityCheck>>,
}

/// A parity check on the bit-planes of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParityCheck {
    /// The coordinates that the check lists: bit `i` stands for the `i`-th of [`BitwiseXor::dims`].
    pub of: u64,
    /// The planes on which their bits must add up to an odd number: bit `b` stands for plane `b`.
    pub odd: u32,
}

impl BitwiseXor {
    /// Returns even parity of all dimensions, on the bits 0 to 5, to 7 and to 9, with weights 1, 10 and 100.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        let even = ParityCheck { of: lowest_bits(grid.ndim()), odd: 0 };
        let tier = |(weight, top)| ParityTier { weight, bits: (0, top), checks: vec![vec![even]] };
        let tiers = [(1.0, 5), (10.0, 7), (100.0, 9)].map(tier).to_vec();
        Self { r0: 0.0, dims: (0..grid.ndim()).collect(), tiers, selector: Vec::new() }
    }

    /// Returns the first `n_dims` dimensions, with random checks on all bit-planes: `n_checks[t]` for tier
    /// `t` of weight `10^t`.
    ///
    /// Checks are drawn independent of each other, tier after tier, as long as one dimension stays free;
    /// later tiers then get fewer or none. So there always are modes. (torchgfn draws each tier separately,
    /// and its tiers may contradict each other.)
    ///
    /// # Errors
    /// [`Error::Config`] for no dimension, or more than the grid has.
    pub fn random(grid: &HyperGrid, n_dims: usize, n_checks: &[usize], seed: u64) -> Result<Self> {
        let dims: Vec<usize> = (0..n_dims.min(grid.ndim() + 1)).collect();
        check_dims(grid, &dims)?;
        let mut rng = Rng::seeded(seed);
        let mut system = LinearSystem::new();
        let mut tiers = Vec::new();
        let mut weight = 1.0;
        for &n in n_checks {
            let free = n_dims - 1 - system.rank() as usize;
            let checks = independent_rows(&mut system, n.min(free), n_dims, &mut rng);
            let mut check = |of: u128| ParityCheck { of: of as u64, odd: if rng.below(2) == 1 { u32::MAX } else { 0 } };
            let checks = vec![checks.into_iter().map(&mut check).collect()];
            tiers.push(ParityTier { weight, bits: (0, n_bits(grid) - 1), checks });
            weight *= 10.0;
        }
        Ok(Self { r0: 0.0, dims, tiers, selector: Vec::new() })
    }

    /// Adds random rules and a tier of this weight with different checks for each rule.
    ///
    /// The selector is drawn independent of the tiers so far, so that each selected number has an equal share
    /// of the points that pass them. All rules check the same `n_checks` sets of coordinates on the planes
    /// `bits`. Their right-hand sides are those of a random point that passes the tiers and has this rule, so
    /// that every rule can be met (at heights that are a power of 2). If the tiers leave room, the checks
    /// follow neither from them nor from the rule's number.
    ///
    /// # Errors
    /// [`Error::Config`] for no rule or more than 65,536, for planes that the height lacks, for no check or
    /// more checks than constrained dimensions, for tiers that contradict each other, if the tiers leave too
    /// few free bits for the selector, and for dimensions and checks that [`build`](Self::build) refuses.
    pub fn with_random_rules(
        mut self,
        grid: &HyperGrid,
        weight: f64,
        n_rules: usize,
        n_checks: usize,
        bits: (u32, u32),
        seed: u64,
    ) -> Result<Self> {
        check_dims(grid, &self.dims)?;
        let (n_dims, n_bits) = (self.dims.len(), n_bits(grid));
        let trunk = LinearSystem::from_all(self.systems(grid)?.iter().flatten());
        let width = n_dims * n_bits as usize;
        let n_select = n_rules.clamp(1, 1 << 17).next_power_of_two().ilog2();
        let fits = (1..=1 << 16).contains(&n_rules) && (1..=n_dims).contains(&n_checks);
        let has_planes = bits.0 <= bits.1 && bits.1 < n_bits;
        if !fits || !has_planes || !trunk.is_consistent() || (trunk.rank() + n_select) as usize > width {
            return Err(Error::config(
                "the parity rules",
                format!(
                    "{n_rules} of {n_checks} checks on the planes {bits:?}, of {n_bits}, over tiers of rank {} in {width} bits{}",
                    trunk.rank(),
                    if trunk.is_consistent() { "" } else { " that contradict each other" }
                ),
                "1 to 65,536 rules, 1 check to one per constrained dimension, planes in ascending order that the height \
                    has, and tiers that leave bits free to select by",
            ));
        }
        let mut rng = Rng::seeded(seed);
        let mut system = trunk.clone();
        self.selector = independent_rows(&mut system, n_select as usize, width, &mut rng);
        let sets: Vec<Vec<u128>> =
            (0..TRIES).map(|_| independent_rows(&mut LinearSystem::new(), n_checks, n_dims, &mut rng)).collect();
        let is_new = |sets: &&Vec<u128>| {
            let planes = sets.iter().flat_map(|&of| (bits.0..=bits.1).map(move |plane| on_plane(of, n_bits, plane)));
            let more = system.with(planes.map(|row| (row, false)));
            more.rank() == system.rank() + sets.len() as u32 * (bits.1 - bits.0 + 1)
        };
        let sets = sets.iter().find(is_new).unwrap_or(&sets[0]);
        let mut checks = Vec::new();
        for rule in 0..n_rules {
            let of_rule = trunk.with(digits(&self.selector, rule));
            let free = random_bits(width, &mut rng);
            // The system is consistent, because the selector is independent of the tiers.
            let point = of_rule.solution(free).unwrap_or(free);
            let is_odd = |of: u128, plane: u32| u32::from(parity(on_plane(of, n_bits, plane) & point));
            let odd = |of: u128| (bits.0..=bits.1).fold(0, |odd, plane| odd | is_odd(of, plane) << plane);
            checks.push(sets.iter().map(|&of| ParityCheck { of: of as u64, odd: odd(of) }).collect());
        }
        self.tiers.push(ParityTier { weight, bits, checks });
        Ok(self)
    }

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks, checks or a selector on coordinates beyond the
    /// constrained ones, a tier with neither one list of checks nor one per rule, rules that the selector
    /// can't choose, unless there are 1 to 32 tiers with finite and positive weights, and for an `r0` that is
    /// negative or not finite.
    pub fn build(&self, grid: &HyperGrid) -> Result<GridReward> {
        check_dims(grid, &self.dims)?;
        let systems = self.systems(grid)?;
        let n_rules = systems.iter().map(Vec::len).max().unwrap_or(1);
        let width = self.dims.len() as u32 * n_bits(grid);
        let is_outside = |of: &u128| of.checked_shr(width).unwrap_or(0) != 0;
        let n_selected = 1usize << self.selector.len().min(16);
        let fits = systems.iter().all(|rules| rules.len() == 1 || rules.len() == n_rules && n_rules > 0);
        if self.selector.iter().any(is_outside) || self.selector.len() > 16 || n_rules > n_selected || !fits {
            return Err(Error::config(
                "the parity rules",
                format!("{n_rules} rules and {} selecting parities on {width} bits", self.selector.len()),
                "at least one rule, at most 16 parities that can select every rule, and only bits that there are",
            ));
        }
        let conditions = ParityConditions {
            dims: self.dims.clone(),
            n_bits: n_bits(grid),
            fills_bits: grid.height().is_power_of_two(),
            systems,
            selector: self.selector.clone(),
            n_rules,
        };
        let weights: Vec<f64> = self.tiers.iter().map(|tier| tier.weight).collect();
        let (kind, mode_tiers) = (RewardKind::BitwiseXor, weights.len());
        build_table(kind, grid, self.r0, self.dims.len(), weights, mode_tiers, conditions)
    }

    /// Returns the equations of each tier, by rule.
    fn systems(&self, grid: &HyperGrid) -> Result<Vec<Vec<LinearSystem>>> {
        let (n_dims, n_bits) = (self.dims.len(), n_bits(grid));
        let checks = self.tiers.iter().flat_map(|tier| tier.checks.iter().flatten());
        if let Some(check) = checks.into_iter().find(|check| check.of & !lowest_bits(n_dims) != 0) {
            return Err(Error::config(
                "a parity check",
                format!("{:#b} on {n_dims} constrained dimensions", check.of),
                "one bit for each constrained dimension",
            ));
        }
        let system = |tier: &ParityTier, checks: &Vec<ParityCheck>| {
            let mut system = LinearSystem::new();
            for check in checks {
                for plane in tier.bits.0..=tier.bits.1.min(n_bits - 1) {
                    system.add(on_plane(check.of.into(), n_bits, plane), check.odd >> plane & 1 == 1);
                }
            }
            system
        };
        Ok(self.tiers.iter().map(|tier| tier.checks.iter().map(|checks| system(tier, checks)).collect()).collect())
    }
}

/// Returns the number of bits that coordinates need: 4 at height 16, 5 at heights 17 to 32.
fn n_bits(grid: &HyperGrid) -> u32 {
    (grid.height() - 1).ilog2() + 1
}

fn lowest_bits(n: usize) -> u64 {
    u64::MAX.checked_shr(64 - n as u32).unwrap_or(0)
}

/// Returns the bits of a set of coordinates on one bit-plane, among the joint bits (coordinate by
/// coordinate).
fn on_plane(of: u128, n_bits: u32, plane: u32) -> u128 {
    (0..64).filter(|d| of >> d & 1 == 1).fold(0, |mask, d| mask | 1 << (d * n_bits + plane))
}

fn random_bits(width: usize, rng: &mut Rng) -> u128 {
    (0..width).fold(0, |mask, bit| mask | (rng.below(2) as u128) << bit)
}

/// Draws `n` masks of `width` bits that are independent of the system's rows and of each other, and adds them
/// to the system (with right-hand sides of 0). Needs a `width` of at least the system's rank plus `n`.
fn independent_rows(system: &mut LinearSystem, n: usize, width: usize, rng: &mut Rng) -> Vec<u128> {
    let mut rows = Vec::new();
    while rows.len() < n {
        // Half or more of all masks are independent of a system whose rank is below the width.
        let mask = random_bits(width, rng);
        if system.add(mask, false) {
            rows.push(mask);
        }
    }
    rows
}

/// Returns the equations under which the selector has the value `number`.
fn digits(selector: &[u128], number: usize) -> impl Iterator<Item = (u128, bool)> {
    selector.iter().enumerate().map(move |(i, &mask)| (mask, number >> i & 1 == 1))
}

/// The conditions of [`BitwiseXor`].
#[derive(Debug)]
struct ParityConditions {
    dims: Vec<usize>,
    n_bits: u32,
    /// `true` if every combination of bits is a coordinate, that is, if the height is a power of 2.
    fills_bits: bool,
    /// The equations of each tier, by rule or one system for all rules.
    systems: Vec<Vec<LinearSystem>>,
    selector: Vec<u128>,
    n_rules: usize,
}

impl ParityConditions {
    /// Returns the bits of the constrained coordinates, one coordinate after another: fewer than 128, because
    /// `height^ndim` is below 2^64.
    fn bits(&self, point: &[u16]) -> u128 {
        let shift = |d: usize| d as u32 * self.n_bits;
        self.dims.iter().enumerate().fold(0, |bits, (d, &dim)| bits | u128::from(point[dim]) << shift(d))
    }

    fn system(&self, tier: usize, rule: usize) -> &LinearSystem {
        let rules = &self.systems[tier];
        rules.get(rule).unwrap_or(&rules[0])
    }
}

impl Conditions for ParityConditions {
    fn n_rules(&self) -> usize {
        self.n_rules
    }

    fn rule(&self, point: &[u16]) -> usize {
        let bits = self.bits(point);
        let digit = |(i, &mask): (usize, &u128)| usize::from(parity(mask & bits)) << i;
        self.selector.iter().enumerate().map(digit).sum::<usize>() % self.n_rules
    }

    fn is_met(&self, tier: usize, rule: usize, point: &[u16]) -> bool {
        self.system(tier, rule).holds(self.bits(point))
    }

    fn counts(&self, tiers: &[usize]) -> Option<Vec<u64>> {
        if !self.fills_bits {
            return None;
        }
        let mut counts = vec![0; self.n_rules];
        for selected in 0..1 << self.selector.len() {
            let rule = selected % self.n_rules;
            let system = LinearSystem::from_all(tiers.iter().map(|&t| self.system(t, rule)));
            let system = system.with(digits(&self.selector, selected));
            if system.is_consistent() {
                counts[rule] += 1 << (self.dims.len() as u32 * self.n_bits - system.rank());
            }
        }
        Some(counts)
    }
}
