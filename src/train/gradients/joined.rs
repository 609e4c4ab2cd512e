//! The gradient of a batch whose trajectories lie with several replicas.
//!
//! A loss is a function of scores alone, so replicas tell each other their scores, a few numbers per transition. Each then computes
//! the loss of the whole batch and its gradient with respect to every score, and propagates the part that belongs to its own trajectories
//! into the parameters. The sum over replicas is the gradient of the whole batch, whatever the objective: also of those that compare
//! trajectories with the batch's mean.

use tch::{Kind, Tensor, no_grad};

use super::chunked::Starts;
use crate::collective::Collective;
use crate::nn::Parameters;
use crate::objective::Scores;
use crate::quantity::Quantity;
use crate::runtime::backward;
use crate::tensor::{from_host, to_host};
use crate::{Error, Result};

pub(in crate::train) const SAME: &str = "replicas must train the same model for the same reward, by the same objective and settings: build them alike, from one seed";

/// The scores of all replicas as those of one batch, and where this replica's stand among them. They are leaves, which collect the
/// loss's gradient.
pub(super) fn joined(collective: &dyn Collective, mine: &Scores) -> Result<(Scores, Starts)> {
    let packed = Tensor::from_slice(&pack(mine));
    let parts: Vec<Scores> = collective
        .all_gather(&packed)?
        .iter()
        .map(|packed| unpack(&to_host(packed), mine).ok_or_else(|| Error::contract(SAME, "they tell other scores")))
        .collect::<Result<_>>()?;
    let mut starts = Starts::default();
    for part in &parts[..collective.rank()] {
        starts.skip(part);
    }
    let wide = parts.iter().any(|part| part.log_pf.kind() == Kind::Double);
    let kind = if wide { Kind::Double } else { mine.log_pf.kind() };
    let leaves = Scores::joined(&parts, |quantity, tensor| match quantity.is_differentiated() {
        true => tensor.to_kind(kind).set_requires_grad(true),
        false => tensor.to_kind(kind),
    })?;
    Ok((leaves, starts))
}

/// What one replica tells the others: counts, then lists. Doubles hold every number exactly.
fn pack(scores: &Scores) -> Vec<f64> {
    let quantities: Vec<&Tensor> = scores.all().map(|(_, tensor)| tensor).collect();
    let conditions = scores.conditions.as_ref();
    let mut out = vec![
        scores.len() as f64,
        scores.inner.len() as f64,
        scores.distinct.0 as f64,
        scores.distinct.1 as f64,
        scores.instance.map_or(-1.0, f64::from),
        conditions.map_or(-1.0, |conditions| conditions.size().get(1).copied().unwrap_or(0) as f64),
        f64::from(u8::from(scores.log_pf.kind() == Kind::Double)),
        quantities.len() as f64,
    ];
    out.extend(quantities.iter().map(|tensor| tensor.numel() as f64));
    out.extend(scores.offsets[1..].iter().chain(&scores.inner).map(|&row| row as f64));
    out.extend(conditions.map(to_host).into_iter().flatten());
    quantities.into_iter().for_each(|tensor| out.extend(to_host(tensor)));
    out
}

