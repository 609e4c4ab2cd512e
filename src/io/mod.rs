//! Files of named tensors: a folder with one file of safetensors and one manifest, checked before use and replaced as a whole.
//! Checkpoints and data sets are written and read through here.

mod checksum;
mod layout;
pub(crate) mod replace;
mod tensors;

pub(crate) use checksum::{Hash, digest, parse};
pub(crate) use layout::{FolderKind, file_error};
pub(crate) use tensors::{Named, deserialise, malformed, serialise};
pub use tensors::{TensorKind, TensorSpec};
