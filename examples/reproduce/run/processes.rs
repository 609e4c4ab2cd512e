//! Processes that a launcher started: replicas of a trainer, or learners and their actors.

use std::cell::RefCell;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use gfn::env::EnumerableEnv;
use gfn::group::Group;
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::tch::Tensor;
use gfn::train::{Context, Observer, Trainer};
use gfn::{Error, Result};
use gfn_dist::Launch;
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::members::{Ready, alone, as_member, joined};
use crate::flags::{Dist, Team};

thread_local! {
    static SIDE: RefCell<Option<Side>> = const { RefCell::new(None) };
}

/// The part of a process in an asynchronous run.
#[derive(Clone)]
pub(super) struct Side {
    launch: Launch,
    /// Beside the launcher's own: one learner listens here, several find each other.
    port: u16,
    /// The first so many processes train, the others draw.
    learners: usize,
    timeout: Duration,
}

/// `true` if this is a process of an asynchronous run.
pub(super) fn is_apart() -> bool {
    SIDE.with_borrow(Option::is_some)
}

/// The part of this process in an asynchronous run, once.
pub(super) fn side() -> Option<Side> {
    SIDE.take()
}

pub(super) fn in_processes(team: &Team, dist: Dist, work: impl Fn() -> Result<()>) -> Result<()> {
    let timeout = Duration::from_secs(team.dist_timeout);
    let Some(launch) = Launch::from_env()? else {
        let expected = "a process that a launcher started: gfn-dist local -n 2 -- reproduce TASK --dist sync, or torchrun, srun, mpirun";
        return Err(Error::config("--dist", "given", expected));
    };
    if dist == Dist::Sync {
        if let Some(learners) = team.learners {
            return Err(Error::config("--learners", learners, "no such flag with --dist sync: all processes train"));
        }
        return as_member(Box::new(launch.connect(timeout)?), &work);
    }
    let (rank, size, learners) = (launch.rank, launch.size, team.learners.unwrap_or(1));
    let port = launch.port.checked_add(1).filter(|_| size > learners);
    let Some(port) = port else {
        let got = format!("async in {size} processes, {learners} of which train, at port {}", launch.port);
        return Err(Error::config("--dist", got, "a learner and at least one actor, and a port below 65535"));
    };
    SIDE.set(Some(Side { launch: launch.clone(), port, learners, timeout }));
    if learners > 1 && rank < learners {
        let among = Launch { port, size: learners, launcher_serves: false, ..launch };
        return as_member(Box::new(among.connect(timeout)?), &work);
    }
    alone(rank, &work)
}

impl Side {
    pub(super) fn take<E: ReplayEnv + EnumerableEnv + 'static, P: Policy<E> + Send + 'static>(
        self,
        mut trainer: Trainer<E, P>,
    ) -> Result<Option<Ready<E, P>>> {
        if self.launch.rank >= self.learners {
            return self.draw(trainer).map(|()| None);
        }
        let learner = match self.learners {
            1 => Learner::listen(Launch { port: self.port, ..self.launch }.first()?, LearnerConfig::default())?,
            _ => {
                let learner = Learner::listen(own_address(&self.launch)?, LearnerConfig::default())?.sharded();
                self.meet(&learner.address().to_string())?;
                trainer = joined(trainer)?;
                learner
            }
        };
        let monitor: Box<dyn Observer<E, P>> = Box::new(learner.monitor());
        Ok(Some(Ready { trainer: trainer.with_fresh(learner)?, monitor: Some(monitor) }))
    }

    /// All processes tell each other where they listen; learners do.
    fn meet(&self, mine: &str) -> Result<Vec<String>> {
        let all = self.launch.connect(self.timeout)?.join(&Tensor::from_slice(mine.as_bytes()))?;
        let text = |bytes: &Tensor| Ok(String::from_utf8_lossy(&Vec::<u8>::try_from(bytes)?).into_owned());
        all.iter().map(text).collect()
    }

    /// Draws for a learner until it has enough.
    fn draw<E: ReplayEnv + 'static, P: Policy<E> + Send + 'static>(self, trainer: Trainer<E, P>) -> Result<()> {
        let (rank, actors) = (self.launch.rank - self.learners, self.launch.size - self.learners);
        let settings = &trainer.context().config;
        let config = ActorConfig {
            batch: (settings.batch / actors).max(1),
            max_steps: settings.max_steps,
            // The learner makes ready first: it may list all states.
            timeout: self.timeout,
            ..ActorConfig::default()
        };
        let address = match self.learners {
            1 => format!("{}:{}", self.launch.host, self.port),
            learners => self.meet("none")?.swap_remove(rank % learners),
        };
        // A signal that ends the run reaches all: the learner needs walks until its step is done, and then says that it is over.
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::default())
                .map_err(|error| Error::config("drawing on after an interrupt", error, "a system with signals"))?;
        }
        let Context { env, reward, policy, conditions, .. } = trainer.into_context();
        let reward = move |states: &E::States, conditions: Option<&Tensor>| reward.log_reward(states, conditions);
        let actor = match conditions {
            Some(source) => {
                let source = move |n: usize, rng: &mut gfn::Rng| source.draw(n, rng);
                Actor::connect_conditional(address, env, reward, policy, source, config)?
            }
            None => Actor::connect(address, env, reward, policy, config)?,
        };
        actor.run().map(drop)
    }
}

/// A free port of the address by which others reach this machine.
fn own_address(launch: &Launch) -> Result<SocketAddr> {
    let found = (launch.address.as_str(), 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    let expected = "an address of this machine, or a name that it can look up as one";
    let said = if launch.address.starts_with("interface:") { "not set" } else { &launch.address };
    found.ok_or_else(|| Error::config("GFN_ADDRESS", said, expected))
}
