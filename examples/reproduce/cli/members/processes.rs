//! Processes that a launcher started: replicas of a trainer, or a learner and its actors.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::{Observer, Trainer};
use gfn::{Error, Result, tch};
use gfn_dist::Launch;
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::{Dist, MEMBER, Member, Ready, as_member};

/// So long others may take for what one does alone: a validation, a checkpoint.
const TIMEOUT: Duration = Duration::from_secs(600);

thread_local! {
    static SIDE: RefCell<Option<Side>> = const { RefCell::new(None) };
}

/// What a process of an asynchronous run does.
#[derive(Clone)]
pub(super) struct Side {
    /// Its port is where the learner listens: beside the launcher's own.
    launch: Launch,
    rank: usize,
    actors: usize,
}

/// Whether this is a process of an asynchronous run.
pub(super) fn is_apart() -> bool {
    SIDE.with_borrow(Option::is_some)
}

/// What this process does in an asynchronous run, once.
pub(super) fn side() -> Option<Side> {
    SIDE.take()
}

pub(super) fn in_processes(dist: Dist, work: impl Fn() -> Result<()>) -> Result<()> {
    let Some(launch) = Launch::from_env()? else {
        let expected = "a process that a launcher started: gfn-dist local -n 2 -- reproduce TASK --dist sync, or torchrun, srun, mpirun";
        return Err(Error::config("--dist", "given", expected));
    };
    if dist == Dist::Sync {
        return as_member(Box::new(launch.connect(TIMEOUT)?), None, &work);
    }
    let (rank, size) = (launch.rank, launch.size);
    let port = launch.port.checked_add(1).filter(|_| size > 1);
    let Some(port) = port else {
        let got = format!("async in {size} process, at port {}", launch.port);
        return Err(Error::config("--dist", got, "a learner and at least one actor, and a port below 65535"));
    };
    let launch = Launch { port, ..launch };
    SIDE.set(Some(Side { launch, rank, actors: size - 1 }));
    // One trains, the others don't count as members that train as one.
    MEMBER.set(Member::alone(rank));
    let done = work();
    MEMBER.set(Member::alone(0));
    done
}

impl Side {
    pub(super) fn take<E: ReplayEnv + 'static, P: Policy<E> + Send>(
        self,
        trainer: Trainer<E, P>,
    ) -> Result<Option<Ready<E, P>>> {
        if self.rank == 0 {
            let learner = Learner::listen(self.launch.first()?, LearnerConfig::default())?;
            let monitor: Box<dyn Observer<E, P>> = Box::new(learner.monitor());
            return Ok(Some(Ready { trainer: trainer.with_fresh(learner), monitor: Some(monitor) }));
        }
        let settings = &trainer.context().config;
        let config = ActorConfig {
            batch: (settings.batch / self.actors).max(1),
            max_steps: settings.max_steps,
            // The learner makes ready first: it may list all states.
            timeout: TIMEOUT,
            ..ActorConfig::default()
        };
        let address = format!("{}:{}", self.launch.host, self.launch.port);
        // A signal that ends the run reaches all: the learner needs walks until its step is done, and then says that it is over.
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::default())
                .map_err(|error| Error::config("drawing on after an interrupt", error, "a system with signals"))?;
        }
        let (env, reward, policy) = trainer.into_parts();
        let reward = move |states: &E::States, conditions: Option<&tch::Tensor>| reward.log_reward(states, conditions);
        Actor::connect(address, env, reward, policy, config)?.run().map(|_| None)
    }
}
