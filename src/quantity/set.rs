//! Sets of quantities.

use std::ops::{BitOr, BitOrAssign};

use super::Quantity;
use crate::{Error, Result};

/// The maximum number of quantities in a set.
const MAX_QUANTITIES: usize = 16;

/// A set of at most 16 quantities, for example the quantities that an objective needs or that a caller
/// requests from a policy.
///
/// ```
/// use gfn::objective::{Quantities, Quantity};
/// let needs = Quantity::LogZ | Quantity::Entropy;
/// assert!(needs.has(Quantity::Entropy) && !needs.has(Quantity::LogFlow));
/// assert_eq!(Quantities::from(Quantity::LogPf), Quantities::PF);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantities {
    items: [Option<Quantity>; MAX_QUANTITIES],
    /// `true` if a quantity was added to a full set. In this case [`check`](Self::check) returns an error.
    is_overfull: bool,
}

impl Quantities {
    /// The set of the forward policy alone.
    pub const PF: Self = Self::single(Quantity::LogPf);
    /// The set of the backward policy alone.
    pub const PB: Self = Self::single(Quantity::LogPb);
    /// The empty set.
    pub const NONE: Self = Self { items: [None; MAX_QUANTITIES], is_overfull: false };

    const fn single(quantity: Quantity) -> Self {
        let mut items = [None; MAX_QUANTITIES];
        items[0] = Some(quantity);
        Self { items, is_overfull: false }
    }

    /// Returns `true` if a quantity is in the set.
    #[must_use]
    pub fn has(self, quantity: Quantity) -> bool {
        self.iter().any(|item| item == quantity)
    }

    /// Returns `true` if any of these quantities is in the set.
    #[must_use]
    pub fn has_any(self, quantities: &[Quantity]) -> bool {
        quantities.iter().any(|&quantity| self.has(quantity))
    }

    /// Iterates over the quantities of the set, in the order in which they were added.
    pub(crate) fn iter(self) -> impl Iterator<Item = Quantity> {
        self.items.into_iter().flatten()
    }

    /// Iterates over the custom quantities of the set.
    pub(crate) fn custom(self) -> impl Iterator<Item = Quantity> {
        self.iter().filter(|quantity| matches!(quantity, Quantity::Custom(_)))
    }

    /// Checks that no more than [`MAX_QUANTITIES`] quantities were added.
    pub(crate) fn check(self) -> Result<()> {
        if self.is_overfull {
            return Err(Error::config(
                "the quantities that an objective needs",
                "more than 16",
                "at most 16",
            ));
        }
        Ok(())
    }
}

impl PartialEq for Quantities {
    /// Compares two sets. The order of quantities doesn't matter.
    fn eq(&self, other: &Self) -> bool {
        self.iter().all(|quantity| other.has(quantity)) && self.iter().count() == other.iter().count()
    }
}

impl Eq for Quantities {}

impl From<Quantity> for Quantities {
    fn from(quantity: Quantity) -> Self {
        Self::single(quantity)
    }
}

impl<Q: Into<Self>> BitOr<Q> for Quantities {
    type Output = Self;

    fn bitor(mut self, other: Q) -> Self {
        self |= other;
        self
    }
}

impl<Q: Into<Self>> BitOrAssign<Q> for Quantities {
    fn bitor_assign(&mut self, other: Q) {
        let other: Self = other.into();
        self.is_overfull |= other.is_overfull;
        for quantity in other.iter() {
            if !self.has(quantity) {
                match self.items.iter_mut().find(|item| item.is_none()) {
                    Some(item) => *item = Some(quantity),
                    None => self.is_overfull = true,
                }
            }
        }
    }
}

impl<Q: Into<Quantities>> BitOr<Q> for Quantity {
    type Output = Quantities;

    fn bitor(self, other: Q) -> Quantities {
        Quantities::from(self) | other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_exactly_the_added_quantities() {
        let set = Quantity::LogZ | Quantity::Custom("a") | Quantity::LogZ;
        assert!(set.has(Quantity::LogZ) && set.has(Quantity::Custom("a")));
        assert!(!set.has(Quantity::Custom("b")) && !set.has(Quantity::LogFlow));
        assert_eq!(set, Quantity::Custom("a") | Quantity::LogZ);
        assert_ne!(set, Quantities::from(Quantity::LogZ));
        assert_ne!(set, Quantity::Custom("b") | Quantity::LogZ);
        assert_eq!(set.custom().collect::<Vec<_>>(), [Quantity::Custom("a")]);
    }

    #[test]
    fn a_set_that_is_too_large_is_refused() {
        const NAMES: [&str; 17] =
            ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"];
        let mut set = Quantities::NONE;
        for name in &NAMES[..16] {
            set |= Quantity::Custom(name);
        }
        assert!(set.check().is_ok());
        assert!((set | Quantity::Custom(NAMES[16])).check().is_err());
    }
}
