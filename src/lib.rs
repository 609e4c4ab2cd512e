//! gfn

mod atomic;
pub mod dist;
pub mod env;
pub mod error;
pub mod graph;
pub mod metrics;
pub mod nn;
pub mod objective;
mod parallel;
pub mod policy;
pub mod replay;
pub mod report;
pub mod rng;
pub mod runtime;
pub mod sampler;
pub mod score;
pub mod testing;
pub mod train;
pub mod trajectory;

pub use error::{Error, Result};
pub use rng::Rng;
