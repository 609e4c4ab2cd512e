use std::path::PathBuf;

use super::Error;

/// One constructor for each kind of error that is raised in many places.
impl Error {
    /// [`Error::Config`]: a setting, what was given, what is accepted.
    #[must_use]
    pub fn config(setting: &'static str, got: impl ToString, expected: &'static str) -> Self {
        Self::Config { setting, got: got.to_string(), expected }
    }

    /// [`Error::Missing`]: what is missing, who needs it, and what gives it.
    #[must_use]
    pub fn missing(needed_by: &'static str, missing: &'static str, remedy: &'static str) -> Self {
        Self::Missing { needed_by, missing, remedy }
    }

    /// [`Error::Device`]: the device, why it can't be used, what to do.
    #[must_use]
    pub fn device(device: impl ToString, reason: impl ToString, remedy: &'static str) -> Self {
        Self::Device { device: device.to_string(), reason: reason.to_string(), remedy }
    }

    /// [`Error::Shape`]: what was looked at, the shape that it must have, the one that it has, what to do.
    #[must_use]
    pub fn shape(
        what: impl Into<String>,
        expected: impl Into<Vec<i64>>,
        got: impl Into<Vec<i64>>,
        remedy: &'static str,
    ) -> Self {
        Self::Shape { what: what.into(), expected: expected.into(), got: got.into(), remedy }
    }

    /// [`Error::NonFinite`]: what was looked at, its row, the value found, what to do.
    #[must_use]
    pub fn non_finite(what: &'static str, row: usize, value: f64, remedy: &'static str) -> Self {
        Self::NonFinite { what, row, value, remedy }
    }

    /// [`Error::OutOfRange`]: an index, and the number of elements.
    #[must_use]
    pub fn out_of_range(index: usize, len: usize) -> Self {
        Self::OutOfRange { index, len }
    }

    /// [`Error::Contract`]: the contract, and where it broke.
    #[must_use]
    pub fn contract(check: &'static str, detail: impl ToString) -> Self {
        Self::Contract { check, detail: detail.to_string() }
    }

    /// [`Error::Peer`]: a replica, what is known of it, what to do.
    #[must_use]
    pub fn peer(who: impl ToString, problem: impl ToString, remedy: &'static str) -> Self {
        Self::Peer { who: who.to_string(), problem: problem.to_string(), remedy }
    }

    /// [`Error::External`]: whose code failed, and what it says.
    #[must_use]
    pub fn external(who: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External { who, source: source.into() }
    }

    /// [`Error::File`]: a file, what is wrong with it, what to do.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>, problem: impl ToString, remedy: &'static str) -> Self {
        Self::File { path: path.into(), problem: problem.to_string(), remedy }
    }

    /// [`Error::Parse`]: a line, counted from 1, what is wrong with it, what the format asks for.
    #[must_use]
    pub fn parse(line: usize, problem: impl ToString, expected: &'static str) -> Self {
        Self::Parse { line, problem: problem.to_string(), expected }
    }

    /// [`Error::Io`]: a file or folder, and what the system said.
    #[must_use]
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// [`Error::Draw`]: a picture, and what went wrong.
    #[must_use]
    pub fn draw(path: impl Into<PathBuf>, problem: impl ToString) -> Self {
        Self::Draw { path: path.into(), problem: problem.to_string() }
    }
}
