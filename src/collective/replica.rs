//! A group of threads: each waits until all have brought their tensor, then reads the others'.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tch::{Tensor, no_grad};

use super::Collective;
use crate::{Error, Result};

/// So long a replica looks again and again whether all are there before it sleeps: waking up takes longer than most waits.
const SPIN: Duration = Duration::from_micros(50);

/// Where the threads of a group meet.
#[derive(Debug)]
pub(super) struct Meeting {
    state: Mutex<State>,
    all_here: Condvar,
    /// How often all were there.
    met: AtomicU64,
}

#[derive(Debug)]
struct State {
    waiting: usize,
    /// What each has brought, for meetings of even and of odd number: who comes to the next one early must not take away
    /// what another still reads.
    brought: [Vec<Option<Brought>>; 2],
    /// Who left first.
    gone: Option<usize>,
}

/// A tensor, and the operation that it was brought to.
type Brought = (&'static str, Tensor);

impl Meeting {
    pub(super) fn of(size: usize) -> Arc<Self> {
        let none = || (0..size).map(|_| None).collect();
        let state = Mutex::new(State { waiting: 0, brought: [none(), none()], gone: None });
        Arc::new(Self { state, all_here: Condvar::new(), met: AtomicU64::new(0) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits for this member from here on.
    pub(super) fn leave(&self, rank: usize) {
        self.state().gone.get_or_insert(rank);
        self.all_here.notify_all();
    }

    /// Brings a tensor to an operation, waits for all others, and gives what they brought, by rank.
    fn exchange(&self, rank: usize, number: u64, (operation, mine): Brought) -> Result<Vec<Tensor>> {
        let bank = (number % 2) as usize;
        let mut state = self.state();
        if let Some(gone) = state.gone {
            return Err(left(gone));
        }
        state.brought[bank][rank] = Some((operation, mine));
        state.waiting += 1;
        if state.waiting == state.brought[bank].len() {
            state.waiting = 0;
            self.met.store(number + 1, Ordering::Release);
            self.all_here.notify_all();
        } else {
            drop(state);
            self.wait_for(number + 1)?;
            state = self.state();
        }
        let brought = || state.brought[bank].iter().flatten().enumerate();
        if let Some((other, (theirs, _))) = brought().find(|(_, (theirs, _))| *theirs != operation) {
            let detail = format!("member {other} is at operation {number}, {theirs}, member {rank} at {operation}");
            return Err(Error::contract("members of a group call the same operations in the same order", detail));
        }
        Ok(brought().map(|(_, (_, tensor))| tensor.shallow_clone()).collect())
    }

    fn wait_for(&self, number: u64) -> Result<()> {
        let here = || self.met.load(Ordering::Acquire) >= number;
        let started = Instant::now();
        while started.elapsed() < SPIN {
            if here() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let mut state = self.state();
        while !here() {
            if let Some(gone) = state.gone {
                return Err(left(gone));
            }
            state = self.all_here.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

fn left(rank: usize) -> Error {
    Error::peer(format!("replica {rank}"), "it has ended", "look for the error that it ended with")
}

/// What replicas exchange is of one kind, and flat where it is summed.
fn check_alike(mine: &Tensor, theirs: &[Tensor]) -> Result<()> {
    let other = theirs.iter().find(|other| other.kind() != mine.kind() || other.size() != mine.size());
    other.map_or(Ok(()), |other| {
        let remedy = "replicas must train the same model with the same settings";
        let what = format!("a tensor of kind {:?} of one replica beside one of kind {:?}", other.kind(), mine.kind());
        Err(Error::shape(what, mine.size(), other.size(), remedy))
    })
}

/// One of the replicas of a run on the threads of this process: [`replicate`](super::replicate) makes them.
#[derive(Debug)]
pub struct Replica {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) meeting: Arc<Meeting>,
    /// How often it has met the others.
    pub(super) met: Cell<u64>,
}

impl Replica {
    fn exchange(&self, operation: &'static str, mine: Tensor) -> Result<Vec<Tensor>> {
        let number = self.met.replace(self.met.get() + 1);
        self.meeting.exchange(self.rank, number, (operation, mine))
    }
}

impl Collective for Replica {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        self.exchange("all_gather", mine.detach().copy())
    }

    /// Each sums a part of all tensors, by rank, and takes the other parts from those who summed them.
    fn all_reduce(&self, tensor: &mut Tensor) -> Result<()> {
        let all = self.exchange("all_reduce", tensor.detach())?;
        check_alike(tensor, &all)?;
        let n = tensor.numel();
        no_grad(|| {
            let (start, end) = (self.rank * n / self.size, (self.rank + 1) * n / self.size);
            let part = |tensor: &Tensor| tensor.reshape([-1]).narrow(0, start as i64, (end - start) as i64);
            let mut sum = part(&all[0]).copy();
            for other in &all[1..] {
                sum += part(other);
            }
            // Nobody reads the tensors themselves any more once all have brought their sums.
            let sums = self.exchange("all_reduce", sum)?;
            tensor.copy_(&Tensor::cat(&sums, 0).reshape(tensor.size()));
            Ok(())
        })
    }

    fn broadcast(&self, tensor: &mut Tensor, root: usize) -> Result<()> {
        let all = self.exchange("broadcast", tensor.detach().copy())?;
        let Some(theirs) = all.get(root) else { return Err(Error::out_of_range(root, self.size)) };
        check_alike(tensor, &all)?;
        no_grad(|| tensor.copy_(theirs));
        Ok(())
    }
}
