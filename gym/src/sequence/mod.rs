//! Sequences of tokens, written from left to right: fixed and variable length, with a table of rewards from a
//! file.
//!
//! TFBind8 (the DNA sequences of length 8 of Trabucco et al., *Design-Bench*, 2022, as GFlowNets use them:
//! Jain et al. 2022) is [`TokenSequence::tf_bind_8`] with [`Alphabet::dna`] and the data set's table, which
//! isn't shipped here.

mod alphabet;
mod env;
mod reward;

pub use alphabet::Alphabet;
pub use env::{TokenSequence, filled};
pub use reward::TableReward;
