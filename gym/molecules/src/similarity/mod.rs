//! Similarity of molecules: fingerprints, scaffolds, and statistics of sets of molecules.

mod diversity;
mod fingerprint;
mod scaffold;
mod sets;

pub(crate) use diversity::check_ranked;
pub use diversity::{diverse_top_k, internal_diversity, n_modes};
pub use fingerprint::Fingerprint;
pub use sets::{KnownMolecules, uniqueness};
