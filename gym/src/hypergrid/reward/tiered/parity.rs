//! Tiers of parity checks on the bits of the coordinates.

use gfn::{Error, Result, Rng};

use super::parity_conditions::{ParityConditions, digits};
use super::{TRIES, build_table, check_dims};
use crate::hypergrid::HyperGrid;
use crate::hypergrid::reward::linear_system::{LinearSystem, parity};
use crate::hypergrid::reward::{GridReward, RewardKind};
use crate::rewards::DeviceTables;

/// Tiers of parity checks on the bits of the coordinates: equations over GF(2), the field of two elements.
///
/// Bit-plane `b` of a point consists of bit `b` of every coordinate. Each tier applies its checks to a range
/// of bit-planes: on each plane the bits of the coordinates that a check lists must add up to an even number,
/// or to an odd number. Modes pass all tiers. The modes are spread over the whole grid, so that a sampler
/// must learn equations instead of a region.
///
/// There may be several rules: the parities of a point's bits under the [`selector`](Self::selector) choose a
/// rule, and a tier may have other checks for each rule.
///
/// If the height is a power of 2, log Z and the number of modes are known: a consistent system of rank `r` on
/// `M` coordinates of `B` bits has `2^(M B - r)` solutions. At other heights log Z and the number of modes
/// are unknown, because part of the solutions lies outside the grid. (torchgfn counts solutions outside the
/// grid, too, and assigns some points no rule if the number of rules is no power of 2. In torchgfn the checks
/// of rules aren't a tier, so that a corrupted reward ignores them.)
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
    /// The reward of a point that passes no tier.
    pub r0: f64,
    /// The indices of the grid's dimensions on which there are conditions: the constrained dimensions.
    pub dims: Vec<usize>,
    /// The tiers, each with a reward and its parity checks.
    pub tiers: Vec<ParityTier>,
    /// Masks of the bits whose parities choose a point's rule. Each mask gives a parity, 0 or 1. The parities
    /// are the binary digits of a number, the lowest digit first, and the rule is this number modulo the
    /// number of rules. Bit `b` of the `i`-th constrained coordinate has index `i * B + b`, with `B` the
    /// number of bits that the height needs (4 at height 16).
    pub selector: Vec<u128>,
}

/// A tier of [`BitwiseXor`]: a reward, and the parity checks that a point must pass to earn it.
#[derive(Clone, PartialEq, Debug)]
pub struct ParityTier {
    /// The amount that the tier adds to the reward of a point that passes it.
    pub weight: f64,
    /// The lowest and the highest bit-plane that the tier checks. Bit-plane `b` consists of bit `b` of every
    /// coordinate. Planes above the bits that the height needs are ignored.
    pub bits: (u32, u32),
    /// The parity checks of the tier: one list for each rule, or a single list for all rules. Every point
    /// passes an empty list.
    pub checks: Vec<Vec<ParityCheck>>,
}

/// A condition on a set of coordinates: on each bit-plane of a tier (the bits of one place value) their bits
/// must add up to an even number, or to an odd number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParityCheck {
    /// The set of coordinates whose bits are added up. Bit `i` represents the `i`-th dimension of
    /// [`BitwiseXor::dims`].
    pub bits: u64,
    /// The bit-planes on which the bits of the coordinates must add up to an odd number. Bit `b` represents
    /// bit-plane `b`, which consists of bit `b` of every coordinate. On all other bit-planes of the tier they
    /// must add up to an even number.
    pub odd: u32,
}

impl BitwiseXor {
    /// Returns three tiers. On every bit-plane that a tier checks (the bits of one place value), the bits of
    /// all coordinates must add up to an even number. The tiers check the planes 0 to 5, 0 to 7 and 0 to 9,
    /// and have the weights 1, 10 and 100.
    #[must_use]
    pub fn standard(grid: &HyperGrid) -> Self {
        let even = ParityCheck { bits: lowest_bits(grid.ndim()), odd: 0 };
        let tier = |(weight, top)| ParityTier { weight, bits: (0, top), checks: vec![vec![even]] };
        let tiers = [(1.0, 5), (10.0, 7), (100.0, 9)].map(tier).to_vec();
        Self { r0: 0.0, dims: (0..grid.ndim()).collect(), tiers, selector: Vec::new() }
    }

