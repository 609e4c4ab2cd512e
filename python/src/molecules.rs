//! Graphs that stand for molecules: atoms and bonds, or fragments that are joined.

use std::sync::Arc;

use gfn::env::Reward;
use gfn::graph::{GraphState, GraphStates};
use gfn::{Error, Result};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward};
use gfn_molecules::{Molecule, MoleculeCodec, MoleculeReward, MoleculeScore};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::env::{EnvKind, GraphSpec};
use crate::errors::raised;
use crate::settings::read;

/// How graphs are read as molecules.
#[derive(Clone)]
pub(crate) struct Reading {
    how: How,
    /// The environment's settings, as JSON: what it is made from again in another process.
    pub(crate) settings: Arc<str>,
}

/// What the nodes of the graphs are.
#[derive(Clone)]
pub(crate) enum How {
    Atoms(MoleculeCodec),
    Fragments(FragmentLibrary),
}

impl Reading {
    /// That of an environment of these settings.
    pub(crate) fn of(settings: &GraphSpec, how: How) -> Result<Self> {
        let settings = serde_json::to_string(settings).map_err(|error| Error::external("settings", error))?;
        Ok(Self { how, settings: settings.into() })
    }

    /// The same, of settings as JSON.
    pub(crate) fn read(settings: &str) -> PyResult<Self> {
        let spec: GraphSpec = read("an environment", settings)?;
        match spec.build().map_err(raised)? {
            EnvKind::Graphs { reading: Some(reading), .. } => Ok(reading),
            _ => Err(PyValueError::new_err(format!("{settings}: expected an environment of molecules"))),
        }
    }

    /// The molecule that a graph is.
    pub(crate) fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        match &self.how {
            How::Atoms(codec) => codec.molecule(graph),
            How::Fragments(library) => library.molecule(graph),
        }
    }

    /// The graph of a molecule.
    pub(crate) fn graph(&self, molecule: &Molecule) -> Result<GraphState> {
        match &self.how {
            How::Atoms(codec) => codec.graph(molecule),
            How::Fragments(_) => {
                let expected = "Graphs of fragments: a molecule may be several trees of them";
                Err(Error::config("objects", molecule.smiles(), expected))
            }
        }
    }

    /// A score of molecules as a reward of graphs.
    pub(crate) fn reward(&self, score: impl MoleculeScore + 'static) -> Box<dyn Reward<GraphStates>> {
        match &self.how {
            How::Atoms(codec) => Box::new(MoleculeReward::new(codec, score)),
            How::Fragments(library) => Box::new(FragmentReward::new(library, score)),
        }
    }
}
