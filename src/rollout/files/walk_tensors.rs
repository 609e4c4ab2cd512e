//! Walks as named tensors.

use tch::Tensor;

use crate::Result;
use crate::env::Rows;
use crate::io::{Named, malformed};
use crate::rollout::ReplayEnv;

/// Reads `actions` and the `offsets` that divide them into walks.
pub(crate) fn read_walks<E: ReplayEnv>(named: &Named<'_>, env: &E) -> Result<(E::Actions, Vec<usize>)> {
    let actions = env.read_actions(named.get("actions").ok_or_else(|| malformed("actions"))?)?;
    let offsets = named.ints("offsets")?.into_iter().map(usize::try_from);
    let offsets: Vec<usize> = offsets.collect::<std::result::Result<_, _>>().map_err(|_| malformed("offsets"))?;
    if offsets.first() != Some(&0) || !offsets.is_sorted() || offsets.last() != Some(&actions.len()) {
        return Err(malformed("offsets"));
    }
    Ok((actions, offsets))
}

/// Walks as tensors, in the form that [`read_walks`] reads.
pub(crate) fn write_walks<E: ReplayEnv>(env: &E, actions: &E::Actions, offsets: &[usize]) -> Vec<(String, Tensor)> {
    let offsets: Vec<i64> = offsets.iter().map(|&offset| offset as i64).collect();
    vec![("actions".into(), env.write_actions(actions)), ("offsets".into(), Tensor::from_slice(&offsets))]
}
