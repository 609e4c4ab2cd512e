//! Scores: all quantities that objectives need, evaluated from environment, reward and policy.

mod edge_flows;
mod estimates;
mod rewards;
mod scores;
mod visited;

pub use scores::Scores;

use tch::{Kind, Tensor};

use crate::distribution::Distribution;
use crate::env::{Direction, Env, Reward, Rows};
use crate::policy::{Evaluation, Policy};
use crate::quantity::{Quantities, Quantity, Values, flat};
use crate::rollout::{Trajectories, Transitions};
use crate::tensor::{from_host, index_tensor};
use crate::{Error, Result};
use edge_flows::{EDGE_FLOWS, edge_flows};
use rewards::{both_log_rewards, log_reward_changes, partial_log_rewards};
use visited::Visited;

/// The name of the caller in error messages, unless it gives another one.
pub(crate) const SCORING: &str = "scoring";

/// From this size on, log-rewards in single precision have gaps of 2^-9 or more.
const WIDE_FROM: f64 = 16_384.0;

/// Evaluates everything that `needs` asks for on a batch of trajectories, each distinct state once, with gradients. Intrinsic rewards and
/// what target networks say ([`score_target`]) are a trainer's to add.
///
/// Scores have the precision of the policy's log-probabilities. If a log-reward of the batch is larger than 16,384,
/// those of trajectories and transitions are in double precision, because single precision would round by more than the
/// error of a good policy.
///
/// # Errors
/// Those of policy and reward; [`Error::IllegalAction`] for an action that has no probability under the policy;
/// [`Error::Missing`] if the policy lacks a needed quantity; [`Error::Shape`] if it gives anything but a flat list of
/// one number per action, state or trajectory; and [`Error::Contract`] for changes of log R that don't add up to log R.
pub fn score<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    needs: Quantities,
) -> Result<Scores> {
    score_as(env, reward, policy, trajectories, &Scoring::of(needs))
}

/// The same of single transitions, from whatever trajectories: for an objective that
/// [learns from them](crate::objective::Objective::learns_from_transitions). A transition that doesn't finish its object is scored as two rows, itself and
/// the one behind it, whose state has the flow that the first one leads to, and which has no weight ([`Scores::mean_weights`]).
///
/// ```
/// use gfn::objective::{DetailedBalance, Objective, RegressionLoss, score_transitions};
/// use gfn::{env::VectorStates, nn::EstimatorsConfig, rollout::{Container, Sampler}, testing::word_env, Rng};
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use tch::{Device, Kind, Tensor};
/// let (env, mut rng) = (word_env(2, 3), Rng::seeded(0));
/// let config = MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(3, 3), config, Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; gfn::env::Rows::len(states)]);
/// let trajectories = Sampler::new(&env, &policy).forward(16, &mut rng)?;
/// let some = trajectories.transitions().sample(8, &mut rng)?;
/// let objective = DetailedBalance::default();
/// let scores = score_transitions(&env, &reward, &policy, &some, objective.needs())?;
/// objective.loss(&scores, RegressionLoss::Squared)?.backward();
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// Those of [`score`].
pub fn score_transitions<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    transitions: &Transitions<'_, E>,
    needs: Quantities,
) -> Result<Scores> {
    let (trajectories, ahead) = transitions.cut_out(reward)?;
    score_as(env, reward, policy, &trajectories, &Scoring { ahead: Some(&ahead), ..Scoring::of(needs) })
}

/// What is scored of trajectories, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring<'a> {
    /// The quantities.
    pub(crate) needs: Quantities,
    /// Factor of log R ([`TrainerConfig::reward_exponent`](crate::train::TrainerConfig::reward_exponent)).
    pub(crate) exponent: f64,
    /// [`Scores::ahead`].
    pub(crate) ahead: Option<&'a [bool]>,
}

impl Scoring<'_> {
    /// These quantities of whole trajectories, by R itself.
    pub(crate) fn of(needs: Quantities) -> Self {
        Self { needs, exponent: 1.0, ahead: None }
    }
}