    /// Returns random checks of the first `n_dims` dimensions on all bit-planes. Tier `t` has `n_checks[t]`
    /// checks and weight `10^t`.
    ///
    /// Checks are drawn tier after tier, linearly independent of each other. All tiers together have at most
    /// `n_dims - 1` checks, so that some points pass all tiers. Later tiers may therefore get fewer checks
    /// than requested, or none. (torchgfn draws each tier separately, and its tiers may contradict each
    /// other.)
    ///
    /// # Errors
    /// [`Error::Config`] if `n_dims` is 0 or larger than the number of the grid's dimensions.
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
            let mut check =
                |of: u128| ParityCheck { bits: of as u64, odd: if rng.below(2) == 1 { u32::MAX } else { 0 } };
            let checks = vec![checks.into_iter().map(&mut check).collect()];
            tiers.push(ParityTier { weight, bits: (0, n_bits(grid) - 1), checks });
            weight *= 10.0;
        }
        Ok(Self { r0: 0.0, dims, tiers, selector: Vec::new() })
    }

    /// Adds `n_rules` random rules, and a tier of this weight with different checks for each rule.
    ///
    /// The selector consists of masks of bits, whose parities choose a point's rule. It is linearly
    /// independent of the earlier tiers, so that each combination of its parities occurs at equally many of
    /// the points that pass these tiers. All rules check the same `n_checks` sets of coordinates on the
    /// bit-planes `bits` (bit-plane `b` consists of bit `b` of every coordinate). The required parities of a
    /// rule are those of a random point that passes the earlier tiers and to which the rule applies, so that
    /// every rule has modes (at heights that are a power of 2). If the earlier tiers leave enough bits
    /// undetermined, the new checks are independent of these tiers and of the selector.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 65,536 rules, for a range of bit-planes that is descending or
    /// goes beyond the bits that the height needs, unless there is at least one check and at most one per
    /// constrained dimension, for tiers that contradict each other, if the tiers leave too few bits
    /// undetermined for the selector, and for dimensions and checks that [`build`](Self::build) refuses.
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
        let n_dims = self.dims.len();
        let n_bits = n_bits(grid);
        let trunk = LinearSystem::from_all(self.systems(grid)?.iter().flatten());
        let width = n_dims * n_bits as usize;
        let n_select = n_rules.clamp(1, 1 << 17).next_power_of_two().ilog2();
        let fits = (1..=1 << 16).contains(&n_rules) && (1..=n_dims).contains(&n_checks);
        let has_planes = bits.0 <= bits.1 && bits.1 < n_bits;
        if !fits || !has_planes || !trunk.is_consistent() || (trunk.rank() + n_select) as usize > width {
            return Err(Error::config(
                "the parity rules",
                format!(
                    "{n_rules} rules of {n_checks} checks on the bit planes {bits:?} of {n_bits}, with \
                     earlier tiers of rank {} in {width} bits{}",
                    trunk.rank(),
                    if trunk.is_consistent() { "" } else { " that contradict each other" }
                ),
                "1 to 65,536 rules, at least 1 check and at most one check per constrained dimension, \
                 ascending bit planes that the height has, and earlier tiers that leave enough free bits to \
                 select a rule",
            ));
        }
        let mut rng = Rng::seeded(seed);
        let mut system = trunk.clone();
        self.selector = independent_rows(&mut system, n_select as usize, width, &mut rng);
        let sets: Vec<Vec<u128>> = (0..TRIES)
            .map(|_| independent_rows(&mut LinearSystem::new(), n_checks, n_dims, &mut rng))
            .collect();
        let is_new = |sets: &&Vec<u128>| {
            let planes =
                sets.iter().flat_map(|&of| (bits.0..=bits.1).map(move |plane| on_plane(of, n_bits, plane)));
            let more = system.with(planes.map(|row| (row, false)));
            more.rank() == system.rank() + sets.len() as u32 * (bits.1 - bits.0 + 1)
        };
        let sets = sets.iter().find(is_new).unwrap_or(&sets[0]);
        let mut checks = Vec::new();
        for rule in 0..n_rules {
            let of_rule = trunk.with(digits(&self.selector, rule));
            let free = random_bits(width, &mut rng);
            // The equations of the earlier tiers and those that select the rule have a common solution,
            // because the selector is linearly independent of these tiers.
            let point = of_rule.solution(free).unwrap_or(free);
            let is_odd = |of: u128, plane: u32| u32::from(parity(on_plane(of, n_bits, plane) & point));
            let odd = |of: u128| (bits.0..=bits.1).fold(0, |odd, plane| odd | is_odd(of, plane) << plane);
            checks.push(sets.iter().map(|&of| ParityCheck { bits: of as u64, odd: odd(of) }).collect());
        }
        self.tiers.push(ParityTier { weight, bits, checks });
        Ok(self)
    }

    /// Builds the reward on the points of a grid.
    ///
    /// # Errors
    /// [`Error::Config`] for dimensions that the grid lacks, checks or a selector that use coordinates beyond
    /// the constrained dimensions, a tier with neither a single list of checks nor a list per rule, rules
    /// that the selector can't choose, unless there are 1 to 32 tiers with finite and positive weights, and
    /// for an `r0` that is negative or not finite.
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
                "at least one rule, at most 16 parities that can select every rule, and only bits that the \
                 coordinates have",
            ));
        }
        let conditions = ParityConditions {
            dims: self.dims.clone(),
            n_bits: n_bits(grid),
            fills_bits: grid.height().is_power_of_two(),
            systems,
            selector: self.selector.clone(),
            n_rules,
            tables: DeviceTables::default(),
        };
        let weights: Vec<f64> = self.tiers.iter().map(|tier| tier.weight).collect();
        let kind = RewardKind::BitwiseXor;
        let mode_tiers = weights.len();
        build_table(kind, grid, self.r0, self.dims.len(), weights, mode_tiers, conditions)
    }

    /// Returns for each tier the equations of its checks: a system of equations for each of the tier's lists
    /// of checks.
    fn systems(&self, grid: &HyperGrid) -> Result<Vec<Vec<LinearSystem>>> {
        let n_dims = self.dims.len();
        let n_bits = n_bits(grid);
        let checks = self.tiers.iter().flat_map(|tier| tier.checks.iter().flatten());
        if let Some(check) = checks.into_iter().find(|check| check.bits & !lowest_bits(n_dims) != 0) {
            return Err(Error::config(
                "a parity check",
                format!("{:#b} on {n_dims} constrained dimensions", check.bits),
                "one bit for each constrained dimension",
            ));
        }
        let system = |tier: &ParityTier, checks: &Vec<ParityCheck>| {
            let mut system = LinearSystem::new();
            for check in checks {
                for plane in tier.bits.0..=tier.bits.1.min(n_bits - 1) {
                    system.add(on_plane(check.bits.into(), n_bits, plane), check.odd >> plane & 1 == 1);
                }
            }
            system
        };
        Ok(self
            .tiers
            .iter()
            .map(|tier| tier.checks.iter().map(|checks| system(tier, checks)).collect())
            .collect())
    }
}

