//! Output of a run. Files are tested for write access before the run starts. Printing never panics, even if
//! standard output or standard error is closed or full.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use gfn::{Error, Result};

thread_local! {
    /// The text that begins the messages of this thread.
    static PREFIX: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets the text that begins all later messages of this thread.
pub(crate) fn set_prefix(text: String) {
    PREFIX.set(text);
}

/// Prints a line to standard output. The line is JSON for programs, or a result.
///
/// # Errors
/// [`Error::Io`] if the line can't be written.
pub(crate) fn print(line: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|source| Error::io("standard output", source))
}

/// Prints a line for users to standard error, after the thread's prefix. Errors of printing are ignored.
pub(crate) fn tell(line: impl Display) {
    PREFIX.with_borrow(|prefix| {
        let _ = writeln!(std::io::stderr(), "{prefix}{line}");
    });
}

/// Prints a line for users that says that the file at `path` was written.
pub(crate) fn report_file(path: &Path) {
    tell(format_args!("wrote {}", path.display()));
}

/// Creates a folder if it doesn't exist, and checks that files can be written to it.
pub(crate) fn try_folder(folder: &Path) -> Result<()> {
    try_file(&folder.join(format!(".{}.tried", std::process::id())))
}

/// Checks that a file can be written. Creates its folder and the file, and removes the file again if it is
/// new. An existing file isn't changed. A pipe or a device isn't checked, because opening a pipe would wait
/// for a program that reads from it.
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

/// Replaces the contents of a file in one step: an existing file stays until the new one is whole. A pipe or
/// a device is written to directly.
pub(crate) fn replace_file(path: &Path, contents: &str) -> Result<()> {
    let io = |source| Error::io(path, source);
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, contents).map_err(io);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    fs::write(&partial, contents).and_then(|()| fs::rename(&partial, path)).map_err(io)
}
