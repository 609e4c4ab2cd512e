//! The laws that policies and rewards must obey, checked before and during training.

mod policy;
mod reward;

pub use policy::check_policy;
pub(crate) use policy::next_check;
pub(crate) use reward::check_reward;