/// The other way round; `None` for what isn't the scores of the same quantities as `like`.
fn unpack(packed: &[f64], like: &Scores) -> Option<Scores> {
    let device = like.log_pf.device();
    let mut rest = packed.iter().copied();
    let mut header = [0.0; 8];
    header.iter_mut().try_for_each(|slot| rest.next().map(|value| *slot = value))?;
    let [n, n_inner, distinct, visited, instance, width, wide, n_quantities] = header;
    let quantities: Vec<Quantity> = like.all().map(|(quantity, _)| quantity).collect();
    if n_quantities as usize != quantities.len() || (width < 0.0) != like.conditions.is_none() {
        return None;
    }
    let lengths: Vec<usize> = rest.by_ref().take(quantities.len()).map(|length| length as usize).collect();
    let mut offsets = vec![0];
    offsets.extend(rest.by_ref().take(n as usize).map(|row| row as usize));
    let inner: Vec<usize> = rest.by_ref().take(n_inner as usize).map(|row| row as usize).collect();
    let kind = if wide > 0.0 { Kind::Double } else { Kind::Float };
    let conditions = (width >= 0.0).then(|| {
        let values: Vec<f64> = rest.by_ref().take((n * width) as usize).collect();
        let kind = like.conditions.as_ref().map_or(kind, Tensor::kind);
        from_host(&values, kind, device).f_reshape([n as i64, width as i64]).ok()
    });
    let mut next = |length: usize| from_host(&rest.by_ref().take(length).collect::<Vec<f64>>(), kind, device);
    let tensors: Vec<Tensor> = lengths.into_iter().map(&mut next).collect();
    // Whole lists of rows in order: what else arrives was not packed by `pack`.
    let rows = offsets.last().copied().unwrap_or(0);
    let whole = offsets.len() == n as usize + 1 && inner.len() == n_inner as usize && offsets.is_sorted();
    if !whole || inner.last().is_some_and(|&row| row >= rows) || !inner.is_sorted() {
        return None;
    }
    let [log_pf, log_pb, log_reward, ..] = tensors.as_slice() else { return None };
    let [log_pf, log_pb, log_reward] = [log_pf, log_pb, log_reward].map(Tensor::shallow_clone);
    let mut scores = Scores::new(offsets, log_pf, log_pb, log_reward);
    scores.inner = inner;
    scores.conditions = conditions.map_or(Some(None), |conditions| conditions.map(Some))?;
    scores.instance = (instance >= 0.0).then_some(instance as u32);
    scores.distinct = (distinct as usize, visited as usize);
    quantities.into_iter().zip(tensors).try_for_each(|(quantity, tensor)| scores.set(quantity, tensor)).ok()?;
    Some(scores)
}

/// Puts the sum over all replicas into each gradient. One that no replica has stays undefined, as it would in one process.
pub(super) fn reduce(collective: &dyn Collective, parameters: &Parameters) -> Result<()> {
    let trained: Vec<&Tensor> = parameters.iter().map(|p| &p.tensor).filter(|tensor| tensor.requires_grad()).collect();
    let gradients: Vec<Tensor> = trained.iter().map(|tensor| tensor.grad()).collect();
    no_grad(|| {
        let flat = |(tensor, gradient): (&&Tensor, &Tensor)| match gradient.defined() {
            true => gradient.reshape([-1]),
            false => tensor.zeros_like().reshape([-1]),
        };
        let mut all: Vec<Tensor> = trained.iter().zip(&gradients).map(flat).collect();
        let Some(first) = all.first() else { return Ok(()) };
        let defined: Vec<f64> = gradients.iter().map(|gradient| f64::from(u8::from(gradient.defined()))).collect();
        all.push(from_host(&defined, first.kind(), first.device()));
        let mut sum = Tensor::cat(&all, 0);
        collective.all_reduce(&mut sum)?;
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
                // A gradient comes into being by a backward pass alone.
                tch::with_grad(|| backward(&(tensor * 0.0).sum(tensor.kind())))?;
                tensor.grad().copy_(&summed);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::Rng;
    use crate::collective::replicate;

    /// Shares of a batch differ in what they move: a part of a network that reads edges has no gradient of graphs without any.
    #[test]
    fn a_gradient_of_one_replica_is_everybodys() {
        replicate(3, |replica| {
            let (mut parameters, mut rng) = (Parameters::new(Device::Cpu, Kind::Float), Rng::seeded(0));
            let mut scope = parameters.scope(&mut rng);
            let [by_one, by_two, by_none] = ["one", "two", "none"].map(|name| scope.constant(name, &[2], 1.0));
            let rank = replica.rank();
            if rank == 1 {
                (&by_one * 5.0).sum(Kind::Float).backward();
            }
            if rank > 0 {
                (&by_two * rank as f64).sum(Kind::Float).backward();
            }
            reduce(&replica, &parameters)?;
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
