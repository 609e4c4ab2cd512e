//! Functions that map a property of molecules to a factor of a score.

use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

/// A function that maps a property of molecules to a factor of a score. The factor is 0 or more.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Shape {
    /// The factor is the property itself, which must be 0 or more.
    #[default]
    Value,
    /// The factor is the exponential of the property.
    Exponential,
    /// The factor is 1 if the property is between `least` and `most`. Outside of this window it is
    /// `exp(-distance / width)`, where `distance` is the distance from the window.
    Window {
        /// The lower end of the window.
        least: f64,
        /// The upper end of the window.
        most: f64,
        /// The distance from the window at which the factor is 1 / e. It must be above 0.
        width: f64,
    },
    /// The factor is a linear function of the property, which is 0 at `zero` and 1 at `one`. Negative
    /// results are replaced by 0.
    Linear {
        /// The value of the property at which the factor is 0.
        zero: f64,
        /// The value of the property at which the factor is 1.
        one: f64,
    },
    /// The factor is 1 if the property is between `least` and `most` (both included), and `otherwise` if
    /// not. With `otherwise = 0`, molecules outside of the limits have no reward.
    Limit {
        /// The smallest accepted value of the property. There is no lower limit by default.
        #[serde(default)]
        least: Option<f64>,
        /// The largest accepted value of the property. There is no upper limit by default.
        #[serde(default)]
        most: Option<f64>,
        /// The factor outside of the limits; 0 by default.
        #[serde(default)]
        otherwise: f64,
    },
}

impl Shape {
    pub(super) fn check(self) -> Result<()> {
        let (is_sound, expected) = match self {
            Self::Value | Self::Exponential => (true, ""),
            Self::Window { least, most, width } => (
                width > 0.0 && width.is_finite() && least <= most && (most - least).is_finite(),
                "a window with finite ends, the smaller one first, and a finite width above 0",
            ),
            Self::Linear { zero, one } => {
                (zero != one && (one - zero).is_finite(), "two finite numbers that differ")
            }
            Self::Limit { least, most, otherwise } => {
                let low = least.unwrap_or(f64::NEG_INFINITY);
                let high = most.unwrap_or(f64::INFINITY);
                (
                    least.or(most).is_some() && low <= high && otherwise >= 0.0 && otherwise.is_finite(),
                    "`least`, `most` or both, the smaller one first, and a finite `otherwise` of 0 or more",
                )
            }
        };
        if is_sound {
            Ok(())
        } else {
            Err(Error::config("the shape of a factor", format!("{self:?}"), expected))
        }
    }

    /// Returns `true` if the factor is 0 for a whole range of property values.
    pub(super) fn has_zeros(self) -> bool {
        match self {
            Self::Linear { .. } => true,
            Self::Limit { otherwise, .. } => otherwise == 0.0,
            Self::Value | Self::Exponential | Self::Window { .. } => false,
        }
    }

    /// Returns the natural logarithm of the factor for a value of the property.
    pub(super) fn log(self, value: f64) -> f64 {
        match self {
            Self::Value => value.ln(),
            Self::Exponential => value,
            // The subtraction from 0 changes -0 to 0.
            Self::Window { least, most, width } => 0.0 - (value - value.clamp(least, most)).abs() / width,
            Self::Linear { zero, one } => ((value - zero) / (one - zero)).max(0.0).ln(),
            Self::Limit { least, most, otherwise } => {
                let inside =
                    least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
                if inside { 0.0 } else { otherwise.ln() }
            }
        }
    }
}
