//! Connected graphs of two-coloured nodes, with three rewards: the basic graph task of recursionpharma/gflownet.

mod cliques;
mod env;
mod reward;

pub use env::ColoredGraphs;
pub use reward::ColoredGraphReward;
