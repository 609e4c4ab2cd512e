//! Building molecules atom by atom.

mod codec;
mod config;
mod env;
mod scaffold;
mod signs;
mod small_rings;

pub use codec::MoleculeCodec;
pub use config::MoleculeConfig;
pub use env::MoleculeEnv;
pub(super) use small_rings::Basis;
