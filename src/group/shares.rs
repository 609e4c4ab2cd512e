//! Work in pieces, which the members of a group share out.

use std::ops::Range;

use tch::Tensor;

use super::Group;
use crate::{Error, Result};

/// Who works: one alone, or the members of a group, each on every `size`-th piece. What a piece gives doesn't depend on who works on it,
/// and all members get what all pieces gave, in order: whatever they make of it has the bits of one that works alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares<'a>(Option<&'a dyn Group>);

impl<'a> Shares<'a> {
    pub(crate) fn of(group: Option<&'a dyn Group>) -> Self {
        Self(group.filter(|group| group.size() > 1))
    }

    /// How many work.
    pub(crate) fn size(&self) -> usize {
        self.0.map_or(1, |group| group.size())
    }

    /// Works on the pieces 0 to `n`; `take` gets what each gave.
    pub(crate) fn each(
        &self,
        n: usize,
        mut work: impl FnMut(usize) -> Result<Vec<f64>>,
        mut take: impl FnMut(usize, Vec<f64>) -> Result<()>,
    ) -> Result<()> {
        let Some(group) = self.0 else { return (0..n).try_for_each(|piece| take(piece, work(piece)?)) };
        for first in (0..n).step_by(group.size()) {
            let mine = first + group.rank();
            let worked = if mine < n { work(mine)? } else { Vec::new() };
            let all = group.join(&Tensor::from_slice(&worked))?;
            for (piece, gave) in (first..n).zip(&all) {
                take(piece, Vec::try_from(gave)?)?;
            }
        }
        Ok(())
    }

    /// A figure of each of `n` things; `work` is asked for one range of them by each member.
    pub(crate) fn figures(&self, n: usize, mut work: impl FnMut(Range<usize>) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
        let (size, mut out) = (self.size(), Vec::with_capacity(n));
        let share = |member: usize| n * member / size..n * (member + 1) / size;
        let worked = |member: usize| if share(member).is_empty() { Ok(Vec::new()) } else { work(share(member)) };
        self.each(size, worked, |member, figures| {
            let (expected, got) = ([share(member).len() as i64], [figures.len() as i64]);
            out.extend(figures);
            match expected == got {
                true => Ok(()),
                false => Err(Error::shape("figures of a range", expected, got, "give one of each in the range")),
            }
        })?;
        Ok(out)
    }

    /// Compares what must be the same on all members that share an evaluation: hashes by name.
    pub(crate) fn check_alike(&self, mine: impl FnOnce() -> Result<Vec<(&'static str, u64)>>) -> Result<()> {
        self.check_same("members of a group that share an evaluation evaluate the same", mine)
    }

    /// Compares what `rule` says is the same on all members: hashes by name, which nobody needs who works alone.
    pub(crate) fn check_same(
        &self,
        rule: &'static str,
        mine: impl FnOnce() -> Result<Vec<(&'static str, u64)>>,
    ) -> Result<()> {
        let Some(group) = self.0 else { return Ok(()) };
        let mine = mine()?;
        let hashes: Vec<i64> = mine.iter().map(|(_, hash)| hash.cast_signed()).collect();
        let all = group.join(&Tensor::from_slice(&hashes))?;
        for (other, theirs) in all.iter().enumerate() {
            // Numbers of another kind or count are of something else that a member does meanwhile.
            let theirs = Vec::<i64>::try_from(theirs).ok().filter(|theirs| theirs.len() == hashes.len());
            let differs = match &theirs {
                Some(theirs) => (0..hashes.len()).find(|&k| theirs[k] != hashes[k]).map(|k| mine[k].0),
                None => Some("evaluation"),
            };
            if let Some(what) = differs {
                let detail = format!("member {other} has another {what} than member {}", group.rank());
                return Err(Error::contract(rule, detail));
            }
        }
        Ok(())
    }
}
