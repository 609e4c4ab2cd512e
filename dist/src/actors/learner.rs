use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gfn::env::{EnumerableEnv, Env};
use gfn::policy::Policy;
use gfn::rollout::{Container, ReplayEnv, Trajectories};
use gfn::train::{Context, Persist, Source, Wanted};
use gfn::{Error, Result, Rng};

use super::conditions::Form;
use super::connection::attend;
use super::message::Submission;
use super::shards::{Hashes, hashes};
use super::shared::{Item, Shared};
use super::weights::{Weights, encode, model_of};
use super::{LearnerConfig, Monitor};

/// How long it takes at most until a new actor is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// Where a trainer gets its fresh trajectories from [actors](super::Actor): it takes their walks, replays them, which checks every action,
/// and gives them the trainer's parameters in return. [`Trainer::with_fresh`](gfn::train::Trainer::with_fresh) takes it.
///
/// Actors may come and go at any time. A thread for each takes what it sends into a queue; the trainer's own thread does the rest between
/// two steps. Walks that were acknowledged are trained on, unless they are too old by then or the run ends; those that still wait are no
/// part of a checkpoint.
///
/// The [module](super) has an example.
pub struct Learner<E: Env> {
    pub(super) shared: Arc<Shared>,
    address: SocketAddr,
    sharded: Option<Hashes<E>>,
    accepting: Option<JoinHandle<()>>,
    /// Replayed, and not used yet; with the step that made the parameters.
    ready: VecDeque<(u64, Trajectories<E>)>,
    /// The environment and the form of conditions that an actor must have, too.
    greeting: Option<(String, Form)>,
    used: u64,
    trained: u64,
}

impl<E: Env> std::fmt::Debug for Learner<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner").field("address", &self.address).field("counts", &self.shared.counts()).finish()
    }
}

impl<E: Env> Learner<E> {
    /// A learner that actors reach at this address; port 0 takes a free one. Nobody else can reach a loopback address.
    ///
    /// # Errors
    /// [`Error::Config`] for settings that make no sense; [`Error::Peer`] where the address can't be listened at.
    pub fn listen(address: SocketAddr, config: LearnerConfig) -> Result<Self> {
        config.check()?;
        let refuse = |error: std::io::Error| {
            let remedy = "choose a free port of this machine, or 0";
            Error::peer(format!("a learner at {address}"), error.to_string(), remedy)
        };
        let listener = TcpListener::bind(address).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let shared = Arc::new(Shared::new(config));
        let theirs = Arc::clone(&shared);
        let accepting = std::thread::Builder::new().name("accept".to_owned()).spawn(move || accept(&listener, &theirs));
        let accepting = Some(accepting.map_err(refuse)?);
        Ok(Self {
            shared,
            address,
            sharded: None,
            accepting,
            ready: VecDeque::new(),
            greeting: None,
            used: 0,
            trained: 0,
        })
    }

    /// One of several learners that train as one ([`Trainer::with_group`](gfn::train::Trainer::with_group)), each with actors of its
    /// own or none: each keeps the objects whose keys fall to it, whoever's actor found them. A buffer of distinct objects then has each
    /// of them once on all ranks together. Without this each keeps what its own actors send.
    #[must_use]
    pub fn sharded(mut self) -> Self
    where
        E: EnumerableEnv,
    {
        self.sharded = Some(hashes);
        self
    }

    /// Where actors reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Looks at it once a trainer has it.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    fn is_stale(&self, version: u64, step: u64) -> bool {
        step.saturating_sub(version) > self.shared.config.max_staleness as u64
    }

    pub(super) fn n_ready(&self) -> usize {
        self.ready.iter().map(|(_, trajectories)| trajectories.len()).sum()
    }

    /// The number of fresh trajectories that it must wait for, of those that are wanted, so that none is trained on too often.
    fn owed(&self, share: usize) -> usize {
        let least = ((self.trained + share as u64) as f64 / self.shared.config.max_reuse).ceil() - self.used as f64;
        // A float becomes the nearest number there is.
        least as usize
    }

    /// The error of a learner that nobody sends anything that it can use.
    pub(super) fn deserted(&self) -> Error {
        let (patience, counts) = (self.shared.config.patience, self.shared.counts());
        let why = self.shared.last_refusal().map_or_else(String::new, |why| format!(", the last because of {why}"));
        let problem = format!(
            "no walk that could be used has come in {patience:?}: {} actors are there now, {} ever came, {} walks were too old, {} peers or \
             messages were refused{why}",
            counts.actors, counts.joined, counts.stale, counts.refused
        );
        let remedy = "start actors with this address, look for the errors that they ended with, or be more patient (`LearnerConfig::patience`)";
        Error::peer(format!("the actors of the learner at {}", self.address), problem, remedy)
    }
}

impl<E: ReplayEnv> Learner<E> {
    /// Lets actors have the parameters as they are now.
    fn publish<P: Policy<E>>(&mut self, context: &Context<E, P>) -> Result<()> {
        let (version, parameters) = (context.step as u64, context.policy.parameters());
        let model = match self.shared.published() {
            Some((known, _)) if known == version => return Ok(()),
            Some((_, model)) => model,
            None => model_of(parameters),
        };
        let (environment, conditions) = match &self.greeting {
            Some(known) => known.clone(),
            None => {
                let conditions = Form::of_source(context.conditions.as_deref())?;
                self.greeting.insert((context.env.fingerprint()?, conditions)).clone()
            }
        };
        let learner = context.replicas().map_or((0, 1), |group| (group.rank() as u64, group.size() as u64));
        let body = encode(version, &context.exploration()?, parameters)?;
        self.shared.publish(Weights { version, model, environment, conditions, learner, body });
        Ok(())
    }

