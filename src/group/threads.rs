//! A group of threads. In a collective operation each thread contributes a tensor, waits until all threads
//! have contributed theirs, and then reads the tensors of the others.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tch::{Tensor, no_grad};

use super::Group;
use crate::parallel::{self, AtEnd};
use crate::{Error, Result};

/// The time for which a replica spins before it sleeps. Spinning comes first because waking up takes longer
/// than most waits.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// The data that the threads of a group share. A meeting is one collective operation, to which each thread
/// contributes a tensor.
#[derive(Debug, Default)]
struct Meeting {
    table: Mutex<Table>,
    all_here: Condvar,
    /// The number of meetings (collective operations) that are complete.
    n_complete: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    /// The operation and the tensor of each thread, by rank: one map for meetings (collective operations)
    /// with even numbers, one for meetings with odd numbers. A thread that is early for the next meeting must
    /// not overwrite tensors that another thread still reads.
    brought: [BTreeMap<usize, (&'static str, Tensor)>; 2],
    /// The rank of the first thread that ended its work; `None` while all threads work.
    departed_rank: Option<usize>,
}

impl Meeting {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the first `number` meetings (collective operations) are complete, and returns the locked
    /// table of the threads' tensors. Returns an error if a replica ends before that.
    fn wait_for(&self, number: u64) -> Result<MutexGuard<'_, Table>> {
        let here = || self.n_complete.load(Ordering::Acquire) >= number;
        let started = Instant::now();
        while !here() && started.elapsed() < SPIN_TIME {
            std::hint::spin_loop();
        }
        let mut table = self.table();
        while !here() {
            table.departed_rank.map_or(Ok(()), |gone| Err(left(gone)))?;
            table = self.all_here.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(table)
    }
}

/// Returns the error for a replica that has ended although other replicas wait for it.
fn left(rank: usize) -> Error {
    Error::peer(format!("replica {rank}"), "it has ended", "look for the error with which it ended")
}

/// A replica of a run on a thread of this process; [`replicate`] creates the replicas.
#[derive(Debug)]
pub struct Replica {
    rank: usize,
    size: usize,
    meeting: Arc<Meeting>,
    /// The number of meetings (collective operations) in which the replica has taken part.
    n_attended: Cell<u64>,
}

impl Replica {
    /// Creates the only member of a group of one.
    pub(crate) fn alone() -> Self {
        Self { rank: 0, size: 1, meeting: Arc::default(), n_attended: Cell::new(0) }
    }

    /// Contributes a copy of a tensor to an operation, waits for all other replicas, and returns the tensors
    /// of all replicas, by rank.
    fn exchange(&self, operation: &'static str, mine: &Tensor) -> Result<Vec<Tensor>> {
        let number = self.n_attended.replace(self.n_attended.get() + 1);
        let bank = (number % 2) as usize;
        let mine = mine.detach().copy();
        let mut table = self.meeting.table();
        table.departed_rank.map_or(Ok(()), |gone| Err(left(gone)))?;
        table.brought[bank].insert(self.rank, (operation, mine));
        if table.brought[bank].len() < self.size {
            drop(table);
            table = self.meeting.wait_for(number + 1)?;
        } else {
            // All threads have read the tensors of the previous meeting (collective operation), because all
            // of them take part in this one. So these tensors can be removed.
            table.brought[1 - bank].clear();
            self.meeting.n_complete.store(number + 1, Ordering::Release);
            self.meeting.all_here.notify_all();
        }
        let brought = &table.brought[bank];
        if let Some((other, (theirs, _))) = brought.iter().find(|(_, (theirs, _))| *theirs != operation) {
            let mine = self.rank;
            let detail = format!(
                "at operation {number}, member {other} calls {theirs}, but member {mine} calls {operation}"
            );
            return Err(Error::contract(
                "members of a group call the same operations in the same order",
                detail,
            ));
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
        if let Some(other) =
            all.iter().find(|other| other.kind() != tensor.kind() || other.size() != tensor.size())
        {
            let form = |tensor: &Tensor| {
                format!("a tensor of kind {:?} and shape {:?}", tensor.kind(), tensor.size())
            };
            let detail = format!("one replica has {}, another has {}", form(other), form(tensor));
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

/// Runs `work` on `n` threads at the same time, each as a replica of a group. Returns the result of the first
/// replica, which runs on the calling thread.
///
/// While `work` runs, libtorch and this library use one thread per replica, so the operations of a replica
/// aren't split. The objects that `work` creates (environment, policy, trainer) stay on their thread, so they
/// needn't be `Send`. `work` must create the same objects on each thread, from the same seed;
/// [`Trainer::with_group`](crate::train::Trainer::with_group) gives each replica its own random stream.
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
/// [`Error::Config`] for 0 threads; the errors of replicas. If several replicas fail, the first of their
/// errors, by rank, that isn't [`Error::Peer`] is returned. If a replica fails, the others stop waiting for
/// it.
///
/// # Panics
/// If `work` panics, after all threads have ended.
pub fn replicate<T>(n: usize, work: impl Fn(Replica) -> Result<T> + Sync) -> Result<T> {
    if n == 0 {
        return Err(Error::config("replicas", 0, "at least one"));
    }
    let meeting = Arc::<Meeting>::default();
    let run = |rank: usize| {
        let _leaving = AtEnd(|| {
            meeting.table().departed_rank.get_or_insert(rank);
            meeting.all_here.notify_all();
        });
        tch::set_num_threads(1);
        parallel::alone(|| {
            work(Replica { rank, size: n, meeting: Arc::clone(&meeting), n_attended: Cell::new(0) })
        })
    };
    // Replicas set libtorch's number of threads to 1. Part of this setting applies to the whole process, not
    // only to the thread that sets it, so the previous number is restored at the end.
    let threads = tch::get_num_threads();
    let _threads = AtEnd(|| tch::set_num_threads(threads));
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (1..n).map(|rank| scope.spawn(move || run(rank).map(drop))).collect();
        let mut errors = Vec::new();
        let mine = run(0).map_err(|error| errors.push(error)).ok();
        let ended = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        errors.extend(ended.filter_map(Result::err));
        // A replica that waited for a replica that failed returns `Error::Peer`, which is only a consequence.
        // So the first error of another kind is returned.
        let cause = errors.iter().position(|error| !matches!(error, Error::Peer { .. })).unwrap_or(0);
        match mine {
            Some(mine) if errors.is_empty() => Ok(mine),
            _ => Err(errors.swap_remove(cause)),
        }
    })
}
