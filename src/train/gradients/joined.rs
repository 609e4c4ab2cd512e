//! The gradient of a batch whose trajectories lie with several replicas.
//!
//! A loss is a function of scores alone, so replicas tell each other their scores, a few numbers per transition. Each then computes
//! the loss of the whole batch and its gradient with respect to every score, and propagates the part that belongs to its own trajectories
//! into the parameters. The sum over replicas is the gradient of the whole batch for every objective, also for objectives that compare
//! trajectories with the batch's mean.

use tch::{Kind, Tensor};

use super::chunked::{QuantityOffsets, join_leaves};
use crate::group::Group;
use crate::objective::Scores;
use crate::tensor::{from_host, to_host};
use crate::{Error, Result};

pub(in crate::train) const REPLICAS_MUST_MATCH: &str = "replicas must train the same model for the same reward, by the same objective and settings: build them alike, from one seed";

/// Returns the scores of all replicas as the scores of one batch, and the place of this replica's scores among them. They are leaves, which collect the
/// loss's gradient.
pub(super) fn join_scores(group: &dyn Group, mine: &Scores) -> Result<(Scores, QuantityOffsets)> {
    let mut parts = Vec::new();
    for packed in &group.join(&Tensor::from_slice(&pack(mine)))? {
        let scores = unpack(&to_host(packed), mine);
        parts.push(scores.ok_or_else(|| Error::contract(REPLICAS_MUST_MATCH, "they have other scores"))?);
    }
    let mut offsets = QuantityOffsets::default();
    for part in &parts[..group.rank()] {
        offsets.skip(part);
    }
    Ok((join_leaves(&parts)?, offsets))
}

/// The message of one replica to the others: lists, each behind its length. Doubles hold every number exactly.
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

/// Reads the scores of a message that [`pack`] made. Returns `None` unless they are scores of the same quantities as `like`.
fn unpack(mut packed: &[f64], like: &Scores) -> Option<Scores> {
    let mut next = || {
        let (&length, behind) = packed.split_first()?;
        let list;
        (list, packed) = behind.split_at_checked(length as usize)?;
        Some(list)
    };
    let &[wide, distinct, visited, instance] = next()? else { return None };
    let rows = |list: &[f64]| list.iter().map(|&row| row as usize).collect::<Vec<_>>();
    let (offsets, inner, conditions) = (rows(next()?), rows(next()?), next()?);
    // `pack` writes lists of rows in order; anything else isn't a message of `pack`.
    let n = offsets.last().copied()?;
    if !offsets.is_sorted() || !inner.is_sorted() || inner.last().is_some_and(|&row| row >= n) {
        return None;
    }
    let (kind, device) = (if wide > 0.0 { Kind::Double } else { Kind::Float }, like.log_pf.device());
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
    // Other quantities, or conditions that this replica has none of, are left.
    (packed.is_empty() && (like.conditions.is_some() || conditions.is_empty())).then_some(scores)
}
