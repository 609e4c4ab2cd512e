//! Small environments for examples and tests: a chain of positions, words, and graphs on three nodes.

mod chain;
mod triangles;
mod words;

pub use chain::{Chain, Positions};
pub use triangles::Triangles;
pub use words::word_env;
