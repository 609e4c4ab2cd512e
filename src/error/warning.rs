//! The warnings of a training run.

use std::fmt;

/// A sign that training goes wrong without an error: what a person would see in the figures.
///
/// Each kind is raised once per observer ([`Warnings::raised`](crate::run::Warnings::raised)), the warning of a resumed run once per change. It is a sign, not a proof: its text says what was seen, what that means and what to do.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// Nearly all fresh trajectories end in one object, which the rewards seen so far don't justify.
    OneObject {
        /// The step, counted from 1.
        step: usize,
        /// The share of the fresh trajectories that end in it.
        share: f64,
        /// Its log-reward.
        log_reward: f64,
        /// The greatest log-reward of another object that was seen in this run and should come up as well; `None` where there is none:
        /// the target is that peaked, or the others were never found.
        other: Option<f64>,
    },
    /// The loss is next to 0 and log Z stands still, below the log-reward of a single object that was seen.
    Stalled {
        /// The step, counted from 1.
        step: usize,
        /// The loss.
        loss: f64,
        /// The estimate of log Z.
        log_z: f64,
        /// The greatest log-reward that was seen in this run.
        best: f64,
    },
    /// The log Z that is learned stays far below the log-reward of a single object that was seen.
    LogZFarBelow {
        /// The step, counted from 1.
        step: usize,
        /// The estimate of log Z.
        log_z: f64,
        /// The greatest log-reward that was seen in this run.
        best: f64,
    },
    /// All learning rates are 0 from this step on.
    LearnsNothing {
        /// The step, counted from 1.
        step: usize,
    },
    /// Nothing explores, and nearly every object has the least log-reward that was seen.
    NoExploration {
        /// The step, counted from 1.
        step: usize,
        /// The share of the fresh trajectories that end at that log-reward.
        share: f64,
        /// That log-reward.
        floor: f64,
    },
    /// The reward gives a replayed object another log-reward than the replay buffer has.
    RewardChanged {
        /// The step, counted from 1.
        step: usize,
        /// The object, in words.
        object: String,
        /// The log-reward that the buffer has.
        before: f64,
        /// The log-reward that the reward gives now.
        now: f64,
    },
    /// The log-rewards of the first batch look like rewards.
    NotLogarithms {
        /// The step, counted from 1.
        step: usize,
        /// The greatest log-reward of the batch, none of which is negative.
        most: f64,
    },
    /// The latest objects have few different log-rewards, where nearly all of the first ones differed.
    FewObjects {
        /// The step, counted from 1.
        step: usize,
        /// The share of different log-rewards among the last 1,000 objects.
        share: f64,
        /// The same share of the first objects of this run.
        first: f64,
    },
    /// At the end of a run the latest trajectories are worth few samples of the target.
    FewEffective {
        /// The step, counted from 1.
        step: usize,
        /// The effective number of samples by importance weights.
        effective: f64,
        /// The number of trajectories.
        n: usize,
    },
    /// A run continues with other settings than the checkpoint's, perhaps on purpose.
    Resumed {
        /// The checkpoint's step.
        step: usize,
        /// The changes, in words.
        changes: String,
    },
}

impl Warning {
    /// What to do about it, in any case.
    const REMEDY: &'static str = "Explore (`TrainerConfig::epsilon`, a replay buffer that is prefilled, local search), or lower the learning \
                                  rate; `metrics::StateGraph` tells the exact distance where the states can be listed.";
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneObject { step, share, log_reward, other } => {
                let percent = 100.0 * *share;
                write!(
                    f,
                    "step {step}: {percent:.0} % of the trajectories end in one object of log-reward {log_reward:.3}, "
                )?;
                match other {
                    Some(other) => write!(f, "though another of log-reward {other:.3} was seen")?,
                    None => write!(f, "and nothing as good was ever seen")?,
                }
                let meaning = "unless the target is that peaked, the policy has collapsed, whatever the loss says";
                write!(f, ": {meaning}. {}", Self::REMEDY)
            }
            Self::Stalled { step, loss, log_z, best } => write!(
                f,
                "step {step}: the loss is {loss:.1e} and log Z stands still at {log_z:.3}, but an object of log-reward {best:.3} \
                 was seen, and Z is at least each reward: the loss only says that the few objects sampled now agree. {}",
                Self::REMEDY
            ),
            Self::LogZFarBelow { step, log_z, best } => write!(
                f,
                "step {step}: log Z is {log_z:.3}, far below the log-reward {best:.3} of an object that was seen, and Z is at least each \
                 reward: until it is there, the policy learns to make up for the difference, and not the target. Subtract a constant near \
                 {best:.0} from the log-reward, which changes no probability, start nearer (`EstimatorsConfig::initial_log_z`), or raise \
                 `AdamConfig::log_z_lr`."
            ),
            Self::LearnsNothing { step } => write!(
                f,
                "step {step}: learning rates are 0 from here on, so nothing is learned any more: `TrainerConfig::lr_scale` is at its \
                 end. Train no longer than it lasts, or give a schedule for all steps together, or one that never ends, such as \
                 `Schedule::InverseRoot`."
            ),
            Self::NoExploration { step, share, floor } => write!(
                f,
                "step {step}: nothing explores, and {:.0} % of the trajectories end at the least log-reward seen, {floor:.3}: where \
                 rewards are rare, what the policy doesn't find by itself is never learned. {}",
                100.0 * *share,
                Self::REMEDY
            ),
            Self::RewardChanged { step, object, before, now } => write!(
                f,
                "step {step}: the reward has changed: log R of {object} is {now} now, and {before} in the replay buffer. \
                 Replayed objects keep their old log-rewards, so batches mix two targets. Let the reward depend on \
                 the object and its condition alone: anneal it by `reward_exponent`, give what varies as a condition, \
                 or begin with an empty buffer after each change."
            ),
            Self::NotLogarithms { step, most } => write!(
                f,
                "step {step}: log-rewards of the first batch go up to {most:.0}, and none is negative. Is it R itself? A reward \
                 gives the logarithm of R, of which a difference of 10 is a factor of 22,026."
            ),
            Self::FewObjects { step, share, first } => write!(
                f,
                "step {step}: {:.0} % of the last 1,000 log-rewards differ, where {:.0} % of the first did: unless the target is \
                 that peaked, the policy has collapsed onto what it found first. {}",
                100.0 * *share,
                100.0 * *first,
                Self::REMEDY
            ),
            Self::FewEffective { step, effective, n } => write!(
                f,
                "step {step}: by their importance weights the last {n} trajectories are worth {effective:.1} samples of the \
                 target: don't trust averages over the policy's samples. Train longer, or by another learning rate."
            ),
            Self::Resumed { step, changes } => write!(
                f,
                "resumed at step {step} as another run: {changes}. If that isn't meant, resume with what the checkpoint was made with."
            ),
        }
    }
}
