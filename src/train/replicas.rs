//! The replicas of a run compare what they train before the first step.

use rand::RngCore;
use tch::{Kind, Tensor};

use super::gradients::SAME;
use super::{Context, Trainer};
use crate::env::{Env, Rows, check_count};
use crate::nn::Parameters;
use crate::policy::Policy;
use crate::rng::hash;
use crate::rollout::{Container, Sampler};
use crate::tensor::to_host;
use crate::train::TrainEnv;
use crate::{Error, Result, Rng};

/// Objects that each replica's reward is asked about before the first step.
const ASKED: usize = 8;
/// Allowed difference of two replicas' log-rewards, per unit of their size if that is above 1: machines round differently.
const TOLERANCE: f64 = 1e-4;

impl<E: Env> Trainer<E> {
    /// The number of trainers that train as one; 1 for a trainer by itself.
    #[must_use]
    pub fn n_replicas(&self) -> usize {
        self.context.group.size()
    }

    /// The number of this one among them, from 0.
    #[must_use]
    pub fn replica(&self) -> usize {
        self.context.group.rank()
    }

    /// For an observer that must see every trajectory: the first replica, which alone has observers, sees its own share of each batch.
    ///
    /// # Errors
    /// [`Error::Missing`] where several trainers train as one, and where fresh trajectories come from elsewhere into a replay buffer.
    pub fn check_sees_all(&self, needed_by: &'static str) -> Result<()> {
        let stored = self.sources.elsewhere.is_some() && self.sources.replay.is_some();
        let (missing, remedy) = if stored {
            (
                "all fresh trajectories: some go into the replay buffer alone",
                "train without a replay buffer, or look at samples of the trained policy",
            )
        } else if self.n_replicas() > 1 {
            (
                "all trajectories of a batch, of which each replica sees its share",
                "train with one replica, or look at samples of the trained policy",
            )
        } else {
            return Ok(());
        };
        Err(Error::missing(needed_by, missing, remedy))
    }
}

impl<E: TrainEnv> Trainer<E> {
    /// Compares the trainers of all replicas: in parameters, objective, description, settings, step and place of the random stream. A
    /// schedule of one's own can't be compared.
    ///
    /// # Errors
    /// [`Error::Contract`] where two differ; [`Error::Peer`] if another replica has ended.
    pub(super) fn check_equal_replicas(&self) -> Result<()> {
        let Context { config, conditions, objective, step, .. } = &self.context;
        let parameters = self.context.policy.parameters().into_iter().flat_map(Parameters::iter);
        let sums = parameters.map(|one| one.tensor.detach().sum(Kind::Double).double_value(&[]).to_bits());
        let mine = [
            ("objective", hash_text(&format!("{} {}", objective.name(), objective.settings()))),
            ("set of settings", hash_text(&serde_json::to_string(config).unwrap_or_default())),
            ("source of conditions", u64::from(conditions.is_some())),
            ("number of steps made", *step as u64),
            ("seed, or place of its random stream,", self.rng.clone().next_u64()),
            ("set of parameters", hash(sums)),
            ("description", hash_text(&self.description.to_string())),
        ];
        compare(&self.context, &mine)
    }

    /// Compares the environments of all replicas, and lets each ask its own reward about a few objects, the same for all: those of random
    /// walks.
    ///
    /// # Errors
    /// [`Error::Contract`] for environments, rewards or conditions that differ; [`Error::Peer`] if another replica has ended; those of the reward.
    pub(super) fn check_equal_tasks(&self) -> Result<()> {
        let Context { env, reward, config, conditions, .. } = &self.context;
        let Some(group) = self.context.replicas() else { return Ok(()) };
        compare(&self.context, &[("environment", hash_text(&env.fingerprint()?))])?;
        if self.sources.elsewhere.is_some() {
            // What comes from elsewhere brings its log-rewards: this trainer may not be able to ask a reward itself.
            return Ok(());
        }
        let uniform = env.uniform();
        let mut walks = match Sampler::new(env, &uniform).max_steps(config.max_steps).walks(ASKED, &mut Rng::seeded(0))
        {
            // Walks at random may be too long, for all replicas alike.
            Err(Error::StepLimit { .. }) => return Ok(()),
            drawn => drawn?,
        };
        if let Some(source) = conditions {
            walks = walks.with_conditions(source.draw(ASKED, &mut Rng::seeded(0))?)?;
        }
        let mut mine = reward.log_reward(&walks.terminal, walks.conditions())?;
        check_count(&mine, ASKED)?;
        mine.extend(walks.conditions().map_or_else(Vec::new, to_host));
        for (other, theirs) in group.join(&Tensor::from_slice(&mine))?.iter().enumerate() {
            let theirs = Vec::<f64>::try_from(theirs)?;
            let close = |k: usize| {
                let rounded = (mine[k] - theirs[k]).abs() <= TOLERANCE * (1.0 + mine[k].abs());
                mine[k] == theirs[k] || rounded || (mine[k].is_nan() && theirs[k].is_nan())
            };
            let (rank, n) = (group.rank(), mine.len());
            if theirs.len() != n || !(ASKED..n).all(close) {
                let detail =
                    format!("replica {other} has other conditions, drawn by the same stream, than replica {rank}");
                return Err(Error::contract(SAME, detail));
            }
            if let Some(row) = (0..ASKED).find(|&row| !close(row)) {
                let object = walks.terminal.describe(row).unwrap_or_else(|| format!("object {row} of random walks"));
                let (theirs, mine) = (theirs[row], mine[row]);
                let detail = format!(
                    "replica {other} has another reward: log R of {object} is {theirs} there and {mine} at replica {rank}"
                );
                return Err(Error::contract(SAME, detail));
            }
        }
        Ok(())
    }
}

/// Compares numbers that differ where two trainers do, by the name of what they are of.
fn compare<E: Env>(context: &Context<E>, mine: &[(&'static str, u64)]) -> Result<()> {
    let Some(group) = context.replicas() else { return Ok(()) };
    let hashes: Vec<i64> = mine.iter().map(|(_, hash)| hash.cast_signed()).collect();
    for (other, theirs) in group.join(&Tensor::from_slice(&hashes))?.iter().enumerate() {
        // Numbers of another kind or count are of something else that a member does meanwhile.
        let theirs = Vec::<i64>::try_from(theirs).unwrap_or_default();
        if let Some(k) = (0..mine.len()).find(|&k| theirs.get(k) != Some(&hashes[k])) {
            let detail = format!("member {other} has another {} than member {}", mine[k].0, group.rank());
            return Err(Error::contract(SAME, detail));
        }
    }
    Ok(())
}

fn hash_text(text: &str) -> u64 {
    hash(text.bytes().map(u64::from))
}

/// A number of the first replica's, for all.
pub(super) fn agree<E: Env>(context: &Context<E>, value: f64) -> Result<f64> {
    let all = context.group.join(&Tensor::from_slice(&[value]))?;
    Ok(all.first().map_or(value, |first| first.double_value(&[0])))
}
