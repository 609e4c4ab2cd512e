//! Reading of molecules from files: streams of SMILES and SD files, and a report on changed molecules and
//! skipped lines.

mod cleanup;
mod neutral;
mod reader;
mod report;
mod sd;
mod table;

pub use cleanup::{Cleaned, Cleanup};
pub use reader::{MoleculeFormat, MoleculeReader};
pub use report::{ReadReport, SkipReason, Skipped, SkippedLine};
