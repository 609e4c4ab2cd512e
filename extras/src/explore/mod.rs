//! Exploration and intrinsic rewards, written with the public traits of a trainer's parts.
//!
//! | item | role in a trainer | changes |
//! |---|---|---|
//! | [`Teacher`] | a [`Source`](gfn::train::Source): a second policy that samples where the trained one has large errors | behaviour |
//! | [`Thompson`], [`thompson_step`] | a [`Source`](gfn::train::Source) and a custom step: each trajectory follows one head of the policy | behaviour |
//! | [`Search`] | a [`Refill`](gfn::train::Refill) of the replay buffer: a search among objects | behaviour |
//! | [`Intrinsic`], [`RandomDistillation`] | a [`Companion`](gfn::train::Companion): rewards for rarely visited states | **target**, while their coefficient isn't 0 |

mod distillation;
mod novelty;
mod search;
mod teacher;
mod thompson;

pub use distillation::{DistillationConfig, RandomDistillation};
pub use novelty::{Intrinsic, IntrinsicConfig, Novelty};
pub use search::{ObjectSearch, Search, SearchResults};
pub use teacher::{Teacher, TeacherConfig, teacher_log_rewards};
pub use thompson::{Thompson, thompson_scores, thompson_step};
