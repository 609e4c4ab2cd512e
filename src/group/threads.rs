//! A group of threads: each waits until all have brought their tensor, then reads the others'.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tch::{Tensor, no_grad};

use super::Group;
use crate::{Error, Result, parallel};

/// A replica looks again and again for so long whether all are there before it sleeps: waking up takes longer than most waits.
const SPIN: Duration = Duration::from_micros(50);

/// The place where the threads of a group meet.
#[derive(Debug, Default)]
struct Meeting {
    table: Mutex<Table>,
    all_here: Condvar,
    /// The number of times that all were there.
    met: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    /// The tensors that were brought, by rank, and to which operation; for meetings of even and of odd number: who comes to the next one early
    /// must not take away what another still reads.
    brought: [BTreeMap<usize, (&'static str, Tensor)>; 2],
    /// The member that left first.
    gone: Option<usize>,
}

impl Meeting {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the others; the table is free then.
    fn wait_for(&self, number: u64) -> Result<MutexGuard<'_, Table>> {
        let here = || self.met.load(Ordering::Acquire) >= number;
        let started = Instant::now();
        while !here() && started.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        let mut table = self.table();
        while !here() {
            table.gone.map_or(Ok(()), |gone| Err(left(gone)))?;
            table = self.all_here.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(table)
    }
}

fn left(rank: usize) -> Error {
    Error::peer(format!("replica {rank}"), "it has ended", "look for the error that it ended with")
}

/// One of the replicas of a run on the threads of this process: [`replicate`] makes them.
#[derive(Debug)]
pub struct Replica {
    rank: usize,
    size: usize,
    meeting: Arc<Meeting>,
    /// The number of times that it has met the others.
    met: Cell<u64>,
}

impl Replica {
    /// The one member of a group of one.
    pub(crate) fn alone() -> Self {
        Self { rank: 0, size: 1, meeting: Arc::default(), met: Cell::new(0) }
    }

    /// Brings a copy of a tensor to an operation, waits for all others, and gives what they brought, by rank.
    fn exchange(&self, operation: &'static str, mine: &Tensor) -> Result<Vec<Tensor>> {
        let number = self.met.replace(self.met.get() + 1);
        let (bank, mine) = ((number % 2) as usize, mine.detach().copy());
        let mut table = self.meeting.table();
        table.gone.map_or(Ok(()), |gone| Err(left(gone)))?;
        table.brought[bank].insert(self.rank, (operation, mine));
        if table.brought[bank].len() < self.size {
            drop(table);
            table = self.meeting.wait_for(number + 1)?;
        } else {
            // All have read what was brought to the meeting before.
            table.brought[1 - bank].clear();
            self.meeting.met.store(number + 1, Ordering::Release);
            self.meeting.all_here.notify_all();
        }
        let brought = &table.brought[bank];
        if let Some((other, (theirs, _))) = brought.iter().find(|(_, (theirs, _))| *theirs != operation) {
            let mine = self.rank;
            let detail = format!("member {other} is at operation {number}, {theirs}, member {mine} at {operation}");
            return Err(Error::contract("members of a group call the same operations in the same order", detail));
        }
        Ok(brought.values().map(|(_, tensor)| tensor.shallow_clone()).collect())
    }
}

impl Group for Replica {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        self.exchange("join", mine)
    }
    fn sum(&self, tensor: &mut Tensor) -> Result<()> {
        let all = self.exchange("sum", tensor)?;
        if let Some(other) = all.iter().find(|other| other.kind() != tensor.kind() || other.size() != tensor.size()) {
            let form = |tensor: &Tensor| format!("one of kind {:?} and shape {:?}", tensor.kind(), tensor.size());
            let detail = format!("{} beside {}", form(other), form(tensor));
            return Err(Error::contract("replicas sum tensors of one kind and shape", detail));
        }
        no_grad(|| {
            let sum = all[0].copy();
            let sum = all[1..].iter().fold(sum, |sum, other| sum + other);
            tensor.copy_(&sum);
        });
        Ok(())
    }
}

/// Runs `work` on `n` threads at once, each with its end of the group that they are, and gives what the first of them (the calling
/// thread) gives.
///
/// libtorch and this library use one thread for each replica meanwhile: a replica's own operations aren't split. Whatever `work` makes
/// (environment, policy, trainer) stays in its thread, so none of it has to be `Send`. It is to make the same on each thread, from the same
/// seed; [`Trainer::with_group`](crate::train::Trainer::with_group) gives each replica a random stream of its own.
///
/// ```
/// use gfn::group::{Group, replicate};
/// let sum = replicate(3, |replica| {
///     let mut tensor = tch::Tensor::from_slice(&[replica.rank() as f32, 1.0]);
///     replica.sum(&mut tensor)?;
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
    let meeting = Arc::<Meeting>::default();
    let run = |rank: usize| {
        let _leaving = AtEnd(|| {
            meeting.table().gone.get_or_insert(rank);
            meeting.all_here.notify_all();
        });
        tch::set_num_threads(1);
        parallel::alone(|| work(Replica { rank, size: n, meeting: Arc::clone(&meeting), met: Cell::new(0) }))
    };
    // A part of libtorch's number of threads belongs to the process.
    let threads = tch::get_num_threads();
    let _threads = AtEnd(|| tch::set_num_threads(threads));
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (1..n).map(|rank| scope.spawn(move || run(rank).map(drop))).collect();
        let mut errors = Vec::new();
        let mine = run(0).map_err(|error| errors.push(error)).ok();
        let ended =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        errors.extend(ended.filter_map(Result::err));
        // That another has ended is a consequence of its error, not the cause.
        let cause = errors.iter().position(|error| !matches!(error, Error::Peer { .. })).unwrap_or(0);
        match mine {
            Some(mine) if errors.is_empty() => Ok(mine),
            _ => Err(errors.swap_remove(cause)),
        }
    })
}

/// Does something when it goes, however its scope ends.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
