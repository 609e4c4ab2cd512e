//! The settings of chains and of a source of trajectories that runs chains.

use gfn::rollout::check_max_back;
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};

/// A rule by which a Markov chain proposes another finished object. Every rule has its exact proposal ratio
/// in the acceptance probability. A chain samples the target if its proposals lead from every object to every
/// other in some number of rounds, and if they don't change between rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Proposal {
    /// One legal move of the environment, forward or backward, drawn uniformly from all legal moves of the
    /// object except the exit. If the move leads to a state that isn't a finished object, the chain stays.
    /// For DAGs this is structure MCMC; on a grid it is a step of 1.
    OneMove,
    /// Uniform backward moves, whose number is drawn from `1..=max_back`, then uniform forward moves until an
    /// object is finished ([`LocalSearch`](gfn::rollout::LocalSearch)). Use this rule if no single move leads
    /// from one object to another, for example if all objects have the same number of entries.
    ///
    /// If objects are made in a single order, like sequences that only grow at their end, and all have the
    /// same number of entries, then backward moves must be able to reach the initial state. With a smaller
    /// `max_back` the first entries of a chain's object would never change.
    BackAndForth {
        /// The largest number of backward moves, at least 1.
        max_back: usize,
    },
    /// Moves back and forth that are sampled from P_B and P_F of a policy. If `max_back` is at least the
    /// length of trajectories, some proposals are independent samples of the policy. Chains sample the target
    /// only while the policy stays as it is: in a [`ChainSource`](super::ChainSource) the policy learns from
    /// the chains, so these proposals change.
    Policy {
        /// The largest number of backward moves, at least 1.
        max_back: usize,
    },
}

/// The settings of [`Chains`](super::Chains).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainConfig {
    /// The powers of R that the chains of a ladder sample: finite numbers of at least 0. A ladder has one
    /// chain per power. With several powers, neighbours of a ladder exchange their objects (replica
    /// exchange); put powers in ascending or descending order. A chain of power 0 samples all objects with
    /// equal probability, and needs rewards only for exchanges. The default is one chain of power 1.
    pub powers: Vec<f64>,
    /// The proposals, each with its weight of at least 0. All chains use the same proposal in a round. An
    /// empty list (the default) means: one move, if single moves lead from object to object; otherwise back
    /// and forth with up to 4 backward moves, and with up to as many as lead back to the initial state; all
    /// of these with equal weights, if only some moves lead to objects.
    pub proposals: Vec<(f64, Proposal)>,
    /// The number of rounds after which neighbours of a ladder exchange objects: at least 1, the default.
    pub exchange_every: usize,
    /// `true` to score only the change of the log-reward for proposals of one move
    /// ([`Reward::log_reward_change`](gfn::env::Reward::log_reward_change)), which must then be the change of
    /// the whole log-reward. The sums of changes are compared with full log-rewards in the first round and
    /// every 1,000 rounds. The default is `false`.
    pub score_changes: bool,
}

impl Default for ChainConfig {
    fn default() -> Self {
        Self { powers: vec![1.0], proposals: Vec::new(), exchange_every: 1, score_changes: false }
    }
}

impl ChainConfig {
    pub(super) fn check(&self) -> Result<()> {
        let is_power = |power: &f64| power.is_finite() && *power >= 0.0;
        if self.powers.is_empty() || !self.powers.iter().all(is_power) {
            let got = format!("{:?}", self.powers);
            return Err(Error::config(
                "the powers of chains",
                got,
                "one or more finite numbers of at least 0",
            ));
        }
        if self.exchange_every == 0 {
            return Err(Error::config("exchange_every", "0", "at least one round between exchanges"));
        }
        let weights: Vec<f64> = self.proposals.iter().map(|(weight, _)| *weight).collect();
        let sum: f64 = weights.iter().sum();
        if !weights.iter().all(|&weight| weight >= 0.0)
            || !(sum.is_finite() && (sum > 0.0 || weights.is_empty()))
        {
            let expected = "finite numbers of at least 0, not all of them 0";
            return Err(Error::config("the weights of proposals", format!("{weights:?}"), expected));
        }
        for (_, proposal) in &self.proposals {
            if let Proposal::BackAndForth { max_back } | Proposal::Policy { max_back } = *proposal {
                check_max_back(max_back)?;
            }
        }
        Ok(())
    }

