//! Checks that trainers and exact evaluation make before they trust an environment, and the words of checks for states and moves.

mod counts;
mod walk;

pub(crate) use counts::check_counts;
pub use walk::check_walks;
pub(crate) use walk::{
    KEEP_BACK, MAX_STEPS_BACK, Walked, check_listed, dead_end, describe_move, describe_state, has_more_states,
    random_moves, walk_back,
};
#[cfg(any(test, feature = "testing"))]
pub(crate) use walk::{Steps, no_way_back};
