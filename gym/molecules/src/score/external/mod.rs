mod error;
mod process;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gfn::runtime::Threads;
use gfn::{Error, Result};

pub use error::ScorerError;
use process::{Lost, Worker};

use super::{MoleculeScore, logs};
use crate::Molecule;

/// Settings of an [`ExternalScorer`]'s program.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalScorerConfig {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The number of processes that run at once.
    pub workers: usize,
    /// SMILES that a worker is given at once, at most: fewer towards the end, and before it has answered all that it was given before.
    pub batch: usize,
    /// The longest wait for the next line, start-up included.
    pub timeout: Duration,
    /// The number of times that a molecule is tried again, by a new process, when the program crashed or gave no answer in time.
    pub retries: usize,
    /// The score of molecules that the program fails on; `None` makes that an error.
    pub on_failure: Option<f64>,
}

impl ExternalScorerConfig {
    /// One worker, batches of 64, a minute of patience, two retries, failures are errors.
    #[must_use]
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            workers: 1,
            batch: 64,
            timeout: Duration::from_secs(60),
            retries: 2,
            on_failure: None,
        }
    }
}

/// Counts of an [`ExternalScorer`]'s work so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScorerUsage {
    /// Molecules that the program was given, each once.
    pub asked: u64,
    /// Scores that were known already, or were asked for twice in one call.
    pub from_cache: u64,
    /// Processes started, those that took the place of others included.
    pub started: u64,
    /// Time that callers waited for the program.
    pub waited: Duration,
}

/// A program that scores molecules: it reads one SMILES per line and writes one number per line, in the same order, and flushes it.
///
/// It is started when it is first needed and stays. Molecules are known by their canonical SMILES, and a score is asked for once:
/// answers are kept for as long as the scorer lives. Batches go to whichever worker is nearly through with its own, so that none idles:
/// 10,000 molecules through two workers take less than 5 % longer than the program itself, at 1 ms a molecule.
///
/// *Failures.* A program that ends, or gives no line in time, is started again and goes on with the first molecule that has no
/// answer, `retries` times for each; then it is an error. So is a line that is no number, or NaN; what was answered before stays in
/// the cache, and the next call starts the program anew. With [`on_failure`](ExternalScorerConfig::on_failure) a molecule that it fails on
/// gets that score instead; NaN or an infinity is an answer in its place then, and the program goes on. A line that no molecule asked for is an error, too, found before the next call
/// asks the process at the latest, unless it has ended by then: answers and molecules may have shifted, so all that it answered is forgotten.
///
/// *Processes.* The program may be a script that starts others: on Unix each one is a process group, which ends as a whole when it
/// is given up and when the scorer is dropped. Ctrl-C in a terminal doesn't reach it; if we are killed, its input ends.
///
/// As a [`MoleculeScore`] its numbers are scores of 0 or more, of which the log is taken.
///
/// ```no_run
/// use gfn_molecules::{ExternalScorer, ExternalScorerConfig};
/// let command = ["python3", "examples/rdkit_scorer.py", "qed"];
/// let scorer = ExternalScorer::new(ExternalScorerConfig { workers: 2, ..ExternalScorerConfig::new(command) })?;
/// let scores = scorer.scores(&["CCO".into(), "c1ccccc1".into()])?;
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct ExternalScorer {
    config: ExternalScorerConfig,
    workers: Mutex<Vec<Option<Worker>>>,
    /// Molecules that the program was given, with its answer where there is one.
    cache: Mutex<HashMap<String, Option<Answer>>>,
    usage: Mutex<ScorerUsage>,
}

/// A score, and which of the processes, in the order in which they were started, gave it.
#[derive(Clone, Copy, Debug)]
struct Answer {
    score: f64,
    process: u64,
}

/// The lock, even where a thread that held it panicked: what it guards is right at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses texts that a program might take for more than one line.
fn check_lines(texts: &[String]) -> std::result::Result<(), ScorerError> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut found =
        texts.iter().enumerate().filter_map(|(row, text)| Some((row, text, text.chars().find(|&c| breaks(c))?)));
    found
        .next()
        .map_or(Ok(()), |(row, text, character)| Err(ScorerError::Control { row, text: text.clone(), character }))
}

