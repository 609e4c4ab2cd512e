//! Runs that are kept: the folder that `--run` writes, several of them side by side, one for each of several seeds.

pub(crate) mod asked;
pub(crate) mod compare;
pub(crate) mod folder;
mod pictures;
mod recorded;
mod spread;
pub(crate) mod sweep;

pub(crate) use asked::Asked;
pub(crate) use folder::RunFolder;
