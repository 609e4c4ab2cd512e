//! Checks that authors run on what they wrote, and the small environments that tests and examples use.
//!
//! | checker | of |
//! |---|---|
//! | [`check_env`] | any enumerable environment: steps, reverses and masks agree, and every backward trajectory ends in the initial state |
//! | [`check_graph_env`] | a graph environment: the same, its backward masks and its schema |
//! | [`check_action_type`] | an action type, on graphs of your choice |
//!
//! All of them end in [`Error::Contract`], which names what is broken and where, states as graphs or vectors. A trainer asks
//! [`Env::check_contract`](crate::env::Env::check_contract), a small part of this, before its first step.

mod chain;
mod check_action_type;
mod check_env;
mod check_graph_env;
mod triangles;
mod ways_back;
mod words;

pub use chain::{Chain, Positions};
pub use check_action_type::check_action_type;
pub use check_env::{check_env, check_env_watched};
pub use check_graph_env::{check_graph_env, check_graph_env_watched};
pub use triangles::Triangles;
pub use ways_back::{Coverage, WaysBack};
pub use words::word_env;

use crate::Error;

fn broken(check: &'static str, detail: String) -> Error {
    Error::contract(check, detail)
}
