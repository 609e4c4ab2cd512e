//! gfn

pub mod env;
pub mod error;
pub mod nn;
pub mod rng;
pub mod train;

pub use error::{Error, Result};
pub use rng::Rng;
pub mod dist;
pub mod graph;
pub mod trajectory;
