//! Folders of named tensors for checkpoints and data sets. A folder has a safetensors file and a manifest.
//! The contents are checked before use, and a folder is replaced as a whole.

mod checksum;
mod layout;
pub(crate) mod replace;
mod tensors;

pub(crate) use checksum::{Hash, digest, parse};
pub(crate) use layout::{FolderKind, file_error};
pub(crate) use tensors::{NamedTensors, deserialise, malformed, serialise};
pub use tensors::{TensorKind, TensorSpec};
