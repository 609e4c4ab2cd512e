//! Training with several seeds side by side, in one process.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Progress;
use crate::parallel::{self, AtEnd};
use crate::{Error, Result, runtime};

/// The time for which a seed computes before it leaves its thread to a seed that waits.
const TURN: Duration = Duration::from_millis(50);
/// The time from the start of a run until its progress line appears.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Calls `work` with each seed, and returns the results in the order of the seeds. At most `threads` seeds
/// compute at the same time.
///
/// Each seed runs alone on its thread, with one libtorch thread and without rayon's pool. Its result is bit
/// for bit the result of a run with this seed alone, if that run has one libtorch thread, too. While `work`
/// trains by [`Fit`](super::Fit), seeds take turns if there are more seeds than threads, so that no thread is
/// idle at the end: five seeds on two threads take the time of two and a half. Up to `2 threads - 1` trainers
/// are in memory at the same time. All seeds share one progress line, and warnings name their seed.
///
/// ```
/// use gfn::{examples::word_env, prelude::*, run::train_seeds};
/// // Words of at most three letters; each letter `b` (2) is worth a factor of e.
/// let tv = |seed| {
///     let reward = PerVector(|word: &[u16]| word.iter().filter(|&&letter| letter == 2).count() as f64);
///     let trained = Experiment::new(word_env(2, 3), reward).steps(100).seed(seed).train()?;
///     Ok(trained.exact(100)?.distances.tv)
/// };
/// let distances = train_seeds(0..5, 2, tv)?;
/// let mean = distances.iter().sum::<f64>() / 5.0;
/// assert!(mean < 0.2 && distances[3] == tv(3)?);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for 0 threads. [`Error::Seed`] with the first of the seeds for which `work` failed,
/// after all other seeds have ended.
///
/// # Panics
/// If `work` panics, after all seeds have ended.
pub fn train_seeds<T: Send>(
    seeds: impl IntoIterator<Item = u64>,
    threads: usize,
    work: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if threads == 0 {
        return Err(Error::config("threads", 0, "at least one thread for the seeds"));
    }
    // Part of libtorch's number of threads belongs to the process, so the number is restored at the end.
    runtime::prepare();
    let libtorch = tch::get_num_threads();
    let _libtorch = AtEnd(|| tch::set_num_threads(libtorch));
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let n = seeds.len();
    let queue = Arc::new(SeedQueue { n, threads, ..SeedQueue::default() });
    let results: Vec<Result<T>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (index, &seed) in seeds.iter().enumerate() {
            queue.wait_until(|state| state.may_start(n, threads)).n_started += 1;
            let place =
                SeedPlace { queue: Arc::clone(&queue), index, seed, began: Cell::new(Instant::now()) };
            let work = &work;
            running.push(scope.spawn(move || place.run(work)));
        }
        let join = |seed: std::thread::ScopedJoinHandle<'_, _>| {
            seed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect()
    });
    if let Some(line) = queue.progress.lock().unwrap_or_else(PoisonError::into_inner).take() {
        finish(line);
    }
    let n_failed = results.iter().filter(|result| result.is_err()).count();
    let named = results.into_iter().zip(seeds).map(|(result, seed)| {
        result.map_err(|source| Error::Seed { seed, n_failed, n, source: Box::new(source) })
    });
    named.collect()
}

/// The seeds of [`train_seeds`], and the threads that they share.
#[derive(Default)]
struct SeedQueue {
    /// The number of all seeds.
    n: usize,
    /// The largest number of seeds that compute at the same time.
    threads: usize,
    state: Mutex<QueueState>,
    changed: Condvar,
    /// The progress line of all seeds; `None` until a run begins that shows its progress.
    progress: Mutex<Option<Arc<Mutex<Progress>>>>,
}

#[derive(Default)]
struct QueueState {
    /// The indices of seeds that wait for a thread, in the order in which they get one.
    waiting: VecDeque<usize>,
    n_computing: usize,
    n_started: usize,
    n_ended: usize,
}

impl QueueState {
    /// Returns `true` if another of `n` seeds may start. Seeds start as others end, so that few trainers are
    /// in memory. The last seeds all start at once and take turns, because otherwise some threads would be
    /// idle while the last seeds run: as whole runs, five seeds on two threads take the time of three.
    fn may_start(&self, n: usize, threads: usize) -> bool {
        self.n_started - self.n_ended < threads || n - self.n_ended < 2 * threads
    }
}

