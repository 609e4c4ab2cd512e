use std::ops::ControlFlow;
use std::sync::Arc;

use gfn::Result;
use gfn::env::Env;
use gfn::train::{Observer, Record, Trainer};

use super::shared::Shared;

/// Counts of the walks that came to a [`Learner`](super::Learner), and of their fate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counts {
    /// Actors now.
    pub actors: usize,
    /// Actors that ever came.
    pub joined: u64,
    /// Walks that were acknowledged.
    pub received: u64,
    /// Walks that went into a batch or, where there is one, into the replay buffer. In a [sharded](super::Learner::sharded) learner they may
    /// be those of another one's actors.
    pub used: u64,
    /// Walks that were dropped because the parameters that drew them were too old.
    pub stale: u64,
    /// Peers and messages that were refused.
    pub refused: u64,
    /// Walks that wait now.
    pub queued: usize,
    /// By how many steps the parameters that drew them were older than those that they trained, on average over walks that were used.
    pub mean_staleness: f64,
}

/// Looks at a [`Learner`](super::Learner) that a trainer has. As an observer it adds `actors`, `walks_received`, `walks_stale`,
/// `walks_queued`, `refused` and `staleness` to the metrics.
#[derive(Clone)]
pub struct Monitor(pub(super) Arc<Shared>);

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Monitor").field(&self.counts()).finish()
    }
}

impl Monitor {
    /// The counts now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// Why the last peer or message was refused.
    #[must_use]
    pub fn last_refusal(&self) -> Option<String> {
        self.0.last_refusal()
    }
}

impl<E: Env, P> Observer<E, P> for Monitor {
    fn name(&self) -> &str {
        "actors"
    }

    fn after_step(&mut self, _: &Trainer<E, P>, record: &mut Record) -> Result<ControlFlow<()>> {
        let counts = self.counts();
        let figures = [
            ("actors", counts.actors as f64),
            ("walks_received", counts.received as f64),
            ("walks_stale", counts.stale as f64),
            ("walks_queued", counts.queued as f64),
            ("refused", counts.refused as f64),
            ("staleness", counts.mean_staleness),
        ];
        record.metrics.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        Ok(ControlFlow::Continue(()))
    }
}
