//! Replay: buffers of finished objects and of the actions that led to them, and the shares of a batch by
//! source.
//!
//! A [`ReplayBuffer`] replaces several classes of other libraries. These settings can be combined:
//!
//! | buffer | made by |
//! |---|---|
//! | first in, first out | [`Eviction::Fifo`] |
//! | best reward | [`Eviction::BestReward`] |
//! | each object once, under each condition | [`ReplayBuffer::distinct`] |
//! | reward-prioritised | [`Draw::RewardPrioritised`] |
//! | loss-prioritised, with the probability of each draw | [`Draw::LossPrioritised`], [`ReplayBuffer::update_losses`], [`ReplayDraw::log_probs`] |
//! | rank-prioritised, by reward or by loss | [`Draw::RankPrioritised`], [`Draw::WeightedRanks`] |
//! | by a custom rule | [`ReplayBuffer::by_priority`] with a [`Priority`] |
//! | norm-diverse | [`ReplayBuffer::diverse`] with a [`Diversity`] |
//! | terminal states only | [`ReplayBuffer::terminal_only`] |
//!
//! Priorities are computed in the log domain, so that log-rewards of -1e4 and less, whose rewards underflow,
//! are still distinguished. Draws are with replacement. A buffer stores only walks; to sample transitions or
//! states, use a [container](crate::rollout::Container). A [`DataSource`] sets the shares of a batch that are
//! sampled from the policy, replayed, and drawn from a data set.

mod buffer;
mod config;
mod diversity;
mod draw;
mod priority;
mod ranking;
mod saved;
mod source;
mod sum_tree;
mod weights;

pub use buffer::ReplayBuffer;
pub use config::{Draw, Eviction, RankBy, ReplayConfig};
pub use diversity::Diversity;
pub use draw::ReplayDraw;
pub use priority::{Priority, StoredObject};
pub use source::{DataSource, SourceCounts};