impl SeedQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, is_so: impl Fn(&QueueState) -> bool) -> MutexGuard<'_, QueueState> {
        let waited = self.changed.wait_while(self.state(), |state| !is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the seed at `index` may compute.
    fn enter(&self, index: usize) {
        self.state().waiting.push_back(index);
        let is_next =
            |state: &QueueState| state.n_computing < self.threads && state.waiting.front() == Some(&index);
        let mut state = self.wait_until(is_next);
        state.waiting.pop_front();
        state.n_computing += 1;
        self.changed.notify_all();
    }
}

thread_local! {
    /// The seed that this thread trains; `None` outside of [`train_seeds`].
    static PLACE: RefCell<Option<SeedPlace>> = const { RefCell::new(None) };
}

/// A seed of a [`SeedQueue`], on its thread.
struct SeedPlace {
    queue: Arc<SeedQueue>,
    index: usize,
    seed: u64,
    /// The time since which the seed computes.
    began: Cell<Instant>,
}

impl SeedPlace {
    /// Calls `work` with the seed, as soon as the seed may compute.
    fn run<T>(self, work: impl Fn(u64) -> Result<T>) -> Result<T> {
        let seed = self.seed;
        let queue = Arc::clone(&self.queue);
        queue.enter(self.index);
        let _leaving = AtEnd(|| {
            let mut state = queue.state();
            state.n_computing -= 1;
            state.n_ended += 1;
            queue.changed.notify_all();
        });
        self.began.set(Instant::now());
        PLACE.set(Some(self));
        tch::set_num_threads(1);
        parallel::alone(|| work(seed))
    }
}

/// Lets a seed that waits compute instead of this thread's seed, if that seed's turn is over. Returns when
/// this thread's seed may compute again. Does nothing outside of [`train_seeds`].
pub(super) fn take_turns() {
    PLACE.with_borrow(|place| {
        let Some(SeedPlace { queue, index, began, .. }) = place else { return };
        if began.get().elapsed() < TURN {
            return;
        }
        let mut state = queue.state();
        if !state.waiting.is_empty() {
            state.n_computing -= 1;
            queue.changed.notify_all();
            drop(state);
            queue.enter(*index);
        }
        began.set(Instant::now());
    });
}

/// Returns the text that begins this thread's messages: the seed in [`train_seeds`], nothing otherwise.
pub(super) fn prefix() -> String {
    let seed = PLACE.with_borrow(|place| place.as_ref().map(|place| place.seed));
    seed.map_or_else(String::new, |seed| format!("seed {seed}: "))
}

/// The progress of a run, which is shown in a line of its own. The runs in [`train_seeds`] share one line,
/// which shows the steps of all seeds.
pub(super) struct RunProgress {
    line: Arc<Mutex<Progress>>,
    /// The number of steps that the run has made.
    step: usize,
}

impl RunProgress {
    /// Begins a run up to `steps` steps, of which `done` were made before, by a run that is resumed.
    pub(super) fn new(steps: usize, done: usize, label: &str) -> Self {
        let new = |n: usize, label: &str| {
            Arc::new(Mutex::new(Progress::new((n * steps) as u64, label).after(PROGRESS_DELAY)))
        };
        let line = PLACE.with_borrow(|place| {
            let Some(SeedPlace { queue, .. }) = place else { return new(1, label) };
            let mut shared = queue.progress.lock().unwrap_or_else(PoisonError::into_inner);
            let label = format!("{label}, {} seeds", queue.n);
            Arc::clone(shared.get_or_insert_with(|| new(queue.n, &label)))
        });
        line.lock().unwrap_or_else(PoisonError::into_inner).add_resumed(done as u64);
        Self { line, step: done }
    }

    /// Reports that the run has made `step` steps, with its latest loss and log Z.
    pub(super) fn update(&mut self, step: usize, loss: f64, log_z: Option<f64>) {
        let made = (step - self.step) as u64;
        self.step = step;
        self.line.lock().unwrap_or_else(PoisonError::into_inner).advance(made, loss, log_z);
    }

    /// Leaves the line on the terminal, unless other seeds use it.
    pub(super) fn finish(self) {
        finish(self.line);
    }
}

fn finish(line: Arc<Mutex<Progress>>) {
    if let Some(line) = Arc::into_inner(line) {
        line.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    }
}
