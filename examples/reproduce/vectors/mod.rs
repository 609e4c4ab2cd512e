//! Vectors of small integers: grids, bits, spins, strings; and means of training that are compared on them.

mod chains;
pub(crate) mod compare_objectives;
pub(crate) mod conditional_hypergrid;
pub(crate) mod exploration;
pub(crate) mod hypergrid;
pub(crate) mod offline;
pub(crate) mod peaks;
pub(crate) mod spins;
pub(crate) mod strings;
