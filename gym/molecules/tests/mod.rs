//! Tests of the package `gfn-molecules`.

#[cfg(feature = "descriptors")]
mod druglike;
mod external_scorer;
mod fragment_data;
mod fragment_forms;
mod fragment_library;
mod fragment_trees;
mod fragments;
mod hybridization;
mod molecule_drawing;
mod molecule_env;
mod molecule_files;
mod molecule_forms;
mod molecule_isomers;
mod molecule_proxy;
mod molecule_reading;
mod molecule_scaffold;
mod molecule_scores;
mod molecule_smiles;
mod molecule_spellings;
mod molecule_stereo;
mod molecule_tables;
mod qm9str;
mod ring_sizes;
mod score_sums;
mod seh;
