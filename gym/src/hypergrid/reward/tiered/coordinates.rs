//! Conditions on coordinates. Points are checked and counted dimension by dimension.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Debug, Formatter};

use super::{Conditions, MAX_STEPS};

/// A function of a tier, a rule and a coordinate, which returns a set of bits that this coordinate covers.
/// The bits represent what a tier requires of the coordinates together, such as the primes of their least
/// common multiple: at a point that meets the tier's condition, the coordinates together cover all bits. The
/// result is all bits if the tier has no such requirement, and `None` if it doesn't allow the coordinate.
pub(super) type Cover = Box<dyn Fn(usize, usize, usize) -> Option<u64> + Send + Sync>;

/// Conditions on coordinates as tables. A point meets the condition of a tier if four things hold: all its
/// constrained coordinates are allowed; together they cover all 64 bits (see [`Cover`]); the numbers that
/// they add to the tier's sum give a multiple of the tier's modulus; the coordinates of each coprime pair
/// have no common factor.
///
/// Counting goes dimension by dimension. Partial points (the coordinates of the first dimensions) with equal
/// state are counted together. The state of a partial point is a list of numbers: for each tier the covered
/// bits, then for each tier the sum, then the sum that selects the rule, and then for each dimension the
/// prime factors of its coordinate if a later dimension must be coprime to it.
pub(super) struct CoordinateConditions {
    pub(super) dims: Vec<usize>,
    pub(super) height: usize,
    pub(super) cover: Cover,
    /// The sum of each tier, which the tier requires to be a multiple of a modulus. An entry holds the number
    /// that each value of a coordinate adds to the tier's sum, and the modulus.
    pub(super) sums: Vec<(Vec<u64>, u64)>,
    /// The set of allowed primes that divide `x + 1`, for each value `x` of a coordinate. Each bit represents
    /// a prime.
    pub(super) factors: Vec<u64>,
    /// Pairs of indices into `dims`. From the tier `pairs_from` on, the two coordinates of a pair must have
    /// no common factor.
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) pairs_from: usize,
    pub(super) n_rules: usize,
    /// The numbers that select a point's rule, which is a sum modulo `n_rules`. The coordinate `x` in the
    /// `d`-th constrained dimension adds `selector[x] * places[d]` to the sum.
    pub(super) selector: Vec<u64>,
    pub(super) places: Vec<u64>,
}

impl Debug for CoordinateConditions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinateConditions").field("dims", &self.dims).finish_non_exhaustive()
    }
}

impl CoordinateConditions {
    /// Returns the numbers that the coordinate `x` of the `d`-th constrained dimension contributes to the
    /// conditions of the tiers and to the rule: covered bits, sums and prime factors. Returns `None` if one
    /// of the tiers doesn't allow this coordinate.
    fn state_of(&self, tiers: &[usize], rule: usize, d: usize, x: usize) -> Option<Vec<u64>> {
        let mut state = tiers.iter().map(|&t| (self.cover)(t, rule, x)).collect::<Option<Vec<u64>>>()?;
        state.extend(tiers.iter().map(|&t| self.sums[t].0[x] % self.sums[t].1));
        state.push(self.selector[x] * self.places[d] % self.n_rules as u64);
        let has_pairs = tiers.iter().any(|t| *t >= self.pairs_from);
        state.extend(
            (0..self.dims.len()).map(|place| if place == d && has_pairs { self.factors[x] } else { 0 }),
        );
        Some(state)
    }

    /// Combines `before`, the contributions of the dimensions before `d`, with `here`, the contribution of
    /// the coordinate in dimension `d` (see `state_of`). Returns `None` if the coordinates of a coprime pair
    /// have a common factor.
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

    /// Counts the points that meet the conditions of the tiers, separately for each of the `n_rules` rules: a
    /// point counts for the rule that applies to it. `dimensions[d]` maps each contribution of a coordinate
    /// of dimension `d` (see `state_of`) to the number of coordinates that make it. Returns `None` if
    /// counting takes too many steps.
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
        terms.fold(0, |sum, (&dim, place)| (sum + self.selector[usize::from(point[dim])] * place) % n)
            as usize
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
