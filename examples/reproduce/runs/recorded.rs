//! What is in the folder of a run, read back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gfn::{Error, Result};
use serde_json::{Map, Value};

use super::asked::Asked;
use super::folder::{RunFolder, read_json};
use super::made::Made;

/// A run as its folder has it, finished or not.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) path: PathBuf,
    pub(crate) asked: Asked,
    /// The object of `result.json`, once it is there.
    pub(crate) result: Option<Map<String, Value>>,
    /// The lines of `metrics.jsonl`.
    pub(crate) steps: Vec<Map<String, Value>>,
}

/// Figures of a step that say what it was, not how good it is.
const OF_STEP: [&str; 7] = ["step", "reward_calls", "mean_len", "states", "distinct", "grad_norm", "seconds"];
/// Figures of a result that say what the run was.
pub(crate) const OF_RUN: [&str; 10] =
    ["example", "seed", "steps", "batch", "threads", "device", "exact", "params", "samples", "evaluated_samples"];

impl Recorded {
    /// Reads a folder.
    ///
    /// # Errors
    /// [`Error::File`] where there is no run, or something else under the names of its files.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let folder = RunFolder::new(path);
        let asked = folder.asked()?;
        let result = match folder.result().exists() {
            true => Some(object(&folder.result(), read_json(&folder.result())?)?),
            false => None,
        };
        Ok(Self { path: path.to_owned(), asked, result, steps: lines(&folder.metrics())? })
    }

    /// A figure of its result.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.result.as_ref()?.get(name)?.as_f64()
    }

    /// Steps that were made.
    pub(crate) fn steps_made(&self) -> u64 {
        self.steps.last().and_then(|line| line.get("step")).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A figure over the steps at which it was measured.
    pub(crate) fn curve(&self, name: &str) -> Vec<(f64, f64)> {
        let point = |line: &Map<String, Value>| Some((line.get("step")?.as_f64()?, line.get(name)?.as_f64()?));
        self.steps.iter().filter_map(point).collect()
    }
}

/// The figures that any of these runs recorded: loss and log Z, then what was measured.
pub(crate) fn measured(runs: &[Recorded]) -> Vec<String> {
    let names = runs.iter().flat_map(|run| &run.steps).flat_map(|line| line.iter());
    let own = |name: &str| OF_STEP.contains(&name) || name == "loss" || name == "log_z";
    let metrics: BTreeSet<&String> =
        names.filter(|(name, value)| !own(name) && value.is_number()).map(|(name, _)| name).collect();
    ["loss", "log_z"].into_iter().map(str::to_owned).chain(metrics.into_iter().cloned()).collect()
}

/// Short names that differ: of folders their own names, or with as many of the folders above as it takes.
pub(crate) fn labels(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|path| path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect())
        .collect();
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let named = |n: usize| -> Vec<String> {
        parts.iter().map(|parts| parts[parts.len().saturating_sub(n)..].join("/")).collect()
    };
    let differ = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    (1..=longest).map(named).find(differ).unwrap_or_else(|| named(longest))
}

/// A curve of at most some hundred points: means over windows of as many steps.
pub(crate) fn smoothed(points: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    let mean =
        |points: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    points.chunks(window.max(1)).map(|window| (mean(window, |point| point.0), mean(window, |point| point.1))).collect()
}

/// The lines of a file of metrics; none where there is no file, and without an incomplete last one.
fn lines(path: &Path) -> Result<Vec<Map<String, Value>>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |(k, line): (usize, &str)| {
        let parsed = serde_json::from_str(line)
            .map_err(|error| Error::file(path, format!("line {} isn't a line of metrics ({error})", k + 1), REMEDY))?;
        object(path, parsed)
    };
    whole.lines().enumerate().map(line).collect()
}

/// The steps that the run in a folder has made, up to that of its checkpoint.
///
/// # Errors
/// [`Error::File`] for lines that lack a figure of every step.
pub(crate) fn steps_before(folder: &RunFolder, done: usize) -> Result<Vec<Made>> {
    let path = folder.metrics();
    let read = |(k, line): (usize, Map<String, Value>)| {
        Made::read(line).map_err(|lacks| {
            Error::file(&path, format!("line {} isn't a line of metrics: it has no `{lacks}`", k + 1), REMEDY)
        })
    };
    // What is behind is of a part that will be made again.
    let is_behind =
        |line: &Map<String, Value>| line.get("step").and_then(Value::as_u64).is_some_and(|step| step > done as u64);
    lines(&path)?.into_iter().enumerate().take_while(|(_, line)| !is_behind(line)).map(read).collect()
}

const REMEDY: &str = "give a folder that --run wrote, as it was written";

fn object(path: &Path, value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Error::file(path, format!("`{other}` isn't an object of figures by name"), REMEDY)),
    }
}
