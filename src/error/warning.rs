//! The warnings of a training run.

/// A sign that training goes wrong although no error occurs. A user could find the same sign in the reported
/// metrics.
///
/// Each variant is raised at most once per observer of warnings
/// ([`Warnings::all`](crate::run::Warnings::all)), except that [`Resumed`](Self::Resumed) is raised each time
/// that a run is resumed with changed settings. A warning is a sign, not a proof. Its text says what was
/// found, what the finding means and what to do.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// Nearly all trajectories sampled from the policy end in one object, although the log-rewards found so
    /// far don't justify such a concentration.
    #[error(
        "step {step}: {:.0} % of the trajectories end in one object of log-reward {log_reward:.3}, {}: \
         unless the target has such a sharp peak, the policy has collapsed, even if the loss is small. \
         {REMEDY}",
        100.0 * share, describe_other(*other)
    )]
    OneObject {
        /// The training step, counted from 1.
        step: usize,
        /// The share of the sampled trajectories that end in the object.
        share: f64,
        /// The log-reward of the object.
        log_reward: f64,
        /// The greatest log-reward of another object that was sampled in this run, if it is so high that the
        /// object should be sampled often, too. `None` if there is no such object: either the target is
        /// concentrated on one object, or other good objects were never found.
        other: Option<f64>,
    },
    /// The loss is nearly 0 and log Z no longer changes, but log Z is below the log-reward of an object that
    /// was sampled. Z is at least as large as each reward, so log Z is wrong.
    #[error(
        "step {step}: the loss is {loss:.1e} and log Z doesn't change from {log_z:.3}, but an object of \
         log-reward {best:.3} was sampled earlier, and log Z must be at least as large: the loss is small \
         only because the few objects that are sampled now agree with each other. {REMEDY}"
    )]
    Stalled {
        /// The training step, counted from 1.
        step: usize,
        /// The loss in this step.
        loss: f64,
        /// The estimate of log Z in this step.
        log_z: f64,
        /// The greatest log-reward of this run so far.
        best: f64,
    },
    /// The learned log Z stays far below the log-reward of an object that was sampled. Z is at least as large
    /// as each reward, so log Z is wrong.
    #[error(
        "step {step}: log Z is {log_z:.3}, far below the log-reward {best:.3} of an object that was sampled, \
         but log Z must be at least as large: until log Z is that large, the policy learns to compensate the \
         difference instead of learning the target. Subtract a constant near {best:.0} from the log-reward, \
         which changes no probability, start with a larger log Z (`EstimatorsConfig::initial_log_z`), or \
         raise `AdamConfig::log_z_lr`."
    )]
    LogZFarBelow {
        /// The training step, counted from 1.
        step: usize,
        /// The estimate of log Z in this step.
        log_z: f64,
        /// The greatest log-reward of this run so far.
        best: f64,
    },
    /// The learning rates are 0 from this step on.
    #[error(
        "step {step}: learning rates are 0 from this step on, so nothing is learned any more: the schedule \
         `TrainerConfig::lr_scale` has ended. Train for at most as many steps as the schedule has, give a \
         schedule with more steps, or give one that never ends, such as `Schedule::InverseRoot`."
    )]
    LearnsNothing {
        /// The training step, counted from 1.
        step: usize,
    },
    /// The policy doesn't explore, and nearly every sampled object has the least log-reward of this run.
    #[error(
        "step {step}: the policy doesn't explore, and {:.0} % of the trajectories end at the least \
         log-reward found so far, {floor:.3}: if rewards are rare, objects that the policy doesn't find by \
         itself are never learned. {REMEDY}",
        100.0 * share
    )]
    NoExploration {
        /// The training step, counted from 1.
        step: usize,
        /// The share of the sampled trajectories that end in an object of the least log-reward.
        share: f64,
        /// The least log-reward of this run so far.
        floor: f64,
    },
    /// The reward of a replayed object differs from the log-reward stored in the replay buffer.
    #[error(
        "step {step}: the reward has changed: log R of {object} is {now} now, but {before} in the replay \
         buffer. Replayed objects keep their old log-rewards, so batches mix two targets. Let the reward \
         depend only on the object and its condition: anneal the reward by `reward_exponent`, turn the part \
         that varies into a condition, or begin with an empty buffer after each change."
    )]
    RewardChanged {
        /// The training step, counted from 1.
        step: usize,
        /// A description of the object in words.
        object: String,
        /// The log-reward stored in the buffer.
        before: f64,
        /// The log-reward that the reward returns now.
        now: f64,
    },
    /// The log-rewards of the first batch look like rewards R instead of log R.
    #[error(
        "step {step}: log-rewards of the first batch go up to {most:.0}, and none of them is negative. Does \
         the reward return R itself? It must return the logarithm of R: a difference of 10 between \
         log-rewards is a factor of 22,026 between rewards."
    )]
    NotLogarithms {
        /// The training step, counted from 1.
        step: usize,
        /// The greatest log-reward of the batch.
        most: f64,
    },
    /// The last 1,000 sampled objects have few different log-rewards, although nearly all of the first 1,000
    /// had different ones.
    #[error(
        "step {step}: only {:.0} % of the last 1,000 log-rewards are different from each other, but {:.0} % \
         of the first ones were: unless the target has such sharp peaks, the policy has collapsed onto the \
         objects that it found first. {REMEDY}",
        100.0 * share, 100.0 * first
    )]
    FewObjects {
        /// The training step, counted from 1.
        step: usize,
        /// The share of different log-rewards among the last 1,000 objects.
        share: f64,
        /// The share of different log-rewards among the first 1,000 objects of this run.
        first: f64,
    },
    /// The last trajectories of a run have a small effective sample size, so weighted averages over them are
    /// poor estimates of averages under the target.
    #[error(
        "step {step}: according to their importance weights, the last {n} trajectories are worth only \
         {effective:.1} samples of the target: don't trust averages over the policy's samples. Train longer, \
         or with another learning rate."
    )]
    FewEffective {
        /// The training step, counted from 1.
        step: usize,
        /// The effective sample size, computed from importance weights.
        effective: f64,
        /// The number of trajectories from which the effective sample size was computed.
        n: usize,
    },
    /// The settings of a resumed run differ from those stored in the checkpoint, perhaps on purpose.
    #[error(
        "resumed at step {step} with other settings than those of the checkpoint: {changes}. If that isn't \
         intended, resume with the settings of the run that saved the checkpoint."
    )]
    Resumed {
        /// The training step of the checkpoint.
        step: usize,
        /// A description of the changes in words.
        changes: String,
    },
}

/// The advice at the end of most warnings.
const REMEDY: &str = "Explore (`TrainerConfig::epsilon`, a replay buffer that is prefilled, local search), \
    or lower the learning rate; `metrics::StateGraph` computes the exact distance if the states can be \
    listed.";

/// Describes, for the message of [`Warning::OneObject`], the best other object, given its log-reward.
fn describe_other(other: Option<f64>) -> String {
    match other {
        Some(other) => format!("although another object of log-reward {other:.3} was found"),
        None => "and no other object with such a log-reward was ever found".into(),
    }
}
