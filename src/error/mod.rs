//! Errors, as one typed enum. Each message says what was wrong, what was expected, and what to do.

mod checks;
mod constructors;
mod warning;

pub(crate) use checks::{check_finite, check_len, check_positive, check_setting};
pub use warning::Warning;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::direction::Direction;

/// The result of an operation of this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the library.
///
/// Bad input is an `Error`; a broken invariant of the library itself is a `debug_assert!`. `Debug` prints the same
/// text as `Display`, because a program prints the `Debug` text of an error that its `main` returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A state without a legal action, in which an action had to be chosen.
    #[error("state {row} has no legal {direction} action: {}", no_way_on(*direction))]
    NoLegalAction {
        /// The row of the batch.
        row: usize,
        /// The requested direction.
        direction: Direction,
    },
    /// An action from outside that isn't legal in its state.
    #[error(
        "action {slot} is not legal ({direction}) in state {row}, which has {n_slots} slots of which {n_legal} are \
         legal: {detail}"
    )]
    IllegalAction {
        /// The row of the batch.
        row: usize,
        /// The direction of the action.
        direction: Direction,
        /// The slot of the action.
        slot: usize,
        /// The number of slots of that state.
        n_slots: usize,
        /// The number of legal slots of that state.
        n_legal: usize,
        /// A description of the action.
        detail: String,
    },
    /// A step of a continuous environment that can't be taken in its state, or that has no density under the policy.
    #[error("no such step ({direction}) can be taken in state {row}: {detail}")]
    IllegalStep {
        /// The row of the batch.
        row: usize,
        /// The direction of the step.
        direction: Direction,
        /// The state, the step, and the reason.
        detail: String,
    },
    /// A tensor or slice of the wrong shape, typically a network's output.
    #[error("{what} has shape {got:?}, expected {expected:?}: {remedy}")]
    Shape {
        /// The name of the tensor or list.
        what: String,
        /// The expected shape.
        expected: Vec<i64>,
        /// The actual shape.
        got: Vec<i64>,
        /// The remedy.
        remedy: &'static str,
    },
    /// A number that is NaN or infinite, but must be finite.
    #[error("{what} is {value} at row {row}: {remedy}")]
    NonFinite {
        /// The name of the number.
        what: &'static str,
        /// The row of the number: a trajectory, a state or a parameter.
        row: usize,
        /// The number itself: NaN or an infinity.
        value: f64,
        /// The remedy.
        remedy: &'static str,
    },
    /// A gradient with a NaN or an infinity. The optimiser has changed nothing.
    #[error(
        "the gradient of parameter `{parameter}` has norm {value}: no parameter was updated; look for a NaN or an \
         infinity in the loss or in what the network is given, lower the learning rate, or clip with `max_norm`"
    )]
    NonFiniteGradient {
        /// The first parameter whose gradient isn't finite.
        parameter: String,
        /// The norm of the gradient.
        value: f64,
    },
    /// A gradient whose square overflows the optimiser's second moment. The optimiser has changed nothing.
    #[error(
        "the gradient of parameter `{parameter}` has an element of size {largest:e}, whose square is beyond f32: no \
         parameter was updated; lower the learning rate ({lr}), clip with `max_norm`, choose a loss that grows more \
         slowly (`RegressionLoss`), or train in f64"
    )]
    GradientOverflow {
        /// The first parameter whose gradient is too large.
        parameter: String,
        /// The largest absolute value in the gradient.
        largest: f64,
        /// The learning rate of the parameter.
        lr: f64,
    },
    /// An index beyond the end of a container.
    #[error("index {index} is out of range for the {len} elements of a container: give indices below {len}")]
    OutOfRange {
        /// The index.
        index: usize,
        /// The number of elements.
        len: usize,
    },
    /// An invalid setting.
    #[error("{setting} is {got}, expected {expected}")]
    Config {
        /// The name of the setting.
        setting: &'static str,
        /// The value.
        got: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A roll-out that didn't end within its step limit.
    #[error(
        "a {direction} roll-out did not end within {limit} steps ({live} of {n} trajectories are unfinished): \
         raise the sampler's step limit, or check that the environment always lets a trajectory end"
    )]
    StepLimit {
        /// The direction of the roll-out.
        direction: Direction,
        /// The limit.
        limit: usize,
        /// The number of trajectories that didn't end.
        live: usize,
        /// The number of all trajectories.
        n: usize,
    },
    /// A missing requirement: an objective without an estimator, a draw from an empty buffer.
    #[error("{needed_by} needs {missing}: {remedy}")]
    Missing {
        /// The part that needs it, such as an objective.
        needed_by: &'static str,
        /// The missing thing.
        missing: &'static str,
        /// The setting or the call that provides it.
        remedy: &'static str,
    },
    /// A graph whose automorphisms or canonical form weren't found within the limit of the search.
    #[error(
        "the automorphisms of a graph of {n_nodes} nodes and {n_edges} edges were not found within the limit of the \
         search: keep graphs smaller or nodes more different; in training, give the environment a count of its own \
         (`log_automorphisms`) or no correction (`corrects_symmetry`)"
    )]
    SymmetryLimit {
        /// The number of nodes.
        n_nodes: usize,
        /// The number of edges.
        n_edges: usize,
    },
    /// More states than the limit of an exact computation.
    #[error(
        "the state space has more than {limit} states: exact metrics hold all of them in memory; \
         raise the limit, make the problem smaller, or use the pruned or sampled metrics"
    )]
    TooManyStates {
        /// The limit.
        limit: usize,
    },
    /// A broken contract of an environment, an action type or a policy, found by a check.
    #[error("contract broken: {check}: {detail}")]
    Contract {
        /// The contract.
        check: &'static str,
        /// The details of the violation.
        detail: String,
    },
    /// A file that can't be used.
    #[error("{}: {problem}: {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A line of text that isn't in the requested format.
    #[error("line {line}: {problem}; expected {expected}")]
    Parse {
        /// The line, counted from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
        /// The text that the format requires.
        expected: &'static str,
    },
    /// A requested device that can't be used.
    #[error("device {device} can't be used: {reason}: {remedy}")]
    Device {
        /// The device.
        device: String,
        /// The reason.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A failure to read or write.
    #[error("{}: {source}: {}", path.display(), io_remedy(path, source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another replica of the run, which can't be reached any more.
    #[error("{who}: {problem}: {remedy}")]
    Peer {
        /// The replica, as far as it is known.
        who: String,
        /// The problem with the replica.
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A failure of external code that the library called: a reward in another language, a process, a service.
    #[error("{who}: {source}")]
    External {
        /// The name of the code.
        who: &'static str,
        /// The error of the code.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An error of libtorch at a boundary (a user's network, a loaded file).
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    /// A warning that ends a run ([`OnWarning::Fail`](crate::run::OnWarning::Fail)). The step was made.
    #[error("{0}")]
    Warned(Warning),
    /// A picture that can't be drawn.
    #[error("drawing {}: {problem}", path.display())]
    Draw {
        /// The picture.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the remedy for an error of the file system.
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

/// Returns the explanation of a state without a legal action, and the remedy.
fn no_way_on(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => {
            "the rules leave an unfinished state without any move and without the exit: allow one of both there, or \
             forbid the moves that lead there (`contract::check_env` names the state)"
        }
        Direction::Backward => {
            "every state that backward moves lead to needs a way back to the initial one, or P_B loses what it gives \
             to it; `contract::check_env` (of graphs `contract::check_graph_env`) follows every way back and names \
             the move to be left out"
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
