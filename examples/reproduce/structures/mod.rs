//! Tasks on structures of Bayesian networks.

pub(crate) mod bayesian_structure;
mod edges;
mod findings;
mod methods;
mod page;
pub(crate) mod problem;
