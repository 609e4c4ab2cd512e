//! An observer that writes a file of metrics with one line of JSON per step.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::run::{Observer, Record};
use crate::train::TrainEnv;
use crate::train::Trainer;
use crate::{Error, Result};

/// An observer that writes one JSON object per step, each on its own line (JSON Lines). Add this observer
/// after all observers that measure metrics, so that it also writes their metrics.
///
/// The keys are `step`, `reward_calls`, the fields of [`StepStats`](crate::train::StepStats), and the metrics
/// measured after the step. A number that isn't finite is written as `null`. Each line is passed to the
/// operating system at once, so that the file of a killed process has all its lines.
///
/// A resumed run continues the file. The run first removes an incomplete last line, and the lines of steps
/// after the checkpoint, because it makes these steps again. A run from step 0 starts a new file.
#[derive(Debug)]
pub struct MetricsFile {
    path: PathBuf,
    file: Option<File>,
}

impl MetricsFile {
    /// Returns an observer that writes a file at `path`. The file's folder must exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None }
    }

    fn io(&self) -> impl Fn(std::io::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::io(path.clone(), source)
    }
}

/// Opens a metrics file and removes everything after the line of step `done`.
fn open(path: &Path, done: usize) -> Result<File> {
    #[derive(Deserialize)]
    struct Line {
        step: usize,
    }
    let io = |source| Error::io(path, source);
    let foreign = |line: usize| {
        Error::file(
            path,
            format!("line {line} isn't a line of metrics"),
            "give the path of a new file, or of a file that a run wrote its metrics to",
        )
    };
    // A terminal, a pipe or a device can't be read back or truncated, so it is only written to.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(path).map_err(io);
    }
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    let mut reader = BufReader::new(&file);
    let mut kept = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(io)?;
        if !line.ends_with(b"\n") {
            // The line is empty or incomplete: the file ends here, or a killed run left a partial line. Lines
            // of metrics begin with a brace. If this line doesn't, the file wasn't written by this observer,
            // so it isn't overwritten.
            if length > 0 && line[0] != b'{' {
                return Err(foreign(number));
            }
            break;
        }
        let parsed: Line = serde_json::from_slice(&line).map_err(|_| foreign(number))?;
        if parsed.step > done {
            break;
        }
        kept += length as u64;
    }
    drop(reader);
    let mut out = file;
    out.set_len(kept).map_err(io)?;
    out.seek(SeekFrom::Start(kept)).map_err(io)?;
    Ok(out)
}

impl<E: TrainEnv> Observer<E> for MetricsFile {
    fn name(&self) -> &str {
        "metrics_file"
    }

    fn start(&mut self, trainer: &Trainer<E>, _state: Option<&Value>) -> Result<()> {
        self.file = Some(open(&self.path, trainer.steps_done())?);
        Ok(())
    }

    fn after_step(&mut self, _trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let io = self.io();
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_vec(record).map_err(|error| io(error.into()))?;
            line.push(b'\n');
            file.write_all(&line).map_err(io)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Forces the file's data to disk before a checkpoint is saved. Otherwise a crash of the machine could
    /// lose the lines of steps that the checkpoint contains.
    fn save(&mut self) -> Result<Value> {
        let io = self.io();
        // Only a regular file can be forced to disk; for a pipe or a device nothing is done.
        let file = self.file.as_ref().filter(|file| file.metadata().is_ok_and(|there| there.is_file()));
        file.map_or(Ok(()), File::sync_data).map_err(io)?;
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::io::replace::tests::folder;

    #[test]
    fn a_resumed_run_continues_after_its_last_line() {
        let folder = folder("metrics");
        let path = folder.join("metrics.jsonl");
        let lines = "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":null}\n{\"step\":3}\n{\"step\":4,\"lo";
        for (done, kept) in [(0, 0), (1, 1), (3, 3), (9, 3)] {
            fs::write(&path, lines).unwrap();
            open(&path, done).unwrap().write_all(b"new\n").unwrap();
            let expected: Vec<&str> = lines.lines().take(kept).chain(["new"]).collect();
            assert_eq!(fs::read_to_string(&path).unwrap().lines().collect::<Vec<_>>(), expected);
        }
        for foreign in ["# my notes\n{\"step\":1}\n", "notes", "{\"loss\":1}\n"] {
            fs::write(&path, foreign).unwrap();
            let message = open(&path, 0).unwrap_err().to_string();
            assert!(message.contains("line 1 isn't a line of metrics"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), foreign, "untouched");
        }
        assert!(matches!(open(&folder.join("none/metrics.jsonl"), 0), Err(Error::Io { .. })));
        fs::remove_dir_all(folder).unwrap();
    }
}