impl ExternalScorer {
    /// A scorer that runs this program; nothing is started yet.
    ///
    /// # Errors
    /// [`Error::Config`] without a command, a worker, a batch or patience, and for a score on failure that isn't finite.
    pub fn new(config: ExternalScorerConfig) -> Result<Self> {
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if config.command.is_empty() {
            return refuse("the command of a scorer", "empty".into(), "a program and its arguments");
        }
        if config.workers == 0 || config.batch == 0 || config.timeout.is_zero() {
            let got = format!("{} workers, batches of {}, {:?}", config.workers, config.batch, config.timeout);
            return refuse("a scorer's workers, batch and timeout", got, "more than nothing of each");
        }
        if let Some(score) = config.on_failure.filter(|score| !score.is_finite()) {
            return refuse("the score on failure", score.to_string(), "a finite number");
        }
        let workers = (0..config.workers).map(|_| None).collect();
        Ok(Self { config, workers: Mutex::new(workers), cache: Mutex::default(), usage: Mutex::default() })
    }

    /// The settings of its program.
    #[must_use]
    pub fn config(&self) -> &ExternalScorerConfig {
        &self.config
    }

    /// The number of molecules whose score is known.
    #[must_use]
    pub fn n_cached(&self) -> usize {
        lock(&self.cache).values().flatten().count()
    }

    /// Counts of its work so far: how much the cache saves, and how long callers have waited.
    #[must_use]
    pub fn usage(&self) -> ScorerUsage {
        *lock(&self.usage)
    }

    /// The program's number for each SMILES, which should be canonical.
    ///
    /// # Errors
    /// [`ScorerError`]; what was answered before is kept. [`ScorerError::Control`] for a text with a line break or another control
    /// character, before anything is asked.
    pub fn scores(&self, smiles: &[String]) -> std::result::Result<Vec<f64>, ScorerError> {
        check_lines(smiles)?;
        let mut workers = lock(&self.workers);
        let mut seen = HashSet::new();
        let missing: Vec<&String> = {
            let cache = lock(&self.cache);
            let known = |smiles: &String| cache.get(smiles).is_some_and(Option::is_some);
            smiles.iter().filter(|smiles| !known(smiles) && seen.insert(*smiles)).collect()
        };
        lock(&self.usage).from_cache += (smiles.len() - missing.len()) as u64;
        let began = Instant::now();
        let queue: Mutex<&[&String]> = Mutex::new(&missing);
        let failed = Mutex::new(None);
        // Batches get smaller towards the end, so that all workers end at about the same time: who has more than half of one waits.
        let more = |waiting: usize| {
            let mut left = lock(&queue);
            let batch = left.len().div_ceil(2 * self.config.workers).min(self.config.batch);
            let n = if lock(&failed).is_none() && waiting <= batch / 2 { batch } else { 0 };
            let (batch, rest) = left.split_at(n);
            *left = rest;
            batch
        };
        let work = |worker: &mut Option<Worker>| {
            if let Err(error) = self.run(worker, &more) {
                // Lines of the rest may be on their way: what comes next is asked of a new process.
                *worker = None;
                lock(&failed).get_or_insert(error);
            }
        };
        match workers.as_mut_slice() {
            [worker] => work(worker),
            workers => std::thread::scope(|scope| {
                workers.iter_mut().for_each(|worker| {
                    scope.spawn(|| work(worker));
                })
            }),
        }
        lock(&self.usage).waited += began.elapsed();
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let cache = lock(&self.cache);
        Ok(smiles.iter().filter_map(|smiles| cache.get(smiles)?.map(|answer| answer.score)).collect())
    }

