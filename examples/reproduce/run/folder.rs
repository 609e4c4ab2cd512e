//! The folder of a run (`--run`), with files for settings, metrics, result, pictures and checkpoint.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gfn::{Error, Result};
use serde_json::{Value, json};

use super::task_flags::{TaskFlags, is_one_of_several};

/// The folder with all files of one run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RunFolder(PathBuf);

/// The name of the file that a process locks while it writes to the folder.
const LOCK: &str = ".lock";
/// The advice in error messages about a folder that isn't the folder of a run.
const OF_A_RUN: &str = "give a folder that --run wrote, or a new folder";
/// The advice in error messages about a folder that holds a run with other settings.
const TO_RESUME: &str = "give a new folder; to resume that run with other settings, keep the folder, and \
    give --resume FOLDER/checkpoint, too";
/// The same advice with `--seeds`, which can't be combined with `--resume`.
const TO_RESUME_A_SEED: &str = "give a new folder; to resume a seed with other settings, leave out --seeds, \
    and give --seed N --run FOLDER/seed-N --resume FOLDER/seed-N/checkpoint";

impl RunFolder {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the settings file, which holds the flags of the run and all settings that follow
    /// from them.
    pub(crate) fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// Returns the path of the metrics file, which has a line of JSON for each step.
    pub(crate) fn metrics(&self) -> PathBuf {
        self.0.join("metrics.jsonl")
    }

    /// Returns the path of the result file, which holds the JSON that `--json` prints.
    pub(crate) fn result(&self) -> PathBuf {
        self.0.join("result.json")
    }

