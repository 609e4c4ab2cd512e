//! The members of a run, which train one policy together. Members are threads of this process (`--threads-for
//! replicas`), or processes that a launcher started (`--dist`).
//!
//! Each member runs the whole task with the same seed, and draws and scores its share of each batch. Only the
//! first member measures the policy, writes files, and prints.

use std::cell::RefCell;
use std::time::Duration;

use clap::ArgMatches;
use gfn::group::{Group, replicate};

use crate::prelude::*;

/// The work that several threads share.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum ThreadUse {
    /// Threads share the work on states and rewards, as long as sharing is measured to be faster than one
    /// thread
    Environment,
    /// Each thread trains on a share of the batch, which needs idle cores. Results depend on the number of
    /// threads
    Replicas,
    /// Threads also share libtorch's matrix products. This is up to ten times slower if other programs use
    /// the cores
    Products,
}

/// The position of this thread among the members of a run, which are the threads or processes that train one
/// policy together.
struct Member {
    rank: usize,
    size: usize,
    /// The connection to the other members. The connection is `None` after a trainer has taken it, and in a
    /// run with one member.
    end: Option<Box<dyn Group>>,
}

thread_local! {
    static MEMBER: RefCell<Member> = const { RefCell::new(Member { rank: 0, size: 1, end: None }) };
}

/// Returns `true` for the first member of the run, which measures the policy, writes files and prints.
pub(crate) fn is_first() -> bool {
    MEMBER.with_borrow(|member| member.rank == 0)
}

/// Returns the number of members of this run.
pub(crate) fn count() -> usize {
    MEMBER.with_borrow(|member| member.size)
}

/// Runs a task once, or once in each of several threads or processes that train together, as the flags say.
pub(crate) fn run(flags: &ArgMatches, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let Ok(Some(threads_for)) = flags.try_get_one::<ThreadUse>("threads_for") else { return work() };
    if flags.contains_id("dist") {
        let timeout = flags.get_one::<u64>("dist_timeout").copied().unwrap_or_default();
        return in_processes(Duration::from_secs(timeout), work);
    }
    let threads = flags.get_one::<usize>("threads").copied().unwrap_or(1);
    if threads < 2 || *threads_for != ThreadUse::Replicas {
        return work();
    }
    tell(format_args!(
        "{threads} threads train as {threads} replicas, each of which samples a part of the batch"
    ));
    replicate(threads, |replica| as_member(Box::new(replica), &work))
}

/// Runs a task as one member of a run. `end` is the connection to the other members.
fn as_member(end: Box<dyn Group>, work: &impl Fn() -> Result<()>) -> Result<()> {
    MEMBER.set(Member { rank: end.rank(), size: end.size(), end: Some(end) });
    let done = work();
    MEMBER.set(Member { rank: 0, size: 1, end: None });
    done
}

#[cfg(feature = "dist")]
fn in_processes(timeout: Duration, work: impl Fn() -> Result<()>) -> Result<()> {
    let expected = "a process that a launcher started: gfn-dist local -n 2 -- reproduce TASK --dist sync, or \
        torchrun, srun, mpirun";
    let launch = gfn_dist::Launch::from_env()?.ok_or(Error::config("--dist", "given", expected))?;
    as_member(Box::new(launch.connect(timeout)?), &work)
}

#[cfg(not(feature = "dist"))]
fn in_processes(_: Duration, _: impl Fn() -> Result<()>) -> Result<()> {
    let remedy =
        "build with this feature: cargo run --release --features gfn-reproduce/dist --example reproduce";
    Err(Error::missing("--dist", "the feature `dist` of gfn-reproduce", remedy))
}

/// Connects a trainer to the other members of the run (threads or processes), if there are any.
pub(super) fn join<E: TrainEnv>(trainer: Trainer<E>) -> Result<Trainer<E>> {
    match MEMBER.with_borrow_mut(|member| member.end.take()) {
        Some(end) => trainer.with_group(end),
        None => Ok(trainer),
    }
}
