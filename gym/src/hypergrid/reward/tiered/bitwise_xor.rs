use std::sync::Arc;

use gfn::{Error, Result, Rng};

use super::gf2::LinearSystem;
use super::parity_rules::digits;
use super::{ParityRules, RewardKind, TieredReward, Tiers, check_dims, free_points};
use crate::hypergrid::HyperGrid;

/// Tiers of parity checks on the bits of the coordinates: equations over GF(2), the field of two elements.
///
/// Each tier lays its checks on every bit-plane of its range: at bit `b`, the bits of the constrained coordinates that a check
/// names add up to an odd or an even number. `R = r0 + sum_t w_t [tiers 0..=t hold]`. With [`rules`](Self::rules), one more tier
/// on top asks other parities of each rule. Modes pass all tiers. They are spread over the whole grid: what there is to learn is
/// algebra, not a place.
///
/// Where the height is a power of 2, a consistent system of rank `r` on `M` coordinates of `B` bits has `2^(M B - r)` solutions,
/// so that log Z and the number of modes are known on any grid. At other heights they aren't: part of the solutions lies outside
/// the grid. (torchgfn counts those as well, and with a number of rules that is no power of 2 leaves some points of rules out.
/// There the head isn't a tier, so that [`CorruptedReward`](crate::hypergrid::CorruptedReward) drops it.)
///
/// ```
/// use gfn_gym::hypergrid::{BitwiseXor, GridReward, HyperGrid, Preset};
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
    /// A tier on top that asks something else of each rule.
    pub rules: Option<ParityRules>,
}

/// A tier of [`BitwiseXor`].
#[derive(Clone, PartialEq, Debug)]
pub struct ParityTier {
    /// Its part of the reward.
    pub weight: f64,
    /// The lowest and the highest bit-plane checked; cut to the bits that the height needs.
    pub bits: (u32, u32),
    /// The checks of each of these planes; without any, all points pass.
    pub checks: Vec<ParityCheck>,
}

/// A parity check on one bit-plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParityCheck {
    /// The coordinates that take part: bit `i` stands for the `i`-th of [`BitwiseXor::dims`].
    pub of: u64,
    /// `true` if their bits add up to an odd number.
    pub odd: bool,
}

impl BitwiseXor {
    /// Even parity of all dimensions, on the bits 0 to 5, to 7 and to 9, with weights 1, 10 and 100.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        let even = ParityCheck { of: all(grid.ndim()), odd: false };
        let tier = |weight, top| ParityTier { weight, bits: (0, top), checks: vec![even] };
        let tiers = vec![tier(1.0, 5), tier(10.0, 7), tier(100.0, 9)];
        Self { r0: 0.0, dims: (0..grid.ndim()).collect(), tiers, rules: None }
    }

    /// The first `n_dims` dimensions, with random checks on all bit-planes: `n_checks[t]` for tier `t` of weight `10^t`.
    ///
    /// Checks are drawn independent of each other, tier upon tier, as long as one dimension stays free; later tiers then get
    /// fewer or none. So there always are modes. (torchgfn draws each tier for itself, and tiers may contradict each other.)
    ///
    /// # Errors
    /// [`Error::Config`] for no dimension, or more than the grid has.
    pub fn drawn(grid: &HyperGrid, n_dims: usize, n_checks: &[usize], seed: u64) -> Result<Self> {
        let dims: Vec<usize> = (0..n_dims.min(grid.ndim() + 1)).collect();
        check_dims(grid, &dims)?;
        let mut rng = Rng::seeded(seed);
        let mut drawn = LinearSystem::new();
        let mut tiers = Vec::new();
        let mut weight = 1.0;
        for &n in n_checks {
            let free = n_dims - 1 - drawn.rank() as usize;
            let checks = independent_rows(&mut drawn, n.min(free), n_dims, &mut rng);
            let checks = checks.into_iter().map(|of| ParityCheck { of: of as u64, odd: rng.below(2) == 1 }).collect();
            tiers.push(ParityTier { weight, bits: (0, n_bits(grid) - 1), checks });
            weight *= 10.0;
        }
        Ok(Self { r0: 0.0, dims, tiers, rules: None })
    }

    /// The reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid hasn't, checks or rules on coordinates beyond the constrained ones, and
    /// whatever [`TieredReward::new`] refuses.
    pub fn build(&self, grid: &HyperGrid) -> Result<TieredReward> {
        check_dims(grid, &self.dims)?;
        let systems = self.systems(grid)?;
        let mut weights: Vec<f64> = self.tiers.iter().map(|tier| tier.weight).collect();
        let n_bits = n_bits(grid);
        let mut heads = Vec::new();
        if let Some(rules) = &self.rules {
            weights.push(rules.weight);
            heads = rules.systems(self.dims.len() as u32 * n_bits)?;
        }
        let rules = self.rules.clone();
        let tiers = ParityTiers { grid: *grid, dims: self.dims.clone(), n_bits, systems, rules, heads };
        TieredReward::new(RewardKind::BitwiseXor, grid, self.r0, weights, tiers.n_tiers(), Arc::new(tiers))
    }

    /// The equations of each tier.
    fn systems(&self, grid: &HyperGrid) -> Result<Vec<LinearSystem>> {
        let (n_dims, n_bits) = (self.dims.len(), n_bits(grid));
        let mut systems = Vec::new();
        for tier in &self.tiers {
            let mut system = LinearSystem::new();
            for check in &tier.checks {
                if check.of & !all(n_dims) != 0 {
                    return Err(Error::config(
                        "a parity check",
                        format!("{:#b} on {n_dims} constrained dimensions", check.of),
                        "one bit for each constrained dimension",
                    ));
                }
                for plane in tier.bits.0..=tier.bits.1.min(n_bits - 1) {
                    system.add(on_plane(u128::from(check.of), n_dims, n_bits, plane), check.odd);
                }
            }
            systems.push(system);
        }
        Ok(systems)
    }

    /// The equations of all tiers together: what rules are built upon.
    pub(super) fn trunk(&self, grid: &HyperGrid) -> Result<LinearSystem> {
        check_dims(grid, &self.dims)?;
        let mut trunk = LinearSystem::new();
        self.systems(grid)?.iter().for_each(|system| trunk.join(system));
        Ok(trunk)
    }
}

