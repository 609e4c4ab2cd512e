//! The members of a run: threads of this process (`--threads`), or processes that a launcher started (`--dist`).
//!
//! Members that train as one each do the whole task, from one seed: they draw and score a share of each batch, and work out a share of what
//! is measured, during training and in the end. The first alone writes, draws and prints. Of others (`--dist async`) the first, or several that
//! train as one (`--learners`), do the task, and the rest draw for them.

mod once;
#[cfg(feature = "dist")]
mod processes;
mod rehearsal;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, ValueEnum};
use gfn::env::{EnumerableEnv, Env};
use gfn::group::{Group, replicate};
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::{Observer, Trainer};
use gfn::{Error, Result};
use once::Once;
use rehearsal::Rehearsal;
pub(crate) use rehearsal::worked_ms;

/// What several threads do.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadsFor {
    /// What is faster than one thread: replicas where they were measured to be, unless something is asked for that replicas can't do; else the
    /// environment's work alone
    Auto,
    /// Each draws and scores its share of the batch: another number of threads is another run
    Replicas,
    /// libtorch splits its products among them, too: on cores that others use, that can be ten times slower than one thread
    Products,
}

/// How processes that a launcher started work together.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dist {
    /// Each draws and scores its share of the batch, and all make the same update
    Sync,
    /// The first trains, or as many as --learners says; the others draw with its latest parameters, ask the reward and send it what they drew
    Async,
}

/// What flags say of processes that a launcher started.
#[cfg_attr(not(feature = "dist"), allow(dead_code, reason = "read where there are processes"))]
struct Together {
    dist: Dist,
    learners: Option<usize>,
    timeout: Duration,
}

/// Tasks whose replicas were measured to be faster than one thread.
const FASTER_AS_REPLICAS: [&str; 4] = ["colored-graphs", "bayesian-structure", "molecule", "molecule-external"];
/// The flag of what one trainer alone can do: a record has every trajectory.
const ALONE: &str = "record";

thread_local! {
    static MEMBER: RefCell<Member> = const { RefCell::new(Member::alone(0)) };
}

/// This thread's place in the run.
struct Member {
    rank: usize,
    size: usize,
    /// What threads of this process have made once for all of them; `None` for a process.
    once: Option<Rc<Once>>,
    /// Until a trainer takes it.
    end: Option<Box<dyn Group>>,
}

impl Member {
    /// One whose work the others don't share.
    const fn alone(rank: usize) -> Self {
        Self { rank, size: 1, once: None, end: None }
    }
}

/// Whether this member writes, draws and prints.
pub(crate) fn is_first() -> bool {
    MEMBER.with_borrow(|member| member.rank == 0)
}

/// Whether this member measures: who draws for another doesn't.
pub(crate) fn measures() -> bool {
    MEMBER.with_borrow(|member| member.rank == 0 || member.size > 1)
}

/// What `make` makes, which takes much memory: threads have one for all of them, and ask for all that they share in the same order.
pub(crate) fn once<T: Clone + Send + 'static>(make: impl FnOnce() -> Result<T>) -> Result<T> {
    match MEMBER.with_borrow(|member| member.once.clone()) {
        Some(once) => once.get(make),
        None => make(),
    }
}

/// Whether this member sees every trajectory that is drawn.
pub(crate) fn sees_all() -> bool {
    #[cfg(feature = "dist")]
    if processes::is_apart() {
        return false;
    }
    count() == 1
}

/// How many train as one.
pub(crate) fn count() -> usize {
    MEMBER.with_borrow(|member| member.size)
}

/// This member's end of the group, once; `None` where one trains alone.
fn take() -> Option<Box<dyn Group>> {
    MEMBER.with_borrow_mut(|member| member.end.take())
}

/// Runs a task as its flags say: alone, or as several members.
pub(crate) fn run(program: &ArgMatches, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let Some((task, flags)) = program.subcommand() else { return work() };
    let Ok(Some(&threads)) = flags.try_get_one::<usize>("threads") else { return work() };
    if let Some(&size) = flags.try_get_one::<usize>("as_one_of").ok().flatten() {
        return as_member(Box::new(Rehearsal(size)), None, &work);
    }
    let of = flags.try_get_one::<ThreadsFor>("threads_for").ok().flatten().copied();
    let asked = |flag: &str| flags.try_get_one::<Dist>(flag).ok().flatten().copied();
    if let Some(dist) = asked("dist") {
        let learners = flags.try_get_one::<usize>("learners").ok().flatten().copied();
        let timeout = flags.try_get_one::<u64>("dist_timeout").ok().flatten().copied().unwrap_or_default();
        let timeout = Duration::from_secs(timeout);
        return in_processes(&Together { dist, learners, timeout }, work);
    }
    let of = of.unwrap_or(ThreadsFor::Auto);
    if threads < 2 || of == ThreadsFor::Products {
        return work();
    }
    if of == ThreadsFor::Auto {
        let recorded = flags.try_contains_id(ALONE).unwrap_or(false) && flags.value_source(ALONE).is_some();
        let why_not = match FASTER_AS_REPLICAS.contains(&task) {
            true if recorded => Some("--record needs one trainer"),
            true => None,
            false => Some("replicas weren't found to be faster here"),
        };
        if let Some(why_not) = why_not {
            eprintln!("{threads} threads: for the environment alone ({why_not})");
            return work();
        }
    }
    let made = Arc::default();
    let once = || Some(Once::of(&made));
    eprintln!("{threads} threads: as {threads} replicas, each with its share of the batch");
    replicate(threads, |replica| as_member(Box::new(replica), once(), &work))
}

/// Does a task as one of those that train as one.
fn as_member(end: Box<dyn Group>, once: Option<Once>, work: &impl Fn() -> Result<()>) -> Result<()> {
    let (rank, size) = (end.rank(), end.size());
    MEMBER.set(Member { rank, size, once: once.map(Rc::new), end: Some(end) });
    let done = work();
    MEMBER.set(Member::alone(0));
    done
}

#[cfg(feature = "dist")]
use processes::in_processes;

#[cfg(not(feature = "dist"))]
fn in_processes(_: &Together, _: impl Fn() -> Result<()>) -> Result<()> {
    let remedy = "build with it: cargo run --release --features gfn-reproduce/dist --example reproduce";
    Err(Error::missing("--dist", "the feature of that name", remedy))
}

/// A trainer that is ready to train, and what watches those who draw for it.
pub(crate) struct Ready<E: Env, P> {
    pub(crate) trainer: Trainer<E, P>,
    pub(crate) monitor: Option<Box<dyn Observer<E, P>>>,
}

/// Makes a trainer one of those that train as one, if there are others.
pub(crate) fn join<E: ReplayEnv, P: Policy<E>>(mut trainer: Trainer<E, P>) -> Result<Ready<E, P>> {
    #[cfg(feature = "dist")]
    if processes::is_apart() {
        let expected = "sync: this task has no actors";
        return Err(Error::config("--dist", "async", expected));
    }
    if let Some(end) = take() {
        trainer = trainer.with_group(end)?;
    }
    Ok(Ready { trainer, monitor: None })
}

/// The same for a policy that another process can have a copy of; `None` for a process that had nothing to do but to draw, until the first
/// was done.
pub(crate) fn join_or_draw<E: ReplayEnv + EnumerableEnv + 'static, P: Policy<E> + Send + 'static>(
    trainer: Trainer<E, P>,
) -> Result<Option<Ready<E, P>>> {
    #[cfg(feature = "dist")]
    if let Some(side) = processes::side() {
        return side.take(trainer);
    }
    join(trainer).map(Some)
}
