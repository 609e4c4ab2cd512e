//! Work on rows, split over rayon's threads only if there is enough of it.
//!
//! Handing work to the pool costs tens of microseconds, more than a small batch takes, so small batches stay on the
//! calling thread. Results don't depend on this choice.

use std::cell::Cell;

use rayon::prelude::*;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with everything on the calling thread: other threads have work of their own.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Sets it back even if `work` panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _restore = Restore(ALONE.replace(true));
    work()
}

/// `true` if `n` rows are worth splitting, given the least number of rows for one thread.
fn worth_it(n: usize, per_thread: usize) -> bool {
    n >= 2 * per_thread && !ALONE.get() && rayon::current_num_threads() > 1
}

/// `f` of each item, in order.
pub(crate) fn map<T: Sync, U: Send>(items: &[T], per_thread: usize, f: impl Fn(&T) -> U + Sync + Send) -> Vec<U> {
    if worth_it(items.len(), per_thread) {
        items.par_iter().with_min_len(per_thread).map(f).collect()
    } else {
        items.iter().map(f).collect()
    }
}

/// `f` of each index below `n`, in order; stops at the first error.
pub(crate) fn try_map_range<U: Send>(
    n: usize,
    per_thread: usize,
    f: impl Fn(usize) -> crate::Result<U> + Sync + Send,
) -> crate::Result<Vec<U>> {
    if worth_it(n, per_thread) {
        (0..n).into_par_iter().with_min_len(per_thread).map(f).collect()
    } else {
        (0..n).map(f).collect()
    }
}

/// `f` of each item, which it may change, together with the same item of another list; stops at the first error.
pub(crate) fn try_map_mut<T: Send, V: Sync, U: Send>(
    items: &mut [T],
    beside: &[V],
    per_thread: usize,
    f: impl Fn(&mut T, &V) -> crate::Result<U> + Sync + Send,
) -> crate::Result<Vec<U>> {
    if worth_it(items.len(), per_thread) {
        let pairs = items.par_iter_mut().zip(beside).with_min_len(per_thread);
        pairs.map(|(item, other)| f(item, other)).collect()
    } else {
        items.iter_mut().zip(beside).map(|(item, other)| f(item, other)).collect()
    }
}

/// `f` of each item, by value.
pub(crate) fn for_each<T: Send>(items: Vec<T>, per_thread: usize, f: impl Fn(T) + Sync + Send) {
    if worth_it(items.len(), per_thread) {
        items.into_par_iter().with_min_len(per_thread).for_each(f)
    } else {
        items.into_iter().for_each(f)
    }
}
