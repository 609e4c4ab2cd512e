//! Searches and Markov chains over structures, which need no policy: baselines for a trained policy, and data
//! to train it on.

mod extensions;
mod greedy;
mod order;
mod order_samples;
mod parent_table;

pub use extensions::{log_linear_extensions, order_weights};
pub use greedy::greedy_search;
pub use order::OrderChain;
pub use order_samples::OrderSamples;
