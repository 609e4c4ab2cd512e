//! Replay: finished objects and the walks that led to them, kept to learn from again, and the mixing of sources.
//!
//! One [`ReplayBuffer`] does what elsewhere several classes do; its settings combine:
//!
//! | buffer | made by |
//! |---|---|
//! | first in, first out | [`Eviction::Fifo`] |
//! | best reward | [`Eviction::BestReward`] |
//! | each object once, under each condition | [`ReplayBuffer::distinct`] |
//! | reward-prioritised, by exponent or temperature | [`Draw::RewardPrioritised`], [`Draw::tempered`] |
//! | loss-prioritised, with importance weights | [`Draw::LossPrioritised`], [`ReplayBuffer::update_losses`], [`Drawn::importance_weights`] |
//! | rank-prioritised, by reward or by loss | [`Draw::RankPrioritised`], [`Draw::WeightedRanks`] |
//! | by a rule of one's own | [`ReplayBuffer::by_priority`] with a [`Priority`] |
//! | norm-diverse | [`ReplayBuffer::diverse`] with a [`Diversity`] |
//! | terminating states alone | [`ReplayBuffer::terminal_only`] |
//!
//! Priorities are worked out in the log domain: log-rewards of -1e4 and less, far below what exists as a number, are told apart as
//! well as any others. Draws are with replacement; what isn't a walk is drawn from a [container](crate::rollout::Container).
//! A [`DataSource`] says how many trajectories of a batch are sampled afresh, replayed, and taken from a data set.

mod buffer;
mod config;
mod diversity;
mod draw;
mod entry;
mod identity;
mod ordered;
mod priority;
mod rank_power;
mod saved;
mod source;
mod weights;

pub use buffer::ReplayBuffer;
pub use config::{Draw, Eviction, RankBy, ReplayConfig};
pub use diversity::Diversity;
pub use draw::Drawn;
pub use priority::{Priority, Stored};
pub use source::{DataSource, SourceCounts};
