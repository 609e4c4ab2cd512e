//! All tests of molecules in one program: linked once, not once per file. `cargo test --test main NAME::` runs those of one file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[cfg(feature = "descriptors")]
mod druglike;
#[path = "../../tests/enumeration/mod.rs"]
mod enumeration;
mod external_scorer;
mod fragment_data;
mod fragment_library;
mod fragment_trees;
mod fragments;
mod molecule_drawing;
mod molecule_env;
mod molecule_files;
mod molecule_isomers;
mod molecule_proxy;
mod molecule_reading;
mod molecule_scaffold;
mod molecule_scores;
mod molecule_spellings;
mod molecule_stereo;
mod molecule_tables;
mod molecules;
mod qm9str;
mod seh;
