//! Graphs that stand for molecules: atoms and bonds, or fragments that are joined.

use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::{Error, Result};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward};
use gfn_molecules::{Molecule, MoleculeCodec, MoleculeReward, MoleculeScore};

/// How graphs are read as molecules.
#[derive(Clone)]
pub(crate) enum Reading {
    Atoms(MoleculeCodec),
    Fragments(FragmentLibrary),
}

impl Reading {
    /// The molecule that a graph is.
    pub(crate) fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        match self {
            Self::Atoms(codec) => codec.molecule(graph),
            Self::Fragments(library) => library.molecule(graph),
        }
    }

    /// The graph of a molecule.
    pub(crate) fn graph(&self, molecule: &Molecule) -> Result<GraphState> {
        match self {
            Self::Atoms(codec) => codec.graph(molecule),
            Self::Fragments(_) => {
                let expected = "Graphs of fragments: a molecule may be several trees of them";
                Err(Error::config("objects", molecule.smiles(), expected))
            }
        }
    }

    /// A score of molecules as a reward of graphs.
    pub(crate) fn reward(&self, score: impl MoleculeScore + 'static) -> Box<dyn Reward<GraphStates>> {
        match self {
            Self::Atoms(codec) => Box::new(MoleculeReward::new(codec, score)),
            Self::Fragments(library) => Box::new(FragmentReward::new(library, score)),
        }
    }
}
