//! expected: closure is expected to take 2 arguments, but it takes 1 argument
//! expected: to implement `gfn::env::Reward<GraphStates>`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because its reward is a function of one graph without `PerGraph`.
use gfn::prelude::*;

fn main() -> gfn::Result<()> {
    let env =
        GraphEnv::free(ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)), GraphState::undirected(4))?;
    Experiment::new(env, |graph: &GraphState| graph.n_edges() as f64).train()?;
    Ok(())
}
