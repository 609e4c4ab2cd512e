//! Tests of the package `gfn-extras` through its public interface.

mod chain_source;
mod chain_transitions;
mod chains;
mod conditioned_reward;
mod conditioning;
mod distributions;
mod front;
mod hypervolume;
mod indicators;
mod transport;
