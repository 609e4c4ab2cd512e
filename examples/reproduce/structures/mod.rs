//! Tasks on structures of Bayesian networks.

pub(crate) mod bayesian_structure;
mod edges;
pub(crate) mod problem;
