//! Sources of training trajectories: the policy, replay, given data, local search, a teacher.

mod collect;
mod hindsight;
mod on_policy;
mod search;
mod teacher;
mod thompson;

pub(in crate::train) use collect::{Batch, Replayed, draws_by_loss};
pub(in crate::train) use hindsight::Relabelling;
pub(in crate::train) use search::Searching;
pub use search::{Found, ObjectSearch};
pub(in crate::train) use teacher::Teacher;
pub use teacher::{TeacherConfig, teacher_log_rewards};
pub(in crate::train) use thompson::Thompson;
