//! Rewards of two values: a high value for some objects, and a floor for all others.

use gfn::{Error, Result};

/// The two values of a reward: a high value for some objects, and a floor for all others. The floor is above
/// 0, because log 0 is not finite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Levels {
    pub(crate) high: f64,
    pub(crate) floor: f64,
}

impl Default for Levels {
    fn default() -> Self {
        Self { high: 100.0, floor: 1e-6 }
    }
}

impl Levels {
    pub(crate) fn new(high: f64, floor: f64) -> Result<Self> {
        if floor > 0.0 && high > floor && high.is_finite() {
            return Ok(Self { high, floor });
        }
        Err(Error::config(
            "the reward's two values",
            format!("{high} for objects with the high reward and {floor} for all others"),
            "finite values above 0, the high reward being the greater one",
        ))
    }

    pub(crate) fn log_of(&self, sought: bool) -> f64 {
        if sought { self.high.ln() } else { self.floor.ln() }
    }

    /// Computes log Z if `n_sought` of `n_all` objects have the high value. Both counts must be exact in f64.
    pub(crate) fn log_z(&self, n_sought: f64, n_all: f64) -> f64 {
        (self.high * n_sought + self.floor * (n_all - n_sought)).ln()
    }
}
