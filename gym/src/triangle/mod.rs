//! Triangles: free growth to at most three coloured nodes, a reward for a triangle.

mod env;
mod reward;

pub use env::Triangle;
pub use reward::TriangleReward;
