//! Reactions to warnings.

use serde::{Deserialize, Serialize};

/// The reaction to a [`Warning`](crate::error::Warning). Every warning is also recorded: [`Warnings::raised`](crate::run::Warnings::raised),
/// [`Record::warnings`](crate::run::Record::warnings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OnWarning {
    /// Prints one line on stderr, too, above a progress line if there is one.
    #[default]
    Print,
    /// Only records it.
    Keep,
    /// Ends the run with [`Error::Warned`](crate::Error::Warned) after the step that raises it.
    Fail,
}
