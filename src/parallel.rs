//! Work on rows. The work is split over rayon's threads if there are enough rows and if splitting was
//! measured to be faster.
//!
//! Passing work to the pool costs tens of microseconds, more than a small batch takes, so small batches stay
//! on the calling thread. If other programs use the cores, the pool can be slower than one thread for larger
//! batches, too, because the calling thread waits for workers that have no core. Each place in the code that
//! splits work therefore compares the pool with the calling thread in trials of a few calls. Very large calls
//! use the pool without a trial. The results of the work are the same with and without the pool.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::time::Instant;

use rayon::prelude::*;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
    /// The state of the trials (comparisons of the pool with the calling thread) of each place in the code
    /// that splits work.
    static CHOICES: RefCell<HashMap<&'static Location<'static>, Choice>> = RefCell::default();
}

/// The number of calls of a trial, which compares the thread pool with the calling thread. Half of these
/// calls use the pool.
const TRIAL_CALLS: u32 = 32;
/// The total time of the calls of a trial (a comparison of the pool with the calling thread), in seconds,
/// after which the trial ends early. Such a trial counts as `NEEDED_WINS` trials if the pool wins it.
const LONG_TRIAL: f64 = 0.5;
/// A call counts as large if it has at least this number times the minimum number of rows per thread. Large
/// calls use the thread pool without a trial of its speed.
const LARGE_CALL: usize = 1_024;
/// The number of successive trials (comparisons with the calling thread) that the pool must win before the
/// calls between trials use it. A trial that ended early because its calls are long counts as this many
/// trials. After a single lost trial the pool isn't used any more between trials.
const NEEDED_WINS: u32 = 4;
/// The pool wins a trial (a comparison with the calling thread) if its time per row is at most this share of
/// the calling thread's time per row.
const MAX_POOL_TIME_SHARE: f64 = 0.9;
/// The number of calls between two trials (comparisons of the pool with the calling thread) while the pool is
/// used. Each successive lost trial doubles the number, up to 16 times this constant. After a trial that
/// ended early, the number is at most 32 times the number of calls of the trial.
const PAUSE: u32 = 256;

/// The choice between the pool and the calling thread at one place in the code, based on the times of earlier
/// calls.
#[derive(Clone, Copy, Default, Debug)]
struct Choice {
    /// The number of calls until the next trial (a comparison of the pool with the calling thread) begins.
    pause: u32,
    /// The number of calls made so far in the current trial (a comparison of the pool with the calling
    /// thread).
    calls: u32,
    /// The number of successive trials (comparisons with the calling thread) that the pool has won.
    wins: u32,
    /// The number of successive trials (comparisons with the calling thread) that the pool has lost.
    losses: u32,
    /// The total seconds and rows of the calls of the current trial. The first entry is for the calling
    /// thread, the second entry for the pool.
    measured: [(f64, f64); 2],
}

impl Choice {
    /// Returns `true` if the next call should use the pool.
    fn uses_pool(&self) -> bool {
        if self.pause > 0 {
            return self.wins >= NEEDED_WINS;
        }
        // The Thue-Morse sequence decides which calls use the pool. Early, large and regularly repeated calls
        // are then equally frequent among the calls with and without the pool.
        self.calls.count_ones() % 2 == 1
    }

    /// Records the time of a call, unless it comes between two trials (comparisons of the pool with the
    /// calling thread). If it is the last call of a trial, decides if the pool has won the trial.
    fn record(&mut self, pooled: bool, rows: usize, seconds: f64) {
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let sums = &mut self.measured[usize::from(pooled)];
        *sums = (sums.0 + seconds, sums.1 + rows as f64);
        self.calls += 1;
        let is_long = self.measured[0].0 + self.measured[1].0 >= LONG_TRIAL && self.calls.is_multiple_of(4);
        if self.calls < TRIAL_CALLS && !is_long {
            return;
        }
        let [alone, pool] = self.measured.map(|(seconds, rows)| seconds / rows);
        let won = pool <= MAX_POOL_TIME_SHARE * alone;
        let gained = if is_long { NEEDED_WINS } else { 1 };
        let (wins, losses) = if won { (self.wins + gained, 0) } else { (0, self.losses + 1) };
        let longest = if is_long { 32 * self.calls } else { u32::MAX };
        let pause = if won && wins < NEEDED_WINS { 0 } else { (PAUSE << losses.min(4)).min(longest) };
        *self = Self { pause, wins, losses, ..Self::default() };
    }
}

/// A piece of work that may be split over threads. Its time is measured from its start until this value is
/// dropped.
struct Call {
    rows: usize,
    is_pooled: bool,
    /// The place in the code that splits the work, and the start time; `None` if the time isn't measured,
    /// because the work is never split or always split.
    measured: Option<(&'static Location<'static>, Instant)>,
}