    pub(super) fn drop_stale(&mut self, step: u64) {
        let ready = std::mem::take(&mut self.ready);
        let (stale, ready): (VecDeque<_>, VecDeque<_>) =
            ready.into_iter().partition(|(version, _)| self.is_stale(*version, step));
        self.ready = ready;
        self.shared.stale(stale.iter().map(|(_, trajectories)| trajectories.len()).sum());
    }

    /// Replays the next message that waits, if it is any good.
    pub(super) fn next<P>(&mut self, context: &Context<E, P>) -> Option<(u64, Trajectories<E>)> {
        let step = context.step as u64;
        loop {
            let Item { ticket, submission } = self.shared.pop()?;
            if self.is_stale(submission.version, step) {
                self.shared.stale(submission.len());
                continue;
            }
            let version = submission.version;
            let replayed = match (&context.conditions, &submission.conditions) {
                (Some(source), Some(conditions)) => source.check(conditions),
                _ => Ok(()),
            };
            match replayed.and_then(|()| replay(&context.env, submission)) {
                Ok(trajectories) => return Some((version, trajectories)),
                Err(error) => self.shared.reject(ticket, format!("walks that can't be replayed: {error}")),
            }
        }
    }

    pub(super) fn keep(&mut self, version: u64, trajectories: Trajectories<E>) {
        self.ready.push_back((version, trajectories));
    }

    /// Takes in what waits, up to the most that is wanted, and waits for the least.
    fn take_in<P>(&mut self, wanted: RangeInclusive<usize>, context: &Context<E, P>) -> Result<()> {
        let step = context.step as u64;
        let mut until = Instant::now() + self.shared.config.patience;
        loop {
            self.drop_stale(step);
            while self.n_ready() < *wanted.end() {
                let Some((version, trajectories)) = self.next(context) else { break };
                until = Instant::now() + self.shared.config.patience;
                self.keep(version, trajectories);
            }
            if self.n_ready() >= *wanted.start() {
                return Ok(());
            }
            if !self.shared.wait_for_walks(until) {
                return Err(self.deserted());
            }
        }
    }

    /// The first `n` that are ready.
    fn take(&mut self, n: usize, step: u64) -> Result<Option<Trajectories<E>>> {
        let mut taken: Option<Trajectories<E>> = None;
        let mut left = n;
        while left > 0 {
            let Some((version, trajectories)) = self.ready.pop_front() else { break };
            let (m, here) = (trajectories.len(), trajectories.len().min(left));
            if here < m {
                self.ready.push_front((version, trajectories.select(here..m)?));
            }
            let part = if here < m { trajectories.select(0..here)? } else { trajectories };
            match &mut taken {
                Some(all) => all.append(part)?,
                none => *none = Some(part),
            }
            self.shared.used(here, step.saturating_sub(version));
            self.used += here as u64;
            left -= here;
        }
        Ok(taken)
    }
}

/// Actors come and go, so nothing of them is kept.
impl<E: Env> Persist<E> for Learner<E> {
    fn name(&self) -> &str {
        "actors"
    }
}

impl<E: ReplayEnv, P: Policy<E>> Source<E, P> for Learner<E> {
    fn draw(&mut self, wanted: Wanted, context: &Context<E, P>, _: &mut Rng) -> Result<Option<Trajectories<E>>> {
        self.publish(context)?;
        let (step, share) = (context.step as u64, context.share());
        // What is of no use as fresh is of use in the buffer: actors needn't wait for the learner then. A step takes one queue.
        let most = if wanted.more { wanted.most.max(self.shared.config.queue) } else { wanted.most };
        let least = self.owed(share).clamp(wanted.least, most);
        match (context.replicas(), self.sharded) {
            (Some(group), Some(hashes)) => self.take_in_shares(group, hashes, least..=most, context)?,
            _ => self.take_in(least..=most, context)?,
        }
        self.trained += share as u64;
        self.take(most, step)
    }
}

impl<E: Env> Drop for Learner<E> {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(accepting) = self.accepting.take() {
            // It panics with nobody left to tell.
            let _ = accepting.join();
        }
    }
}

/// The walks of an actor, every action of which is checked.
pub(super) fn replay<E: ReplayEnv>(env: &E, submission: Submission) -> Result<Trajectories<E>> {
    let Submission { offsets, instances, log_rewards, conditions, actions, .. } = submission;
    let actions = env.read_actions(&actions)?;
    let replayed = Trajectories::replay_of(env, &instances, &actions, &offsets)?.with_log_rewards(log_rewards)?;
    match conditions {
        Some(conditions) => replayed.with_conditions(conditions),
        None => Ok(replayed),
    }
}

/// Gives each actor that comes a thread, until the end.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut ticket = 0;
    while !shared.is_closing() {
        match listener.accept() {
            Ok((stream, _)) => {
                let theirs = Arc::clone(shared);
                // Without a thread for it, an actor is cut off: it finds out at once.
                let _ = std::thread::Builder::new()
                    .name(format!("actor {ticket}"))
                    .spawn(move || attend(&theirs, stream, ticket));
                ticket += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            // Too many open files, say: that passes.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}
