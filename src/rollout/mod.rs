//! Walking through an environment: the [`Sampler`] forwards from the initial state, backwards from finished objects, and by
//! [`LocalSearch`] from one object to another; and what is left of the walks.
//!
//! Containers are ragged, flat rows of (state, action) plus offsets. No padding, no dummy action, no sink
//! row.
//!
//! | container | holds | made by |
//! |---|---|---|
//! | [`Trajectories`] | whole trajectories, with every state | the [sampler](super::Sampler), [`Trajectories::replay`] |
//! | [`Walks`] | terminal states and actions | [`Trajectories::walks`], [replay buffers](crate::replay) |
//! | [`Transitions`] | single steps | [`Trajectories::transitions`] |
//! | [`StatesContainer`] | states, finished or not | [`Trajectories::visited_states`] |
//!
//! All of them are picked from, drawn from and joined by [`Container`]; they may carry a condition vector per element, which is
//! the only tensor in them and the only thing that `to_device` moves. The last but [`Walks`] are saved and loaded, see
//! [`Trajectories::save`].
//!
//! # Directions
//!
//! There is one form only, the forward one. [`Sampler::backward`](super::Sampler::backward) turns round what it walked
//! backwards (torchgfn: `reverse_backward_trajectories`, a call that can be forgotten): row `t` holds the state that the backward
//! step led to, the forward action that leads out of it again, and the backward action that was taken. So
//! [`actions`](Trajectories::actions) is scored by P_F and [`reverse_actions`](Trajectories::reverse_actions) by P_B whichever way
//! a trajectory was sampled, and trajectories of both origins can be joined.

mod container;
mod files;
mod local_search;
mod paths;
mod replay_env;
mod run;
mod sampler;
mod selection;
mod states;
mod trajectories;
mod transitions;
mod walks;

pub use container::Container;
pub(crate) use files::{Content, DataFile, conditions_of, read_walks, with_conditions, write_walks};
pub use local_search::{Acceptance, LocalSearch};
pub(crate) use paths::{first_walked, first_walks};
pub use replay_env::ReplayEnv;
pub use sampler::Sampler;
pub use selection::Selection;
pub use states::StatesContainer;
pub use trajectories::Trajectories;
pub use transitions::Transitions;
pub use walks::Walks;
