//! The one place where environment, reward and policy meet the losses.

mod edge_flows;
mod estimates;
mod rewards;
mod scores;
mod visited;

pub use scores::{EdgeFlows, IntrinsicRewards, LogPaths, Needs, OldScores, Scores};

use tch::{Kind, Tensor};

use crate::distribution::Distribution;
use crate::env::{Direction, Env, Reward, Rows};
use crate::nn::Wants;
use crate::policy::Policy;
use crate::rollout::Trajectories;
use crate::tensor::{from_host, index_tensor};
use crate::{Error, Result};
use rewards::{both_log_rewards, log_reward_changes, partial_log_rewards};
use visited::Visited;

/// Who needs what [`score`] doesn't find, unless whoever asked for the scores says so.
pub(crate) const SCORING: &str = "scoring";

/// From this size on log-rewards in single precision are 2^-9 apart or more.
const WIDE_FROM: f64 = 16_384.0;

/// Evaluates everything that `needs` asks for on a batch of trajectories, each distinct state once, with gradients.
///
/// Scores have the precision of the policy's log-probabilities. Where a log-reward of the batch is larger than 16,384, those of trajectories
/// and transitions are in double precision: single precision would round it by more than a policy may be off.
///
/// # Errors
/// Those of policy and reward, [`Error::IllegalAction`] for an action that the policy gives no probability to,
/// [`Error::Missing`] where the policy lacks what is needed, [`Error::Shape`] where it gives anything but a flat list of one number per
/// action, state or trajectory, and [`Error::Contract`] for changes of log R that don't add up to it.
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
    let pf = evaluation.pf.ok_or_else(no_pf)?;
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let rows = &visited.grouping.of[..visited.n_rows];
    let actions = visited.named(Direction::Forward, &all, trajectories.actions().clone())?;
    let log_pf = flat("log P_F of actions", pf.log_prob(rows, &actions)?, rows.len())?;
    let wide = log_reward.iter().any(|value| value.abs() >= WIDE_FROM);
    let widened = |tensor: Tensor| if wide { tensor.to_kind(Kind::Double) } else { tensor };
    let log_pf = widened(log_pf);
    let (kind, device) = (log_pf.kind(), log_pf.device());

    let pb = evaluation.pb.ok_or_else(|| missing("a backward policy", "use a policy that gives P_B"))?;
    let (inner, after) = visited.inner();
    let undo = visited.named(Direction::Backward, after, trajectories.reverse_actions().select(inner))?;
    let log_pb_inner = flat("log P_B of actions", pb.log_prob(&visited.groups(after), &undo)?, inner.len())?;
    let log_pb_inner = log_pb_inner.to_kind(kind).to_device(device);
    let inner_index = index_tensor(inner, device);
    let log_pb = Tensor::zeros([visited.n_rows as i64], (kind, device)).index_add(0, &inner_index, &log_pb_inner);

    let mut scores = Scores::new(trajectories.offsets().to_vec(), log_pf, log_pb, from_host(&log_reward, kind, device));
    scores.raw_log_reward = from_host(&raw_log_reward, kind, device);
    scores.conditions = trajectories.conditions().map(Tensor::shallow_clone);
    if needs.learned_pb && scores.log_pf.requires_grad() && !scores.log_pb.requires_grad() {
        return Err(missing(
            "a backward policy that is learned",
            "build the policy with one (`backward` in its configuration), or choose an objective that doesn't train P_B",
        ));
    }
    let n_distinct = visited.grouping.first.len();
    scores.distinct = (n_distinct, visited.len());
    if needs.log_flow {
        let flow = flat("log F of states", evaluation.log_flow.ok_or_else(no_flow)?, n_distinct)?;
        scores.log_flow = Some(widened(flow.index_select(0, &index_tensor(rows, flow.device()))));
    }
    if needs.log_z {
        let log_z = policy.log_z(trajectories.conditions(), trajectories.len()).ok_or_else(no_log_z)?;
        scores.log_z = Some(widened(flat("log Z of trajectories", log_z, trajectories.len())?));
    }
    if needs.log_prior {
        let prior = evaluation.prior.ok_or_else(|| missing("a prior policy", "wrap the policy in `WithPrior`"))?;
        let log_prior = flat("log-probabilities of the prior", prior.log_prob(rows, &actions)?, rows.len())?;
        scores.log_prior = Some(log_prior.detach().to_kind(kind).to_device(device));
    }
    if needs.log_p_exit {
        scores.log_p_exit = Some(widened(log_p_exit(env, &pf, &visited, trajectories)?));
    }
    if needs.log_reward_change {
        let change = log_reward_changes(env, reward, &visited, trajectories, (&raw_log_reward, &log_reward))?;
        scores.log_reward_change = Some(from_host(&change, kind, device));
    }
    if needs.state_log_reward {
        let partial = partial_log_rewards(env, reward, trajectories, visited.conditions.as_ref())?;
        scores.state_log_reward = Some(from_host(&partial, kind, device));
    }
    if needs.log_paths {
        let paths = flat("log n of states", evaluation.log_paths.ok_or_else(no_log_paths)?, n_distinct)?;
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
        log_p_exit(env, &evaluation.pf.ok_or_else(no_pf)?, &visited, trajectories)
    })
}

fn log_p_exit<E: Env, D: Distribution<Actions = E::Actions>>(
    env: &E,
    pf: &D,
    visited: &Visited<'_, E>,
    trajectories: &Trajectories<E>,
) -> Result<Tensor> {
    let every = || {
        let remedy = "use an environment in which every state can be finished, or another objective";
        missing("every state to be terminating, by an exit action", remedy)
    };
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let exits = env.exit_actions(trajectories.states()).ok_or_else(every)?;
    let exits = visited.named(Direction::Forward, &all, exits)?;
    let log_p_exit = pf.log_prob(&visited.groups(&all), &exits).map_err(|error| match error {
        Error::IllegalAction { .. } | Error::IllegalStep { .. } => every(),
        other => other,
    })?;
    flat("log P_F of exits", log_p_exit, all.len())
}

/// A policy's answer, which must be a flat list: a column would be broadcast against others without a word.
fn flat(what: &str, tensor: Tensor, n: usize) -> Result<Tensor> {
    match tensor.size()[..] == [n as i64] {
        true => Ok(tensor),
        false => Err(Error::Shape {
            what: format!("{what}, as the policy gives it,"),
            expected: vec![n as i64],
            got: tensor.size(),
            remedy: "give one number for each in a flat list `[n]`; a column `[n, 1]` is made one by `squeeze_dim(-1)`",
        }),
    }
}

fn missing(needs: &'static str, remedy: &'static str) -> Error {
    Error::Missing { objective: SCORING, needs, remedy }
}

fn no_pf() -> Error {
    missing("a forward policy", "use a policy that gives P_F")
}

fn no_flow() -> Error {
    missing(
        "a state-flow estimator (log F)",
        "build the policy with one (`flow: true` in its configuration), or choose an objective without state flows, such as \
         trajectory balance",
    )
}

fn no_log_z() -> Error {
    missing(
        "a log Z estimator",
        "give the policy one (`Policy::log_z`), or choose an objective without log Z, such as log-partition variance",
    )
}

fn no_log_paths() -> Error {
    missing(
        "an estimator of log n(s)",
        "build the policy with one (`paths: true` in its configuration), or choose another objective of P_B",
    )
}
