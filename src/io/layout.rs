//! Folders of one tensor file and one manifest. A new folder is written beside the old folder, and then takes
//! its path.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Error, Result};

const MANIFEST: &str = "manifest.json";

/// A type of folder that the library writes, such as a checkpoint, with the words for its error messages.
pub(crate) struct FolderKind {
    /// The name of the file with the tensors.
    pub(crate) tensors: &'static str,
    /// The noun for a folder of this type in messages.
    pub(crate) noun: &'static str,
    /// The remedy in the error message if the folder can't be written.
    pub(crate) unwritable: &'static str,
    /// The remedy in the error message if the folder can't be read.
    pub(crate) unreadable: &'static str,
    /// The remedy in the error message if the folder is damaged.
    pub(crate) damaged: &'static str,
    /// The remedy in the error message if something other than a folder of this type is at the path.
    pub(crate) in_the_way: &'static str,
}

impl FolderKind {
    /// Writes the folder and replaces an older folder. On an error the older folder is untouched.
    pub(crate) fn write(&self, path: &Path, data: &[u8], manifest: &impl Serialize) -> Result<()> {
        self.stage(path, data, manifest)?;
        self.publish(path)
    }

    /// Writes the complete folder under a hidden name beside `path`, for [`publish`](Self::publish). If
    /// writing fails, the unfinished folder is removed, because otherwise a full disk would stay full.
    pub(crate) fn stage(&self, path: &Path, data: &[u8], manifest: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec_pretty(manifest)
            .map_err(|e| file_error(path, e.to_string(), self.unwritable))?;
        let staged = make_partial(path).and_then(|partial| {
            // The manifest is written last, so a folder with a manifest is complete.
            write_files(&partial, &[(self.tensors, data), (MANIFEST, &text)])
                .inspect_err(|_| drop(remove(&partial)))
        });
        staged.map_err(|e| self.cannot_write(path, &e))
    }

    /// Moves the folder that [`stage`](Self::stage) wrote to `path`, and removes the older folder. If the
    /// move fails, the older folder stays at `path`.
    pub(crate) fn publish(&self, path: &Path) -> Result<()> {
        swap(path).map_err(|e| self.cannot_write(path, &e))
    }

    /// Returns the hidden folder that [`stage`](Self::stage) wrote for `path`, if it is complete and hasn't
    /// been moved to `path`; otherwise `None`.
    pub(crate) fn staged(&self, path: &Path) -> Option<PathBuf> {
        Some(sibling(path, "partial")).filter(|folder| folder.join(MANIFEST).exists())
    }

    /// Checks that a folder may be written to `path`. The path must be free, or hold an empty folder or a
    /// folder of this type, which may be replaced.
    pub(crate) fn check_target(&self, path: &Path) -> Result<()> {
        let refuse = |problem: String| Err(file_error(path, problem, self.in_the_way));
        if path.file_name().is_none() {
            return refuse("the path doesn't end in a name".to_owned());
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return refuse(format!("the path exists and is not a folder ({e})")),
        };
        for entry in entries {
            let entry = entry.map_err(|e| file_error(path, e.to_string(), self.unwritable))?;
            if entry.file_name() != self.tensors && entry.file_name() != MANIFEST {
                return refuse(format!("the folder holds `{}` too", entry.file_name().to_string_lossy()));
            }
        }
        Ok(())
    }

    /// Checks the path as [`check_target`](Self::check_target) does, and also checks that a folder can be
    /// created beside the path. A run calls this method before its first step, so that the first save doesn't
    /// fail.
    pub(crate) fn try_target(&self, path: &Path) -> Result<()> {
        self.check_target(path)?;
        // The name of the trial folder differs from the names that a save uses, because the folders of an
        // interrupted save are still needed.
        let trial = sibling(path, "trial");
        let tried = fs::create_dir_all(&trial).and_then(|()| remove(&trial));
        tried.map_err(|e| self.cannot_write(path, &e))
    }

