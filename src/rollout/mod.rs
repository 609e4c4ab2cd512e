//! Roll-outs: the [`Sampler`] goes forwards from the initial state, backwards from finished objects, and by
//! [`LocalSearch`] from one object to another. Containers hold the results.
//!
//! Containers are ragged: flat rows of (state, action) plus offsets, without padding, dummy actions or sink rows. Transitions and states
//! are views of trajectories.
//!
//! | container | holds | made by |
//! |---|---|---|
//! | [`Trajectories`] | whole trajectories, with every state | the [sampler](Sampler), [`Trajectories::replay`] |
//! | [`Walks`] | terminal states and actions | [`Trajectories::walks`], [replay buffers](crate::replay) |
//! | [`Transitions`] | single steps | [`Trajectories::transitions`] |
//! | [`StatesContainer`] | states, finished or not | [`Trajectories::visited_states`] |
//!
//! [`Container`] selects and samples elements of all of them, and joins trajectories and walks. They may hold a condition vector per
//! element, which is their only tensor and the only part that `to_device` moves. Trajectories can be saved and loaded
//! ([`Trajectories::save`]).
//!
//! # Directions
//!
//! All trajectories are stored in forward order. [`Sampler::backward`](Sampler::backward) reverses the
//! trajectories that it samples (in torchgfn this is a separate call, `reverse_backward_trajectories`, which can be
//! forgotten). Row `t` then holds the state that the backward step led to, the forward action that leads out of it
//! again, and the backward action that was taken. So P_F always scores [`actions`](Trajectories::actions) and P_B
//! always scores [`reverse_actions`](Trajectories::reverse_actions), and trajectories of both origins can be joined.

mod alike;
mod container;
mod files;
mod local_search;
mod replay_env;
mod run;
mod sampler;
mod trajectories;
mod views;
mod walks;

pub(crate) use alike::{Alike, alike};
pub use container::Container;
pub(crate) use files::{ReadWalks, conditions_of, read_walks, with_conditions, write_walks};
pub use local_search::{Acceptance, LocalSearch};
pub use replay_env::ReplayEnv;
pub use sampler::Sampler;
pub use trajectories::Trajectories;
pub use views::{StatesContainer, Transitions};
pub use walks::Walks;
