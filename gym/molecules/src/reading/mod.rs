//! Molecules from files: SMILES and SD files as streams, with what was changed and what was skipped, and why.

mod cleanup;
mod neutral;
mod reader;
mod report;
mod sd;
mod table;

pub use cleanup::{Cleaned, Cleanup};
pub use reader::{MoleculeFormat, MoleculeReader};
pub use report::{ReadReport, SkipReason, Skipped, SkippedLine};
