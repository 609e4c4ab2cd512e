use std::cell::Cell;
use std::sync::Arc;

use super::Replica;
use super::replica::Meeting;
use crate::{Error, Result, parallel};

/// Runs `work` on `n` threads at once, each with its end of the group that they are, and gives what the first of them (the calling
/// thread) gives.
///
/// libtorch and this library use one thread for each replica meanwhile: a replica's own operations aren't split. Whatever `work` makes
/// (environment, policy, trainer) stays in its thread, so none of it has to be `Send`. It is to make the same on each thread, from the same
/// seed; [`Trainer::with_collective`](crate::train::Trainer::with_collective) gives each replica a random stream of its own.
///
/// ```
/// use gfn::collective::{Collective, replicate};
/// let sum = replicate(3, |replica| {
///     let mut tensor = tch::Tensor::from_slice(&[replica.rank() as f32, 1.0]);
///     replica.all_reduce(&mut tensor)?;
///     Ok((tensor.double_value(&[0]), tensor.double_value(&[1])))
/// })?;
/// assert_eq!(sum, (3.0, 3.0));
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for no thread at all; the first error of any replica. A replica that fails takes the others out of their waits.
///
/// # Panics
/// Where `work` does, once all threads have ended.
pub fn replicate<T>(n: usize, work: impl Fn(Replica) -> Result<T> + Sync) -> Result<T> {
    if n == 0 {
        return Err(Error::config("replicas", 0, "at least one"));
    }
    let meeting = Meeting::of(n);
    let run = |rank: usize| {
        let _leaving = Leaving(rank, Arc::clone(&meeting));
        let _one = OneThread::new();
        parallel::alone(|| work(Replica { rank, size: n, meeting: Arc::clone(&meeting), met: Cell::new(0) }))
    };
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (1..n).map(|rank| scope.spawn(move || run(rank).map(drop))).collect();
        let mine = run(0);
        let mut result = mine;
        for other in others {
            match other.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                // That another has ended is the consequence of its error, not the cause.
                Ok(Err(error)) if !matches!(error, Error::Peer { .. }) => result = Err(error),
                Ok(_) => {}
            }
        }
        result
    })
}

/// Takes a replica out of the group when it ends, however it ends.
struct Leaving(usize, Arc<Meeting>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.1.leave(self.0);
    }
}

/// One libtorch thread for this thread, until it is dropped. The number belongs to the thread that sets it.
struct OneThread(i32);

impl OneThread {
    fn new() -> Self {
        let before = tch::get_num_threads();
        tch::set_num_threads(1);
        Self(before)
    }
}

impl Drop for OneThread {
    fn drop(&mut self) {
        tch::set_num_threads(self.0);
    }
}
