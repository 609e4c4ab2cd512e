/// Linear equations over GF(2) in at most 128 unknowns, kept in reduced echelon form.
#[derive(Clone, Debug)]
pub(super) struct LinearSystem {
    /// The unknowns of each equation, and `true` if their sum is odd. The lowest unknown of each row occurs
    /// in no other row.
    rows: Vec<(u128, bool)>,
    consistent: bool,
}

impl LinearSystem {
    /// Builds a system without equations.
    pub(super) fn new() -> Self {
        Self { rows: Vec::new(), consistent: true }
    }

    /// Adds an equation. Returns `true` if it is independent of the equations before.
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

    /// Returns this system with further equations.
    pub(super) fn with(&self, equations: impl IntoIterator<Item = (u128, bool)>) -> Self {
        let mut system = self.clone();
        for (mask, odd) in equations {
            system.add(mask, odd);
        }
        system
    }

    /// Returns a system with the equations of all these systems.
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

    pub(super) fn rank(&self) -> u32 {
        self.rows.len() as u32
    }

    pub(super) fn is_consistent(&self) -> bool {
        self.consistent
    }

    /// Returns `true` if these bits solve all equations.
    pub(super) fn holds(&self, bits: u128) -> bool {
        self.consistent && self.rows.iter().all(|&(mask, odd)| parity(mask & bits) == odd)
    }

    /// Returns a solution in which the unknowns that the equations don't determine come from `free`; `None`
    /// if there is no solution.
    pub(super) fn solution(&self, free: u128) -> Option<u128> {
        let solve = |bits: u128, &(mask, odd): &(u128, bool)| {
            // The row's lowest unknown occurs in no other row, so flipping it changes no other equation.
            if parity(mask & bits) == odd { bits } else { bits ^ lowest(mask) }
        };
        self.consistent.then(|| self.rows.iter().fold(free, solve))
    }
}

/// Returns the lowest set bit.
fn lowest(mask: u128) -> u128 {
    mask & mask.wrapping_neg()
}

/// Returns `true` if an odd number of bits is set.
pub(super) fn parity(bits: u128) -> bool {
    bits.count_ones() % 2 == 1
}
