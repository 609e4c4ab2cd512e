//! expected: missing: `n_moves`, `apply`
use gfn::env::{VectorEnv, VectorRules};

struct Steps;

impl VectorRules for Steps {
    fn width(&self) -> usize {
        2
    }
}

fn main() {
    let _ = VectorEnv::new(Steps);
}
