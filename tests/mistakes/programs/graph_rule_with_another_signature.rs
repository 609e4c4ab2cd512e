//! expected: expected signature `fn(&Sparse, &GraphState, &mut MoveMask<'_>)`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because its function `restrict` gets the mask of moves by a shared reference, not by a mutable one.
use gfn::graph::{GraphRules, GraphState, MoveMask};

struct Sparse;

impl GraphRules for Sparse {
    fn restrict(&self, graph: &GraphState, moves: &MoveMask<'_>) {
        drop((graph, moves));
    }
}

fn main() {}
