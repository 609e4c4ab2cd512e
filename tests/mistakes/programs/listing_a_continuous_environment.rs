//! expected: can't be listed
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because it lists the states of a continuous environment.
use gfn::Result;
use gfn::env::StateGraph;
use gfn_gym::line::Line;

fn main() -> Result<()> {
    let env = Line::new(3)?;
    StateGraph::build(&env, 100)?;
    Ok(())
}
