//! Mistakes made while a model is built, which doesn't stop at them.

use tch::{Device, Kind};

use super::unusable;
use crate::Error;

/// The first mistake made while building.
#[derive(Clone, Debug)]
pub(in crate::nn) enum Mistake {
    Duplicate(String),
    Shape(String, Vec<i64>),
    Memory(String, Vec<i64>),
    Kind(Kind),
    Device(Device),
    Noise(f64),
}

impl From<Mistake> for Error {
    fn from(mistake: Mistake) -> Self {
        match mistake {
            Mistake::Duplicate(name) => Self::Config {
                setting: "a parameter's name",
                got: format!("`{name}`, which another parameter has"),
                expected: "names that differ: build each layer in a scope of its own (`scope.sub(\"name\")`)",
            },
            Mistake::Shape(name, shape) => Self::Config {
                setting: "a parameter's shape",
                got: format!("{shape:?} for `{name}`"),
                expected: "sizes of at least 1",
            },
            Mistake::Memory(name, shape) => Self::Config {
                setting: "a parameter's shape",
                got: format!("{shape:?} for `{name}`"),
                expected: "one whose numbers there is memory for",
            },
            Mistake::Kind(kind) => Self::Config {
                setting: "the kind of the parameters",
                got: format!("{kind:?}"),
                expected: "`Kind::Float` or `Kind::Double`",
            },
            Mistake::Device(device) => unusable(device),
            Mistake::Noise(sigma) => Self::Config {
                setting: "the noise of a perceptron's weights",
                got: sigma.to_string(),
                expected: "a finite amplitude of at least 0",
            },
        }
    }
}
