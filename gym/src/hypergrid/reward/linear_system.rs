/// Linear equations over GF(2), the field of the two elements 0 and 1, in at most 128 unknowns. The equations
/// are kept in reduced echelon form.
#[derive(Clone, Debug)]
pub(super) struct LinearSystem {
    /// The equations. Each is a mask of its unknowns, and `true` if the sum of these unknowns is odd. The
    /// lowest unknown of each equation occurs in no other equation.
    rows: Vec<(u128, bool)>,
    consistent: bool,
}

impl LinearSystem {
    /// Builds a system without equations.
    pub(super) fn new() -> Self {
        Self { rows: Vec::new(), consistent: true }
    }

    /// Adds an equation. Returns `true` if the equation is independent of those that the system already has.
    pub(super) fn add(&mut self, mut mask: u128, mut odd: bool) -> bool {
        for &(row, side) in &self.rows {
            if mask & lowest(row) != 0 {
                mask ^= row;
                odd ^= side;
            }
        }
        if mask == 0 {
            self.consistent &= !odd;
            return false;
        }
        let pivot = lowest(mask);
        for (row, side) in &mut self.rows {
            if *row & pivot != 0 {
                *row ^= mask;
                *side ^= odd;
            }
        }
        self.rows.push((mask, odd));
        true
    }

    /// Returns a copy of this system to which the given equations are added.
    pub(super) fn with(&self, equations: impl IntoIterator<Item = (u128, bool)>) -> Self {
        let mut system = self.clone();
        for (mask, odd) in equations {
            system.add(mask, odd);
        }
        system
    }

    /// Returns a system with the equations of all `systems`.
    pub(super) fn from_all<'a>(systems: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = Self::new();
        for system in systems {
            out.consistent &= system.consistent;
            for &(mask, odd) in &system.rows {
                out.add(mask, odd);
            }
        }
        out
    }

    /// Returns equations with the same solutions. Each is a mask of its unknowns, and `true` if the sum of
    /// these unknowns is odd. The equation of an inconsistent system has no unknowns and an odd sum.
    pub(super) fn equations(&self) -> &[(u128, bool)] {
        if self.consistent { &self.rows } else { &[(0, true)] }
    }

    pub(super) fn rank(&self) -> u32 {
        self.rows.len() as u32
    }

    pub(super) fn is_consistent(&self) -> bool {
        self.consistent
    }

    /// Returns `true` if these bits, one for each unknown, solve all equations.
    pub(super) fn holds(&self, bits: u128) -> bool {
        self.consistent && self.rows.iter().all(|&(mask, odd)| parity(mask & bits) == odd)
    }

    /// Returns a solution. Unknowns that the equations don't determine keep the values that they have in
    /// `free`. Returns `None` if there is no solution.
    pub(super) fn solution(&self, free: u128) -> Option<u128> {
        let solve = |bits: u128, &(mask, odd): &(u128, bool)| {
            // The lowest unknown of an equation occurs in no other equation, so flipping this unknown keeps
            // the other equations true.
            if parity(mask & bits) == odd { bits } else { bits ^ lowest(mask) }
        };
        self.consistent.then(|| self.rows.iter().fold(free, solve))
    }
}

/// Returns a mask of only the lowest bit that is set in `mask`.
fn lowest(mask: u128) -> u128 {
    mask & mask.wrapping_neg()
}

/// Returns `true` if an odd number of bits is set.
pub(super) fn parity(bits: u128) -> bool {
    bits.count_ones() % 2 == 1
}
