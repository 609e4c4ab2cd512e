//! Files that a run writes: tried before it starts.

use std::fs::{self, OpenOptions};
use std::path::Path;

use super::lines::tell;
use gfn::{Error, Result};

/// Makes a folder if there is none, and tries whether files can be written there.
pub(crate) fn try_folder(folder: &Path) -> Result<()> {
    make_folder(folder)?;
    try_file(&folder.join(format!(".{}.tried", std::process::id())))
}

/// Tries whether a file can be written: makes its folder, and the file, which is removed again if it wasn't there. What is there stays as
/// it is; what is neither a file nor a folder isn't tried, as opening a pipe waits for its reader.
pub(crate) fn try_file(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let new = !path.exists();
    let tried = OpenOptions::new().append(true).create(true).open(path);
    tried.and_then(|_| if new { fs::remove_file(path) } else { Ok(()) }).map_err(|source| Error::io(path, source))
}

/// Makes a folder if there is none.
fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))
}

/// Says that a file was written.
pub(crate) fn written(path: &Path) {
    tell(format_args!("wrote {}", path.display()));
}
