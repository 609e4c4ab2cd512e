//! Sequences of tokens of fixed or variable length, written from left to right, with a table of rewards from
//! a file.
//!
//! TFBind8 is [`TokenSequence::tf_bind_8`] with [`Alphabet::dna`] and the data set's table, which isn't part
//! of this package. The DNA sequences of TFBind8 have length 8 and come from Trabucco et al., *Design-Bench*,
//! 2022; Jain et al. 2022 use them for GFlowNets.

mod alphabet;
mod env;
mod reward;

pub use alphabet::Alphabet;
pub use env::{TokenSequence, filled};
pub use reward::TableReward;

pub use crate::tensors::SequenceTensors;
