use gfn::Error;

/// A mistake of an external program.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The program can't be started.
    #[error("{command:?} can't be started: {reason}")]
    Start {
        /// The program and its arguments.
        command: Vec<String>,
        /// The system's word.
        reason: String,
    },
    /// The program ended without an answer.
    #[error("the program ended instead of scoring {smiles}: run it by hand on this molecule")]
    Crashed {
        /// The molecule.
        smiles: String,
    },
    /// The program gave no answer in time.
    #[error("the program gave no line for {smiles} within {seconds} s: does it flush each line? Or raise the timeout")]
    TimedOut {
        /// The molecule.
        smiles: String,
        /// The longest wait.
        seconds: f64,
    },
    /// A line that is no number.
    #[error(
        "the program answered {line:?} for {smiles}, where a number was expected: nothing else may go to its standard output"
    )]
    NoNumber {
        /// The molecule.
        smiles: String,
        /// The answer.
        line: String,
    },
    /// NaN or an infinity.
    #[error("the program answered {value} for {smiles}: give every molecule a finite score")]
    NonFinite {
        /// The molecule.
        smiles: String,
        /// The answer.
        value: f64,
    },
    /// A text that isn't one line, so that answers and texts would shift against each other. The program was
    /// given nothing.
    #[error(
        "text {row} ({text:?}) has the character {character:?}: a scorer is given one text per line, without control characters"
    )]
    Control {
        /// The place of the text among those given, from 0.
        row: usize,
        /// The text.
        text: String,
        /// The first character of this kind.
        character: char,
    },
    /// A line that no molecule asked for: answers and molecules may have shifted against each other.
    #[error("the program wrote the line {line:?} that no molecule asked for: one line per molecule, no more")]
    Unasked {
        /// The answer.
        line: String,
    },
}

impl From<ScorerError> for Error {
    fn from(error: ScorerError) -> Self {
        Self::Contract {
            check: "an external scorer answers each SMILES with one finite number on a line of its own",
            detail: error.to_string(),
        }
    }
}
