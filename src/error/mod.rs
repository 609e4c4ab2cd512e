//! Errors, as one enum. Each message states what was wrong, what was expected, and how to fix the problem.

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
/// Bad input returns an `Error`; invariants of the library itself are checked by `debug_assert!`. `Debug`
/// prints the same text as `Display`, because Rust prints the `Debug` text of an error that `main` returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A state without a legal action, in which an action had to be chosen.
    #[error("state {row} has no legal {direction} action: {}", no_way_on(*direction))]
    NoLegalAction {
        /// The row of the state in its batch.
        row: usize,
        /// The direction in which an action had to be chosen.
        direction: Direction,
    },
    /// An action that isn't legal in its state, given by a caller or a file.
    #[error(
        "action {slot} is not legal ({direction}) in state {row}, which has {n_slots} slots of which \
         {n_legal} are legal: {detail}"
    )]
    IllegalAction {
        /// The row of the state in its batch.
        row: usize,
        /// The direction of the action.
        direction: Direction,
        /// The slot of the action in its state.
        slot: usize,
        /// The number of slots of the state.
        n_slots: usize,
        /// The number of legal slots of the state.
        n_legal: usize,
        /// A description of the action in words.
        detail: String,
    },
    /// A step of a continuous environment that isn't legal in its state, or that has no density under the
    /// policy.
    #[error("the {direction} step is not possible in state {row}: {detail}")]
    IllegalStep {
        /// The row of the state in its batch.
        row: usize,
        /// The direction of the step.
        direction: Direction,
        /// A description of the state and the step, and the reason why the step is refused.
        detail: String,
    },
    /// A tensor or list of the wrong shape, typically a network's output.
    #[error("{what} has shape {got:?}, expected {expected:?}: {remedy}")]
    Shape {
        /// The name of the tensor or list, for the message.
        what: String,
        /// The shape that was expected.
        expected: Vec<i64>,
        /// The shape that was found.
        got: Vec<i64>,
        /// A sentence that says how to fix the shape.
        remedy: &'static str,
    },
    /// A number that is NaN or infinite, but must be finite.
    #[error("{what} is {value} at row {row}{}: {remedy}", in_brackets(object.as_deref()))]
    NonFinite {
        /// The name of the number, for the message.
        what: &'static str,
        /// The index of the trajectory, the state or the parameter to which the number belongs.
        row: usize,
        /// A description of the object to which the number belongs, if it has one.
        object: Option<String>,
        /// The number itself: NaN or an infinity.
        value: f64,
        /// A sentence that says how to avoid such a number.
        remedy: &'static str,
    },
    /// A gradient with a NaN or an infinity. The optimizer hasn't changed any parameter.
    #[error(
        "the gradient of parameter `{parameter}` has norm {value}: no parameter was updated; look for a NaN \
         or an infinity in the loss or in the inputs of the network, lower the learning rate, or clip with \
         `max_norm`"
    )]
    NonFiniteGradient {
        /// The name of the first parameter whose gradient isn't finite.
        parameter: String,
        /// The norm of the gradient.
        value: f64,
    },
    /// A gradient whose square overflows the optimizer's second moment. The optimizer hasn't changed any
    /// parameter.
    #[error(
        "the gradient of parameter `{parameter}` has an element of size {largest:e}, whose square is beyond \
         f32: no parameter was updated; lower the learning rate ({lr}), clip with `max_norm`, choose a loss \
         that grows more slowly (`RegressionLoss`), or train in f64"
    )]
    GradientOverflow {
        /// The name of the first parameter whose gradient is too large.
        parameter: String,
        /// The largest absolute value of an element of the gradient.
        largest: f64,
        /// The learning rate of the parameter.
        lr: f64,
    },
    /// An index beyond the end of a container.
    #[error("index {index} is out of range for the {len} elements of a container: give indices below {len}")]
    OutOfRange {
        /// The index that was given.
        index: usize,
        /// The number of elements of the container.
        len: usize,
    },
    /// A setting with an invalid value.
    #[error("{setting} is {got}, expected {expected}")]
    Config {
        /// The name of the setting.
        setting: &'static str,
        /// The value that was given.
        got: String,
        /// The values that the setting accepts.
        expected: &'static str,
    },
    /// A roll-out that didn't end within its step limit.
    #[error(
        "a {direction} roll-out did not end within {limit} steps ({live} of {n} trajectories are \
         unfinished): raise the sampler's step limit, or check that the environment always lets a trajectory \
         end"
    )]
    StepLimit {
        /// The direction of the roll-out: forward or backward.
        direction: Direction,
        /// The step limit of the roll-out.
        limit: usize,
        /// The number of trajectories that weren't finished at the limit.
        live: usize,
        /// The number of all trajectories of the roll-out.
        n: usize,
    },
    /// A requirement that isn't met, for example if the policy doesn't compute a quantity that the objective
    /// needs, or if a buffer is empty when objects are drawn from it.
    #[error("{needed_by} needs {missing}: {remedy}")]
    Missing {
        /// The part of the program that has the requirement, such as an objective.
        needed_by: &'static str,
        /// The name of the missing part or quantity.
        missing: &'static str,
        /// The setting or the call that provides the missing part.
        remedy: &'static str,
    },
    /// A graph whose automorphisms or canonical form couldn't be found within the work limit of the search.
    #[error(
        "the automorphisms of a graph of {n_nodes} nodes and {n_edges} edges were not found within the limit \
         of the search: keep graphs smaller, or give their nodes more different classes; in training, let \
         the rules compute the number (`log_automorphisms`), or switch the correction off \
         (`corrects_symmetry`)"
    )]
    SymmetryLimit {
        /// The number of nodes of the graph.
        n_nodes: usize,
        /// The number of edges of the graph.
        n_edges: usize,
    },
    /// More states than the limit of an exact computation.
    #[error(
        "the state space has more than {limit} states: exact metrics hold all of them in memory; \
         raise the limit, make the problem smaller, or use the pruned or sampled metrics"
    )]
    TooManyStates {
        /// The maximum number of states.
        limit: usize,
    },
    /// A broken contract of an environment, an action type or a policy, found by a check.
    #[error("contract broken: {check}: {detail}")]
    Contract {
        /// The rule that was broken.
        check: &'static str,
        /// A description of the case in which the rule was broken.
        detail: String,
    },
    /// A file that can't be used.
    #[error("{}: {problem}: {remedy}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The problem with the file.
        problem: String,
        /// A sentence that says how to fix the file or which file to use instead.
        remedy: &'static str,
    },
    /// A line of text that isn't in the requested format.
    #[error("line {line}: {problem}; expected {expected}")]
    Parse {
        /// The number of the line, counted from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
        /// The text that the format requires.
        expected: &'static str,
    },
    /// A requested device, such as a GPU, that can't be used.
    #[error("device {device} can't be used: {reason}: {remedy}")]
    Device {
        /// The name of the device.
        device: String,
        /// The reason why the device can't be used.
        reason: String,
        /// A sentence that says which device to use or how to make this one usable.
        remedy: &'static str,
    },
    /// A failure of the operating system to read or write a file or folder.
    #[error("{}: {source}: {}", path.display(), io_remedy(path, source))]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A failure of the connection to another replica of the run.
    #[error("{who}: {problem}: {remedy}")]
    Peer {
        /// A description of the other replica, such as its number or its address, if it is known.
        who: String,
        /// The reason why the replica can't be reached.
        problem: String,
        /// A sentence that says how to find the cause.
        remedy: &'static str,
    },
    /// A failure of external code that the library called: a reward in another language, a process, a
    /// service.
    #[error("{who}: {source}")]
    External {
        /// The name of the external code.
        who: &'static str,
        /// The error that the external code returned.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An error that libtorch returned for something from outside the library, such as a user's network or a
    /// loaded file.
    #[error("libtorch: {}", without_frames(.0))]
    Torch(#[from] tch::TchError),
    /// A warning that ends a run because warnings are set to fail
    /// ([`OnWarning::Fail`](crate::run::OnWarning::Fail)). The training step that caused the warning was
    /// completed.
    #[error("{0}")]
    Warned(Warning),
    /// A failure of the run with one of several seeds ([`train_seeds`](crate::run::train_seeds)).
    #[error("the run with seed {seed} failed ({n_failed} of {n} seeds failed): {source}")]
    Seed {
        /// The seed; the first one, if several runs failed.
        seed: u64,
        /// The number of runs that failed.
        n_failed: usize,
        /// The number of all runs.
        n: usize,
        /// The error of the run.
        source: Box<Self>,
    },
    /// A picture that can't be drawn.
    #[error("drawing {}: {problem}", path.display())]
    Draw {
        /// The path of the picture.
        path: PathBuf,
        /// The reason why the picture can't be drawn.
        problem: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the description of an object in brackets, with a space before it; nothing without a description.
fn in_brackets(object: Option<&str>) -> String {
    object.map(|object| format!(" ({object})")).unwrap_or_default()
}

/// Returns the message of an error of libtorch without the place in C++ at which it arose.
fn without_frames(error: &tch::TchError) -> String {
    let text = error.to_string();
    let end = ["\nException raised from", "\nframe #0"].iter().filter_map(|start| text.find(start)).min();
    text[..end.unwrap_or(text.len())].trim_end().to_owned()
}

/// Returns the remedy for an error of the operating system about a path.
fn io_remedy(path: &Path, source: &io::Error) -> String {
    let missing = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let remedy = match (source.kind(), missing) {
        (io::ErrorKind::NotFound, Some(folder)) => {
            return format!(
                "the folder {} doesn't exist: check the path, or create the folder",
                folder.display()
            );
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

/// Returns the explanation and the remedy for a state without a legal action.
fn no_way_on(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => {
            "the rules leave an unfinished state without any move and without the exit: allow one of them, \
             or forbid the moves that lead to the state (`contract::check_env` names the state)"
        }
        Direction::Backward => {
            "from every state that backward moves lead to, backward moves must lead on to the initial state; \
             otherwise the probability that P_B gives to the state is lost; `contract::check_env` (for \
             graphs `contract::check_graph_env`) follows all backward moves and names the move that must be \
             left out"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the `Debug` text of an error, which Rust prints if `main` returns the error, is the
    /// error's message and says what to do.
    #[test]
    fn the_debug_form_has_the_advice() {
        let error = Error::TooManyStates { limit: 1000 };
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(format!("{error:?}").contains("raise the limit"));
    }

    /// Checks that an error of libtorch is shown with its reason, but without the frames of C++.
    #[test]
    fn errors_of_libtorch_have_no_frames() {
        let (two, three) = (tch::Tensor::from_slice(&[1.0; 2]), tch::Tensor::from_slice(&[1.0; 3]));
        let raw = two.f_add(&three).unwrap_err();
        assert!(raw.to_string().contains("Exception raised from"), "{raw}");
        let message = Error::from(raw).to_string();
        assert!(message.contains("size of tensor a (2)") && !message.contains("Exception"), "{message}");
    }
}
