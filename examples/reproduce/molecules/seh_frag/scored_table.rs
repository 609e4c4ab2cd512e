//! The table of all molecules that a run scored.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use gfn::{Error, Result};

/// A CSV file with a row for each scored molecule: the step, the SMILES, and R before it is raised to a
/// power. Only the rows of the current step are held in memory.
///
/// A resumed run continues the file, and removes the rows of steps that it makes again.
pub(crate) struct ScoredTable {
    path: PathBuf,
    /// The last step whose rows were written; 0 if no step was.
    step: usize,
    /// The SMILES and reward of each molecule that was scored since that step.
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

    /// Writes the rows of step `step`. `None` stands for the step after the last one.
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

    /// Returns the rows in the file that belong to earlier steps. A killed run may have left an incomplete
    /// last row, which is dropped.
    fn rows_before(&self) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let step = |row: &str| row.split(',').next()?.parse::<usize>().ok().filter(|_| row.ends_with('\n'));
        text.split_inclusive('\n').filter(|row| step(row).is_some_and(|step| step < self.step)).collect()
    }
}
