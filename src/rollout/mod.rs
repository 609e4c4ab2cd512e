//! Roll-outs. The [`Sampler`] samples trajectories forwards from the initial state and backwards from
//! finished objects, and searches for new objects near sampled objects ([`LocalSearch`]). Containers hold the
//! results.
//!
//! A container stores trajectories of different lengths as flat rows of states and actions plus offsets,
//! without padding, dummy actions or sink states. Transitions and states are views of trajectories.
//!
//! | container | holds | made by |
//! |---|---|---|
//! | [`Trajectories`] | whole trajectories, with every state | the [sampler](Sampler), [`Trajectories::replay`] |
//! | [`Walks`] | terminal states and actions | [`Trajectories::walks`], [replay buffers](crate::replay) |
//! | [`Transitions`] | single steps | [`Trajectories::transitions`] |
//! | [`StatesContainer`] | states, finished or not | [`Trajectories::visited_states`] |
//!
//! [`Container`] selects and samples elements of all four containers, and joins trajectories and walks. A
//! container may have a condition vector per element. The condition vectors are the only tensor of a
//! container, and the only part that `to_device` moves. Trajectories can be saved and loaded
//! ([`Trajectories::save`]).
//!
//! # Directions
//!
//! All trajectories are stored in forward order. [`Sampler::backward`](Sampler::backward) reverses the
//! trajectories that it samples. (In torchgfn this is a separate call, `reverse_backward_trajectories`.) A
//! row then holds the state to which a backward step led, the forward action that undoes the step, and the
//! backward action that was sampled. P_F therefore always evaluates [`actions`](Trajectories::actions) and
//! P_B always evaluates [`reverse_actions`](Trajectories::reverse_actions), and trajectories sampled in
//! either direction can be joined.

mod container;
mod files;
mod local_search;
mod place;
mod replay_env;
mod run;
mod sampler;
mod state_groups;
mod tensors;
mod trajectories;
mod views;
mod walks;

pub use container::Container;
pub(crate) use files::{ReadWalks, conditions_of, read_walks, with_conditions, write_walks};
pub use local_search::{Acceptance, LocalSearch, check_max_back};
pub use place::RolloutPlace;
pub(crate) use place::RolloutTimes;
pub use replay_env::ReplayEnv;
pub use sampler::Sampler;
pub(crate) use state_groups::{StateGroups, group_states};
pub(crate) use tensors::{DeviceStates, TensorForms, VisitedRows, tensor_forms};
pub use trajectories::Trajectories;
pub use views::{StatesContainer, Transitions};
pub use walks::Walks;
