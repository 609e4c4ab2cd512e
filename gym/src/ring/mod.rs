//! Rings: fixed labelled nodes, edges added one at a time, a reward for a Hamiltonian ring.

mod env;
mod reward;

pub use env::Ring;
pub use reward::RingReward;
