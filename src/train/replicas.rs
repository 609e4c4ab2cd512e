//! Replicas that train as one: they compare their trainers before the first step, join their scores, and sum
//! their gradients.
//!
//! A loss is a function of scores alone, so replicas send each other their scores, a few numbers per
//! transition. Each replica then computes the loss of the whole batch and its gradient with respect to every
//! score, and propagates the gradients of its own trajectories' scores into the parameters. The sum over
//! replicas is the gradient of the whole batch for every objective, including objectives that compare
//! trajectories with the batch's mean.

use rand::RngCore;
use tch::{Kind, Tensor, no_grad};

use super::gradients::{QuantityOffsets, join_leaves};
use super::{Companion, Context, Persist, TrainEnv, Trainer};
use crate::env::{Env, check_count};
use crate::group::Group;
use crate::nn::Parameters;
use crate::objective::Scores;
use crate::policy::Policy;
use crate::rng::hash;
use crate::rollout::Container;
use crate::runtime::backward;
use crate::tensor::{from_host, to_host};
use crate::{Error, Result, Rng};

const REPLICAS_MUST_MATCH: &str = "replicas must train the same model for the same reward, with the same \
    objective and settings: build all replicas in the same way and from the same seed";
/// The number of objects whose reward each replica computes before the first step, to compare its reward with
/// the rewards of the other replicas.
const N_PROBES: usize = 8;
/// The allowed difference of two replicas' log-rewards, relative to 1 + |log R|. Machines may round
/// differently, so the log-rewards needn't be equal.
const TOLERANCE: f64 = 1e-4;

/// Compares the trainers of all replicas: parameters, objective, description, settings, presence of
/// conditions, step and position of the random stream. Custom schedules (functions) aren't compared.
///
/// # Errors
/// [`Error::Contract`] for two trainers that differ; [`Error::Peer`] if another replica has ended.
pub(crate) fn check_equal_replicas<E: Env>(trainer: &Trainer<E>) -> Result<()> {
    let Context { config, conditions, objective, step, .. } = &trainer.context;
    let parameters = trainer.context.policy.parameters().into_iter().flat_map(Parameters::iter);
    let sums = parameters.map(|one| one.tensor.detach().sum(Kind::Double).double_value(&[]).to_bits());
    let mine = [
        ("objective", hash_text(&format!("{} {}", objective.name(), objective.settings()))),
        ("set of settings", hash_text(&serde_json::to_string(config).unwrap_or_default())),
        ("source of conditions", u64::from(conditions.is_some())),
        ("number of completed steps", *step as u64),
        ("seed, or another position in its random stream,", trainer.rng.clone().next_u64()),
        ("set of parameters", hash(sums)),
        ("description", hash_text(&trainer.description.to_string())),
    ];
    compare(&trainer.context, &mine)
}

/// Compares the environments of all replicas, and their rewards for the objects of a few random walks. All
/// replicas make the same walks. `has_own_rewards` is `true` if trajectories are sampled outside of the
/// trainer and come with log-rewards. Rewards and conditions aren't compared then, because the trainer's
/// reward may be a placeholder.
///
/// # Errors
/// [`Error::Contract`] for environments, rewards or conditions that differ; [`Error::Peer`] if another
/// replica has ended; the errors of the reward.
pub(super) fn check_equal_tasks<E: TrainEnv>(context: &Context<E>, has_own_rewards: bool) -> Result<()> {
    let Context { env, reward, conditions, .. } = context;
    let Some(group) = context.replicas() else { return Ok(()) };
    compare(context, &[("environment", hash_text(&env.fingerprint()?))])?;
    if has_own_rewards {
        return Ok(());
    }
    let uniform = env.uniform();
    let mut walks = match context.sampler(env, &uniform).walks(N_PROBES, &mut Rng::seeded(0)) {
        // All replicas make the same random walks. If a walk exceeds the step limit, it does so on every
        // replica, so all replicas skip the comparison.
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
        let rank = group.rank();
        let n = mine.len();
        let differs = |&k: &usize| {
            let is_rounded = (mine[k] - theirs[k]).abs() <= TOLERANCE * (1.0 + mine[k].abs());
            !(mine[k] == theirs[k] || is_rounded || (mine[k].is_nan() && theirs[k].is_nan()))
        };
        // `mine` and `theirs` hold the log-rewards first and the conditions after them. Conditions are
        // compared first nevertheless, because different conditions would explain different rewards.
        let differing =
            if theirs.len() == n { (N_PROBES..n).chain(0..N_PROBES).find(differs) } else { Some(n) };
        let Some(k) = differing else { continue };
        let detail = if k < N_PROBES {
            let words = context.env.describe_state(&walks.terminal, k);
            let object = words.unwrap_or_else(|| format!("object {k} of random walks"));
            let theirs = theirs[k];
            let mine = mine[k];
            format!(
                "replica {other} has another reward: log R of {object} is {theirs} at replica {other} and \
                 {mine} at replica {rank}"
            )
        } else {
            format!("replica {other} draws other conditions than replica {rank} from the same random stream")
        };
        return Err(Error::contract(REPLICAS_MUST_MATCH, detail));
    }
    Ok(())
}

