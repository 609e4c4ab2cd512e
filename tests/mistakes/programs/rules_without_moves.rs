//! expected: missing: `n_moves`, `apply`
//!
//! The text after `expected:` is a part of the compiler's error message. This program must not compile,
//! because its rules lack two functions that the trait requires.
use gfn::env::{VectorEnv, VectorRules};

struct Steps;

impl VectorRules for Steps {
    fn width(&self) -> usize {
        2
    }
    fn n_values(&self) -> usize {
        2
    }
}

fn main() {
    let _ = VectorEnv::new(Steps);
}
