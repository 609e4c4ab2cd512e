//! What rewards of the gym have in common: one of each finished vector, sums in logarithms, settings above zero.

use gfn::env::{Rows, VectorStates};
use gfn::{Error, Result};

/// One reward per state of `width` entries, each from a finished one: `log_reward` gives `None` for a vector that no trajectory ends in.
///
/// # Errors
/// [`Error::Shape`] for states of another width, [`Error::Config`] for a vector without a reward.
pub fn of_rows(states: &VectorStates, width: usize, log_reward: impl Fn(&[u16]) -> Option<f64>) -> Result<Vec<f64>> {
    if states.width() != width {
        return Err(Error::shape(
            "states",
            [states.len() as i64, width as i64],
            [states.len() as i64, states.width() as i64],
            "give the reward states of the environment that it was made for",
        ));
    }
    let of_row = |row: &[u16]| {
        log_reward(row).ok_or_else(|| {
            Error::config(
                "a state to be rewarded",
                format!("{row:?}"),
                "a state that a trajectory of the reward's environment can end in",
            )
        })
    };
    states.rows().map(of_row).collect()
}

/// Checks that `x` is finite and above zero, and gives it back.
///
/// # Errors
/// [`Error::Config`], which names the setting, if it isn't.
pub fn positive(setting: &'static str, x: f64) -> Result<f64> {
    if x > 0.0 && x.is_finite() {
        return Ok(x);
    }
    Err(Error::config(setting, x, "a finite number above 0"))
}
