//! Tasks on graphs: training on problems of input graphs, on rings of labelled nodes, and on growth up to
//! isomorphism; solving a problem with the policy of a checkpoint; and measurements of the speed and of a
//! device.

pub(crate) mod devices;
pub(crate) mod graph_problem;
pub(crate) mod growth;
mod held_out;
pub(crate) mod ring;
pub(crate) mod solve;
pub(crate) mod speed;
