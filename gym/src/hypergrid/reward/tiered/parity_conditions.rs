//! The conditions of tiers of parity checks.

use tch::{Kind, Tensor};

use super::Conditions;
use crate::hypergrid::reward::linear_system::{LinearSystem, parity};
use crate::rewards::DeviceTables;

/// The conditions of the tiers of a [`BitwiseXor`](super::BitwiseXor) on a grid.
#[derive(Debug)]
pub(super) struct ParityConditions {
    pub(super) dims: Vec<usize>,
    pub(super) n_bits: u32,
    /// `true` if every combination of bits is a coordinate, that is, if the height is a power of 2.
    pub(super) fills_bits: bool,
    /// The equations of each tier: a system of equations for each rule, or a single system for all rules.
    pub(super) systems: Vec<Vec<LinearSystem>>,
    pub(super) selector: Vec<u128>,
    pub(super) n_rules: usize,
    pub(super) tables: DeviceTables<5>,
}

impl ParityConditions {
    /// Returns the bits of the constrained coordinates of a point, one coordinate after another. There are
    /// fewer than 128 bits, because `height^ndim` is below 2^64.
    fn bits(&self, point: &[u16]) -> u128 {
        let shift = |d: usize| d as u32 * self.n_bits;
        self.dims.iter().enumerate().fold(0, |bits, (d, &dim)| bits | u128::from(point[dim]) << shift(d))
    }

    fn system(&self, tier: usize, rule: usize) -> &LinearSystem {
        let rules = &self.systems[tier];
        rules.get(rule).unwrap_or(&rules[0])
    }

    /// Returns the largest number of equations of a system, at least 1.
    fn n_equations(&self) -> usize {
        self.systems.iter().flatten().map(|system| system.equations().len()).max().unwrap_or(0).max(1)
    }

    /// Returns the bits that an equation adds up, a number for each constrained dimension.
    fn bits_by_dimension(&self, mask: u128) -> impl Iterator<Item = i64> {
        let n_bits = self.n_bits;
        (0..self.dims.len() as u32).map(move |d| (mask >> (d * n_bits) & ((1 << n_bits) - 1)) as i64)
    }

    /// Returns tables of the conditions: the equations of each rule, `[n_rules, n_tiers, n_equations,
    /// n_dims]`; their parities, `[n_rules, n_tiers, n_equations]`; the equations of the selector, `[n,
    /// n_dims]`; the place values of their parities; the constrained dimensions.
    fn equation_tables(&self) -> [Tensor; 5] {
        let n_equations = self.n_equations();
        let mut masks = Vec::with_capacity(self.table_size());
        let mut parities = Vec::new();
        for rule in 0..self.n_rules {
            for tier in 0..self.systems.len() {
                let mut equations = self.system(tier, rule).equations().to_vec();
                equations.resize(n_equations, (0, false));
                masks.extend(equations.iter().flat_map(|&(mask, _)| self.bits_by_dimension(mask)));
                parities.extend(equations.iter().map(|&(_, odd)| i64::from(odd)));
            }
        }
        let [n_rules, n_tiers, n_equations] =
            [self.n_rules, self.systems.len(), n_equations].map(|n| n as i64);
        let n_dims = self.dims.len() as i64;
        let selector: Vec<i64> =
            self.selector.iter().flat_map(|&mask| self.bits_by_dimension(mask)).collect();
        let places: Vec<i64> = (0..self.selector.len()).map(|place| 1 << place).collect();
        let dims: Vec<i64> = self.dims.iter().map(|&dim| dim as i64).collect();
        [
            Tensor::from_slice(&masks).view([n_rules, n_tiers, n_equations, n_dims]),
            Tensor::from_slice(&parities).view([n_rules, n_tiers, n_equations]),
            Tensor::from_slice(&selector).view([places.len() as i64, n_dims]),
            Tensor::from_slice(&places),
            Tensor::from_slice(&dims),
        ]
    }
}

/// Returns the parity of the bits that are set in `masks` and in `coordinates`, added up over the last
/// dimension of both. Coordinates have at most 16 bits.
fn parities(masks: &Tensor, coordinates: &Tensor) -> Tensor {
    let mut bits = masks.bitwise_and_tensor(coordinates);
    for shift in [8, 4, 2, 1] {
        bits = bits.bitwise_xor_tensor(&bits.bitwise_right_shift_tensor_scalar(shift));
    }
    bits.bitwise_and(1).sum_dim_intlist(-1, false, Kind::Int64).bitwise_and(1)
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

    fn met_on_tensors(&self, points: &Tensor) -> Tensor {
        let [masks, odd, selector, places, dims] =
            self.tables.get(points.device(), || self.equation_tables());
        let coordinates = points.index_select(1, &dims).unsqueeze(1);
        let digits = parities(&selector, &coordinates);
        let rules = (digits * places).sum_dim_intlist(1, false, Kind::Int64).remainder(self.n_rules as i64);
        let sums = parities(&masks.index_select(0, &rules), &coordinates.unsqueeze(1));
        sums.eq_tensor(&odd.index_select(0, &rules)).all_dim(2, false)
    }

    fn table_size(&self) -> usize {
        self.n_rules * self.systems.len() * self.n_equations() * self.dims.len()
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

/// Returns the equations that hold if the parities of the selector's masks are the binary digits of `number`.
pub(super) fn digits(selector: &[u128], number: usize) -> impl Iterator<Item = (u128, bool)> {
    selector.iter().enumerate().map(move |(i, &mask)| (mask, number >> i & 1 == 1))
}