impl Call {
    /// Begins work on `rows` rows, and decides if it uses the thread pool. `per_thread` is the minimum number
    /// of rows per thread.
    #[track_caller]
    fn begin(rows: usize, per_thread: usize) -> Self {
        if rows < 2 * per_thread || ALONE.get() || rayon::current_num_threads() == 1 {
            return Self { rows, is_pooled: false, measured: None };
        }
        if rows / LARGE_CALL >= per_thread {
            return Self { rows, is_pooled: true, measured: None };
        }
        let place = Location::caller();
        let is_pooled =
            CHOICES.with_borrow(|choices| choices.get(place).copied().unwrap_or_default()).uses_pool();
        Self { rows, is_pooled, measured: Some((place, Instant::now())) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some((place, start)) = self.measured else { return };
        let seconds = start.elapsed().as_secs_f64();
        CHOICES
            .with_borrow_mut(|all| all.entry(place).or_default().record(self.is_pooled, self.rows, seconds));
    }
}

/// A function that is called when this value is dropped, even if the reason is a panic.
pub(crate) struct AtEnd<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs `work` without splitting it, for callers that already keep all threads busy.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    let before = ALONE.replace(true);
    let _restore = AtEnd(|| ALONE.set(before));
    work()
}

/// Returns the result of `f` for each item, in order. A thread of the pool gets at least `per_thread` items.
#[track_caller]
pub(crate) fn map<T: Sync, U: Send>(
    items: &[T],
    per_thread: usize,
    f: impl Fn(&T) -> U + Sync + Send,
) -> Vec<U> {
    let call = Call::begin(items.len(), per_thread);
    if call.is_pooled {
        items.par_iter().with_min_len(per_thread).map(f).collect()
    } else {
        items.iter().map(f).collect()
    }
}

/// Returns the result of `f` for each index below `n`, in order, or the first error.
#[track_caller]
pub(crate) fn try_map_range<U: Send>(
    n: usize,
    per_thread: usize,
    f: impl Fn(usize) -> crate::Result<U> + Sync + Send,
) -> crate::Result<Vec<U>> {
    let call = Call::begin(n, per_thread);
    if call.is_pooled {
        (0..n).into_par_iter().with_min_len(per_thread).map(f).collect()
    } else {
        (0..n).map(f).collect()
    }
}

/// Calls `f` with each item, which `f` may change, and the element of `beside` at the same index. Returns the
/// results of `f` in order, or the first error.
#[track_caller]
pub(crate) fn try_map_mut<T: Send, V: Sync, U: Send>(
    items: &mut [T],
    beside: &[V],
    per_thread: usize,
    f: impl Fn(&mut T, &V) -> crate::Result<U> + Sync + Send,
) -> crate::Result<Vec<U>> {
    let call = Call::begin(items.len(), per_thread);
    if call.is_pooled {
        let pairs = items.par_iter_mut().zip(beside).with_min_len(per_thread);
        pairs.map(|(item, other)| f(item, other)).collect()
    } else {
        items.iter_mut().zip(beside).map(|(item, other)| f(item, other)).collect()
    }
}

/// Calls `f` with each item, which `f` consumes.
#[track_caller]
pub(crate) fn for_each<T: Send>(items: Vec<T>, per_thread: usize, f: impl Fn(T) + Sync + Send) {
    let call = Call::begin(items.len(), per_thread);
    if call.is_pooled {
        items.into_par_iter().with_min_len(per_thread).for_each(f)
    } else {
        items.into_iter().for_each(f)
    }
}

