//! Scores: all quantities that objectives need, evaluated from environment, reward and policy.

mod edge_flows;
mod estimates;
mod quantities;
mod rewards;
mod scores;
mod visited;

pub use scores::Scores;

use crate::Result;
use crate::env::{Env, Reward};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity, Values};
use crate::rollout::{Trajectories, Transitions};
use crate::tensor::index_tensor;
use edge_flows::EDGE_FLOWS;
use quantities::{EvaluatedBatch, exits_of, log_exits, no_pf};
use visited::Visited;

/// The name of the caller in error messages, unless it gives another one.
pub(crate) const SCORING: &str = "scoring";

/// Evaluates everything that `needs` asks for on a batch of trajectories, each distinct state once, with gradients. Intrinsic rewards and
/// what target networks say ([`score_target`]) are a trainer's to add.
///
/// Scores have the precision of the policy's log-probabilities. If a log-reward of the batch is larger than 16,384,
/// those of trajectories and transitions are in double precision, because single precision would round by more than the
/// error of a good policy.
///
/// # Errors
/// Those of policy and reward; [`Error::IllegalAction`](crate::Error::IllegalAction) for an action that has no probability under the policy;
/// [`Error::Missing`](crate::Error::Missing) if the policy lacks a needed quantity; [`Error::Shape`](crate::Error::Shape) if it gives anything but a flat list of
/// one number per action, state or trajectory; and [`Error::Contract`](crate::Error::Contract) for changes of log R that don't add up to log R.
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
/// use gfn::{env::VectorStates, nn::EstimatorsConfig, rollout::{Container, Sampler}, examples::word_env, Rng};
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

/// Scores a batch with the settings of a trainer ([`score`]).
pub(crate) fn score_as<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    scoring: &Scoring<'_>,
) -> Result<Scores> {
    let needs = scoring.needs;
    needs.check()?;
    let mut batch = EvaluatedBatch::new(env, reward, policy, trajectories, *scoring)?;
    let mut scores = batch.base_scores()?;
    for (quantity, compute) in EvaluatedBatch::QUANTITIES {
        if needs.has(quantity) {
            scores.set(quantity, compute(&mut batch)?)?;
        }
    }
    for quantity in needs.own() {
        scores.set(quantity, batch.per_state(quantity)?)?;
    }
    if needs.has_any(&EDGE_FLOWS) {
        scores.set_all(batch.edge_flows()?)?;
    }
    Ok(scores)
}

/// The quantities of a target network that `needs` has, without gradient, by the policy as it is now: [`Quantity::TargetLogFlow`] and
/// [`Quantity::TargetLogExit`]. To be called while the parameters are the target network's
/// ([`Average::with`](crate::optim::Average::with)); a trainer does so.
///
/// # Errors
/// [`Error::Missing`](crate::Error::Missing) for a policy without state flows and where some state has no exit; [`Error::Shape`](crate::Error::Shape) for state flows that aren't a
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
