use std::path::PathBuf;

use super::Error;

/// Constructors for the errors that many modules create.
impl Error {
    /// Creates [`Error::Config`] from a setting, its value, and the accepted values.
    #[must_use]
    pub fn config(setting: &'static str, got: impl ToString, expected: &'static str) -> Self {
        Self::Config { setting, got: got.to_string(), expected }
    }

    /// Creates [`Error::Missing`] from the part that has a requirement, the missing part or quantity, and the
    /// remedy.
    #[must_use]
    pub fn missing(needed_by: &'static str, missing: &'static str, remedy: &'static str) -> Self {
        Self::Missing { needed_by, missing, remedy }
    }

    /// Creates [`Error::Device`] from a device, the reason why it can't be used, and the remedy.
    #[must_use]
    pub fn device(device: impl ToString, reason: impl ToString, remedy: &'static str) -> Self {
        Self::Device { device: device.to_string(), reason: reason.to_string(), remedy }
    }

    /// Creates [`Error::Shape`] from the name of a tensor or list, its expected shape, its actual shape, and
    /// the remedy.
    #[must_use]
    pub fn shape(
        what: impl Into<String>,
        expected: impl Into<Vec<i64>>,
        got: impl Into<Vec<i64>>,
        remedy: &'static str,
    ) -> Self {
        Self::Shape { what: what.into(), expected: expected.into(), got: got.into(), remedy }
    }

    /// Creates [`Error::NonFinite`] from the name of a number, the index of the trajectory, state or
    /// parameter that it belongs to, its value, and the remedy.
    #[must_use]
    pub fn non_finite(what: &'static str, row: usize, value: f64, remedy: &'static str) -> Self {
        Self::NonFinite { what, row, object: None, value, remedy }
    }

    /// Creates [`Error::OutOfRange`] from an index and the number of elements.
    #[must_use]
    pub fn out_of_range(index: usize, len: usize) -> Self {
        Self::OutOfRange { index, len }
    }

    /// Creates [`Error::Contract`] from the broken rule and a description of the case in which it was broken.
    #[must_use]
    pub fn contract(check: &'static str, detail: impl ToString) -> Self {
        Self::Contract { check, detail: detail.to_string() }
    }

    /// Creates [`Error::Peer`] from a replica, the problem with it, and the remedy.
    #[must_use]
    pub fn peer(who: impl ToString, problem: impl ToString, remedy: &'static str) -> Self {
        Self::Peer { who: who.to_string(), problem: problem.to_string(), remedy }
    }

    /// Creates [`Error::External`] from the name of the code that failed and its error.
    #[must_use]
    pub fn external(who: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External { who, source: source.into() }
    }

    /// Creates [`Error::File`] from a file, the problem with it, and the remedy.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>, problem: impl ToString, remedy: &'static str) -> Self {
        Self::File { path: path.into(), problem: problem.to_string(), remedy }
    }

    /// Creates [`Error::Parse`] from a line, counted from 1, the problem with it, and the text that the
    /// format requires.
    #[must_use]
    pub fn parse(line: usize, problem: impl ToString, expected: &'static str) -> Self {
        Self::Parse { line, problem: problem.to_string(), expected }
    }

    /// Creates [`Error::Io`] from a file or folder and the error of the operating system.
    #[must_use]
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Creates [`Error::Draw`] from a picture and the problem with it.
    #[must_use]
    pub fn draw(path: impl Into<PathBuf>, problem: impl ToString) -> Self {
        Self::Draw { path: path.into(), problem: problem.to_string() }
    }
}