/// [`score`], as training wants it.
pub(crate) fn score_as<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    scoring: &Scoring<'_>,
) -> Result<Scores> {
    let needs = scoring.needs;
    needs.check()?;
    let (raw_log_reward, log_reward) = both_log_rewards(env, reward, trajectories, scoring.exponent)?;
    let visited = Visited::new(env, trajectories);
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let rows = &visited.alike.grouping.of[..visited.n_rows];
    let actions = visited.named(Direction::Forward, &all, trajectories.actions().clone())?;
    let (inner, after) = visited.inner();
    let undo = visited.named(Direction::Backward, after, trajectories.reverse_actions().select(inner))?;
    let wants = needs | Quantities::PF | Quantities::PB;
    let Evaluation { pf, pb, prior, mut values } =
        policy.evaluate(env, visited.distinct(), visited.conditions.as_ref(), wants)?;
    let pf = pf.ok_or_else(no_pf)?;
    let pb = pb.ok_or_else(|| Quantity::LogPb.missing(SCORING))?;
    let n_distinct = visited.alike.grouping.first.len();
    let wide = log_reward.iter().any(|value| value.abs() >= WIDE_FROM);
    let widened = |tensor: Tensor| if wide { tensor.to_kind(Kind::Double) } else { tensor };
    let log_pf = widened(flat(Quantity::LogPf, pf.log_prob(rows, &actions)?, rows.len())?);
    let (kind, device) = (log_pf.kind(), log_pf.device());

    let log_pb_inner = pb.log_prob(&visited.groups(after), &undo)?;
    let log_pb_inner = flat(Quantity::LogPb, log_pb_inner, after.len())?.to_kind(kind).to_device(device);
    let log_pb = Tensor::zeros([visited.n_rows as i64], (kind, device));
    let log_pb = log_pb.index_add(0, &index_tensor(inner, device), &log_pb_inner);

    let mut scores = Scores::new(trajectories.offsets().to_vec(), log_pf, log_pb, from_host(&log_reward, kind, device));
    scores.inner = inner.to_vec();
    scores.ahead = scoring.ahead.map(<[bool]>::to_vec);
    scores.raw_log_reward = from_host(&raw_log_reward, kind, device);
    let mut instances = env.instances(trajectories.terminal_states());
    instances.dedup();
    scores.instance = instances.first().copied().filter(|_| instances.len() == 1);
    scores.conditions = trajectories.conditions().map(Tensor::shallow_clone);
    if needs.has(Quantity::LearnedLogPb) && scores.log_pf.requires_grad() && !scores.log_pb.requires_grad() {
        return Err(Quantity::LearnedLogPb.missing(SCORING));
    }
    scores.distinct = (n_distinct, visited.len());
    if needs.has(Quantity::Entropy) {
        let entropies = pf.entropies().ok_or_else(|| Quantity::Entropy.missing(SCORING))?;
        values.insert(Quantity::Entropy, entropies);
    }
    // One number per distinct state, for each transition from it.
    let of_states = [Quantity::LogFlow, Quantity::Entropy].into_iter().filter(|&quantity| needs.has(quantity));
    for quantity in of_states.chain(needs.own()) {
        let values = values.take_flat(quantity, n_distinct, SCORING)?;
        scores.set(quantity, widened(values.index_select(0, &index_tensor(rows, values.device()))))?;
    }
    if needs.has(Quantity::LogExit) {
        let log_exit = log_exits(&pf, rows, &exits_of(env, &visited, trajectories)?)?;
        scores.set(Quantity::LogExit, widened(log_exit))?;
    }
    if needs.has(Quantity::LogZ) {
        if env.n_instances() > 1 {
            return Err(Error::missing(
                "an objective with one log Z",
                "the log Z of each instance of the environment",
                "use an objective of state flows, whose flow at the initial state is the instance's log Z (detailed or \
                 subtrajectory balance)",
            ));
        }
        let log_z = policy.log_z(trajectories.conditions(), trajectories.len());
        let log_z = log_z.ok_or_else(|| Quantity::LogZ.missing(SCORING))?;
        scores.set(Quantity::LogZ, widened(flat(Quantity::LogZ, log_z, trajectories.len())?))?;
    }
    if needs.has(Quantity::LogRewardChange) {
        let ends = [raw_log_reward.as_slice(), &log_reward];
        let change = log_reward_changes(env, reward, &visited, trajectories, ends, scoring)?;
        scores.set(Quantity::LogRewardChange, from_host(&change, kind, device))?;
    }
    if needs.has(Quantity::StateLogReward) {
        let conditions = visited.conditions.as_ref();
        let partial = partial_log_rewards(env, reward, trajectories, conditions, scoring.exponent)?;
        scores.set(Quantity::StateLogReward, from_host(&partial, kind, device))?;
    }
    if needs.has(Quantity::LogPrior) {
        let prior = prior.ok_or_else(|| Quantity::LogPrior.missing(SCORING))?;
        let log_prior = flat(Quantity::LogPrior, prior.log_prob(rows, &actions)?, rows.len())?;
        scores.set(Quantity::LogPrior, log_prior.detach().to_kind(kind).to_device(device))?;
    }
    if needs.has_any(&[Quantity::LogPaths, Quantity::NextLogPaths]) {
        let paths = values.take_flat(Quantity::LogPaths, n_distinct, SCORING)?;
        let mut started = vec![1.0; visited.n_rows];
        trajectories.offsets()[..trajectories.len()].iter().for_each(|&start| started[start] = 0.0);
        let started: Vec<f64> = inner.iter().map(|&row| started[row]).collect();
        let at = |rows: &[usize]| paths.index_select(0, &index_tensor(&visited.groups(rows), paths.device()));
        // The initial state has one path to it.
        scores.set(Quantity::LogPaths, at(inner) * from_host(&started, paths.kind(), paths.device()))?;
        scores.set(Quantity::NextLogPaths, at(after))?;
    }
    if needs.has_any(&EDGE_FLOWS) {
        scores.set_all(edge_flows(env, policy, &visited, &pf, &pb, trajectories)?)?;
    }
    Ok(scores)
}

