//! The files that a run writes, which are tested before the run starts, and the lines that it prints.
//! Standard output and standard error may be closed or full, which must not end a run in a panic.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use gfn::{Error, Result};

/// Prints a line to standard output: JSON for programs, or a result.
///
/// # Errors
/// [`Error::Io`] if the line can't be written.
pub(crate) fn print(line: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|source| Error::io("standard output", source))
}

/// Writes a line for users to standard error.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Tells users that a file was written.
pub(crate) fn report_file(path: &Path) {
    tell(format_args!("wrote {}", path.display()));
}

/// Creates a folder if it doesn't exist, and tests if files can be written there.
pub(crate) fn try_folder(folder: &Path) -> Result<()> {
    try_file(&folder.join(format!(".{}.tried", std::process::id())))
}

/// Tests if a file can be written. Creates its folder and the file, and removes the file again if it is new.
/// An existing file isn't changed. A pipe or a device isn't tested, because opening a pipe waits for its
/// reader.
pub(crate) fn try_file(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let is_new = !path.exists();
    let tried = OpenOptions::new().append(true).create(true).open(path);
    tried
        .and_then(|_| if is_new { fs::remove_file(path) } else { Ok(()) })
        .map_err(|source| Error::io(path, source))
}
