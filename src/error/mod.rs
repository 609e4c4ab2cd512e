//! What can go wrong, as one typed enum: each message says what was wrong, what was expected, and what to do.

mod checks;
mod constructors;
mod warning;

pub(crate) use checks::{check_finite, check_len, check_positive, check_setting};
pub use warning::Warning;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::direction::Direction;

/// The result of anything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong at run time.
///
/// Bad input is an `Error`; a broken invariant of the library itself is a `debug_assert!`. `Debug` writes what `Display` does: that is what a
/// program prints whose `main` returns an error.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A state from which no action is legal was met where one had to be chosen.
    #[error("state {row} has no legal {direction} action: {}", no_way_on(*direction))]
    NoLegalAction {
        /// The row of the batch.
        row: usize,
        /// The direction asked for.
        direction: Direction,
    },
    /// An action that the state doesn't permit was given from outside.
    #[error(
        "action {slot} is not legal ({direction}) in state {row}, which has {n_slots} slots of which {n_legal} are legal: {detail}"
    )]
    IllegalAction {
        /// The row of the batch.
        row: usize,
        /// The direction of the action.
        direction: Direction,
        /// The slot that was asked for.
        slot: usize,
        /// The number of slots of that state.
        n_slots: usize,
        /// The number of them that are legal.
        n_legal: usize,
        /// The step that the action would have been.
        detail: String,
    },
    /// A step of a continuous environment that can't be taken where it was to be, or that the policy gives no density to.
    #[error("no such step ({direction}) can be taken in state {row}: {detail}")]
    IllegalStep {
        /// The row of the batch.
        row: usize,
        /// The direction of the step.
        direction: Direction,
        /// State and step, and why not.
        detail: String,
    },
    /// A tensor or slice of the wrong shape, typically a network's output.
    #[error("{what} has shape {got:?}, expected {expected:?}: {remedy}")]
    Shape {
        /// The thing that was looked at.
        what: String,
        /// The shape that it must have.
        expected: Vec<i64>,
        /// The shape that it has.
        got: Vec<i64>,
        /// The remedy.
        remedy: &'static str,
    },
    /// A NaN or an infinity where a finite number is needed.
    #[error("{what} is {value} at row {row}: {remedy}")]
    NonFinite {
        /// The thing that was looked at.
        what: &'static str,
        /// The row (trajectory, state or parameter) that it was found at.
        row: usize,
        /// The value.
        value: f64,
        /// The remedy.
        remedy: &'static str,
    },
    /// A gradient with a NaN or an infinity: the optimiser has changed nothing.
    #[error(
        "the gradient of parameter `{parameter}` has norm {value}: no parameter was updated; \
         look for a NaN or an infinity in the loss or in what the network is given, lower the learning rate, or clip with `max_norm`"
    )]
    NonFiniteGradient {
        /// The first parameter, in the order of the store, whose gradient isn't finite.
        parameter: String,
        /// The norm of its gradient.
        value: f64,
    },
    /// A gradient whose square is beyond what the optimiser's second moment can hold: the optimiser has changed nothing.
    #[error(
        "the gradient of parameter `{parameter}` has an element of size {largest:e}, whose square is beyond f32: no parameter was \
         updated; lower the learning rate ({lr}), clip with `max_norm`, choose a loss that grows more slowly (`RegressionLoss`), or \
         train in f64"
    )]
    GradientOverflow {
        /// The first parameter, in the order of the store, whose gradient is too large.
        parameter: String,
        /// The largest absolute value in its gradient.
        largest: f64,
        /// Its learning rate.
        lr: f64,
    },
    /// An index behind the end of a container.
    #[error("index {index} is out of range for the {len} elements of a container: give indices below {len}")]
    OutOfRange {
        /// The index.
        index: usize,
        /// The number of elements.
        len: usize,
    },
    /// A setting that makes no sense.
    #[error("{setting} is {got}, expected {expected}")]
    Config {
        /// The setting's name.
        setting: &'static str,
        /// The value that was given.
        got: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// A roll-out that didn't end within its step limit.
    #[error(
        "a {direction} roll-out did not end within {limit} steps ({live} of {n} trajectories still going): \
         raise the sampler's step limit, or check that the environment always lets a trajectory end"
    )]
    StepLimit {
        /// The direction of the roll-out.
        direction: Direction,
        /// The limit.
        limit: usize,
        /// Trajectories that had not ended.
        live: usize,
        /// Trajectories in all.
        n: usize,
    },
    /// Something was asked for without what it takes: an objective without an estimator, a draw from an empty buffer.
    #[error("{needed_by} needs {missing}: {remedy}")]
    Missing {
        /// The part that needs it: an objective, or another thing that was asked for.
        needed_by: &'static str,
        /// The thing that is missing.
        missing: &'static str,
        /// The setting or the call that gives it.
        remedy: &'static str,
    },
    /// A graph whose automorphisms, or canonical form, weren't found within the limit of the search.
    #[error(
        "the automorphisms of a graph of {n_nodes} nodes and {n_edges} edges were not found within the limit of the search: \
         keep graphs smaller or nodes more different; in training, give the environment a count of its own \
         (`log_automorphisms`) or no correction (`corrects_symmetry`)"
    )]
    SymmetryLimit {
        /// The number of nodes.
        n_nodes: usize,
        /// The number of edges.
        n_edges: usize,
    },
    /// More states than an exact computation was told to hold.
    #[error(
        "the state space has more than {limit} states: exact metrics hold all of them in memory; \
         raise the limit, make the problem smaller, or use the pruned or sampled metrics"
    )]
    TooManyStates {
        /// The limit.
        limit: usize,
    },
    /// A contract that an author of an environment, action type or policy must keep, and that a check found broken.
    #[error("contract broken: {check}: {detail}")]
    Contract {
        /// The contract.
        check: &'static str,
        /// Where it broke.
        detail: String,
    },
    /// A file that can't be used, with the reason.
    #[error("{}: {problem}: {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The mistake in it.
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A line of text that isn't in the format that was asked for.
    #[error("line {line}: {problem}; expected {expected}")]
    Parse {
        /// The line, counted from 1.
        line: usize,
        /// The mistake.
        problem: String,
        /// The text that the format asks for.
        expected: &'static str,
    },
    /// The device asked for can't be used.
    #[error("device {device} can't be used: {reason}: {remedy}")]
    Device {
        /// The device.
        device: String,
        /// Why not.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Reading or writing failed.
    #[error("{}: {source}: {}", path.display(), io_remedy(path, source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another replica of the run can't be reached any more.
    #[error("{who}: {problem}: {remedy}")]
    Peer {
        /// The member, as far as it is known.
        who: String,
        /// The news of it.
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// Code of somebody else's, that the library called, failed: a reward in another language, a process, a service.
    #[error("{who}: {source}")]
    External {
        /// The code's owner.
        who: &'static str,
        /// Its words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// libtorch refused an operation at a boundary (a user's network, a loaded file).
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    /// A sign that training goes wrong, for a trainer that was told to fail by it ([`OnWarning::Fail`](crate::run::OnWarning::Fail)); the
    /// step was made.
    #[error("{0}")]
    Warned(Warning),
    /// A picture couldn't be drawn.
    #[error("drawing {}: {problem}", path.display())]
    Draw {
        /// The picture.
        path: PathBuf,
        /// The mistake.
        problem: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns what to do about an error of the file system.
fn io_remedy(path: &Path, source: &io::Error) -> String {
    let missing = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let remedy = match (source.kind(), missing) {
        (io::ErrorKind::NotFound, Some(folder)) => {
            return format!("the folder {} doesn't exist: check the path, or create the folder", folder.display());
        }
        (io::ErrorKind::NotFound, None) => "check the path",
        (io::ErrorKind::PermissionDenied, _) => "change its permissions, or give another path",
        (io::ErrorKind::IsADirectory, _) => "give the path of a file",
        (io::ErrorKind::StorageFull, _) => "free some space, or give another path",
        (io::ErrorKind::InvalidData, _) => "give a file whose text is UTF-8",
        _ => "check that the path can be read or written, or give another one",
    };
    remedy.to_owned()
}

fn no_way_on(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => {
            "the rules leave an unfinished state without any move and without the exit: allow one of both there, or forbid the moves \
             that lead there (`contract::check_env` names the state)"
        }
        Direction::Backward => {
            "every state that backward moves lead to needs a way back to the initial one, or P_B loses what it gives to it; \
             `contract::check_env` (of graphs `contract::check_graph_env`) follows every way back and names the move to be left out"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `main` prints of an error that it returns.
    #[test]
    fn the_debug_form_has_the_advice() {
        let error = Error::TooManyStates { limit: 1000 };
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(format!("{error:?}").contains("raise the limit"));
    }
}
