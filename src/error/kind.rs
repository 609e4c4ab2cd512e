use super::Error;

/// The subject of an [`Error`], which says who can do something about it.
///
/// ```
/// use gfn::error::{Error, ErrorKind};
/// let error = Error::config("batch", 0, "at least 1");
/// assert_eq!(error.kind(), ErrorKind::Settings);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting, or a combination of settings: found when something is built, before anything runs.
    Settings,
    /// Data from outside: a file, a tensor, an index, an action.
    Data,
    /// A contract that the author of an environment, an action type, a network or a reward must keep.
    Contract,
    /// A mistake while something ran: a number that isn't finite, a limit that was reached.
    Run,
}

impl Error {
    /// The subject of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Config { .. } | Self::Missing { .. } | Self::Device { .. } => ErrorKind::Settings,
            Self::Shape { .. }
            | Self::OutOfRange { .. }
            | Self::IllegalAction { .. }
            | Self::IllegalStep { .. }
            | Self::File { .. }
            | Self::Parse { .. }
            | Self::Io { .. }
            | Self::Draw { .. } => ErrorKind::Data,
            Self::Contract { .. } | Self::NoLegalAction { .. } => ErrorKind::Contract,
            Self::NonFinite { .. }
            | Self::NonFiniteGradient { .. }
            | Self::GradientOverflow { .. }
            | Self::StepLimit { .. }
            | Self::SymmetryLimit { .. }
            | Self::TooManyStates { .. }
            | Self::Peer { .. }
            | Self::External { .. }
            | Self::Torch(_)
            | Self::Warned(_) => ErrorKind::Run,
        }
    }
}
