//! Replicas compare what they train before the first step.

use rand::RngCore;
use tch::{Kind, Tensor};

use super::gradients::REPLICAS_MUST_MATCH;
use super::{Context, Trainer};
use crate::env::{Env, Rows, check_count};
use crate::nn::Parameters;
use crate::policy::Policy;
use crate::rng::hash;
use crate::rollout::{Container, Sampler};
use crate::tensor::to_host;
use crate::train::TrainEnv;
use crate::{Error, Result, Rng};

/// The number of objects that each replica's reward is asked about before the first step.
const N_PROBES: usize = 8;
/// Allowed difference of two replicas' log-rewards, per unit of their size if that is above 1: machines round differently.
const TOLERANCE: f64 = 1e-4;

/// Compares the trainers of all replicas: parameters, objective, description, settings, step and position of the random stream. Custom schedules
/// can't be compared.
///
/// # Errors
/// [`Error::Contract`] for two that differ; [`Error::Peer`] if another replica has ended.
pub(crate) fn check_equal_replicas<E: Env>(trainer: &Trainer<E>) -> Result<()> {
    let Context { config, conditions, objective, step, .. } = &trainer.context;
    let parameters = trainer.context.policy.parameters().into_iter().flat_map(Parameters::iter);
    let sums = parameters.map(|one| one.tensor.detach().sum(Kind::Double).double_value(&[]).to_bits());
    let mine = [
        ("objective", hash_text(&format!("{} {}", objective.name(), objective.settings()))),
        ("set of settings", hash_text(&serde_json::to_string(config).unwrap_or_default())),
        ("source of conditions", u64::from(conditions.is_some())),
        ("number of steps made", *step as u64),
        ("seed, or place of its random stream,", trainer.rng.clone().next_u64()),
        ("set of parameters", hash(sums)),
        ("description", hash_text(&trainer.description.to_string())),
    ];
    compare(&trainer.context, &mine)
}

/// Compares the environments of all replicas, and their rewards on a few objects of random walks, the same for all. `has_own_rewards` is `true` if
/// trajectories bring their log-rewards; this trainer may then have no reward to ask.
///
/// # Errors
/// [`Error::Contract`] for environments, rewards or conditions that differ; [`Error::Peer`] if another replica has ended; those of the reward.
pub(super) fn check_equal_tasks<E: TrainEnv>(context: &Context<E>, has_own_rewards: bool) -> Result<()> {
    let Context { env, reward, config, conditions, .. } = context;
    let Some(group) = context.replicas() else { return Ok(()) };
    compare(context, &[("environment", hash_text(&env.fingerprint()?))])?;
    if has_own_rewards {
        return Ok(());
    }
    let uniform = env.uniform();
    let mut walks = match Sampler::new(env, &uniform).max_steps(config.max_steps).walks(N_PROBES, &mut Rng::seeded(0)) {
        // Random walks may be too long, but then they are so for every replica.
        Err(Error::StepLimit { .. }) => return Ok(()),
        drawn => drawn?,
    };
    if let Some(source) = conditions {
        walks = walks.with_conditions(source.draw(N_PROBES, &mut Rng::seeded(0))?)?;
    }
    let mut mine = reward.log_reward(&walks.terminal, walks.conditions())?;
    check_count(&mine, N_PROBES)?;
    mine.extend(walks.conditions().map_or_else(Vec::new, to_host));
    for (other, theirs) in group.join(&Tensor::from_slice(&mine))?.iter().enumerate() {
        let theirs = Vec::<f64>::try_from(theirs)?;
        let (rank, n) = (group.rank(), mine.len());
        let differs = |&k: &usize| {
            let is_rounded = (mine[k] - theirs[k]).abs() <= TOLERANCE * (1.0 + mine[k].abs());
            !(mine[k] == theirs[k] || is_rounded || (mine[k].is_nan() && theirs[k].is_nan()))
        };
        // Conditions come behind the rewards, and are their cause.
        let differing = if theirs.len() == n { (N_PROBES..n).chain(0..N_PROBES).find(differs) } else { Some(n) };
        let Some(k) = differing else { continue };
        let detail = if k < N_PROBES {
            let object = walks.terminal.describe(k).unwrap_or_else(|| format!("object {k} of random walks"));
            let (theirs, mine) = (theirs[k], mine[k]);
            format!(
                "replica {other} has another reward: log R of {object} is {theirs} there and {mine} at replica {rank}"
            )
        } else {
            format!("replica {other} has other conditions, drawn by the same stream, than replica {rank}")
        };
        return Err(Error::contract(REPLICAS_MUST_MATCH, detail));
    }
    Ok(())
}

/// Compares numbers, with their names, that differ if two trainers differ.
fn compare<E: Env>(context: &Context<E>, mine: &[(&'static str, u64)]) -> Result<()> {
    let Some(group) = context.replicas() else { return Ok(()) };
    let hashes: Vec<i64> = mine.iter().map(|(_, hash)| hash.cast_signed()).collect();
    for (other, theirs) in group.join(&Tensor::from_slice(&hashes))?.iter().enumerate() {
        // A member that does something else at this point sends numbers of another kind or count.
        let theirs = Vec::<i64>::try_from(theirs).unwrap_or_default();
        if let Some(k) = (0..mine.len()).find(|&k| theirs.get(k) != Some(&hashes[k])) {
            let detail = format!("member {other} has another {} than member {}", mine[k].0, group.rank());
            return Err(Error::contract(REPLICAS_MUST_MATCH, detail));
        }
    }
    Ok(())
}

fn hash_text(text: &str) -> u64 {
    hash(text.bytes().map(u64::from))
}
