//! Replay: finished objects and the walks that led to them, kept to learn from again.

mod buffer;
mod identity;

pub use buffer::{Draw, Eviction, ReplayBuffer, ReplayConfig};
pub use identity::Distinct;
