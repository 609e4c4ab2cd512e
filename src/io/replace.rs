//! Atomic replacement of files: a reader always sees a complete file, either the old or the new one.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Replaces a file in one step: `write` fills a temporary file beside it, which is then renamed to `path`.
///
/// A reader of the path sees the old contents or the new contents, never a part. If `write` fails, the old
/// contents stay and the temporary file is removed. The temporary path has the same extension, because some
/// writers choose the format by the extension.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = beside(path)?;
    let io = |source| Error::io(path, source);
    // The temporary file is created here, so that a missing or read-only folder gives the same error for
    // every writer.
    File::create(&temporary).map_err(io)?;
    let done = write(&temporary).and_then(|()| {
        // Without flushing to disk, a power cut after the rename might leave an empty file at the path.
        File::open(&temporary).and_then(|file| file.sync_all()).map_err(io)?;
        fs::rename(&temporary, path).map_err(io)
    });
    // If removing the temporary file fails, for example because it doesn't exist, the first error is still
    // returned, because it is the cause.
    done.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Replaces the contents of a file by these bytes in one step.
pub(crate) fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |temporary| {
        File::create(temporary)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|source| Error::io(path, source))
    })
}

/// Returns the path of a temporary file beside `path`.
fn beside(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(Error::file(
            path,
            "the path has no file name",
            "give the path of a file, not of a folder",
        ));
    };
    // Two processes that write the same file must not share a temporary file.
    let mut temporary = std::ffi::OsString::from(format!(".{}.", std::process::id()));
    temporary.push(name);
    Ok(path.with_file_name(temporary))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Creates an empty folder for one test, and returns its path.
    pub(crate) fn folder(name: &str) -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("gfn-{}-{}-{name}", unique.0, unique.1));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = folder("atomic");
        let path = folder.join("data.txt");
        replace_bytes(&path, b"old").unwrap();
        let failed = replace(&path, |temporary| {
            fs::write(temporary, b"half").unwrap();
            Err(Error::parse(1, String::new(), ""))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        replace_bytes(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let path = std::env::temp_dir().join("gfn-no-such-folder/data.txt");
        let message = replace_bytes(&path, b"x").unwrap_err().to_string();
        assert!(message.contains("gfn-no-such-folder/data.txt: "), "{message}");
        assert!(
            message.ends_with("gfn-no-such-folder doesn't exist: check the path, or create the folder"),
            "{message}"
        );
        assert!(matches!(replace_bytes(Path::new("/"), b"x"), Err(Error::File { .. })));
    }
}
