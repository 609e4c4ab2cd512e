//! What rewards of the gym have in common: one of each finished vector, sums in logarithms, settings above zero.

use gfn::env::{Rows, VectorStates};
use gfn::{Error, Result};

/// One reward per state, each from a finished one.
pub(crate) fn of_rows(
    states: &VectorStates,
    width: usize,
    log_reward: impl Fn(&[u16]) -> Option<f64>,
) -> Result<Vec<f64>> {
    if states.width() != width {
        return Err(Error::Shape {
            what: "states".into(),
            expected: vec![states.len() as i64, width as i64],
            got: vec![states.len() as i64, states.width() as i64],
            remedy: "give the reward states of the environment that it was made for",
        });
    }
    let of_row = |row: &[u16]| {
        log_reward(row).ok_or_else(|| Error::Config {
            setting: "a state to be rewarded",
            got: format!("{row:?}"),
            expected: "a state that a trajectory of the reward's environment can end in",
        })
    };
    states.rows().map(of_row).collect()
}

/// log of the sum of exponentials; NaN if one of them is.
pub(crate) fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    // `f64::max` would pass NaN over.
    let max =
        values.clone().fold(f64::NEG_INFINITY, |max, value| if max.is_nan() || value <= max { max } else { value });
    if max.is_finite() { max + values.map(|value| (value - max).exp()).sum::<f64>().ln() } else { max }
}

/// `x` as a fault of configuration unless it is finite and above zero.
pub(crate) fn positive(setting: &'static str, x: f64) -> Result<f64> {
    if x > 0.0 && x.is_finite() {
        return Ok(x);
    }
    Err(Error::Config { setting, got: x.to_string(), expected: "a finite number above 0" })
}
