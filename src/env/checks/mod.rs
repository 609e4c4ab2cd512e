//! What trainers and exact evaluation look at before they trust an environment, and what checks say about states and moves.

mod counts;
mod walk;

pub(crate) use counts::{Moved, check_counts};
#[cfg(any(test, feature = "testing"))]
pub(crate) use walk::no_way_back;
pub(crate) use walk::{
    KEEP_BACK, MAX_STEPS_BACK, Walked, check_listed, describe_move, describe_state, has_more_states, random_moves,
    walk_back,
};
