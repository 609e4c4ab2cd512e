//! Vectors of small integers: grids, bits, spins, strings; and methods of training that are compared on them.

pub(crate) mod compare_objectives;
pub(crate) mod hypergrid;
pub(crate) mod offline;
pub(crate) mod peaks;
pub(crate) mod spins;
pub(crate) mod strings;
