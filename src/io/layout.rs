//! The folders themselves: written beside the old one and swapped with it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Error, Result};

const MANIFEST: &str = "manifest.json";

/// No manifest of ours is longer, in bytes: a file that is isn't one, and isn't read.
const MAX_MANIFEST: u64 = 1 << 28;

/// No manifest of ours takes more memory once it is parsed, in bytes.
const MAX_PARSED: u64 = 1 << 29;

/// A kind of folder that the library writes, and the words in which it speaks of it.
pub(crate) struct FolderKind {
    /// The name of the tensors' file.
    pub(crate) tensors: &'static str,
    /// What the folder is called.
    pub(crate) noun: &'static str,
    /// What to do where it can't be written.
    pub(crate) unwritable: &'static str,
    /// What to do where it can't be read.
    pub(crate) unreadable: &'static str,
    /// What to do where it is damaged.
    pub(crate) damaged: &'static str,
    /// What to do where something else is in the way.
    pub(crate) in_the_way: &'static str,
}

impl FolderKind {
    /// Writes the folder, replacing the one that is there, if any; on an error that one is untouched.
    pub(crate) fn write(&self, path: &Path, data: &[u8], manifest: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec_pretty(manifest).map_err(|e| file_error(path, e.to_string(), self.unwritable))?;
        if text.len() as u64 > MAX_MANIFEST || parsed_size(&text) > MAX_PARSED {
            let problem = format!("a manifest of {} bytes couldn't be read again", text.len());
            return Err(file_error(path, problem, "keep less in it: what observers remember, a description"));
        }
        replace(path, &[(self.tensors, data), (MANIFEST, &text)])
            .map_err(|e| file_error(path, format!("can't be written ({e})"), self.unwritable))
    }

    /// Refuses to replace anything but a folder of this kind and an empty one.
    pub(crate) fn check_target(&self, path: &Path) -> Result<()> {
        let refuse = |problem: String| Err(file_error(path, problem, self.in_the_way));
        if path.file_name().is_none() {
            return refuse("doesn't end in a name".to_owned());
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return refuse(format!("is in the way and not a folder ({e})")),
        };
        for entry in entries {
            let entry = entry.map_err(|e| file_error(path, e.to_string(), self.unwritable))?;
            if entry.file_name() != self.tensors && entry.file_name() != MANIFEST {
                return refuse(format!("holds `{}` too", entry.file_name().to_string_lossy()));
            }
        }
        Ok(())
    }

    /// Refuses what [`check_target`](Self::check_target) does and where no folder can be made, before there is anything to be written.
    pub(crate) fn try_target(&self, path: &Path) -> Result<()> {
        self.check_target(path)?;
        let tried = make_partial(path).and_then(|partial| remove(&partial));
        tried.map_err(|e| file_error(path, format!("can't be written ({e})"), self.unwritable))
    }

    /// Where the folder is to be read from: if a save was cut off between moving the old folder away and the new one in, that
    /// is the old one.
    pub(crate) fn found(&self, asked: &Path) -> PathBuf {
        let previous = sibling(asked, "previous");
        if !asked.exists() && previous.exists() { previous } else { asked.to_owned() }
    }

    /// The manifest's path and bytes.
    pub(crate) fn manifest(&self, folder: &Path) -> Result<(PathBuf, Vec<u8>)> {
        let file = folder.join(MANIFEST);
        let length = self.length(&file)?;
        if length > MAX_MANIFEST {
            return Err(file_error(&file, format!("{length} bytes are no manifest of a {}", self.noun), self.damaged));
        }
        let text = self.read(&file, length)?;
        let parsed = parsed_size(&text);
        if parsed > MAX_PARSED {
            let problem = format!("{length} bytes of JSON would take {} MiB of memory", parsed >> 20);
            return Err(file_error(&file, problem, self.damaged));
        }
        Ok((file, text))
    }

