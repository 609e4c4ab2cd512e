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

/// A score that an external program computes. The program reads one SMILES per line. For each SMILES, in
/// the same order, it writes a line with one number and flushes its output.
///
/// The program is started at the first request and keeps running. Molecules are identified by their
/// canonical SMILES. Each score is requested once and cached for the lifetime of the scorer.
///
/// *Failures.* It is an error if the program ends, writes no line in time, writes anything but a finite
/// number, or writes a superfluous line, for which no score was requested. Scores that were received before
/// the error stay cached, and the next call restarts the program. After a superfluous line, cached scores
/// may belong to other molecules, so the cache is cleared. A superfluous line is detected at the next call
/// at the latest, if it has arrived by then.
///
/// *Processes.* The program may be a script that starts other programs. On Unix, all of them form a process
/// group, which is killed after an error and when the scorer is dropped. Ctrl-C in a terminal doesn't reach
/// this group. If the process of the scorer is killed, the program sees the end of its input.
///
/// As a [`MoleculeScore`], the scorer returns the logarithms of the program's numbers. The numbers must
/// then be 0 or more.
///
/// ```no_run
/// use gfn_molecules::ExternalScorer;
/// use std::time::Duration;
/// let scorer =
///     ExternalScorer::new(["python3", "examples/rdkit_scorer.py", "qed"], Duration::from_secs(60))?;
/// let scores = scorer.scores(&["CCO".into(), "c1ccccc1".into()])?;
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct ExternalScorer {
    command: Vec<String>,
    timeout: Duration,
    state: Mutex<State>,
}

/// The running program of a scorer, and the cached scores.
#[derive(Default, Debug)]
struct State {
    process: Option<Process>,
    cache: HashMap<String, f64>,
}

/// Returns an error for a text with a control character, because a program could read it as several lines.
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
    /// Creates a scorer from a command: a program and its arguments. The program isn't started yet.
    /// `timeout` is the longest time that the scorer waits for a line. The timeout includes the time that
    /// the program needs to start.
    ///
    /// # Errors
    /// [`Error::Config`] for an empty command or a timeout of zero.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>, timeout: Duration) -> Result<Self> {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        if command.is_empty() {
            return Err(Error::config("the command of a scorer", "empty", "a program and its arguments"));
        }
        if timeout.is_zero() {
            return Err(Error::config("the timeout of a scorer", "0 s", "a duration above 0 s"));
        }
        Ok(Self { command, timeout, state: Mutex::default() })
    }

    /// Returns the number of molecules with a cached score.
    #[must_use]
    pub fn n_cached(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).cache.len()
    }

    /// Returns the program's number for each SMILES. The SMILES should be canonical, because scores are
    /// cached by their text.
    ///
    /// # Errors
    /// [`ScorerError`] if the program fails. Numbers that were received before the failure stay cached.
    /// [`ScorerError::Control`] for a text with a line break or another control character; in this case,
    /// nothing is sent to the program.
    pub fn scores(&self, smiles: &[String]) -> std::result::Result<Vec<f64>, ScorerError> {
        check_lines(smiles)?;
        // A thread that panics while it holds the lock leaves a consistent state. The state can therefore
        // be used even if the lock is poisoned.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = HashSet::new();
        let missing: Vec<&String> = smiles
            .iter()
            .filter(|smiles| !state.cache.contains_key(*smiles) && seen.insert(*smiles))
            .collect();
        if !missing.is_empty()
            && let Err(error) = self.ask(&mut state, &missing)
        {
            // Answers to the failed request may still arrive later, so the next call starts a new process.
            state.process = None;
            return Err(error);
        }
        Ok(smiles.iter().filter_map(|smiles| state.cache.get(smiles).copied()).collect())
    }

    /// Requests scores for the SMILES in `missing` and caches them. Starts the program if it isn't running.
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

/// Returns an error if the program wrote a line for which no score was requested. The cache is cleared in
/// this case, because it is unknown which line was superfluous.
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
