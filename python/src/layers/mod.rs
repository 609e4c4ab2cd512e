//! Environments and policies by hand: what Python does with states, moves and trajectories without a trainer in between.

mod by_hand;
mod paths;

pub(crate) use by_hand::{Named, Stepped, by_hand};
pub(crate) use paths::{Held, HeldPaths, Paths, Scored, Walked, other_states, replayed};
