//! Tasks on graphs: problems on input graphs, rings on labelled nodes, growth up to isomorphism, solutions
//! and samples of a checkpoint, speed, and devices.

pub(crate) mod devices;
pub(crate) mod graph_problem;
pub(crate) mod growth;
mod held_out;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod solve;
pub(crate) mod speed;
