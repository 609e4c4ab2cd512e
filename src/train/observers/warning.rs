//! Reactions to warnings.

use serde::{Deserialize, Serialize};

/// The reaction to a [`Warning`](crate::error::Warning). It is always recorded:
/// [`Trainer::warnings`](crate::train::Trainer::warnings), [`Record::warnings`](crate::train::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// Also prints one line on stderr, above a progress line if there is one.
    #[default]
    Print,
    /// Only records it.
    Keep,
    /// The step that raises it is completed, and then returns [`Error::Warned`](crate::Error::Warned).
    Fail,
}
