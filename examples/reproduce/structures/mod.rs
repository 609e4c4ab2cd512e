//! Structures of Bayesian networks.

pub(crate) mod bayesian_structure;
pub(crate) mod dag_from_csv;
