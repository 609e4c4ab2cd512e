//! Vectors of small integers: grids, bits, spins; and means of training that are compared on them.

pub(crate) mod bit_sequence;
pub(crate) mod compare_objectives;
pub(crate) mod conditional_hypergrid;
pub(crate) mod discrete_ebm;
pub(crate) mod exploration;
pub(crate) mod hypergrid;
pub(crate) mod ising;
pub(crate) mod local_search;
pub(crate) mod offline;
