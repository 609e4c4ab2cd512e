//! Markov chains over the finished objects of an environment: Metropolis-Hastings and replica exchange, with
//! the moves of the environment as proposals.
//!
//! | item | is |
//! |---|---|
//! | [`Chains`] | chains that sample R, or powers of R, exactly. They need no policy, so they are also a baseline |
//! | [`ChainSource`] | a [`Source`](gfn::train::Source): chains that search for objects, from which a policy learns |
//! | [`Proposal`] | a rule by which chains propose objects: one move, some moves back and forth, or the policy |
//!
//! Chains without restarts ([`Chains`]) have a stationary distribution, the target. A [`ChainSource`] may
//! restart chains, so that they find more peaks of the reward. Restarted chains have no stationary
//! distribution, but the target of training stays the same, as with any off-policy source.

mod config;
mod moves;
mod propose;
mod saved;
mod score;
mod search;
mod source;
mod start;

pub use config::{ChainConfig, ChainSourceConfig, Proposal, Restart, Starts};
pub use moves::{ProposedMove, proposed_moves};
pub use search::{ChainCounts, Chains, ScoredObjects};
pub use source::ChainSource;