/// Returns the result of `part` for the range `0..n`. If the work is split, `part` is called with one range
/// per thread, of at least `per_thread` indices, and `merge` combines the results in order. The result of
/// `merge` must be the same as that of one call of `part`, wherever the range is divided.
#[track_caller]
pub(crate) fn merge_parts<U: Send>(
    n: usize,
    per_thread: usize,
    part: impl Fn(Range<usize>) -> U + Sync + Send,
    merge: impl FnMut(U, U) -> U,
) -> U {
    let call = Call::begin(n, per_thread);
    if !call.is_pooled {
        return part(0..n);
    }
    let parts = rayon::current_num_threads().min(n / per_thread);
    let ranges = (0..parts).into_par_iter().with_max_len(1).map(|k| k * n / parts..(k + 1) * n / parts);
    let results: Vec<U> = ranges.map(&part).collect();
    results.into_iter().reduce(merge).unwrap_or_else(|| part(0..n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of one unit of time in these tests, in seconds.
    const UNIT: f64 = 1e-4;

    /// Simulates `n` calls of 100 rows at the place in the code to which `choice` belongs. A call takes
    /// `alone` units of time on the calling thread and `pool` units in the pool. Returns the number of calls
    /// that used the pool, and the time of all calls in units.
    fn make_calls(choice: &mut Choice, n: usize, alone: f64, pool: f64) -> (usize, f64) {
        let mut pooled = 0;
        let mut total = 0.0;
        for _ in 0..n {
            let uses_pool = choice.uses_pool();
            let seconds = if uses_pool { pool } else { alone };
            choice.record(uses_pool, 100, UNIT * seconds);
            pooled += usize::from(uses_pool);
            total += seconds;
        }
        (pooled, total)
    }

    #[test]
    fn a_pool_that_is_slower_than_one_thread_is_given_up() {
        // The pool takes 1, 1.1, 2 and 5 times as long as one thread, as on a busy machine.
        for slowdown in [1.0, 1.1, 2.0, 5.0] {
            let (pooled, total) = make_calls(&mut Choice::default(), 10_000, 1.0, slowdown);
            assert!(pooled <= 128, "{slowdown}: {pooled} of 10,000 calls");
            assert!(total <= 1.06 * 10_000.0, "{slowdown}: {total}");
        }
    }

    #[test]
    fn a_pool_that_is_faster_is_used() {
        let (pooled, total) = make_calls(&mut Choice::default(), 10_000, 1.0, 0.6);
        assert!(pooled > 9_000, "{pooled} of 10,000 calls");
        assert!(total < 0.65 * 10_000.0, "{total}");
    }

    #[test]
    fn a_change_of_the_machines_load_is_followed() {
        let mut choice = Choice::default();
        make_calls(&mut choice, 1_000, 1.0, 0.6);
        // As if another program took the second core, a call in the pool now takes three times as long as on
        // one thread. The pool loses the next trial and isn't used any more.
        make_calls(&mut choice, 600, 1.0, 3.0);
        assert!(make_calls(&mut choice, 10_000, 1.0, 3.0).0 <= 128);
        // The pool is the faster one again, as if the other program had ended. It is used again after the
        // longest pause between trials and `NEEDED_WINS` won trials.
        make_calls(&mut choice, 4_096 + 128, 1.0, 0.6);
        assert!(make_calls(&mut choice, 1_000, 1.0, 0.6).0 > 900);
    }

    #[test]
    fn calls_that_take_long_are_compared_by_few() {
        // A call takes ten seconds on one thread and six seconds in the pool. Four calls decide the trial,
        // and the next trial comes after a short pause.
        let mut choice = Choice::default();
        assert_eq!(make_calls(&mut choice, 4, 10.0 / UNIT, 6.0 / UNIT).0, 2);
        assert_eq!(make_calls(&mut choice, 128, 10.0 / UNIT, 6.0 / UNIT).0, 128);
        assert_eq!(make_calls(&mut choice, 4, 10.0 / UNIT, 20.0 / UNIT).0, 2);
        assert_eq!(make_calls(&mut choice, 128, 10.0 / UNIT, 20.0 / UNIT).0, 0);
        assert_eq!(make_calls(&mut choice, 4, 10.0 / UNIT, 6.0 / UNIT).0, 2);
        assert_eq!(make_calls(&mut choice, 100, 10.0 / UNIT, 6.0 / UNIT).0, 100);
    }

    /// Simulates a busy machine, on which one pooled call in eight, chosen at random, waits until a worker
    /// gets a core.
    #[test]
    fn rare_long_waits_count() {
        let mut choice = Choice::default();
        let mut rng = crate::Rng::seeded(0);
        let mut total = 0.0;
        for _ in 0..20_000 {
            let uses_pool = choice.uses_pool();
            let waits = uses_pool && rng.below(8) == 0;
            let seconds = if waits { 10.0 } else { f64::from(u8::from(!uses_pool)) * 0.5 + 0.5 };
            choice.record(uses_pool, 100, UNIT * seconds);
            total += seconds;
        }
        assert!(total < 1.05 * 20_000.0, "{total}");
    }

    #[test]
    fn large_calls_use_the_pool_at_once() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| {
            assert!(!Call::begin(2 * LARGE_CALL, 10).is_pooled, "the first call of a trial");
            assert!(Call::begin(10 * LARGE_CALL, 10).is_pooled);
            assert!(!alone(|| Call::begin(10 * LARGE_CALL, 10).is_pooled));
        });
    }

    #[test]
    fn each_choice_gives_the_same_results() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let items: Vec<usize> = (0..100).collect();
        let expected: Vec<usize> = items.iter().map(|k| k * k).collect();
        let mut n_merged = 0;
        let mut join = |first: Vec<usize>, second: Vec<usize>| {
            n_merged += 1;
            [first, second].concat()
        };
        pool.install(|| {
            // There are more calls than the 32 of a trial (a comparison of the pool with the calling thread),
            // so some of them use the pool and others don't.
            for _ in 0..40 {
                assert_eq!(map(&items, 10, |k| k * k), expected);
                assert_eq!(try_map_range(100, 10, |k| Ok(k * k)).unwrap(), expected);
                let squares = |range: Range<usize>| items[range].iter().map(|k| k * k).collect();
                assert_eq!(merge_parts(100, 10, squares, &mut join), expected);
            }
            let places =
                CHOICES.with_borrow(|choices| choices.values().filter(|c| c.losses + c.wins > 0).count());
            assert_eq!(places, 3, "each place has had its own trial");
        });
        assert!((16..40).contains(&n_merged), "{n_merged} of 40 calls were split in two");
    }
}
