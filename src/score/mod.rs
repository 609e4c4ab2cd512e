//! The one place where environment, reward and policy meet the losses.

mod edge_flows;
mod scores;
mod visited;

pub use scores::{EdgeFlows, IntrinsicRewards, LogPaths, Needs, OldScores, Scores};

use tch::Tensor;

use crate::dist::{Distribution, from_host, index_tensor};
use crate::env::{Direction, Env, Reward, Rows, check_log_rewards, log_rewards};
use crate::policy::{Policy, Wants};
use crate::trajectory::Trajectories;
use crate::{Error, Result};
use visited::Visited;

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
    let (raw_log_reward, log_reward) = both_log_rewards(env, reward, trajectories)?;
    let visited = Visited::new(env, trajectories);
    let wants =
        Wants { pf: true, pb: true, log_flow: needs.log_flow, prior: needs.log_prior, log_paths: needs.log_paths };
    let evaluation = policy.evaluate(env, visited.distinct(), visited.conditions.as_ref(), wants)?;
    let pf = evaluation.pf.ok_or_else(|| missing("a forward policy"))?;
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let rows = &visited.grouping.of[..visited.n_rows];
    let actions = visited.named(Direction::Forward, &all, trajectories.actions().clone())?;
    let log_pf = pf.log_prob(rows, &actions)?;
    let (kind, device) = (log_pf.kind(), log_pf.device());

    let pb = evaluation.pb.ok_or_else(|| missing("a backward policy"))?;
    let (inner, after) = visited.inner();
    let undo = visited.named(Direction::Backward, after, trajectories.reverse_actions().select(inner))?;
    let log_pb_inner = pb.log_prob(&visited.groups(after), &undo)?.to_kind(kind).to_device(device);
    let inner_index = index_tensor(inner, device);
    let log_pb = Tensor::zeros([visited.n_rows as i64], (kind, device)).index_add(0, &inner_index, &log_pb_inner);

    let mut scores = Scores::new(trajectories.offsets().to_vec(), log_pf, log_pb, from_host(&log_reward, kind, device));
    scores.raw_log_reward = from_host(&raw_log_reward, kind, device);
    scores.conditions = trajectories.conditions().map(Tensor::shallow_clone);
    if needs.learned_pb && scores.log_pf.requires_grad() && !scores.log_pb.requires_grad() {
        return Err(missing("a backward policy that is learned"));
    }
    scores.distinct = (visited.grouping.first.len(), visited.len());
    if needs.log_flow {
        let flow = evaluation.log_flow.ok_or_else(|| missing("a state-flow estimator"))?;
        scores.log_flow = Some(flow.index_select(0, &index_tensor(rows, flow.device())));
    }
    if needs.log_z {
        let log_z = policy.log_z(trajectories.conditions(), trajectories.len());
        scores.log_z = Some(log_z.ok_or_else(|| missing("a log Z estimator"))?);
    }
    if needs.log_prior {
        let prior = evaluation.prior.ok_or_else(|| missing("a prior policy"))?;
        scores.log_prior = Some(prior.log_prob(rows, &actions)?.detach().to_kind(kind).to_device(device));
    }
    if needs.log_p_exit {
        scores.log_p_exit = Some(log_p_exit(env, &pf, &visited, trajectories)?);
    }
    if needs.log_reward_change {
        let mut change = vec![0.0; visited.n_rows];
        let of_inner = log_reward_changes(env, reward, &visited)?;
        inner.iter().zip(of_inner).for_each(|(&row, value)| change[row] = value);
        scores.log_reward_change = Some(from_host(&change, kind, device));
    }
    if needs.state_log_reward {
        let partial = partial_log_rewards(env, reward, trajectories, visited.conditions.as_ref())?;
        scores.state_log_reward = Some(from_host(&partial, kind, device));
    }
    if needs.log_paths {
        let paths = evaluation.log_paths.ok_or_else(|| missing("an estimator of log n(s)"))?;
        let mut started = vec![1.0; visited.n_rows];
        trajectories.offsets()[..trajectories.len()].iter().for_each(|&start| started[start] = 0.0);
        let started: Vec<f64> = inner.iter().map(|&row| started[row]).collect();
        let at = |rows: &[usize]| paths.index_select(0, &index_tensor(&visited.groups(rows), paths.device()));
        // The initial state has one path to it.
        let before = at(inner) * from_host(&started, paths.kind(), paths.device());
        scores.log_paths = Some(LogPaths { rows: inner_index, before, after: at(after) });
    }
    if needs.edge_flows {
        scores.edge_flows = Some(edge_flows::edge_flows(env, policy, &visited, (&pf, &pb), trajectories)?);
    }
    Ok(scores)
}

