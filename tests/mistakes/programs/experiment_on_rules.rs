//! expected: an experiment can't build a policy for `HyperGrid`
//! expected: `.env()`, `VectorEnv::new` or `GraphEnv::new`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because it gives an experiment the rules of a grid instead of their environment.
use gfn::prelude::*;
use gfn_gym::hypergrid::HyperGrid;

fn main() -> gfn::Result<()> {
    let env = HyperGrid::new(2, 8)?;
    Experiment::new(env, PerVector(|row: &[u16]| f64::from(row[0]))).train()?;
    Ok(())
}
