//! expected: expected signature `fn(&Sparse, &GraphState, &mut MoveMask<'_>)`
use gfn::graph::{GraphRules, GraphState, MoveMask};

struct Sparse;

impl GraphRules for Sparse {
    fn restrict(&self, graph: &GraphState, moves: &MoveMask<'_>) {
        drop((graph, moves));
    }
}

fn main() {}
