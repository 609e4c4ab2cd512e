//! Graphs that stand for molecules.

use std::sync::Arc;

use gfn_molecules::MoleculeCodec;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{EnvKind, GraphSpec};
use crate::errors::raised;
use crate::settings::read;

/// What reads graphs as molecules.
#[derive(Clone)]
pub(crate) struct Molecular {
    pub(crate) codec: MoleculeCodec,
    /// The environment's settings, as JSON: what it is made from in another process.
    pub(crate) settings: Arc<str>,
}

impl Molecular {
    /// That of an environment of these settings.
    pub(crate) fn read(settings: &str) -> PyResult<Self> {
        let spec: GraphSpec = read("an environment", settings)?;
        match spec.build().map_err(raised)? {
            EnvKind::Graphs { molecules: Some(molecules), .. } => Ok(molecules),
            _ => Err(PyValueError::new_err(format!("{settings}: expected an environment of molecules"))),
        }
    }
}
