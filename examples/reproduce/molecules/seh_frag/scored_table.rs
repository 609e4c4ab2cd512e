//! A table of all molecules that a run has scored.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use gfn::{Error, Result};

/// A CSV file with a row for each scored molecule. A row holds the training step, the SMILES, and the score
/// before it is raised to a power. Only the rows of the current step are held in memory.
///
/// A resumed run appends to the file, after it has removed the rows of the steps that it will repeat.
pub(crate) struct ScoredTable {
    path: PathBuf,
    /// The last step whose rows were written; 0 before the first step.
    step: usize,
    /// The SMILES and the score of each molecule that was scored since the last written step.
    pending: Vec<(String, f64)>,
}

impl ScoredTable {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, step: 0, pending: Vec::new() }
    }

    /// Adds a molecule to the rows of the current step.
    pub(crate) fn push(&mut self, smiles: String, reward: f64) {
        self.pending.push((smiles, reward));
    }

    /// Writes the pending rows with the step number `step`. For `None`, the rows get the number of the step
    /// that follows the last written step.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be written.
    pub(crate) fn finish_step(&mut self, step: Option<usize>) -> Result<()> {
        let is_first = self.step == 0;
        self.step = step.unwrap_or(self.step + 1);
        let new = self.pending.drain(..).map(|(smiles, reward)| format!("{},{smiles},{reward}\n", self.step));
        let new: String = new.collect();
        let written = if is_first {
            fs::write(&self.path, format!("step,smiles,reward\n{}{new}", self.rows_before()))
        } else {
            let file = OpenOptions::new().append(true).open(&self.path);
            file.and_then(|mut file| file.write_all(new.as_bytes()))
        };
        written.map_err(|source| Error::io(&self.path, source))
    }

    /// Returns the rows in the file whose step is earlier than the current step. An incomplete last row,
    /// which a killed run may have left, is dropped.
    fn rows_before(&self) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let step = |row: &str| row.split(',').next()?.parse::<usize>().ok().filter(|_| row.ends_with('\n'));
        text.split_inclusive('\n').filter(|row| step(row).is_some_and(|step| step < self.step)).collect()
    }
}
