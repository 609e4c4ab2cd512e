//! Phylogenetic trees by parsimony (Zhou et al., *PhyloGFN*, ICLR 2024): rooted trees over species, built by
//! joining trees from the leaves up.

mod env;
mod newick;
mod reward;

pub use env::PhyloTree;
pub use reward::ParsimonyReward;
