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
/// [`Error::Config`] for no thread at all; an error of any replica, of the first by number where there are several. A replica that fails takes the others out of their waits.
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
        tch::set_num_threads(1);
        parallel::alone(|| work(Replica { rank, size: n, meeting: Arc::clone(&meeting), met: Cell::new(0) }))
    };
    let _threads = LibtorchThreads(tch::get_num_threads());
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (1..n).map(|rank| scope.spawn(move || run(rank).map(drop))).collect();
        let (mine, mut errors) = match run(0) {
            Ok(mine) => (Some(mine), Vec::new()),
            Err(error) => (None, vec![error]),
        };
        for other in others {
            match other.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(ended) => errors.extend(ended.err()),
            }
        }
        // That another has ended is a consequence of its error, not the cause.
        let cause = errors.iter().position(|error| !matches!(error, Error::Peer { .. })).unwrap_or(0);
        match mine {
            Some(mine) if errors.is_empty() => Ok(mine),
            _ => Err(errors.swap_remove(cause)),
        }
    })
}

/// Takes a replica out of the group when it ends, however it ends.
struct Leaving(usize, Arc<Meeting>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.1.leave(self.0);
    }
}

/// libtorch's number of threads, set back when all replicas have ended: a part of it belongs to the process.
struct LibtorchThreads(i32);

impl Drop for LibtorchThreads {
    fn drop(&mut self) {
        tch::set_num_threads(self.0);
    }
}
