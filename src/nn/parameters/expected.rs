//! Lists of parameters that accept only the parameters of a checkpoint.

use std::collections::HashMap;

use tch::{Device, Kind};

use super::Parameters;

impl Parameters {
    /// Creates an empty list as [`new`](Self::new) does, in which only parameters with these names and shapes
    /// can be built. Any other parameter takes no memory, and [`check`](Self::check) returns an error. A file
    /// with false sizes therefore can't take all memory of the machine.
    pub(crate) fn with_expected(device: Device, kind: Kind, expected: HashMap<String, Vec<i64>>) -> Self {
        Self { expected: Some(expected), ..Self::new(device, kind) }
    }

    /// Returns the shape that a parameter should have, as text; `None` if it may have this shape.
    pub(super) fn find_difference(&self, name: &str, shape: &[i64]) -> Option<String> {
        match self.expected.as_ref()?.get(name) {
            Some(expected) if expected == shape => None,
            Some(expected) => Some(format!("{expected:?}")),
            None => Some("none".to_owned()),
        }
    }
}
