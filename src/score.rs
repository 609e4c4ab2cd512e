//! The one place where environment, reward and policy meet the losses.

use tch::{Kind, Tensor};

use crate::dist::{Distribution, from_host, index};
use crate::env::{Direction, Env, Grouping, Reward, Rows, log_rewards};
use crate::policy::{Policy, Wants};
use crate::trajectory::Trajectories;
use crate::{Error, Result};

/// What an objective needs [`score`] to evaluate, besides log-probabilities and rewards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// log F of every visited state.
    pub log_flow: bool,
    /// log Z of every trajectory.
    pub log_z: bool,
}

/// The numbers that objectives are made of; rows are transitions, trajectory by trajectory.
///
/// A trajectory visits `s_0 .. s_{n-1}` and leaves the last by the exit action, whose P_B is 1; without an exit action its last
/// transition leads to the terminal state. Either way the flow behind the last transition is the reward.
#[derive(Debug)]
pub struct Scores {
    /// Where each trajectory's transitions start, `[n + 1]`.
    pub offsets: Vec<usize>,
    /// log P_F of each transition, `[transitions]`.
    pub log_pf: Tensor,
    /// log P_B of each transition, `[transitions]`; 0 for exits.
    pub log_pb: Tensor,
    /// log R of each trajectory's terminal state, `[n]`, corrected for symmetry where the environment asks for it.
    pub log_reward: Tensor,
    /// log F of the state before each transition, `[transitions]`.
    pub log_flow: Option<Tensor>,
    /// log Z of each trajectory, `[n]`.
    pub log_z: Option<Tensor>,
    /// How many states were evaluated, of how many visited.
    pub distinct: (usize, usize),
}

impl Scores {
    /// The number of trajectories.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no trajectory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Evaluates everything that `needs` asks for on a batch of trajectories, each distinct state once, with gradients.
///
/// # Errors
/// Those of policy and reward, [`Error::IllegalAction`] for an action that the policy gives no probability to, and
/// [`Error::Missing`] where the policy lacks what is needed.
pub fn score<E: Env, P: Policy<E>, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    policy: &P,
    trajectories: &Trajectories<E>,
    needs: Needs,
) -> Result<Scores> {
    let log_reward = corrected_log_rewards(env, reward, trajectories)?;
    score_with(env, policy, trajectories, &log_reward, needs)
}

/// The log-rewards that training uses: log R, and up to isomorphism log |Aut| on top.
fn corrected_log_rewards<E: Env, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    trajectories: &Trajectories<E>,
) -> Result<Vec<f64>> {
    let terminal = trajectories.terminal_states();
    let mut log_reward = log_rewards(reward, terminal, trajectories.conditions())?;
    if let Some(symmetry) = env.log_symmetry(terminal) {
        log_reward.iter_mut().zip(symmetry).for_each(|(r, s)| *r += s);
    }
    Ok(log_reward)
}

fn score_with<E: Env, P: Policy<E>>(
    env: &E,
    policy: &P,
    trajectories: &Trajectories<E>,
    log_reward: &[f64],
    needs: Needs,
) -> Result<Scores> {
    let n_rows = trajectories.n_transitions();
    let next = trajectories.next_rows();
    // Terminal states are rows of their own only where no exit action leaves them.
    let mut states = trajectories.states().clone();
    let without_exit: Vec<usize> =
        (0..n_rows).filter(|&t| !trajectories.is_exit()[t]).filter_map(|t| next[t].err()).collect();
    let mut terminal_row = vec![None; trajectories.len()];
    if !without_exit.is_empty() {
        without_exit.iter().enumerate().for_each(|(k, &i)| terminal_row[i] = Some(n_rows + k));
        states.append(trajectories.terminal_states().select(&without_exit));
    }
    let conditions = row_conditions(trajectories, &without_exit);
    let classes = if conditions.is_some() { None } else { env.classes(&states) };
    let grouping = match &classes {
        Some(classes) => classes.grouping.clone(),
        None if conditions.is_some() => Grouping::identity(states.len()),
        None => states.group(),
    };
    let named = |direction, rows: &[usize], actions: E::Actions| match &classes {
        Some(classes) => env.translate(direction, &states, (classes, rows), &actions, false),
        None => Ok(actions),
    };
    let selected = grouping.merges().then(|| states.select(&grouping.first));
    let distinct = selected.as_ref().unwrap_or(&states);
    let wants = Wants { pf: true, pb: true, log_flow: needs.log_flow };
    let evaluation = policy.evaluate(env, distinct, conditions.as_ref(), wants)?;

    let missing = |needs| Error::Missing { objective: "scoring", needs, remedy: "use a policy that has one" };
    let pf = evaluation.pf.ok_or_else(|| missing("a forward policy"))?;
    let rows = &grouping.of[..n_rows];
    let all: Vec<usize> = (0..n_rows).collect();
    let log_pf = pf.log_prob(rows, &named(Direction::Forward, &all, trajectories.actions().clone())?)?;

    let pb = evaluation.pb.ok_or_else(|| missing("a backward policy"))?;
    let inner: Vec<usize> = (0..n_rows).filter(|&t| !trajectories.is_exit()[t]).collect();
    let after: Vec<usize> =
        inner.iter().filter_map(|&t| next[t].ok().or_else(|| next[t].err().and_then(|i| terminal_row[i]))).collect();
    let undo = named(Direction::Backward, &after, trajectories.reverse_actions().select(&inner))?;
    let after: Vec<usize> = after.iter().map(|&row| grouping.of[row]).collect();
    let log_pb_inner = pb.log_prob(&after, &undo)?;
    let (kind, device) = (log_pf.kind(), log_pf.device());
    let log_pb = Tensor::zeros([n_rows as i64], (kind, device)).index_add(
        0,
        &index(&inner, device),
        &log_pb_inner.to_kind(kind).to_device(device),
    );

    let log_flow = match (needs.log_flow, evaluation.log_flow) {
        (false, _) => None,
        (true, Some(flow)) => Some(flow.index_select(0, &index(rows, flow.device()))),
        (true, None) => return Err(missing("a state-flow estimator")),
    };
    let log_z = match (needs.log_z, policy.log_z(trajectories.conditions(), trajectories.len())) {
        (false, _) => None,
        (true, Some(log_z)) => Some(log_z),
        (true, None) => return Err(missing("a log Z estimator")),
    };
    Ok(Scores {
        offsets: trajectories.offsets().to_vec(),
        log_pf,
        log_pb,
        log_reward: from_host(log_reward, kind, device),
        log_flow,
        log_z,
        distinct: (grouping.first.len(), grouping.of.len()),
    })
}

/// The condition of each row of states: that of its trajectory.
fn row_conditions<E: Env>(trajectories: &Trajectories<E>, extra: &[usize]) -> Option<Tensor> {
    let conditions = trajectories.conditions()?;
    let mut owner = Vec::with_capacity(trajectories.n_transitions() + extra.len());
    for (i, ends) in trajectories.offsets().windows(2).enumerate() {
        owner.resize(ends[1], i);
    }
    owner.extend(extra);
    debug_assert!(conditions.kind() != Kind::Int64, "conditions are real numbers");
    Some(conditions.index_select(0, &index(&owner, conditions.device())))
}
