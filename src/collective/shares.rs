//! What must be the same on all members of a group.

use tch::Tensor;

use super::Collective;
use crate::{Error, Result, Rng};

/// One member of a group, or one that works alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares<'a>(Option<&'a dyn Collective>);

impl<'a> Shares<'a> {
    pub(crate) fn of(group: Option<&'a dyn Collective>) -> Self {
        Self(group.filter(|group| group.size() > 1))
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
        let all = group.all_gather(&Tensor::from_slice(&hashes))?;
        for (other, theirs) in all.iter().enumerate() {
            // Numbers of another kind or count are of something else that a member does meanwhile.
            let theirs = Vec::<i64>::try_from(theirs).ok().filter(|theirs| theirs.len() == hashes.len());
            let differs = match &theirs {
                Some(theirs) => (0..hashes.len()).find(|&k| theirs[k] != hashes[k]).map(|k| mine[k].0),
                None => Some("operation"),
            };
            if let Some(what) = differs {
                let detail = format!("member {other} has another {what} than member {}", group.rank());
                return Err(Error::contract(rule, detail));
            }
        }
        Ok(())
    }
}

/// A hash of numbers, equal in all processes.
pub(crate) fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(1, |hash, number| Rng::mix64(hash.rotate_left(1) ^ number))
}