    pub(crate) fn pictures(&self) -> PathBuf {
        self.0.join("pictures")
    }

    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.0.join("checkpoint")
    }

    /// Reserves the folder for a run with these flags. The folder must be new, or hold an unfinished run with
    /// the same flags. `resume` is the checkpoint that `--resume` names. If it is the checkpoint in this
    /// folder, the run may resume with other flags.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder can't be written. [`Error::File`] if the folder holds other files, another
    /// run or a finished run.
    pub(crate) fn claim(&self, flags: &TaskFlags, resume: Option<&Path>) -> Result<()> {
        fs::create_dir_all(&self.0).map_err(|source| Error::io(&self.0, source))?;
        if !self.is_free()? {
            let stored = self.flags()?;
            if resume.is_some_and(|path| self.has_checkpoint(path)) && stored.task == flags.task {
                // The settings and the result of the earlier run stay in the folder for now. They are
                // replaced only after the checkpoint has been loaded, because loading fails if the checkpoint
                // doesn't fit the new flags.
                return self.lock();
            }
            self.check_same(flags, &stored, resume)?;
        }
        self.lock()?;
        write_json(&self.settings(), &settings(flags))
    }

    /// Returns `true` if `path` is the path of this folder's checkpoint. The checkpoint itself may be
    /// missing, because an interrupted save may have moved it away. In this case its name and its parent
    /// folder are compared.
    fn has_checkpoint(&self, path: &Path) -> bool {
        let is_same =
            |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let own = self.checkpoint();
        is_same(path, &own) || path.file_name() == own.file_name() && is_same(folder, &self.0)
    }

    /// Returns an error if the run in this folder has other flags.
    fn check_flags(&self, flags: &TaskFlags, stored: &TaskFlags) -> Result<()> {
        let differences = if stored.task == flags.task {
            words(&flags.differences(stored))
        } else {
            format!("a run of the task `{}`", stored.task)
        };
        if differences.is_empty() {
            return Ok(());
        }
        let is_of_seeds = flags.n_seeds().max(stored.n_seeds()) > 1 || is_one_of_several();
        let remedy = if is_of_seeds { TO_RESUME_A_SEED } else { TO_RESUME };
        Err(Error::file(&self.0, format!("it holds another run: {differences}"), remedy))
    }

    /// Returns an error if the run in this folder has other flags, is finished, or didn't start from the
    /// checkpoint `resume`.
    fn check_same(&self, flags: &TaskFlags, stored: &TaskFlags, resume: Option<&Path>) -> Result<()> {
        self.check_flags(flags, stored)?;
        let refuse = |problem: String, remedy| Err(Error::file(&self.0, problem, remedy));
        if self.result().exists() {
            let remedy = "give a new folder; to train for more --steps, keep the folder, and give --resume \
                FOLDER/checkpoint, too";
            return refuse(
                "it already holds this run, which is finished: see result.json in the folder".to_owned(),
                remedy,
            );
        }
        if resume.is_some() && stored.flags.get("resume") != flags.flags.get("resume") {
            let problem = "it holds a run that was started without --resume, or from another checkpoint";
            let remedy = "leave out --resume to resume the run in the folder, or give a new folder";
            return refuse(problem.to_owned(), remedy);
        }
        Ok(())
    }

    /// Returns the result in the folder, if the run with these flags is finished.
    ///
    /// # Errors
    /// [`Error::File`] if the result isn't JSON.
    pub(crate) fn finished(&self, flags: &TaskFlags) -> Result<Option<Value>> {
        if !self.result().exists() || self.flags().is_ok_and(|stored| stored.task != flags.task) {
            return Ok(None);
        }
        if !self.flags()?.differences(flags).is_empty() {
            return Ok(None);
        }
        let path = self.result();
        let text = fs::read_to_string(&path).map_err(|source| Error::io(&path, source))?;
        let refuse =
            |error: serde_json::Error| Error::file(&path, format!("it isn't JSON ({error})"), OF_A_RUN);
        serde_json::from_str(&text).map(Some).map_err(refuse)
    }

    /// Reserves the folder for the folders and the result of several seeds. The folder must be new, or hold
    /// seeds with the same flags. More seeds may be added to those in the folder; the result of the fewer
    /// seeds is then removed. A folder with neither settings nor a result may hold anything, because each
    /// seed reserves its own folder.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder can't be written. [`Error::File`] if the folder holds another run or more
    /// seeds.
    pub(crate) fn claim_for_seeds(&self, flags: &TaskFlags) -> Result<()> {
        fs::create_dir_all(&self.0).map_err(|source| Error::io(&self.0, source))?;
        let mut n_stored = 0;
        if (self.settings().exists() || self.result().exists()) && !self.is_free()? {
            let stored = self.flags()?;
            n_stored = stored.n_seeds();
            let may_add = (2..flags.n_seeds()).contains(&n_stored);
            let expected = if may_add { flags.with("seeds", json!(n_stored)) } else { flags.clone() };
            self.check_flags(&expected, &stored)?;
        }
        self.lock()?;
        if n_stored == flags.n_seeds() { Ok(()) } else { self.describe(flags, &[]) }
    }

    /// Locks the folder until this process ends, so that no other process writes to it.
    fn lock(&self) -> Result<()> {
        static HELD: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());
        let path = self.0.join(LOCK);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.iter().any(|(known, _)| *known == path) {
            return Ok(());
        }
        let file = File::create(&path).map_err(|source| Error::io(&path, source))?;
        match file.try_lock() {
            Ok(()) => {
                held.push((path, file));
                Ok(())
            }
            Err(fs::TryLockError::WouldBlock) => {
                let remedy = "wait until that run has ended, or give a new folder";
                Err(Error::file(&self.0, "another process is writing it", remedy))
            }
            Err(fs::TryLockError::Error(source)) => Err(Error::io(&path, source)),
        }
    }

    /// Writes the settings file again, with the additional entries `more`, which are known only after the
    /// trainer was built. Also removes the result of an earlier run.
    pub(crate) fn describe(&self, flags: &TaskFlags, more: &[(&str, Value)]) -> Result<()> {
        match fs::remove_file(self.result()) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(Error::io(self.result(), source));
            }
            _ => {}
        }
        let mut settings = settings(flags);
        for (name, value) in more {
            settings[*name] = value.clone();
        }
        write_json(&self.settings(), &settings)
    }

    /// Reads the flags of the run that the folder holds.
    ///
    /// # Errors
    /// [`Error::File`] if the folder holds no run.
    pub(crate) fn flags(&self) -> Result<TaskFlags> {
        let path = self.settings();
        if !path.is_file() {
            return Err(Error::file(
                &self.0,
                "it isn't the folder of a run: it has no settings.json",
                OF_A_RUN,
            ));
        }
        let text = fs::read_to_string(&path).map_err(|source| Error::io(&path, source))?;
        serde_json::from_str(&text).map_err(|error| {
            Error::file(&path, format!("the file doesn't have the settings of a run ({error})"), OF_A_RUN)
        })
    }

    /// Returns `true` if the folder holds nothing but a lock, settings, an empty folder for pictures, and
    /// folders of seeds that hold nothing else.
    fn is_free(&self) -> Result<bool> {
        for entry in fs::read_dir(&self.0).map_err(|source| Error::io(&self.0, source))? {
            let path = entry.map_err(|source| Error::io(&self.0, source))?.path();
            let empty = path == self.pictures()
                && fs::read_dir(&path).is_ok_and(|mut inside| inside.next().is_none());
            let is_seed = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-"));
            if is_seed && path.is_dir() && Self::new(&path).is_free()? {
                continue;
            }
            let is_ours = [self.0.join(LOCK), self.settings(), beside(&self.settings())].contains(&path);
            if !empty && !is_ours {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the content of the settings file: the flags, the command line, the program's version and other
/// entries.
fn settings(flags: &TaskFlags) -> Value {
    json!({
        "task": flags.task,
        "flags": flags.flags,
        "command": std::env::args().collect::<Vec<_>>(),
        "seed": flags.flags.get("seed"),
        "device": flags.flags.get("device"),
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("GFN_COMMIT"),
    })
}

/// Returns the path of a temporary file. New content is written to it before the temporary file replaces the
/// file at `path`.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Describes the differences between the flags of two runs. The text is empty if there are no differences.
fn words(differences: &[(&str, &Value, &Value)]) -> String {
    let shown = |value: &Value| match value {
        Value::Null => "not given".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let all = differences.iter().map(|(name, here, there)| {
        format!("`{name}` is {} in the folder, {} in this command", shown(there), shown(here))
    });
    all.collect::<Vec<_>>().join("; ")
}

/// Writes a value as JSON. The file is replaced in one step, so that it holds either the old or the new
/// content if the process is killed.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    let written =
        fs::write(beside(path), format!("{value:#}\n")).and_then(|()| fs::rename(beside(path), path));
    written.map_err(|source| Error::io(path, source))
}
