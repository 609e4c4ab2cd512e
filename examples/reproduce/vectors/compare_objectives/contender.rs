//! The contenders of a comparison: the objectives of the other tasks, the weightings of sub-trajectory balance, and objectives that are relative
//! to a prior.

use std::collections::HashMap;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use gfn::Result;
use gfn::env::{EnumerableEnv, Reward, StateGraph};
use gfn::objective::{
    Objective, RelativeLogPartitionVariance, RelativeTrajectoryBalance, SubTrajectoryBalance, TrustPcl, Weighting,
};
use gfn::policy::UniformPolicy;

use crate::flags::ObjectiveName;

/// An objective of the comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Contender {
    Standard(ObjectiveName),
    Weighted(&'static str, Weighting),
    Relative(Relative),
}

/// Relative to the uniform policy as prior.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relative {
    TrajectoryBalance,
    LogPartitionVariance,
    TrustPcl,
}

use Contender::{Relative as Rel, Standard, Weighted};

/// All of them; geometric weights within trajectories are the standard `subtb`.
const ALL: &[Contender] = &[
    Standard(ObjectiveName::Tb),
    Standard(ObjectiveName::Vargrad),
    Standard(ObjectiveName::Db),
    Standard(ObjectiveName::FlDb),
    Standard(ObjectiveName::ModifiedDb),
    Standard(ObjectiveName::Subtb),
    Standard(ObjectiveName::FlSubtb),
    Weighted("subtb-db", Weighting::Db),
    Weighted("subtb-modified-db", Weighting::ModifiedDb),
    Weighted("subtb-tb", Weighting::Tb),
    Weighted("subtb-equal", Weighting::Equal),
    Weighted("subtb-equal-within", Weighting::EqualWithin),
    Weighted("subtb-geometric", Weighting::Geometric { lambda: 0.9 }),
    Standard(ObjectiveName::Fm),
    Rel(Relative::TrajectoryBalance),
    Rel(Relative::LogPartitionVariance),
    Rel(Relative::TrustPcl),
    Standard(ObjectiveName::TbTlm),
    Standard(ObjectiveName::TbMaxent),
    Standard(ObjectiveName::Pg),
    Standard(ObjectiveName::Ppo),
];

impl ValueEnum for Contender {
    fn value_variants<'a>() -> &'a [Self] {
        ALL
    }
    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Standard(objective) => objective.to_possible_value(),
            Self::Weighted(name, _) => Some(PossibleValue::new(*name)),
            Self::Relative(relative) => Some(PossibleValue::new(match relative {
                Relative::TrajectoryBalance => "relative-tb",
                Relative::LogPartitionVariance => "relative-vargrad",
                Relative::TrustPcl => "trust-pcl",
            })),
        }
    }
}

impl Contender {
    pub(crate) fn build(self) -> Result<Box<dyn Objective>> {
        Ok(match self {
            Self::Standard(objective) => return objective.build(),
            Self::Weighted(_, weighting) => Box::new(SubTrajectoryBalance::new(weighting)?),
            Self::Relative(Relative::TrajectoryBalance) => Box::new(RelativeTrajectoryBalance::new(1.0)?),
            Self::Relative(Relative::LogPartitionVariance) => Box::new(RelativeLogPartitionVariance::new(1.0)?),
            Self::Relative(Relative::TrustPcl) => Box::new(TrustPcl::new(1.0)?),
        })
    }

    pub(crate) fn is_relative(self) -> bool {
        matches!(self, Self::Relative(_))
    }

    pub(crate) fn trains_backward(self) -> bool {
        matches!(self, Self::Standard(objective) if objective.trains_backward())
    }
}

/// R(x) / prior(x): what makes the posterior `prior(x) R'(x)` of a relative objective the same target as everyone else's.
pub(crate) struct OverPrior<E: EnumerableEnv, R> {
    env: E,
    reward: R,
    log_prior: HashMap<E::Key, f64>,
}

impl<E: EnumerableEnv, R> OverPrior<E, R> {
    /// The prior is the uniform policy, its distribution exact.
    pub(crate) fn new(env: E, reward: R, graph: &StateGraph<E>) -> Result<Self> {
        let probs = graph.terminating_distribution(&env, &UniformPolicy, None)?.probs;
        let keys = env.keys(graph.states());
        Ok(Self { env, reward, log_prior: keys.into_iter().zip(probs.iter().map(|p| p.ln())).collect() })
    }
}

impl<E, R> Reward<E::States> for OverPrior<E, R>
where
    E: EnumerableEnv,
    R: Reward<E::States>,
{
    fn log_reward(&self, states: &E::States, conditions: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        let log_rewards = self.reward.log_reward(states, conditions)?;
        let keys = self.env.keys(states);
        Ok(log_rewards.iter().zip(&keys).map(|(r, key)| r - self.log_prior[key]).collect())
    }
}