/// Returns the number of bits that hold every coordinate of the grid: 4 at height 16, 5 at heights 17 to 32.
fn n_bits(grid: &HyperGrid) -> u32 {
    (grid.height() - 1).ilog2() + 1
}

fn lowest_bits(n: usize) -> u64 {
    u64::MAX.checked_shr(64 - n as u32).unwrap_or(0)
}

/// Returns the mask that selects bit `plane` of each coordinate in the set `of`. The bits of a point are
/// numbered coordinate by coordinate, `n_bits` for each.
fn on_plane(of: u128, n_bits: u32, plane: u32) -> u128 {
    (0..64).filter(|d| of >> d & 1 == 1).fold(0, |mask, d| mask | 1 << (d * n_bits + plane))
}

fn random_bits(width: usize, rng: &mut Rng) -> u128 {
    (0..width).fold(0, |mask, bit| mask | (rng.below(2) as u128) << bit)
}

/// Draws `n` masks of `width` bits that are linearly independent of the system's equations and of each other.
/// Adds them to the system as equations with right-hand sides of 0. The `width` must be at least the system's
/// rank plus `n`.
fn independent_rows(system: &mut LinearSystem, n: usize, width: usize, rng: &mut Rng) -> Vec<u128> {
    let mut rows = Vec::new();
    while rows.len() < n {
        // The rank of the system is below the width, so a random mask is independent of it with a probability
        // of at least one half.
        let mask = random_bits(width, rng);
        if system.add(mask, false) {
            rows.push(mask);
        }
    }
    rows
}
