use gfn::Error;

/// An error in the communication with an external program.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The program can't be started.
    #[error("{command:?} can't be started: {reason}")]
    Start {
        /// The program and its arguments.
        command: Vec<String>,
        /// The operating system's error message.
        reason: String,
    },
    /// The program ended without writing a score.
    #[error("the program ended instead of scoring {smiles}: run the program by hand on this molecule")]
    Crashed {
        /// The SMILES of the first molecule without a score.
        smiles: String,
    },
    /// The program wrote no line before the timeout.
    #[error(
        "the program gave no line for {smiles} within {seconds} s: let the program flush each line, or raise \
         the timeout"
    )]
    TimedOut {
        /// The SMILES of the molecule that was to be scored.
        smiles: String,
        /// The timeout in seconds.
        seconds: f64,
    },
    /// The program wrote a line that isn't a number.
    #[error(
        "the program answered {line:?} for {smiles}, but a number was expected: let it write nothing else to \
         its standard output"
    )]
    NoNumber {
        /// The SMILES of the molecule that was to be scored.
        smiles: String,
        /// The line that the program wrote.
        line: String,
    },
    /// The program wrote NaN or an infinity.
    #[error("the program answered {value} for {smiles}: give every molecule a finite score")]
    NonFinite {
        /// The SMILES of the molecule that was to be scored.
        smiles: String,
        /// The number that the program wrote.
        value: f64,
    },
    /// A text has a line break or another control character. The program could read it as several texts,
    /// and the answers to all later texts would be shifted. Nothing was sent to the program.
    #[error(
        "text {row} ({text:?}) has the character {character:?}: give texts without control characters, \
         because a scorer reads one text per line"
    )]
    Control {
        /// The index of the text in the list that was passed.
        row: usize,
        /// The text that has the control character.
        text: String,
        /// The first control character of the text.
        character: char,
    },
    /// The program wrote more lines than there were molecules, so scores may have been assigned to the
    /// wrong molecules.
    #[error(
        "the program wrote the line {line:?} without a molecule to score: let it write exactly one line per \
         molecule"
    )]
    Unasked {
        /// The superfluous line.
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
