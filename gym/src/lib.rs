//! gym
