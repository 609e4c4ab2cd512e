//! What becomes of a warning.

use serde::{Deserialize, Serialize};

/// What becomes of a [`Warning`](crate::error::Warning). It is kept in any case: [`Trainer::warnings`](crate::train::Trainer::warnings),
/// [`Record::warnings`](crate::train::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// One line on stderr, beside a line of progress if there is one.
    #[default]
    Print,
    /// Nothing else.
    Keep,
    /// The step that raises it, once made, ends in [`Error::Warned`](crate::Error::Warned).
    Fail,
}
