//! Lines on standard output and standard error. Both may be closed or full, which must not end a run in a panic.

use std::fmt::Display;
use std::io::Write;

use gfn::{Error, Result};

/// Prints a line for programs, or what was asked for.
///
/// # Errors
/// [`Error::Io`] where it can't be written.
pub(crate) fn print(line: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|source| Error::io("standard output", source))
}

/// Tells people a line, if somebody reads it.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
