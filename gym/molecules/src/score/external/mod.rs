mod error;
mod process;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gfn::runtime::Threads;
use gfn::{Error, Result};

pub use error::ScorerError;
use process::Process;

use super::{MoleculeScore, logs};
use crate::Molecule;

/// A program that scores molecules: it reads one SMILES per line and writes one number per line, in the same
/// order, and flushes it.
///
/// It is started when it is first needed and stays. Molecules are known by their canonical SMILES, and a
/// score is asked for once: answers are kept for as long as the scorer lives.
///
/// *Failures.* A program that ends, gives no line in time, or writes anything but a finite number is an
/// error, and so is a line that no molecule asked for. What was answered before an error is kept, except
/// after an unasked line: then answers and molecules may have shifted, and all answers are forgotten. The
/// next call starts the program anew. An unasked line is found before the next call, if it has come through
/// the pipe by then.
///
/// *Processes.* The program may be a script that starts others: on Unix it is a process group, which ends as
/// a whole after an error and when the scorer is dropped. Ctrl-C in a terminal doesn't reach it; if this
/// process is killed, its input ends.
///
/// As a [`MoleculeScore`] its numbers are scores of 0 or more, of which the log is taken.
///
/// ```no_run
/// use std::time::Duration;
/// use gfn_molecules::ExternalScorer;
/// let scorer = ExternalScorer::new(["python3", "examples/rdkit_scorer.py", "qed"], Duration::from_secs(60))?;
/// let scores = scorer.scores(&["CCO".into(), "c1ccccc1".into()])?;
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct ExternalScorer {
    command: Vec<String>,
    timeout: Duration,
    state: Mutex<State>,
}

/// The running program, and the answers so far.
#[derive(Default, Debug)]
struct State {
    process: Option<Process>,
    cache: HashMap<String, f64>,
}

/// Refuses texts that a program might take for more than one line.
fn check_lines(texts: &[String]) -> std::result::Result<(), ScorerError> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    for (row, text) in texts.iter().enumerate() {
        if let Some(character) = text.chars().find(|&c| breaks(c)) {
            return Err(ScorerError::Control { row, text: text.clone(), character });
        }
    }
    Ok(())
}

impl ExternalScorer {
    /// A scorer that runs this program with these arguments; nothing is started yet. `timeout` is the longest
    /// wait for the next line, start-up included.
    ///
    /// # Errors
    /// [`Error::Config`] for an empty command or a timeout of zero.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>, timeout: Duration) -> Result<Self> {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        if command.is_empty() {
            return Err(Error::config("the command of a scorer", "empty", "a program and its arguments"));
        }
        if timeout.is_zero() {
            return Err(Error::config("the timeout of a scorer", "0 s", "more than nothing"));
        }
        Ok(Self { command, timeout, state: Mutex::default() })
    }

    /// The number of molecules whose score is known: each was given to the program once.
    #[must_use]
    pub fn n_cached(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).cache.len()
    }

    /// The program's number for each SMILES, which should be canonical.
    ///
    /// # Errors
    /// [`ScorerError`]; what was answered before is kept. [`ScorerError::Control`] for a text with a line
    /// break or another control character, before the program is given anything.
    pub fn scores(&self, smiles: &[String]) -> std::result::Result<Vec<f64>, ScorerError> {
        check_lines(smiles)?;
        // What the lock guards is right at every moment, even if a thread that held it panicked.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        let missing: Vec<&String> =
            smiles.iter().filter(|smiles| !state.cache.contains_key(*smiles) && seen.insert(*smiles)).collect();
        if !missing.is_empty()
            && let Err(error) = self.ask(&mut state, &missing)
        {
            // Lines of the rest may be on their way: the next call gets a new process.
            state.process = None;
            return Err(error);
        }
        Ok(smiles.iter().filter_map(|smiles| state.cache.get(smiles).copied()).collect())
    }

    /// Asks the program, started if need be, for these scores, and keeps them.
    fn ask(&self, state: &mut State, missing: &[&String]) -> std::result::Result<(), ScorerError> {
        let State { process, cache } = state;
        let running = match process {
            Some(running) => running,
            None => {
                let refused = |error| ScorerError::Start {
                    command: self.command.clone(),
                    reason: std::io::Error::to_string(&error),
                };
                process.insert(Process::start(&self.command).map_err(refused)?)
            }
        };
        check_silent(running, cache)?;
        running.send(missing.iter().map(|smiles| format!("{smiles}\n")).collect());
        for &smiles in missing {
            let smiles = smiles.clone();
            let line = match running.answers.recv_timeout(self.timeout) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Err(ScorerError::Crashed { smiles }),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ScorerError::TimedOut { smiles, seconds: self.timeout.as_secs_f64() });
                }
            };
            match line.parse::<f64>() {
                Ok(score) if score.is_finite() => cache.insert(smiles, score),
                Ok(value) => return Err(ScorerError::NonFinite { smiles, value }),
                Err(_) => return Err(ScorerError::NoNumber { smiles, line }),
            };
        }
        check_silent(running, cache)
    }
}

/// Finds a line that no molecule asked for. Which one it was isn't known, so no answer can be trusted.
fn check_silent(process: &Process, cache: &mut HashMap<String, f64>) -> std::result::Result<(), ScorerError> {
    let Ok(line) = process.answers.try_recv() else { return Ok(()) };
    cache.clear();
    Err(ScorerError::Unasked { line })
}

impl MoleculeScore for ExternalScorer {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let smiles = Threads::try_map(molecules, 32, |molecule| Ok(molecule.smiles()))?;
        logs(&self.scores(&smiles)?)
    }
}
