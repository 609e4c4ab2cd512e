//! Scores: the quantities that objectives need, computed from environment, reward and policy.

mod edge_flows;
mod estimates;
mod quantities;
mod rewards;
mod scores;
mod seeds;
mod visited_states;

pub use scores::Scores;

use crate::Result;
use crate::env::{Env, Reward};
use crate::policy::Policy;
use crate::quantity::{Quantities, Quantity, Values};
use crate::rollout::{Trajectories, Transitions};
use crate::tensor::select_rows;
use edge_flows::EDGE_FLOWS;
use quantities::{EvaluatedBatch, exits_of, log_exits, no_pf};
use visited_states::VisitedStates;

/// The name that error messages about missing quantities give to the code of this module.
pub(crate) const SCORING: &str = "scoring";

/// Computes the scores of a batch of trajectories: log-probabilities, log-rewards and the quantities in
/// `needs`, with gradients. The policy evaluates each distinct state once. Intrinsic rewards and the
/// quantities of target networks ([`score_target`]) aren't computed here. A trainer's companions (parts that
/// it calls in each step, such as `Intrinsic` in the package `gfn-extras`) add them.
///
/// Scores have the precision of the policy's log-probabilities. If a log-reward in the batch has an absolute
/// value of 16,384 or more, the scores are in double precision, because the rounding of single precision
/// would be larger than the residuals of a good policy.
///
/// # Errors
/// The errors of policy and reward; [`Error::IllegalAction`](crate::Error::IllegalAction) for an action that
/// has no probability under the policy; [`Error::Missing`](crate::Error::Missing) if the policy lacks a
/// needed quantity; [`Error::Shape`](crate::Error::Shape) if the policy returns anything but a flat list of
/// one number per action, state or trajectory; and [`Error::Contract`](crate::Error::Contract) for changes of
/// log R that don't add up to log R.
pub fn score<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    needs: Quantities,
) -> Result<Scores> {
    score_as(env, reward, policy, trajectories, &Scoring::new(needs))
}

/// Computes the scores of single transitions, for an objective that [learns from
/// them](crate::objective::Objective::learns_from_transitions). Each transition becomes a separate
/// trajectory. If a transition doesn't finish its object, its trajectory gets a second transition, the next
/// one of the original trajectory. Objectives take the flow of the next state from the second transition,
/// which has no weight in the loss ([`Scores::mean_weights`]).
///
/// ```
/// use gfn::objective::{DetailedBalance, Objective, Regression, score_transitions};
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::{
///     Rng,
///     env::VectorStates,
///     examples::word_env,
///     nn::EstimatorsConfig,
///     rollout::{Container, Sampler},
/// };
/// use tch::{Device, Kind, Tensor};
/// let (env, mut rng) = (word_env(2, 3), Rng::seeded(0));
/// let config =
///     MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(3, 3), config, Device::Cpu, Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; gfn::env::Rows::len(states)]);
/// let trajectories = Sampler::new(&env, &policy).forward(16, &mut rng)?;
/// let some = trajectories.transitions().sample(8, &mut rng)?;
/// let objective = DetailedBalance::default();
/// let scores = score_transitions(&env, &reward, &policy, &some, objective.needs())?;
/// objective.loss(&scores, &Regression::Squared)?.backward();
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// The errors of [`score`].
pub fn score_transitions<E: Env>(
    env: &E,
    reward: &dyn Reward<E::States>,
    policy: &dyn Policy<E>,
    transitions: &Transitions<'_, E>,
    needs: Quantities,
) -> Result<Scores> {
    let (trajectories, ahead) = transitions.cut_out(reward)?;
    score_as(env, reward, policy, &trajectories, &Scoring { ahead: Some(&ahead), ..Scoring::new(needs) })
}

/// The settings of the computation of scores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring<'a> {
    /// The quantities to compute besides log-probabilities and log-rewards.
    pub(crate) needs: Quantities,
    /// The exponent of R, by which log R is multiplied
    /// ([`TrainerConfig::reward_exponent`](crate::train::TrainerConfig::reward_exponent)).
    pub(crate) exponent: f64,
    /// The value for [`Scores::ahead`], which marks the transitions without weight in the loss; `None` if
    /// whole trajectories are scored.
    pub(crate) ahead: Option<&'a [bool]>,
}

impl Scoring<'_> {
    /// Returns settings that compute the quantities `needs` of whole trajectories, with exponent 1.
    pub(crate) fn new(needs: Quantities) -> Self {
        Self { needs, exponent: 1.0, ahead: None }
    }
}

/// Computes the scores of a batch as [`score`] does, with these settings.
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
    for quantity in needs.custom() {
        scores.set(quantity, batch.per_state(quantity)?)?;
    }
    if needs.has_any(&EDGE_FLOWS) {
        scores.set_all(batch.edge_flows()?)?;
    }
    Ok(scores)
}

/// Computes the quantities of a target network that are in `needs`, without gradient:
/// [`Quantity::TargetLogFlow`] and [`Quantity::TargetLogExit`]. The current parameters of `policy` are used.
/// A trainer therefore calls this function while the policy temporarily has the parameters of the target
/// network ([`Average::with`](crate::optim::Average::with)).
///
/// # Errors
/// [`Error::Missing`](crate::Error::Missing) for a policy without state flows and for a state without an
/// exit; [`Error::Shape`](crate::Error::Shape) for state flows that aren't a flat list; the errors of the
/// policy.
pub fn score_target<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    needs: Quantities,
) -> Result<Values> {
    let mut target = Values::default();
    let needs_flow = needs.has(Quantity::TargetLogFlow);
    let needs_exit = needs.has(Quantity::TargetLogExit);
    if !needs_flow && !needs_exit {
        return Ok(target);
    }
    tch::no_grad(|| {
        let visited = VisitedStates::new(env, policy, trajectories);
        let mut wants = if needs_exit { Quantities::PF } else { Quantities::NONE };
        if needs_flow {
            wants |= Quantity::LogFlow;
        }
        let mut evaluation = visited.evaluate(policy, wants)?;
        if needs_flow {
            let flows = evaluation.values.take_flat(Quantity::LogFlow, visited.n_distinct(), SCORING)?;
            target.insert(Quantity::TargetLogFlow, select_rows(&flows, visited.groups_before()));
        }
        if needs_exit {
            let pf = evaluation.pf.ok_or_else(no_pf)?;
            let exits = exits_of(env, &visited, trajectories)?;
            target.insert(Quantity::TargetLogExit, log_exits(&pf, visited.groups_before(), &exits)?);
        }
        Ok(target)
    })
}