/// The bits that coordinates need: 4 at height 16, 5 at heights 17 to 32.
pub(super) fn n_bits(grid: &HyperGrid) -> u32 {
    (grid.height() - 1).ilog2() + 1
}

/// The lowest `n` bits.
fn all(n: usize) -> u64 {
    u64::MAX.checked_shr(64 - n as u32).unwrap_or(0)
}

/// A mask of coordinates, on one bit-plane of the joint bits (coordinate by coordinate).
pub(super) fn on_plane(of: u128, n_dims: usize, n_bits: u32, plane: u32) -> u128 {
    (0..n_dims as u32).filter(|d| of >> d & 1 == 1).fold(0, |mask, d| mask | 1 << (d * n_bits + plane))
}

/// Draws `n` masks of `width` bits that are independent of the system's rows and of each other, and adds them to it (with right
/// sides of 0); the width is above the system's rank by at least `n`.
pub(super) fn independent_rows(system: &mut LinearSystem, n: usize, width: usize, rng: &mut Rng) -> Vec<u128> {
    let mut rows = Vec::new();
    while rows.len() < n {
        // At least half of all masks are independent of what doesn't span everything.
        let mask = (0..width).fold(0, |mask, bit| mask | (rng.below(2) as u128) << bit);
        if system.add(mask, false) {
            rows.push(mask);
        }
    }
    rows
}

#[derive(Clone, Debug)]
struct ParityTiers {
    grid: HyperGrid,
    dims: Vec<usize>,
    n_bits: u32,
    systems: Vec<LinearSystem>,
    rules: Option<ParityRules>,
    /// The equations of each rule.
    heads: Vec<LinearSystem>,
}

impl ParityTiers {
    /// The bits of the constrained coordinates, one coordinate after another: fewer than 128, since `height^ndim` is below 2^64.
    fn bits(&self, point: &[u16]) -> u128 {
        let place = |(d, &dim): (usize, &usize)| u128::from(point[dim]) << (d as u32 * self.n_bits);
        self.dims.iter().enumerate().map(place).fold(0, |bits, x| bits | x)
    }
}

impl Tiers for ParityTiers {
    fn n_tiers(&self) -> usize {
        self.systems.len() + usize::from(self.rules.is_some())
    }

    fn passed(&self, point: &[u16]) -> u32 {
        let bits = self.bits(point);
        let trunk =
            self.systems.iter().enumerate().fold(0, |set, (t, system)| set | u32::from(system.holds(bits)) << t);
        let head = self.rules.as_ref().is_some_and(|rules| self.heads[rules.rule(bits)].holds(bits));
        trunk | u32::from(head) << self.systems.len()
    }

    fn n_rules(&self) -> usize {
        self.heads.len().max(1)
    }

    fn rule(&self, point: &[u16]) -> usize {
        self.rules.as_ref().map_or(0, |rules| rules.rule(self.bits(point)))
    }

    fn counts(&self, tiers: u32) -> Option<Vec<u64>> {
        if !self.grid.height().is_power_of_two() {
            return None;
        }
        let mut trunk = LinearSystem::new();
        self.systems.iter().enumerate().filter(|(t, _)| tiers >> t & 1 == 1).for_each(|(_, s)| trunk.join(s));
        let free = free_points(&self.grid, &self.dims);
        let unknowns = self.dims.len() as u32 * self.n_bits;
        let solutions =
            |system: &LinearSystem| if system.is_consistent() { free << (unknowns - system.rank()) } else { 0 };
        let Some(rules) = &self.rules else { return Some(vec![solutions(&trunk)]) };
        let with_head = tiers >> self.systems.len() & 1 == 1;
        let mut counts = vec![0; self.heads.len()];
        for selected in 0..1 << rules.selector.len() {
            let rule = selected % self.heads.len();
            let mut system = trunk.with(digits(&rules.selector, selected));
            if with_head {
                system.join(&self.heads[rule]);
            }
            counts[rule] += solutions(&system);
        }
        Some(counts)
    }
}
