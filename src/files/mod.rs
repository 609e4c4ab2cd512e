//! Files of named tensors: a folder with one file of safetensors and one manifest, checked before use and replaced as a whole.
//! Checkpoints and data sets are written and read through here.

mod checksum;
mod data;
mod fingerprint;
mod layout;
mod tensors;
mod walk_tensors;

pub(crate) use checksum::{digest, parse};
pub(crate) use data::{Content, DataFile};
pub(crate) use fingerprint::fingerprint;
pub(crate) use layout::{Layout, file_error};
pub(crate) use tensors::{Named, deserialise, malformed, serialise};
pub(crate) use walk_tensors::{read_walks, walk_tensors};
pub use tensors::{TensorKind, TensorSpec};
