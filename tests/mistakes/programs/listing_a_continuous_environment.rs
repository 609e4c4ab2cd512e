//! expected: can't be listed
use gfn::Result;
use gfn::env::StateGraph;
use gfn_gym::line::Line;

fn main() -> Result<()> {
    let env = Line::new(3)?;
    StateGraph::build(&env, 100)?;
    Ok(())
}
