use std::ops::{BitOr, BitOrAssign};

use super::Quantity;
use crate::{Error, Result};

/// The library's own, each with the bit of its place.
const KNOWN: [Quantity; 22] = [
    Quantity::LogPf,
    Quantity::LogPb,
    Quantity::LearnedLogPb,
    Quantity::LogReward,
    Quantity::RawLogReward,
    Quantity::LogFlow,
    Quantity::LogZ,
    Quantity::LogExit,
    Quantity::Entropy,
    Quantity::StateLogReward,
    Quantity::LogRewardChange,
    Quantity::LogPrior,
    Quantity::LogPaths,
    Quantity::NextLogPaths,
    Quantity::LogInflow,
    Quantity::LogOutflow,
    Quantity::LogInitialFlow,
    Quantity::LogTerminalFlow,
    Quantity::IntrinsicEdge,
    Quantity::IntrinsicTerminal,
    Quantity::TargetLogFlow,
    Quantity::TargetLogExit,
];

/// Quantities that aren't the library's, at most.
const MAX_OWN: usize = 4;

/// A set of quantities: what an objective needs, or what a caller wants of a policy. It may hold up to four
/// [of one's own](Quantity::Own).
///
/// ```
/// use gfn::quantity::{Quantities, Quantity};
/// let needs = Quantity::LogZ | Quantity::Entropy;
/// assert!(needs.has(Quantity::Entropy) && !needs.has(Quantity::LogFlow));
/// assert_eq!(Quantities::from(Quantity::LogPf), Quantities::PF);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantities {
    known: u32,
    own: [Option<Quantity>; MAX_OWN],
    /// Whether there were more of one's own than it can hold.
    overfull: bool,
}

impl Quantities {
    /// The forward policy alone.
    pub const PF: Self = Self { known: 1, own: [None; MAX_OWN], overfull: false };
    /// The backward policy alone.
    pub const PB: Self = Self { known: 2, own: [None; MAX_OWN], overfull: false };
    /// Nothing.
    pub const NONE: Self = Self { known: 0, own: [None; MAX_OWN], overfull: false };

    /// Whether a quantity is in it.
    #[must_use]
    pub fn has(self, quantity: Quantity) -> bool {
        match bit(quantity) {
            Some(bit) => self.known & bit != 0,
            None => self.own.contains(&Some(quantity)),
        }
    }

    /// Whether any of these is in it.
    #[must_use]
    pub fn has_any(self, of: &[Quantity]) -> bool {
        of.iter().any(|&quantity| self.has(quantity))
    }

    /// Those that aren't the library's.
    pub(crate) fn own(self) -> impl Iterator<Item = Quantity> {
        self.own.into_iter().flatten()
    }

    /// Refuses a set that couldn't hold all that it was to.
    pub(crate) fn check(self) -> Result<()> {
        match self.overfull {
            true => Err(Error::config("the quantities of one's own (`Quantity::Own`)", "more than 4", "at most 4")),
            false => Ok(()),
        }
    }

    fn insert(&mut self, quantity: Quantity) {
        if let Some(bit) = bit(quantity) {
            self.known |= bit;
        } else if !self.has(quantity) {
            match self.own.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(quantity),
                None => self.overfull = true,
            }
        }
    }
}

/// The bit of one of the library's.
fn bit(quantity: Quantity) -> Option<u32> {
    KNOWN.iter().position(|&known| known == quantity).map(|place| 1 << place)
}

impl PartialEq for Quantities {
    /// The order in which quantities came plays no part.
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.own(), other.own());
        let same = self.own().all(|quantity| other.has(quantity)) && mine.count() == theirs.count();
        self.known == other.known && same && self.overfull == other.overfull
    }
}

impl Eq for Quantities {}

impl From<Quantity> for Quantities {
    fn from(quantity: Quantity) -> Self {
        let mut set = Self::NONE;
        set.insert(quantity);
        set
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
        self.known |= other.known;
        self.overfull |= other.overfull;
        other.own().for_each(|quantity| self.insert(quantity));
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
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for (k, &quantity) in KNOWN.iter().enumerate() {
            let set = Quantities::from(quantity);
            let held: Vec<_> = KNOWN.iter().filter(|&&other| set.has(other)).collect();
            assert_eq!(held, [&KNOWN[k]]);
        }
        assert!(Quantities::PF.has(Quantity::LogPf) && !Quantities::PF.has(Quantity::LogPb));
        assert!(Quantities::PB.has(Quantity::LogPb) && !Quantities::PB.has(Quantity::LogPf));
    }

    #[test]
    fn quantities_of_ones_own_are_told_apart_and_counted() {
        let own = |names: &[&'static str]| names.iter().fold(Quantities::NONE, |set, &name| set | Quantity::Own(name));
        assert_eq!(own(&["a", "b"]), own(&["b", "a", "b"]));
        assert_ne!(own(&["a", "b"]), own(&["a", "c"]));
        assert_ne!(own(&["a"]), own(&["a", "c"]));
        assert!(own(&["a", "b", "c", "d"]).check().is_ok());
        assert!(own(&["a", "b", "c", "d", "e"]).check().is_err());
    }
}