/// Compares this replica's named numbers with the numbers of the other replicas. Returns an error that names
/// the first number that differs.
fn compare<E: Env>(context: &Context<E>, mine: &[(&'static str, u64)]) -> Result<()> {
    let Some(group) = context.replicas() else { return Ok(()) };
    let hashes: Vec<i64> = mine.iter().map(|(_, hash)| hash.cast_signed()).collect();
    for (other, theirs) in group.join(&Tensor::from_slice(&hashes))?.iter().enumerate() {
        // A replica that is at another point of the program sends a tensor of another dtype or length, which
        // also counts as a difference.
        let theirs = Vec::<i64>::try_from(theirs).unwrap_or_default();
        if let Some(k) = (0..mine.len()).find(|&k| theirs.get(k) != Some(&hashes[k])) {
            let detail = format!("replica {other} has another {} than replica {}", mine[k].0, group.rank());
            return Err(Error::contract(REPLICAS_MUST_MATCH, detail));
        }
    }
    Ok(())
}

fn hash_text(text: &str) -> u64 {
    hash(text.bytes().map(u64::from))
}

/// Returns the scores of all replicas as the scores of one batch, and the position of this replica's scores
/// in this batch. The scores are leaf tensors, in which autograd accumulates the gradient of the loss.
pub(super) fn join_scores(group: &dyn Group, mine: &Scores) -> Result<(Scores, QuantityOffsets)> {
    let mut parts = Vec::new();
    for packed in &group.join(&Tensor::from_slice(&pack(mine)))? {
        let scores = unpack(&to_host(packed), mine);
        parts.push(scores.ok_or_else(|| {
            Error::contract(
                REPLICAS_MUST_MATCH,
                "the scores of one replica have other shapes than those of another",
            )
        })?);
    }
    let mut offsets = QuantityOffsets::default();
    for part in &parts[..group.rank()] {
        offsets.skip(part);
    }
    Ok((join_leaves(&parts)?, offsets))
}

/// Encodes scores as a message from one replica to the others: a sequence of lists, each preceded by its
/// length. An f64 holds each of these numbers exactly.
fn pack(scores: &Scores) -> Vec<f64> {
    let rows = |rows: &[usize]| rows.iter().map(|&row| row as f64).collect::<Vec<_>>();
    let wide = f64::from(u8::from(scores.log_pf.kind() == Kind::Double));
    let (distinct, visited) = scores.distinct;
    let facts = vec![wide, distinct as f64, visited as f64, scores.instance.map_or(-1.0, f64::from)];
    let conditions = scores.conditions.as_ref().map(to_host).unwrap_or_default();
    let mut lists = vec![facts, rows(&scores.offsets), rows(&scores.inner), conditions];
    lists.extend(scores.all().map(|(_, tensor)| to_host(tensor)));
    lists.into_iter().flat_map(|list| std::iter::once(list.len() as f64).chain(list)).collect()
}

/// Decodes the scores of a message that [`pack`] made. Returns `None` unless the message has the same
/// quantities as the scores `like`.
fn unpack(mut packed: &[f64], like: &Scores) -> Option<Scores> {
    let mut next = || {
        let (&length, behind) = packed.split_first()?;
        let list;
        (list, packed) = behind.split_at_checked(length as usize)?;
        Some(list)
    };
    let &[wide, distinct, visited, instance] = next()? else { return None };
    let rows = |list: &[f64]| list.iter().map(|&row| row as usize).collect::<Vec<_>>();
    let offsets = rows(next()?);
    let inner = rows(next()?);
    let conditions = next()?;
    // `offsets` and `inner` are indices of transitions, which `pack` writes in ascending order. A message
    // with another order is refused, because `pack` didn't write it.
    let n = offsets.last().copied()?;
    if !offsets.is_sorted() || !inner.is_sorted() || inner.last().is_some_and(|&row| row >= n) {
        return None;
    }
    let kind = if wide > 0.0 { Kind::Double } else { Kind::Float };
    let device = like.log_pf.device();
    let mut scores = Scores::new(offsets, Tensor::new(), Tensor::new(), Tensor::new());
    scores.inner = inner;
    for (quantity, _) in like.all() {
        scores.set(quantity, from_host(next()?, kind, device)).ok()?;
    }
    if let Some(like) = &like.conditions {
        let all = from_host(conditions, like.kind(), device);
        scores.conditions = Some(all.f_reshape([scores.len() as i64, like.size()[1]]).ok()?);
    }
    scores.instance = (instance >= 0.0).then_some(instance as u32);
    scores.distinct = (distinct as usize, visited as usize);
    // A message is refused if numbers are left over, or if it has conditions although this replica has none.
    (packed.is_empty() && (like.conditions.is_some() || conditions.is_empty())).then_some(scores)
}

/// A companion that replaces each gradient by its sum over all replicas, before other companions and the
/// optimizer see it.
pub(super) struct GradientSum;

impl<E: Env> Persist<E> for GradientSum {
    fn name(&self) -> &str {
        "gradient_sum"
    }
}

impl<E: Env> Companion<E> for GradientSum {
    fn before_update(&mut self, context: &Context<E>) -> Result<()> {
        match (context.replicas(), context.policy.parameters()) {
            (Some(group), Some(parameters)) => sum_gradients(group, parameters),
            _ => Ok(()),
        }
    }
}

/// Replaces each gradient by its sum over all replicas. A gradient that is undefined on all replicas stays
/// undefined, as it would in one process.
fn sum_gradients(group: &dyn Group, parameters: &Parameters) -> Result<()> {
    let trained: Vec<&Tensor> =
        parameters.iter().map(|p| &p.tensor).filter(|tensor| tensor.requires_grad()).collect();
    let gradients: Vec<Tensor> = trained.iter().map(|tensor| tensor.grad()).collect();
    no_grad(|| {
        let flat = |(tensor, gradient): (&&Tensor, &Tensor)| {
            if gradient.defined() { gradient.reshape([-1]) } else { tensor.zeros_like().reshape([-1]) }
        };
        let mut all: Vec<Tensor> = trained.iter().zip(&gradients).map(flat).collect();
        let Some(first) = all.first() else { return Ok(()) };
        let defined: Vec<f64> =
            gradients.iter().map(|gradient| f64::from(u8::from(gradient.defined()))).collect();
        all.push(from_host(&defined, first.kind(), first.device()));
        let mut sum = Tensor::cat(&all, 0);
        group.sum(&mut sum)?;
        let n = sum.numel() - trained.len();
        let defined = to_host(&sum.narrow(0, n as i64, trained.len() as i64));
        let mut start = 0;
        for ((tensor, gradient), defined) in trained.into_iter().zip(gradients).zip(defined) {
            let length = tensor.numel() as i64;
            let summed = sum.narrow(0, start, length).reshape(tensor.size());
            start += length;
            if gradient.defined() {
                gradient.shallow_clone().copy_(&summed);
            } else if defined > 0.0 {
                // tch has no function that sets a gradient. A backward pass through zeros creates the
                // gradient tensor, and the sum is copied into it.
                tch::with_grad(|| backward(&(tensor * 0.0).sum(tensor.kind())))?;
                tensor.grad().copy_(&summed);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::group::replicate;

    /// Checks the sum of gradients if a parameter has a gradient on one replica only. For example, a replica
    /// whose graphs have no edges computes no gradient for the part of a network that evaluates edges.
    #[test]
    fn a_gradient_of_one_replica_is_everybodys() {
        replicate(3, |replica| {
            let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
            let mut rng = Rng::seeded(0);
            let mut scope = parameters.scope(&mut rng);
            let [by_one, by_two, by_none] =
                ["one", "two", "none"].map(|name| scope.constant(name, &[2], 1.0));
            let rank = replica.rank();
            if rank == 1 {
                (&by_one * 5.0).sum(Kind::Float).backward();
            }
            if rank > 0 {
                (&by_two * rank as f64).sum(Kind::Float).backward();
            }
            sum_gradients(&replica, &parameters)?;
            assert_eq!(
                (to_host(&by_one.grad()), to_host(&by_two.grad())),
                (vec![5.0; 2], vec![3.0; 2]),
                "replica {rank}"
            );
            assert!(!by_none.grad().defined(), "what nobody moves stays as it is");
            Ok(())
        })
        .unwrap();
    }
}