/// log P_F of the exit in the state before each transition, `[transitions]`, without gradient, by the policy as it is now: what
/// objectives with a lagged copy ask for, called while the parameters are the copy's.
///
/// # Errors
/// [`Error::Missing`] where some state has no exit; those of the policy.
pub fn lagged_exits<E: Env, P: Policy<E>>(env: &E, policy: &P, trajectories: &Trajectories<E>) -> Result<Tensor> {
    tch::no_grad(|| {
        let visited = Visited::new(env, trajectories);
        let evaluation = policy.evaluate(env, visited.distinct(), visited.conditions.as_ref(), Wants::PF)?;
        log_p_exit(env, &evaluation.pf.ok_or_else(|| missing("a forward policy"))?, &visited, trajectories)
    })
}

fn log_p_exit<E: Env, D: Distribution<Actions = E::Actions>>(
    env: &E,
    pf: &D,
    visited: &Visited<'_, E>,
    trajectories: &Trajectories<E>,
) -> Result<Tensor> {
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let exits = env.exit_actions(trajectories.states()).ok_or_else(|| missing("an exit action in every state"))?;
    let exits = visited.named(Direction::Forward, &all, exits)?;
    pf.log_prob(&visited.groups(&all), &exits).map_err(|error| match error {
        Error::IllegalAction { .. } | Error::IllegalStep { .. } => missing("every state to be terminating"),
        other => other,
    })
}

/// By how much each step that isn't an exit changes log R, corrected as it is.
fn log_reward_changes<E: Env, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    visited: &Visited<'_, E>,
) -> Result<Vec<f64>> {
    let (inner, after) = visited.inner();
    let ((before, conditions), (after, _)) = (visited.at(inner), visited.at(after));
    let change = reward.log_reward_change(&before, &after, conditions.as_ref())?;
    let mut change = change.ok_or_else(|| missing("rewards of partial states (`Reward::partial_log_reward`)"))?;
    check_log_rewards(&change, before.len())?;
    if let Some((before, after)) = env.log_symmetry(&before)?.zip(env.log_symmetry(&after)?) {
        change.iter_mut().zip(after.iter().zip(before)).for_each(|(change, (after, before))| *change += after - before);
    }
    Ok(change)
}

/// log R of each finished object, and what training uses: up to isomorphism log |Aut| on top. Recorded log-rewards aren't asked for
/// again.
fn both_log_rewards<E: Env, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    trajectories: &Trajectories<E>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let terminal = trajectories.terminal_states();
    let raw = match trajectories.recorded_log_rewards() {
        Some(known) => known.to_vec(),
        None => log_rewards(reward, terminal, trajectories.conditions())?,
    };
    let corrected = match env.log_symmetry(terminal)? {
        Some(symmetry) => raw.iter().zip(symmetry).map(|(r, s)| r + s).collect(),
        None => raw.clone(),
    };
    Ok((raw, corrected))
}

fn missing(needs: &'static str) -> Error {
    Error::Missing {
        objective: "scoring",
        needs,
        remedy: "use a policy, an environment and a reward that have it, or another objective",
    }
}

/// log R of the state before each transition, corrected as the terminal ones are.
fn partial_log_rewards<E: Env, R: Reward<E::States> + ?Sized>(
    env: &E,
    reward: &R,
    trajectories: &Trajectories<E>,
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let states = trajectories.states();
    let conditions = conditions.map(|c| c.narrow(0, 0, states.len() as i64));
    let partial = reward.partial_log_reward(states, conditions.as_ref())?;
    let mut partial = partial.ok_or_else(|| missing("rewards of partial states (`Reward::partial_log_reward`)"))?;
    check_log_rewards(&partial, states.len())?;
    if let Some(symmetry) = env.log_symmetry(states)? {
        partial.iter_mut().zip(symmetry).for_each(|(r, s)| *r += s);
    }
    Ok(partial)
}
