//! expected: is not a reward of `GraphStates`
//! expected: `PerGraph(|graph: &GraphState| ..)`
//! expected: pass the reward by value, not by reference
//! expected: a closure with all types written out
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because it lends its reward, which an experiment must own.
use gfn::prelude::*;

fn main() -> gfn::Result<()> {
    let env =
        GraphEnv::free(ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)), GraphState::undirected(4))?;
    Experiment::new(env, &PerGraph(|graph: &GraphState| graph.n_edges() as f64)).train()?;
    Ok(())
}
