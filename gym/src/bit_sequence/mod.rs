//! Sequences of bits, built word by word, with a reward that is higher the closer a sequence is to one of
//! several modes (Malkin et al., *Trajectory Balance*, 2022; the non-autoregressive variant of Tiapkin et
//! al., 2024).
//!
//! | environment | a move | states |
//! |---|---|---|
//! | [`BitSequence`] | append a word | a tree: P_B is 1 |
//! | [`PrependAppendBitSequence`] | append or prepend a word | the same states, most with two parents |
//! | [`NonAutoregressiveBitSequence`] | set any position to a word | partly filled sequences |
//!
//! All three environments end without an exit action: the last word ends the trajectory. They share the
//! reward [`HammingReward`].

mod env;
mod modes;
mod reward;
mod words;

pub use env::{BitSequence, NonAutoregressiveBitSequence, PrependAppendBitSequence};
pub use modes::{motif_tilings, noisy_modes, standard_motifs};
pub use reward::HammingReward;
pub use words::Words;
