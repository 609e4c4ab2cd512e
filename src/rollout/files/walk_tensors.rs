//! Conversion between walks (the actions of trajectories) and named tensors.

use tch::Tensor;

use crate::Result;
use crate::env::{Rows, check_instances};
use crate::io::{NamedTensors, malformed};
use crate::rollout::ReplayEnv;

/// The name of the tensor that holds the instance of each walk. The tensor is written only if the environment
/// has several instances.
const INSTANCES: &str = "instances";

/// The actions of walks that [`read_walks`] read, without terminal states.
pub(crate) struct ReadWalks<A> {
    /// The forward actions, walk by walk.
    pub(crate) actions: A,
    /// The index of the first action of each walk, followed by the number of actions, `[n + 1]`.
    pub(crate) offsets: Vec<usize>,
    /// The instance of each walk.
    pub(crate) instances: Vec<u32>,
}

/// Reads and checks the actions of walks, the offsets that divide these actions into walks, and the instance
/// of each walk.
pub(crate) fn read_walks<E: ReplayEnv>(named: &NamedTensors<'_>, env: &E) -> Result<ReadWalks<E::Actions>> {
    let actions = env.read_actions(named.get("actions").ok_or_else(|| malformed("actions"))?)?;
    let offsets = named.numbers::<i64>("offsets")?.into_iter().map(usize::try_from);
    let offsets: Vec<usize> =
        offsets.collect::<std::result::Result<_, _>>().map_err(|_| malformed("offsets"))?;
    if offsets.first() != Some(&0) || !offsets.is_sorted() || offsets.last() != Some(&actions.len()) {
        return Err(malformed("offsets"));
    }
    let n = offsets.len() - 1;
    let instances = match (env.n_instances(), named.get(INSTANCES)) {
        (0 | 1, None) => vec![0; n],
        _ => {
            let read =
                named.column(named.numbers::<i64>(INSTANCES)?, INSTANCES, n)?.into_iter().map(u32::try_from);
            read.collect::<std::result::Result<_, _>>().map_err(|_| malformed(INSTANCES))?
        }
    };
    check_instances(env, &instances)?;
    Ok(ReadWalks { actions, offsets, instances })
}

/// Converts walks to tensors that [`read_walks`] can read. `states` has one state of each walk, which gives
/// the instance of the walk.
pub(crate) fn write_walks<E: ReplayEnv>(
    env: &E,
    states: &E::States,
    actions: &E::Actions,
    offsets: &[usize],
) -> Vec<(String, Tensor)> {
    let offsets: Vec<i64> = offsets.iter().map(|&offset| offset as i64).collect();
    let mut out = vec![
        ("actions".into(), env.write_actions(actions)),
        ("offsets".into(), Tensor::from_slice(&offsets)),
    ];
    if env.n_instances() > 1 {
        let instances: Vec<i64> = env.instances(states).into_iter().map(i64::from).collect();
        out.push((INSTANCES.into(), Tensor::from_slice(&instances)));
    }
    out
}
