//! Functions that several rewards use: the reward of each row of a batch of finished vectors, and checks of
//! settings.

use gfn::env::{Rows, VectorStates};
use gfn::{Error, Result};

/// Computes log R of each state of `width` entries. The closure `log_reward` returns `None` for a vector in
/// which no trajectory can end. Such a vector is refused.
///
/// # Errors
/// [`Error::Shape`] for states of another width, [`Error::Config`] for a vector without a reward.
pub fn score_rows(
    states: &VectorStates,
    width: usize,
    log_reward: impl Fn(&[u16]) -> Option<f64>,
) -> Result<Vec<f64>> {
    check_width(states, width)?;
    let of_row = |row: &[u16]| {
        log_reward(row).ok_or_else(|| {
            Error::config(
                "a state to be rewarded",
                format!("{row:?}"),
                "a state in which a trajectory of the reward's environment can end",
            )
        })
    };
    states.rows().map(of_row).collect()
}

/// Refuses states whose number of entries isn't `width`.
pub(crate) fn check_width(states: &VectorStates, width: usize) -> Result<()> {
    if states.width() == width {
        return Ok(());
    }
    Err(Error::shape(
        "states",
        [states.len() as i64, width as i64],
        [states.len() as i64, states.width() as i64],
        "give the reward states of the environment that it was built for",
    ))
}

/// Returns `x` if it is finite and above zero.
///
/// # Errors
/// [`Error::Config`], which names the setting, if `x` isn't finite and above zero.
pub fn positive(setting: &'static str, x: f64) -> Result<f64> {
    if x > 0.0 && x.is_finite() {
        return Ok(x);
    }
    Err(Error::config(setting, x, "a finite number above 0"))
}