    /// The path and bytes of the tensors' file, which must be as long as the manifest says; found out before it is read.
    pub(crate) fn tensors(&self, folder: &Path, bytes: u64) -> Result<(PathBuf, Vec<u8>)> {
        let file = folder.join(self.tensors);
        let length = self.length(&file)?;
        if length != bytes {
            return Err(file_error(&file, format!("{length} bytes, the manifest says {bytes}"), self.damaged));
        }
        let data = self.read(&file, length)?;
        Ok((file, data))
    }

    fn length(&self, file: &Path) -> Result<u64> {
        fs::metadata(file).map(|metadata| metadata.len()).map_err(|e| self.cannot_read(file, &e))
    }

    /// Reads no more than was announced, whatever happens to the file meanwhile.
    fn read(&self, file: &Path, length: u64) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let read = File::open(file).and_then(|opened| opened.take(length).read_to_end(&mut data));
        read.map(|_| data).map_err(|e| self.cannot_read(file, &e))
    }

    fn cannot_read(&self, file: &Path, e: &std::io::Error) -> Error {
        file_error(file, format!("can't be read ({e})"), self.unreadable)
    }
}

/// About what JSON takes in memory once it is parsed into [`serde_json::Value`]s, in bytes: an object is a tree whose least node has
/// room for eleven entries. What stands within strings is counted as if it didn't.
fn parsed_size(text: &[u8]) -> u64 {
    const OBJECT: u64 = 704;
    const VALUE: u64 = 64;
    let each = text.iter().map(|byte| match byte {
        b'{' => OBJECT,
        b',' | b'[' => VALUE,
        _ => 0,
    });
    text.len() as u64 + each.sum::<u64>()
}

/// The one kind of error that files of tensors give.
pub(crate) fn file_error(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::File { path: path.to_owned(), problem, remedy }
}

/// A hidden folder beside the one that is asked for.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// The folder that a path lies in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes an empty folder beside `path`.
fn make_partial(path: &Path) -> std::io::Result<PathBuf> {
    let partial = sibling(path, "partial");
    fs::create_dir_all(parent(path))?;
    remove(&partial)?;
    fs::create_dir(&partial)?;
    Ok(partial)
}

/// Writes the files to a folder beside `path`, forces them to disk, and swaps the folders. Where that fails, nothing new is left: a
/// full disk would stay full.
fn replace(path: &Path, files: &[(&str, &[u8])]) -> std::io::Result<()> {
    let partial = make_partial(path)?;
    let done = write_and_swap(path, &partial, files);
    if done.is_err() {
        // The first error is the one worth reporting.
        let _ = remove(&partial);
    }
    done
}

fn write_and_swap(path: &Path, partial: &Path, files: &[(&str, &[u8])]) -> std::io::Result<()> {
    let previous = sibling(path, "previous");
    for (name, data) in files {
        let mut file = File::create_new(partial.join(name))?;
        file.write_all(data)?;
        file.sync_all()?;
    }
    sync_folder(partial)?;
    if path.exists() {
        // No folder can be renamed onto one that has files in it; loading finds the old one if we are cut off here.
        remove(&previous)?;
        fs::rename(path, &previous)?;
        if let Err(e) = fs::rename(partial, path) {
            fs::rename(&previous, path)?;
            return Err(e);
        }
    } else {
        fs::rename(partial, path)?;
    }
    sync_folder(parent(path))?;
    remove(&previous)
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// A rename is on disk once its folder is; only Unix lets a folder be opened for that.
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
        replace(&path, &[("a", b"old")]).unwrap();
        // The second file can't be made, after the first has been.
        for files in [[("a", b"new"), ("no/such/folder", b"new")], [("a", b"new"), ("a", b"new")]] {
            replace(&path, &files.map(|(name, data)| (name, data.as_slice()))).unwrap_err();
            assert_eq!(fs::read(path.join("a")).unwrap(), b"old");
            assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        }
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn what_json_takes_in_memory_is_told_from_its_text() {
        // Measured: 110 times its length.
        let objects = br#"{"":0},"#.repeat(1000);
        assert!(parsed_size(&objects) > 100 * objects.len() as u64);
        let numbers = b"1,".repeat(1000);
        assert!((32..64).contains(&(parsed_size(&numbers) / numbers.len() as u64)));
    }
}