/// The quantities of a target network that `needs` has, without gradient, by the policy as it is now: [`Quantity::TargetLogFlow`] and
/// [`Quantity::TargetLogExit`]. To be called while the parameters are the target network's
/// ([`Average::with`](crate::optim::Average::with)); a trainer does so.
///
/// # Errors
/// [`Error::Missing`] for a policy without state flows and where some state has no exit; [`Error::Shape`] for state flows that aren't a
/// flat list; those of the policy.
pub fn score_target<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    needs: Quantities,
) -> Result<Values> {
    let mut found = Values::default();
    let (flow, exit) = (needs.has(Quantity::TargetLogFlow), needs.has(Quantity::TargetLogExit));
    if !flow && !exit {
        return Ok(found);
    }
    tch::no_grad(|| {
        let visited = Visited::new(env, trajectories);
        let mut wants = if exit { Quantities::PF } else { Quantities::NONE };
        if flow {
            wants |= Quantity::LogFlow;
        }
        let mut evaluation = policy.evaluate(env, visited.distinct(), visited.conditions.as_ref(), wants)?;
        if flow {
            let flows = evaluation.values.take_flat(Quantity::LogFlow, visited.alike.grouping.first.len(), SCORING)?;
            let rows = index_tensor(&visited.alike.grouping.of[..visited.n_rows], flows.device());
            found.insert(Quantity::TargetLogFlow, flows.index_select(0, &rows));
        }
        if exit {
            let pf = evaluation.pf.ok_or_else(no_pf)?;
            let rows = &visited.alike.grouping.of[..visited.n_rows];
            let exits = exits_of(env, &visited, trajectories)?;
            found.insert(Quantity::TargetLogExit, log_exits(&pf, rows, &exits)?);
        }
        Ok(found)
    })
}

/// The exit from the state before each transition.
fn exits_of<E: Env>(env: &E, visited: &Visited<'_, E>, trajectories: &Trajectories<E>) -> Result<E::Actions> {
    let all: Vec<usize> = (0..visited.n_rows).collect();
    let exits = env.exit_actions(trajectories.states()).ok_or_else(|| Quantity::LogExit.missing(SCORING))?;
    visited.named(Direction::Forward, &all, exits)
}

fn log_exits<D: Distribution>(pf: &D, rows: &[usize], exits: &D::Actions) -> Result<Tensor> {
    let log_exit = pf.log_prob(rows, exits).map_err(|error| match error {
        Error::IllegalAction { .. } | Error::IllegalStep { .. } => Quantity::LogExit.missing(SCORING),
        other => other,
    })?;
    flat(Quantity::LogExit, log_exit, rows.len())
}

fn no_pf() -> Error {
    Quantity::LogPf.missing(SCORING)
}
