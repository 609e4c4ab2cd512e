//! Molecules: atoms and bonds, aromaticity, stereochemistry, symmetries, and SMILES.

mod aromaticity;
mod element;
mod error;
mod hybridization;
mod kekule;
mod model;
mod placements;
mod rings;
mod smiles;
mod stereo;
mod valence;

pub(crate) use aromaticity::in_three_ring;
pub use element::Element;
pub use error::{MoleculeError, NotRead};
pub use hybridization::Hybridization;
pub use model::{Atom, AtomSpec, Bond, BondOrder, Molecule};
pub(crate) use model::{ranks, ring_edges, signed, with_count};
pub(crate) use rings::{small_rings_span, smallest_rings};
pub use smiles::LeftOut;
pub(crate) use smiles::TextTree;
pub(crate) use stereo::{MarkNode, is_odd};
pub use stereo::{StereoElement, StereoMark};
pub use valence::ValenceTable;
