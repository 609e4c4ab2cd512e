//! Processes that a launcher started: replicas of a trainer, or a learner and its actors.

use std::cell::RefCell;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::{Observer, Trainer};
use gfn::{Error, Result, tch};
use gfn_dist::Launch;
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};

use super::{Dist, MEMBER, Member, Ready, as_member};

/// So long others may take for what one does alone: a validation, a checkpoint.
const TIMEOUT: Duration = Duration::from_secs(600);

thread_local! {
    static SIDE: RefCell<Option<Side>> = const { RefCell::new(None) };
}

/// What a process of an asynchronous run does.
#[derive(Clone)]
pub(super) struct Side {
    /// Where the learner listens: beside the launcher's own port.
    host: String,
    port: u16,
    rank: usize,
    actors: usize,
}

/// What this process does in an asynchronous run.
pub(super) fn side() -> Option<Side> {
    SIDE.take()
}

pub(super) fn in_processes(dist: Dist, work: impl Fn() -> Result<()>) -> Result<()> {
    let Some(launch) = Launch::from_env()? else {
        let expected = "a process that a launcher started: gfn-dist local -n 2 -- reproduce TASK --dist sync, or torchrun, srun, mpirun";
        return Err(Error::config("--dist", "given", expected));
    };
    if dist == Dist::Sync {
        return as_member(Box::new(launch.connect(TIMEOUT)?), false, &work);
    }
    let (rank, size) = (launch.rank, launch.size);
    let port = launch.port.checked_add(1).filter(|_| size > 1);
    let Some(port) = port else {
        let got = format!("async in {size} process, at port {}", launch.port);
        return Err(Error::config("--dist", got, "a learner and at least one actor, and a port below 65535"));
    };
    SIDE.set(Some(Side { host: launch.host, port, rank, actors: size - 1 }));
    // One trains, the others don't count as members that train as one.
    MEMBER.set(Member { rank, size: 1, is_thread: false, end: None });
    let done = work();
    MEMBER.set(Member { rank: 0, size: 1, is_thread: false, end: None });
    done
}

impl Side {
    pub(super) fn take<E: ReplayEnv + 'static, P: Policy<E> + Send>(
        self,
        trainer: Trainer<E, P>,
    ) -> Result<Option<Ready<E, P>>> {
        if self.rank == 0 {
            let learner = Learner::listen(self.address()?, LearnerConfig::default())?;
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
        let address = format!("{}:{}", self.host, self.port);
        let (env, reward, policy) = trainer.into_parts();
        let reward = move |states: &E::States, conditions: Option<&tch::Tensor>| reward.log_reward(states, conditions);
        Actor::connect(address, env, reward, policy, config)?.run().map(|_| None)
    }

    fn address(&self) -> Result<SocketAddr> {
        let mut found = (self.host.as_str(), self.port).to_socket_addrs().ok().into_iter().flatten();
        found.next().ok_or_else(|| Error::config("MASTER_ADDR", &self.host, "a name that this machine can look up"))
    }
}
