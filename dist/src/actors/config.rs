use std::time::Duration;

use gfn::{Error, Result};

/// No wait is longer: an instant can't be told for any number of years.
pub(super) const MOST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The settings of a [`Learner`](super::Learner).
#[derive(Clone, PartialEq, Debug)]
pub struct LearnerConfig {
    /// Walks that may wait, and that a step takes at most, those for the replay buffer alone included: actors that have more wait
    /// themselves. A queue that is empty takes a message of any length.
    pub queue: usize,
    /// By how many steps the parameters that drew a walk may be older than those that it would train; what is older is dropped and
    /// counted.
    pub max_staleness: usize,
    /// Trajectories that may be trained on, replayed ones too, for each one that an actor sent, before the learner waits for more. Without a
    /// replay buffer it waits for all.
    pub max_reuse: f64,
    /// Actors at once.
    pub max_actors: usize,
    /// The longest message with walks, in bytes.
    pub max_message: usize,
    /// After how long a silence an actor is taken for gone. Actors say that they are there, however long their reward takes.
    pub timeout: Duration,
    /// The time that it waits for walks where it can't do without, before it takes all actors for gone; of learners that share walks, those of
    /// all. While it waits, no step ends: a signal
    /// that is to end the run after its step ([`Fit::stop_on_interrupt`](gfn::train::Fit)) takes effect once walks come, so let long runs
    /// save checkpoints every so many steps.
    pub patience: Duration,
}

impl Default for LearnerConfig {
    /// 256 walks may wait, drawn by parameters of the last 100 steps; each object that comes may be trained on eight times as many. 30 seconds,
    /// 10 minutes.
    fn default() -> Self {
        Self {
            queue: 256,
            max_staleness: 100,
            max_reuse: 8.0,
            max_actors: 1024,
            max_message: 1 << 26,
            timeout: Duration::from_secs(30),
            patience: Duration::from_secs(600),
        }
    }
}

impl LearnerConfig {
    pub(super) fn check(&self) -> Result<()> {
        let counts = [
            ("walks that may wait", self.queue),
            ("actors at once", self.max_actors),
            ("bytes of a message", self.max_message),
        ];
        if let Some((setting, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(Error::config(setting, 0, "at least 1"));
        }
        if self.max_reuse.is_nan() || self.max_reuse < 1.0 {
            return Err(Error::config("trajectories trained on for each that came", self.max_reuse, "at least 1"));
        }
        if self.patience > MOST || self.timeout > MOST {
            let got = format!("{:?} and {:?}", self.timeout, self.patience);
            return Err(Error::config("timeout and patience of a learner", got, "at most ten years"));
        }
        if self.timeout < Duration::from_millis(3) {
            let got = format!("{:?}", self.timeout);
            return Err(Error::config("the timeout of a learner", got, "at least three milliseconds"));
        }
        Ok(())
    }
}
