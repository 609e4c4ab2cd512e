//! What a learner and the threads that talk to its actors have in common: parameters one way, walks the other, and counts.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::LearnerConfig;
use super::frame::Broken;
use super::message::Submission;
use super::monitor::Counts;
use super::weights::Weights;

/// Walks of an actor.
pub(super) struct Item {
    pub(super) ticket: u64,
    pub(super) submission: Submission,
}

pub(super) struct Shared {
    pub(super) config: LearnerConfig,
    state: Mutex<State>,
    /// Walks have come, or an actor has come or gone.
    arrived: Condvar,
    /// There are parameters, there is room, or the end has come.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    weights: Option<Arc<Weights>>,
    queue: VecDeque<Item>,
    counts: Counts,
    /// Sum over walks that were used.
    staleness: f64,
    last_refusal: Option<String>,
    /// Actors whose walks could not be replayed, and why.
    rejected: BTreeMap<u64, String>,
    streams: BTreeMap<u64, TcpStream>,
    closing: bool,
}

impl Shared {
    pub(super) fn new(config: LearnerConfig) -> Self {
        Self { config, state: Mutex::default(), arrived: Condvar::new(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often each says that it is there.
    pub(super) fn beat(&self) -> Duration {
        self.config.timeout / 3
    }

    pub(super) fn counts(&self) -> Counts {
        let state = self.lock();
        Counts { mean_staleness: state.staleness / (state.counts.used.max(1) as f64), ..state.counts }
    }

    pub(super) fn last_refusal(&self) -> Option<String> {
        self.lock().last_refusal.clone()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    // What the trainer's thread does.

    pub(super) fn publish(&self, weights: Weights) {
        self.lock().weights = Some(Arc::new(weights));
        self.changed.notify_all();
    }

    /// The step of the parameters that actors get.
    pub(super) fn published(&self) -> Option<(u64, u64)> {
        self.lock().weights.as_ref().map(|weights| (weights.version, weights.model))
    }

    pub(super) fn pop(&self) -> Option<Item> {
        let mut state = self.lock();
        let item = state.queue.pop_front()?;
        state.counts.queued -= item.submission.len();
        self.changed.notify_all();
        Some(item)
    }

    /// Waits for walks; `false` if none have come by then.
    pub(super) fn wait_for_walks(&self, until: Instant) -> bool {
        let mut state = self.lock();
        while state.queue.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            (state, _) = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    pub(super) fn used(&self, n: usize, staleness: u64) {
        let mut state = self.lock();
        state.counts.used += n as u64;
        state.staleness += n as f64 * staleness as f64;
    }

    pub(super) fn stale(&self, n: usize) {
        self.lock().counts.stale += n as u64;
    }

    /// Walks that could not be replayed: their actor is told when it comes again.
    pub(super) fn reject(&self, ticket: u64, reason: String) {
        self.refused(&reason);
        let mut state = self.lock();
        if state.streams.contains_key(&ticket) {
            state.rejected.insert(ticket, reason);
        }
    }

    // What an actor's thread does.

    /// Keeps a connection, to cut it off at the end; `false` where there are too many, and after the end.
    pub(super) fn connected(&self, ticket: u64, stream: TcpStream) -> bool {
        let mut state = self.lock();
        if state.closing || state.streams.len() >= self.config.max_actors {
            return false;
        }
        state.streams.insert(ticket, stream);
        true
    }

    pub(super) fn disconnected(&self, ticket: u64) {
        let mut state = self.lock();
        state.streams.remove(&ticket);
        state.rejected.remove(&ticket);
        self.arrived.notify_all();
    }

    pub(super) fn joined(&self) {
        let mut state = self.lock();
        state.counts.actors += 1;
        state.counts.joined += 1;
    }

    pub(super) fn left(&self) {
        self.lock().counts.actors -= 1;
    }

    pub(super) fn refused(&self, reason: &str) {
        let mut state = self.lock();
        state.counts.refused += 1;
        state.last_refusal = Some(reason.to_owned());
    }

    pub(super) fn rejected(&self, ticket: u64) -> Option<String> {
        self.lock().rejected.get(&ticket).cloned()
    }

    /// Waits until `ready` gives something, and says meanwhile that the learner is there; `None` at the end.
    fn wait<T>(
        &self,
        mut ready: impl FnMut(&mut State) -> Option<T>,
        mut alive: impl FnMut() -> Result<(), Broken>,
    ) -> Result<Option<T>, Broken> {
        let mut state = self.lock();
        let mut next_beat = Instant::now() + self.beat();
        loop {
            if state.closing {
                return Ok(None);
            }
            if let Some(found) = ready(&mut state) {
                return Ok(Some(found));
            }
            // Others may change what isn't waited for again and again: that mustn't put off the sign of life.
            let left = next_beat.saturating_duration_since(Instant::now());
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            if Instant::now() >= next_beat {
                drop(state);
                alive()?;
                next_beat = Instant::now() + self.beat();
                state = self.lock();
            }
        }
    }

    /// The latest parameters, once there are any.
    pub(super) fn weights(&self, alive: impl FnMut() -> Result<(), Broken>) -> Result<Option<Arc<Weights>>, Broken> {
        self.wait(|state| state.weights.clone(), alive)
    }

    /// Puts walks into the queue, once there is room. A queue that is empty has room for any number.
    pub(super) fn push(&self, item: Item, alive: impl FnMut() -> Result<(), Broken>) -> Result<Option<()>, Broken> {
        let (n, mut item) = (item.submission.len(), Some(item));
        let pushed = self.wait(
            |state| {
                if !state.queue.is_empty() && state.counts.queued + n > self.config.queue {
                    return None;
                }
                state.queue.extend(item.take());
                state.counts.queued += n;
                state.counts.received += n as u64;
                Some(())
            },
            alive,
        );
        self.arrived.notify_all();
        pushed
    }

    /// Ends all connections, and waits for their threads to say so to the actors.
    pub(super) fn close(&self) {
        let until = Instant::now() + Duration::from_secs(1);
        let mut state = self.lock();
        state.closing = true;
        for stream in state.streams.values() {
            // An error says that it is closed already.
            let _ = stream.shutdown(Shutdown::Read);
        }
        self.changed.notify_all();
        while !state.streams.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            (state, _) = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
