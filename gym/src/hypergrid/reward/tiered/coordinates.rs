//! Conditions on coordinates. Points are checked and counted dimension by dimension.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Debug, Formatter};

use tch::{Kind, Tensor};

use super::{Conditions, MAX_STEPS};
use crate::rewards::DeviceTables;

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
    pub(super) tables: DeviceTables<4>,
    pub(super) rule_tables: DeviceTables<3>,
    pub(super) pair_tables: DeviceTables<4>,
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

    /// Returns tables of the conditions of tiers: the covered bits, `[n_tiers, n_rules * height]` (i64);
    /// `true` for each coordinate that the tier allows, of the same shape; the numbers that coordinates add
    /// to the sum of each tier, `[n_tiers, height]`; the modulus of this sum, `[n_tiers, 1]`.
    fn tier_tables(&self) -> [Tensor; 4] {
        let n_tiers = self.sums.len();
        let mut covered = Vec::with_capacity(self.table_size());
        let mut is_allowed = Vec::with_capacity(self.table_size());
        for (t, rule) in (0..n_tiers).flat_map(|t| (0..self.n_rules).map(move |rule| (t, rule))) {
            for x in 0..self.height {
                let cover = (self.cover)(t, rule, x);
                covered.push(cover.unwrap_or(0) as i64);
                is_allowed.push(cover.is_some());
            }
        }
        let by_tier = |table: Tensor| table.view([n_tiers as i64, -1]);
        let sums: Vec<i64> = self
            .sums
            .iter()
            .flat_map(|(sums, modulus)| sums.iter().map(move |x| (x % modulus) as i64))
            .collect();
        let moduli: Vec<i64> = self.sums.iter().map(|(_, modulus)| *modulus as i64).collect();
        [
            by_tier(Tensor::from_slice(&covered)),
            by_tier(Tensor::from_slice(&is_allowed)),
            by_tier(Tensor::from_slice(&sums)),
            by_tier(Tensor::from_slice(&moduli)),
        ]
    }

    /// Returns the constrained coordinates of points, `[n, n_dims]`, and the rule of each point, `[n, 1]`.
    fn coordinates_and_rules(&self, points: &Tensor) -> (Tensor, Tensor) {
        let signed =
            |numbers: &[u64]| Tensor::from_slice(&numbers.iter().map(|&x| x as i64).collect::<Vec<_>>());
        let [dims, selector, places] = self.rule_tables.get(points.device(), || {
            [index_table(self.dims.iter()), signed(&self.selector), signed(&self.places)]
        });
        let coordinates = points.index_select(1, &dims);
        let sums = (selector.take(&coordinates) * places).sum_dim_intlist(1, true, Kind::Int64);
        (coordinates, sums.remainder(self.n_rules as i64))
    }

    /// Returns `true` for each tier whose condition on pairs a point meets, `[n_tiers, n]` (bool), for
    /// constrained coordinates `[n, n_dims]`.
    fn coprime(&self, coordinates: &Tensor) -> Tensor {
        let [factors, first, second, is_exempt] = self.pair_tables.get(coordinates.device(), || {
            let factors: Vec<i64> = self.factors.iter().map(|&set| set as i64).collect();
            let is_exempt: Vec<bool> = (0..self.sums.len()).map(|t| t < self.pairs_from).collect();
            [
                Tensor::from_slice(&factors),
                index_table(self.pairs.iter().map(|(first, _)| first)),
                index_table(self.pairs.iter().map(|(_, second)| second)),
                Tensor::from_slice(&is_exempt).unsqueeze(1),
            ]
        });
        let factors = factors.take(coordinates);
        let common = factors.index_select(1, &first).bitwise_and_tensor(&factors.index_select(1, &second));
        common.eq(0).all_dim(1, false).logical_or(&is_exempt)
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

    fn met_on_tensors(&self, points: &Tensor) -> Tensor {
        let [covered, is_allowed, sums, moduli] = self.tables.get(points.device(), || self.tier_tables());
        let (coordinates, rules) = self.coordinates_and_rules(points);
        let n_dims = self.dims.len() as i64;
        let read = |table: &Tensor, index: &Tensor| table.index_select(1, index).unflatten(1, [-1, n_dims]);
        let cells = (rules * self.height as i64 + &coordinates).flatten(0, 1);
        let is_allowed = read(&is_allowed, &cells).all_dim(2, false);
        let covered = read(&covered, &cells);
        let first = covered.select(2, 0);
        let covered = (1..n_dims).fold(first, |all, d| all.bitwise_or_tensor(&covered.select(2, d)));
        let sums = read(&sums, &coordinates.flatten(0, 1)).sum_dim_intlist(2, false, Kind::Int64);
        let adds_up = sums.remainder_tensor(&moduli).eq(0);
        // All bits are covered if the number is -1.
        let is_met = is_allowed.logical_and(&covered.eq(-1)).logical_and(&adds_up);
        is_met.logical_and(&self.coprime(&coordinates)).transpose(0, 1)
    }

    fn table_size(&self) -> usize {
        self.sums.len() * self.n_rules * self.height
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

fn index_table<'a>(indices: impl Iterator<Item = &'a usize>) -> Tensor {
    Tensor::from_slice(&indices.map(|&index| index as i64).collect::<Vec<_>>())
}
