//! Runs that are kept: the folder that `--run` writes, several of them side by side, one for each of several seeds.

pub(crate) mod asked;
pub(crate) mod compare;
pub(crate) mod folder;
mod made;
mod pictures;
mod processes;
mod recorded;
pub(crate) mod replicas_curve;
mod spread;
pub(crate) mod sweep;

pub(crate) use asked::Asked;
pub(crate) use folder::RunFolder;
pub(crate) use made::Made;
pub(crate) use processes::end_with_starter;
pub(crate) use recorded::steps_before;

/// What shells report for a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: i32 = 130;
