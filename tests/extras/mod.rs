//! Tests of the package `gfn-extras` through its public interface.

mod conditioned_reward;
mod conditioning;
mod distributions;
mod front;
mod hypervolume;
mod indicators;
mod transport;