    /// Returns the folder to read, which is usually `path`. If a save was interrupted after the older folder
    /// was moved away and before the new folder was moved in, the older folder is returned.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        if is_interrupted(path) { sibling(path, "previous") } else { path.to_owned() }
    }

    /// Returns the path and the contents of the manifest.
    pub(crate) fn manifest(&self, folder: &Path) -> Result<(PathBuf, Vec<u8>)> {
        let file = folder.join(MANIFEST);
        let text = fs::read(&file).map_err(|e| self.cannot_read(&file, &e))?;
        Ok((file, text))
    }

    /// Returns the path and the contents of the tensor file. An error is returned if the length of the file
    /// isn't `bytes`, the length that the manifest states.
    pub(crate) fn tensors(&self, folder: &Path, bytes: u64) -> Result<(PathBuf, Vec<u8>)> {
        let file = folder.join(self.tensors);
        let length = fs::metadata(&file).map_err(|e| self.cannot_read(&file, &e))?.len();
        if length != bytes {
            return Err(file_error(
                &file,
                format!("the file has {length} bytes, but the manifest says {bytes}"),
                self.damaged,
            ));
        }
        let data = fs::read(&file).map_err(|e| self.cannot_read(&file, &e))?;
        Ok((file, data))
    }

    fn cannot_write(&self, path: &Path, e: &std::io::Error) -> Error {
        file_error(path, format!("the path can't be written ({e})"), self.unwritable)
    }

    fn cannot_read(&self, file: &Path, e: &std::io::Error) -> Error {
        file_error(file, format!("the file can't be read ({e})"), self.unreadable)
    }
}

/// Returns the error for a file or folder of tensors.
pub(crate) fn file_error(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::file(path, problem, remedy)
}

/// Returns the path of the hidden folder beside `path` with this suffix.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// Returns the folder that contains a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns `true` if a save was interrupted between moving the older folder away and moving the new folder
/// in. The new folder is complete in this case, because its manifest is written last. If there is only the
/// older folder, a user has removed the folder at `path`, and the older folder is left over.
fn is_interrupted(path: &Path) -> bool {
    !path.exists() && sibling(path, "previous").exists() && sibling(path, "partial").join(MANIFEST).exists()
}

/// Creates an empty hidden folder beside `path`. If an interrupted save moved the folder at `path` away, the
/// folder is moved back first; if a user removed the folder at `path`, left-over folders are removed.
fn make_partial(path: &Path) -> std::io::Result<PathBuf> {
    let partial = sibling(path, "partial");
    let previous = sibling(path, "previous");
    fs::create_dir_all(parent(path))?;
    if is_interrupted(path) {
        fs::rename(&previous, path)?;
    } else if !path.exists() {
        remove(&previous)?;
    }
    remove(&partial)?;
    fs::create_dir(&partial)?;
    Ok(partial)
}

/// Writes files into a new folder and flushes them to disk.
fn write_files(folder: &Path, files: &[(&str, &[u8])]) -> std::io::Result<()> {
    for (name, data) in files {
        let mut file = File::create_new(folder.join(name))?;
        file.write_all(data)?;
        file.sync_all()?;
    }
    sync_folder(folder)
}

/// Moves the folder that was written beside `path` to `path`, and removes the older folder that was there. If
/// the new folder can't be moved, the older folder is moved back, and the new folder keeps its hidden name.
fn swap(path: &Path) -> std::io::Result<()> {
    let partial = sibling(path, "partial");
    let previous = sibling(path, "previous");
    if path.exists() {
        remove(&previous)?;
        // The older folder must be moved away first, because a folder can't be renamed to the path of a
        // folder with files. If the process is stopped here, `resolve` finds the older folder.
        fs::rename(path, &previous)?;
        if let Err(e) = fs::rename(&partial, path) {
            // The older folder is moved back. If this succeeds, the error of moving the new folder is
            // returned.
            fs::rename(&previous, path)?;
            return Err(e);
        }
    } else {
        fs::rename(&partial, path)?;
    }
    sync_folder(parent(path))?;
    remove(&previous)
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Flushes a folder to disk, so that a rename in it survives a crash of the system. The function does nothing
/// on systems other than Unix.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::replace::tests::folder;
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_old_one_and_nothing_else() {
        let home = folder("layout");
        let path = home.join("run");
        let write = |files: &[(&str, &[u8])]| -> std::io::Result<()> {
            let partial = make_partial(&path)?;
            write_files(&partial, files).inspect_err(|_| drop(remove(&partial)))?;
            swap(&path)
        };
        write(&[("a", b"old")]).unwrap();
        // The first file is written. Writing the second file fails, because its folder doesn't exist, or
        // because it has the name of the first file.
        for files in [[("a", b"new"), ("no/such/folder", b"new")], [("a", b"new"), ("a", b"new")]] {
            write(&files.map(|(name, data)| (name, data.as_slice()))).unwrap_err();
            assert_eq!(fs::read(path.join("a")).unwrap(), b"old");
            assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        }
        fs::remove_dir_all(home).unwrap();
    }
}