    /// Scores batches for as long as there are more, starting the program as often as it takes.
    fn run<'a>(
        &self,
        worker: &mut Option<Worker>,
        more: &impl Fn(usize) -> &'a [&'a String],
    ) -> std::result::Result<(), ScorerError> {
        // What has no answer, and how much of it this process was given.
        let (mut waiting, mut given, mut tries) = (VecDeque::<&String>::new(), 0, 0);
        loop {
            // The next batch is in the pipe before the last one is through: a program never waits for us.
            waiting.extend(more(waiting.len()));
            let Some(&first) = waiting.front() else {
                return worker.as_ref().map_or(Ok(()), |running| self.check_silent(running));
            };
            let running = match worker {
                Some(running) => running,
                None => worker.insert(self.start()?),
            };
            if given == 0 {
                self.check_silent(running)?;
            }
            if given < waiting.len() {
                self.count(waiting.range(given..));
                running.ask(waiting.range(given..).map(|smiles| format!("{smiles}\n")).collect());
                given = waiting.len();
            }
            let process = running.number;
            let score = match self.answer(running) {
                Ok(score) => {
                    given -= 1;
                    score
                }
                Err(failure) => {
                    if failure.ends_process() {
                        (*worker, given) = (None, 0)
                    } else {
                        given -= 1
                    }
                    tries += 1;
                    if failure.repeats() && tries <= self.config.retries {
                        continue;
                    }
                    self.config.on_failure.ok_or_else(|| failure.named(first.clone(), tries))?
                }
            };
            lock(&self.cache).insert(first.clone(), Some(Answer { score, process }));
            waiting.pop_front();
            tries = 0;
        }
    }

    fn start(&self) -> std::result::Result<Worker, ScorerError> {
        let command = &self.config.command;
        let mut usage = lock(&self.usage);
        let worker = Worker::start(command, usage.started + 1)
            .map_err(|error| ScorerError::Start { command: command.clone(), reason: error.to_string() })?;
        usage.started += 1;
        Ok(worker)
    }

    /// Notes what the program is given, each molecule the first time.
    fn count<'a>(&self, given: impl Iterator<Item = &'a &'a String>) {
        let mut cache = lock(&self.cache);
        for smiles in given {
            if !cache.contains_key(*smiles) {
                cache.insert((*smiles).clone(), None);
                lock(&self.usage).asked += 1;
            }
        }
    }

    /// Finds a line that nothing asked for. Which one it was isn't known: none of the process's answers can be trusted.
    fn check_silent(&self, worker: &Worker) -> std::result::Result<(), ScorerError> {
        let Some(line) = worker.stray() else { return Ok(()) };
        let theirs = |answer: &Answer| answer.process == worker.number;
        lock(&self.cache)
            .values_mut()
            .filter(|answer| answer.as_ref().is_some_and(theirs))
            .for_each(|answer| *answer = None);
        Err(ScorerError::Unasked { line })
    }

    /// The next answer, or what was wrong with it.
    fn answer(&self, worker: &Worker) -> std::result::Result<f64, Failure> {
        match worker.answer(self.config.timeout) {
            Ok(line) => match line.parse::<f64>() {
                Ok(score) if score.is_finite() => Ok(score),
                Ok(value) => Err(Failure::NonFinite(value)),
                Err(_) => Err(Failure::NoNumber(line)),
            },
            Err(Lost::Gone) => Err(Failure::Crashed),
            Err(Lost::Silent) => Err(Failure::TimedOut(self.config.timeout.as_secs_f64())),
        }
    }
}

/// What went wrong with one molecule.
enum Failure {
    Crashed,
    TimedOut(f64),
    NoNumber(String),
    NonFinite(f64),
}

impl Failure {
    /// `true` if another process might do better.
    fn repeats(&self) -> bool {
        matches!(self, Self::Crashed | Self::TimedOut(_))
    }

    /// `true` if the process can't be asked further: NaN is one answer to one question.
    fn ends_process(&self) -> bool {
        !matches!(self, Self::NonFinite(_))
    }

    fn named(self, smiles: String, tries: usize) -> ScorerError {
        match self {
            Self::Crashed => ScorerError::Crashed { smiles, tries },
            Self::TimedOut(seconds) => ScorerError::TimedOut { smiles, seconds, tries },
            Self::NoNumber(line) => ScorerError::NoNumber { smiles, line },
            Self::NonFinite(value) => ScorerError::NonFinite { smiles, value },
        }
    }
}

impl MoleculeScore for ExternalScorer {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        let smiles = Threads::try_map(molecules, 32, |molecule| Ok(molecule.smiles()))?;
        logs(&self.scores(&smiles)?)
    }
}
