//! What a checkpoint remembers of environment and reward: a few objects of the last step, on their ways, with their log-rewards.

use tch::Tensor;

use super::persist::Tensors;
use crate::Result;
use crate::env::{Reward, Rows, log_rewards};
use crate::io::{Named, malformed};
use crate::rollout::{Container, ReadWalks, Trajectories, conditions_of, read_walks, with_conditions, write_walks};
use crate::train::TrainEnv;
use crate::train::sources::{Batch, find_changed};

/// Their section.
pub(super) const SEEN: &str = "judged_objects";
/// How many there are: each costs a resumed run a call of its reward.
const OBJECTS: usize = 4;

/// Objects that the trainer's own reward judged in the last step; none where there was no such step.
pub(super) fn seen<E: TrainEnv>(env: &E, batch: &Batch<E>) -> Result<Tensors> {
    if batch.fresh == 0 {
        return Ok(Vec::new());
    }
    let some = batch.trajectories.select(0..batch.fresh.min(OBJECTS))?;
    let Some(log_rewards) = some.recorded_log_rewards() else { return Ok(Vec::new()) };
    let walks = some.walks(env)?;
    let tensors = write_walks(env, &walks.terminal, &walks.actions, &walks.offsets);
    let mut tensors = with_conditions(tensors, walks.conditions());
    tensors.push(("log_rewards".into(), Tensor::from_slice(log_rewards)));
    tensors.push(("allowed".into(), Tensor::from_slice(&[allowed(env, &walks.replay(env)?)])));
    Ok(tensors)
}

fn allowed<E: TrainEnv>(env: &E, trajectories: &Trajectories<E>) -> i64 {
    env.allowed(trajectories.states()).cast_signed()
}

/// What is otherwise here, in words.
pub(super) fn otherwise<E: TrainEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    seen: &[(String, Tensor)],
) -> Result<Vec<String>> {
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let named = Named(seen);
    let theirs = named.floats("log_rewards")?;
    let n = theirs.len();
    let ReadWalks { actions, offsets, instances } = match read_walks(&named, env) {
        Ok(read) => read,
        Err(error) => return Ok(vec![format!("its trajectories aren't those of this environment ({error})")]),
    };
    let again = match Trajectories::replay_of(env, &instances, &actions, &offsets) {
        Ok(again) => again,
        Err(error) => return Ok(vec![format!("a trajectory of it can't be taken in this environment ({error})")]),
    };
    let mut out = Vec::new();
    if named.column(named.ints("allowed")?, "allowed", 1)?[0] != allowed(env, &again) {
        out.push("in states of its trajectories this environment allows other actions".to_owned());
    }
    let (objects, conditions) = (again.terminal_states(), conditions_of(&named, n)?);
    if objects.len() != n {
        return Err(malformed("log_rewards"));
    }
    let ask = || log_rewards(reward, objects, conditions.as_ref().map(|conditions| &conditions.0));
    match find_changed(&theirs, ask) {
        Err(error) => out.push(format!("this reward fails where its own didn't ({error})")),
        Ok(None) => {}
        Ok(Some((i, ours))) => {
            let object = objects.describe(i).unwrap_or_else(|| "an object of it".to_owned());
            out.push(format!("log R of {object} is {} there and {ours} here", theirs[i]));
        }
    }
    Ok(out)
}
