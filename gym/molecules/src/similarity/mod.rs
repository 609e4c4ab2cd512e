//! How alike molecules are: fingerprints, scaffolds, and what sets of molecules look like.

mod diversity;
mod fingerprint;
mod scaffold;
mod sets;

pub(crate) use diversity::check_ranked;
pub use diversity::{diverse_top_k, internal_diversity, n_modes};
pub use fingerprint::Fingerprint;
pub use sets::{KnownMolecules, uniqueness};
