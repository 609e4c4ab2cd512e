//! Environments and codecs for building molecules atom by atom.

mod codec;
mod config;
mod env;
mod scaffold;
mod signs;

pub use codec::MoleculeCodec;
pub use config::MoleculeConfig;
pub use env::MoleculeEnv;
