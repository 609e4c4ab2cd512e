//! The members of a run: threads of this process (`--threads-for replicas`), or processes that a launcher started (`--dist`).
//!
//! Each does the whole task, from one seed, and draws and scores a share of each batch. The first alone measures, writes, draws and prints.

use std::cell::RefCell;

use clap::{ArgMatches, FromArgMatches};
use gfn::Result;
use gfn::group::{Group, replicate};
use gfn::train::TrainEnv;
use gfn::train::Trainer;

use super::lines::tell;
#[cfg(feature = "dist")]
use super::processes::in_processes;
use crate::flags::{Team, ThreadsFor};

/// This thread's place in the run.
struct Member {
    rank: usize,
    size: usize,
    /// Until a trainer takes it.
    end: Option<Box<dyn Group>>,
}

thread_local! {
    static MEMBER: RefCell<Member> = const { RefCell::new(Member { rank: 0, size: 1, end: None }) };
}

/// `true` for the member that measures, writes, draws and prints.
pub(crate) fn is_first() -> bool {
    MEMBER.with_borrow(|member| member.rank == 0)
}

/// `true` if this member sees every trajectory that is drawn.
pub(crate) fn sees_all() -> bool {
    count() == 1
}

/// How many train as one.
pub(crate) fn count() -> usize {
    MEMBER.with_borrow(|member| member.size)
}

/// Runs a task as its flags say: alone, or as several members.
pub(crate) fn run(program: &ArgMatches, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let Some((_, flags)) = program.subcommand() else { return work() };
    let has_team = flags.try_contains_id("threads_for").is_ok();
    let Some(team) = has_team.then(|| Team::from_arg_matches(flags).ok()).flatten() else { return work() };
    if team.dist.is_some() {
        return in_processes(&team, work);
    }
    let threads = team.threads;
    if threads < 2 || team.threads_for != ThreadsFor::Replicas {
        return work();
    }
    tell(format_args!("{threads} threads: as {threads} replicas, each with its share of the batch"));
    replicate(threads, |replica| as_member(Box::new(replica), &work))
}

/// Does a task as one of those that train as one.
pub(super) fn as_member(end: Box<dyn Group>, work: &impl Fn() -> Result<()>) -> Result<()> {
    MEMBER.set(Member { rank: end.rank(), size: end.size(), end: Some(end) });
    let done = work();
    MEMBER.set(Member { rank: 0, size: 1, end: None });
    done
}

#[cfg(not(feature = "dist"))]
fn in_processes(_: &Team, _: impl Fn() -> Result<()>) -> Result<()> {
    let remedy = "build with it: cargo run --release --features gfn-reproduce/dist --example reproduce";
    Err(gfn::Error::missing("--dist", "the feature of that name", remedy))
}

/// Makes a trainer one of those that train as one, if there are others.
pub(super) fn join<E: TrainEnv>(trainer: Trainer<E>) -> Result<Trainer<E>> {
    match MEMBER.with_borrow_mut(|member| member.end.take()) {
        Some(end) => trainer.with_group(end),
        None => Ok(trainer),
    }
}
