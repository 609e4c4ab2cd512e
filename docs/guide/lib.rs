//! The guide to `gfn`, an mdBook in `src`. Nothing is in this package but its chapters: each stands as the documentation of an empty
//! module, so that `cargo test --doc -p gfn-guide` compiles and runs every Rust block.

#[cfg(doctest)]
mod chapters {
    #[doc = include_str!("src/introduction.md")]
    mod introduction {}
    #[doc = include_str!("src/concepts.md")]
    mod concepts {}
    #[doc = include_str!("src/first_environment.md")]
    mod first_environment {}
    #[doc = include_str!("src/action_type.md")]
    mod action_type {}
    #[doc = include_str!("src/symmetry.md")]
    mod symmetry {}
    #[doc = include_str!("src/instances.md")]
    mod instances {}
    #[doc = include_str!("src/reward.md")]
    mod reward {}
    #[doc = include_str!("src/network.md")]
    mod network {}
    #[doc = include_str!("src/objective.md")]
    mod objective {}
}
