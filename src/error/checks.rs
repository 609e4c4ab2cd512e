//! Checks of settings and lists that many modules make.

use super::{Error, Result};

/// Returns the value of a setting if it is valid. `expected` describes the valid values in the error message.
///
/// # Errors
/// [`Error::Config`] if `is_valid` is `false`.
pub(crate) fn check_setting(
    setting: &'static str,
    value: f64,
    is_valid: bool,
    expected: &'static str,
) -> Result<f64> {
    if is_valid { Ok(value) } else { Err(Error::config(setting, value, expected)) }
}

/// Returns the value of a setting that must be a positive, finite number.
///
/// # Errors
/// [`Error::Config`] if the value isn't positive or isn't finite.
pub(crate) fn check_positive(setting: &'static str, value: f64) -> Result<f64> {
    check_setting(setting, value, value > 0.0 && value.is_finite(), "a positive number")
}

/// Checks that a list has the expected number of entries.
///
/// # Errors
/// [`Error::Shape`] if it has another number of entries.
pub(crate) fn check_len(
    what: impl Into<String>,
    expected: usize,
    got: usize,
    remedy: &'static str,
) -> Result<()> {
    if got == expected { Ok(()) } else { Err(Error::shape(what, [expected as i64], [got as i64], remedy)) }
}

/// Checks that all numbers of a list are finite.
///
/// # Errors
/// [`Error::NonFinite`] for the first number that isn't finite.
pub(crate) fn check_finite(what: &'static str, values: &[f64], remedy: &'static str) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(row) => Err(Error::non_finite(what, row, values[row], remedy)),
        None => Ok(()),
    }
}