    /// Returns the settings of chains of power 0 with the same proposals, except those of a policy.
    pub(super) fn explorers(&self) -> Self {
        let mut proposals = self.proposals.clone();
        proposals.retain(|(weight, proposal)| *weight > 0.0 && !matches!(proposal, Proposal::Policy { .. }));
        Self { powers: vec![0.0], proposals, ..Self::default() }
    }

    /// Returns `true` if some proposals are sampled from a policy.
    pub(super) fn needs_policy(&self) -> bool {
        self.proposals.iter().any(|(weight, rule)| *weight > 0.0 && matches!(rule, Proposal::Policy { .. }))
    }
}

/// The objects at which chains of a [`ChainSource`](super::ChainSource) start. A start is drawn from some
/// candidates, in proportion to R to the largest power of a ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Starts {
    /// The candidates are the objects that the trainer's policy sampled in this step. Their rewards are
    /// known, so they need no reward call. If they are too few, for example because chains supply the whole
    /// batch, more objects are sampled, at one reward call each.
    Policy,
    /// The candidates of each start are objects that are nearly uniform among all objects: the objects of
    /// `candidates` chains of power 0, which make `rounds` rounds between starts. Each candidate needs one
    /// reward call. Use this if the reward has peaks that a policy doesn't sample yet.
    Uniform {
        /// The number of candidates of each start, at least 1.
        candidates: usize,
        /// The number of rounds, without reward calls, between candidates, at least 1.
        rounds: usize,
    },
}

/// The rule by which a [`ChainSource`](super::ChainSource) restarts ladders. A search needs it if peaks are
/// so narrow that no chain leaves one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Restart {
    /// The number of rounds without a larger reward, at least 1, after which a ladder restarts.
    pub patience: usize,
    /// The objects at which the chains start.
    pub starts: Starts,
}

/// The settings of a [`ChainSource`](super::ChainSource).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainSourceConfig {
    /// The settings of the chains.
    pub chains: ChainConfig,
    /// The number of ladders, at least 1. The default is 16.
    pub ladders: usize,
    /// The number of rounds before each draw of trajectories, at least 1. The default is 4. A round computes
    /// a reward for each chain whose power isn't 0, so a step costs up to `ladders` times the number of
    /// powers times `rounds` rewards.
    pub rounds: usize,
    /// The number of reward calls of the chains after which they stop; the source then only draws from the
    /// objects that were found. It is at least 1. The default is `None`: chains never stop.
    pub max_reward_calls: Option<u64>,
    /// The rule by which ladders restart. The default is `None`: they start at samples of the policy and are
    /// never restarted.
    pub restart: Option<Restart>,
    /// The largest number of distinct objects that are stored, at least 1; those with the smallest rewards
    /// are dropped first. The default is 100,000.
    pub capacity: usize,
    /// The exponent a of draws: stored objects are drawn in proportion to R^a. The default is 1.
    pub exponent: f64,
    /// `true` to sample trajectories to the drawn objects by the policy's P_B, which objectives that train
    /// P_B need; `false` (the default) for uniform backward steps.
    pub backward_by_policy: bool,
}

impl Default for ChainSourceConfig {
    fn default() -> Self {
        Self {
            chains: ChainConfig::default(),
            ladders: 16,
            rounds: 4,
            max_reward_calls: None,
            restart: None,
            capacity: 100_000,
            exponent: 1.0,
            backward_by_policy: false,
        }
    }
}

impl ChainSourceConfig {
    pub(super) fn check(&self) -> Result<()> {
        self.chains.check()?;
        if self.ladders == 0 {
            return Err(Error::config("ladders", "0", "at least one ladder of chains"));
        }
        if self.rounds == 0 {
            return Err(Error::config("rounds", "0", "at least one round before each draw"));
        }
        if self.max_reward_calls == Some(0) {
            return Err(Error::config(
                "max_reward_calls",
                "0",
                "at least one reward call, or none for no limit",
            ));
        }
        let Some(restart) = self.restart else { return Ok(()) };
        if restart.patience == 0 {
            return Err(Error::config("patience", "0", "at least one round before a restart"));
        }
        if let Starts::Uniform { candidates: 0, .. } = restart.starts {
            return Err(Error::config("candidates", "0", "at least one candidate of each start"));
        }
        if let Starts::Uniform { rounds: 0, .. } = restart.starts {
            return Err(Error::config("rounds", "0", "at least one round between candidates"));
        }
        Ok(())
    }
}
