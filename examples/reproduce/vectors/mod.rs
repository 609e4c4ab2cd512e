//! Tasks on vectors of small integers: grids, bits, spins and strings, and comparisons of training methods on
//! them.

pub(crate) mod compare_objectives;
pub(crate) mod hypergrid;
pub(crate) mod offline;
mod peak_reward;
pub(crate) mod peaks;
pub(crate) mod spins;
pub(crate) mod strings;
