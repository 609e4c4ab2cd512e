use gfn::{Error, Result, Rng};

use super::BitwiseXor;
use super::bitwise_xor::{independent_rows, n_bits, on_plane};
use super::gf2::{LinearSystem, parity};
use crate::hypergrid::HyperGrid;

/// Draws of checks among which those are looked for that the tiers don't imply.
const TRIES: usize = 64;

/// Several rules on top of the tiers of a [`BitwiseXor`]: parities of a point's bits select a rule, and each rule has parity
/// checks of its own that the top tier asks for.
///
/// Bits are numbered coordinate by coordinate: bit `b` of the `i`-th constrained coordinate is `i * B + b`, with `B` the bits
/// that the height needs (4 at height 16).
#[derive(Clone, PartialEq, Debug)]
pub struct ParityRules {
    /// The reward that passing the rule's checks adds, for a point that passes all tiers.
    pub weight: f64,
    /// Sets of bits whose parities, lowest first, are the binary digits of a number; modulo the number of rules it is the rule.
    pub selector: Vec<u128>,
    /// The equations of each rule.
    pub heads: Vec<Vec<BitEquation>>,
}

/// A parity check on any bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitEquation {
    /// The bits that take part.
    pub of: u128,
    /// `true` if they add up to an odd number.
    pub odd: bool,
}

impl ParityRules {
    /// Random rules for the tiers of `trunk`.
    ///
    /// The selector is drawn independent of the tiers, so that each selected number has an equal part of the points that pass
    /// them. All rules check the same `n_checks` sets of coordinates on the planes `bits`, with right-hand sides read off a random
    /// point that passes the tiers and has this rule: every rule can be met (at heights that are a power of 2). Where the tiers
    /// leave room, the checks follow neither from them nor from the rule's number.
    ///
    /// # Errors
    /// [`Error::Config`] for no rule or more than 65,536, for planes that the height hasn't, for no check or more than constrained
    /// dimensions, for tiers that contradict each other, or if the tiers leave too few bits free to select by.
    pub fn drawn(
        trunk: &BitwiseXor,
        grid: &HyperGrid,
        weight: f64,
        n_rules: usize,
        n_checks: usize,
        bits: (u32, u32),
        seed: u64,
    ) -> Result<Self> {
        let (n_dims, n_bits) = (trunk.dims.len(), n_bits(grid));
        let mut system = trunk.trunk(grid)?;
        let width = n_dims * n_bits as usize;
        let n_select = n_rules.clamp(1, 1 << 17).next_power_of_two().ilog2();
        let fits = (1..=1 << 16).contains(&n_rules) && (1..=n_dims).contains(&n_checks);
        let planes = bits.0 <= bits.1 && bits.1 < n_bits;
        if !fits || !planes || !system.is_consistent() || (system.rank() + n_select) as usize > width {
            return Err(Error::config(
                "the parity rules",
                format!(
                    "{n_rules} of {n_checks} checks on the planes {bits:?}, of {n_bits}, over tiers of rank {} in {width} bits{}",
                    system.rank(),
                    if system.is_consistent() { "" } else { " that contradict each other" }
                ),
                "1 to 65,536 rules, 1 check to one per constrained dimension, planes in ascending order that the height \
                    has, and tiers that leave bits free to select by",
            ));
        }
        let mut rng = Rng::seeded(seed);
        let trunk = system.clone();
        let selector = independent_rows(&mut system, n_select as usize, width, &mut rng);
        let on_planes = |checks: &[u128]| -> Vec<u128> {
            let planes = |&of: &u128| (bits.0..=bits.1).map(move |plane| on_plane(of, n_dims, n_bits, plane));
            checks.iter().flat_map(planes).collect()
        };
        let mut draw = || on_planes(&independent_rows(&mut LinearSystem::new(), n_checks, n_dims, &mut rng));
        let asks_for_more = |rows: &Vec<u128>| {
            let more = system.with(rows.iter().map(|&row| (row, false)));
            more.rank() as usize == system.rank() as usize + rows.len()
        };
        let tries: Vec<Vec<u128>> = (0..TRIES).map(|_| draw()).collect();
        let checks = tries.iter().find(|rows| asks_for_more(rows)).unwrap_or(&tries[0]);
        let mut heads = Vec::new();
        for rule in 0..n_rules {
            let of_rule = trunk.with(digits(&selector, rule));
            let free = (0..width).fold(0, |mask, bit| mask | (rng.below(2) as u128) << bit);
            // Consistent, for the selector is independent of the tiers.
            let point = of_rule.solution(free).unwrap_or(free);
            heads.push(checks.iter().map(|&of| BitEquation { of, odd: parity(of & point) }).collect());
        }
        Ok(Self { weight, selector, heads })
    }

    /// Returns the equations of each rule, for points of so many bits.
    pub(super) fn systems(&self, width: u32) -> Result<Vec<LinearSystem>> {
        let outside = |of: &u128| of.checked_shr(width).unwrap_or(0) != 0;
        let beyond = self.selector.iter().chain(self.heads.iter().flatten().map(|equation| &equation.of)).any(outside);
        let n_rules = self.heads.len();
        if beyond || n_rules == 0 || self.selector.len() > 16 || n_rules > 1 << self.selector.len() {
            return Err(Error::config(
                "the parity rules",
                format!("{n_rules} rules and {} selecting parities on {width} bits", self.selector.len()),
                "at least one rule, at most 16 parities that can select every rule, and only bits that there are",
            ));
        }
        let system = |equations: &Vec<BitEquation>| {
            LinearSystem::new().with(equations.iter().map(|equation| (equation.of, equation.odd)))
        };
        Ok(self.heads.iter().map(system).collect())
    }

    /// Returns the rule of a point of these bits.
    pub(super) fn rule(&self, bits: u128) -> usize {
        let digit = |(i, &mask): (usize, &u128)| usize::from(parity(mask & bits)) << i;
        self.selector.iter().enumerate().map(digit).sum::<usize>() % self.heads.len()
    }
}

/// Returns the equations under which the selector gives a number.
pub(super) fn digits(selector: &[u128], number: usize) -> impl Iterator<Item = (u128, bool)> {
    selector.iter().enumerate().map(move |(i, &mask)| (mask, number >> i & 1 == 1))
}
