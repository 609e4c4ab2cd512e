//! Scores of molecules from their properties, and rankings of molecules as tables, files and pictures.

use std::path::PathBuf;

use gfn::Error;
use gfn_molecules::{FactoredScore, Molecule, MoleculeScore, Ranked, ScoreConfig};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::inside::Inside;
use crate::molecules::{lines, warn};
use crate::settings::Settings;
use crate::states::Array;

/// Builds one of the library's scores, from its name or from the settings of its factors.
pub(crate) fn molecule_score(settings: serde_json::Value) -> gfn::Result<FactoredScore> {
    if let Some(name) = settings.as_str() {
        let unknown = || Error::config("score", name, "one of the names of `MoleculeReward`");
        return ScoreConfig::from_name(name).ok_or_else(unknown)?.build();
    }
    let config = serde_path_to_error::deserialize::<_, ScoreConfig>(settings);
    config
        .map_err(|error| {
            Error::config(
                "factors of a score",
                error,
                "factors as the documentation of `MoleculeScore` describes them",
            )
        })?
        .build()
}

/// Converts SMILES, or molecules of RDKit, to molecules of the library.
fn molecules(objects: &Bound<'_, PyAny>) -> PyResult<Vec<Molecule>> {
    let read = |(row, line): (usize, String)| {
        let smiles = line.split_whitespace().next().unwrap_or_default();
        Molecule::from_smiles(smiles)
            .map_err(|error| PyValueError::new_err(format!("row {row} of molecules, {line:?}: {error}")))
    };
    lines(objects, "molecules")?.into_iter().enumerate().map(read).collect()
}

/// Returns the library's canonical SMILES of each molecule. Without `stereo`, marks of stereochemistry are
/// left out.
#[pyfunction]
pub(crate) fn canonical_smiles(molecules: &Bound<'_, PyAny>, stereo: bool) -> PyResult<Vec<String>> {
    let write = |molecule: Molecule| {
        if stereo { molecule.smiles() } else { molecule.without_stereo().smiles() }
    };
    Ok(self::molecules(molecules)?.into_iter().map(write).collect())
}

/// The class that `gfn_rs.MoleculeScore` wraps: a score that is a product of factors.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Score(FactoredScore);

#[pymethods]
impl Score {
    #[new]
    fn new(settings: Settings<serde_json::Value>) -> Outcome<Self> {
        Ok(Self(molecule_score(settings.0)?))
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn properties(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>) -> Outcome<Vec<Array<f64>>> {
        let molecules = self::molecules(molecules)?;
        let _inside = Inside::enter(py)?;
        let rows = py.detach(|| self.0.properties(&molecules))?;
        let column = |k: usize| Array(rows.iter().map(|row| row[k]).collect());
        Ok((0..self.0.names().len()).map(column).collect())
    }

    fn log_scores(&self, py: Python<'_>, molecules: &Bound<'_, PyAny>) -> Outcome<Array<f64>> {
        let molecules = self::molecules(molecules)?;
        let _inside = Inside::enter(py)?;
        Ok(Array(py.detach(|| self.0.log_scores(&molecules))?))
    }
}

/// The class that `gfn_rs.Ranking` wraps: distinct molecules, best first.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Ranking(gfn_molecules::Ranking);

#[pymethods]
impl Ranking {
    #[new]
    fn new(
        molecules: &Bound<'_, PyAny>,
        log_scores: PyReadonlyArray1<'_, f64>,
        columns: Vec<(String, PyReadonlyArray1<'_, f64>)>,
    ) -> Outcome<Self> {
        let molecules = self::molecules(molecules)?;
        let ranking = gfn_molecules::Ranking::new(&molecules, &log_scores.as_array().to_vec())?;
        // A ranking lists each molecule once, with the values that `columns` has for the molecule's first
        // occurrence in `molecules`.
        let mut rows = std::collections::BTreeMap::new();
        for (row, molecule) in molecules.iter().enumerate() {
            rows.entry(molecule.key()).or_insert(row);
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let row = |molecule: &Molecule| {
            let row = rows.get(&molecule.key()).copied().unwrap_or_default();
            columns.iter().filter_map(|(_, values)| values.as_array().get(row).copied()).collect()
        };
        Ok(Self(ranking.with_columns(&names, |entries| Ok(entries.iter().map(row).collect()))?))
    }

    fn best(&self, k: usize) -> Self {
        Self(self.0.best(k))
    }

    fn diverse(&self, k: usize, similarity: f64) -> Outcome<Self> {
        Ok(Self(self.0.diverse(k, similarity)?))
    }

    fn best_per_scaffold(&self, per_scaffold: usize) -> Self {
        Self(self.0.best_per_scaffold(per_scaffold))
    }

    fn __len__(&self) -> usize {
        self.0.entries().len()
    }

    fn smiles(&self) -> Vec<String> {
        self.0.entries().iter().map(|entry| entry.molecule.smiles()).collect()
    }

    fn log_scores(&self) -> Array<f64> {
        self.column(|entry| entry.log_score)
    }

    /// Returns the name and the values of each column besides the SMILES and the log-score.
    fn columns(&self) -> Vec<(String, Array<f64>)> {
        let names = self.0.columns().iter().cloned().enumerate();
        names.map(|(k, name)| (name, self.column(|entry| entry.values[k]))).collect()
    }

    fn csv(&self) -> String {
        self.0.csv()
    }

    fn sdf(&self) -> Outcome<String> {
        Ok(self.0.sdf().map_err(Error::from)?)
    }

    fn svg(&self, title: &str, shown: usize) -> Outcome<String> {
        Ok(self.0.sheet(title, shown).to_svg()?)
    }

    fn html(&self, shown: usize) -> Outcome<String> {
        Ok(self.0.html(shown)?)
    }

    fn write(&self, py: Python<'_>, folder: PathBuf, title: &str, shown: usize) -> Outcome<()> {
        let left_out = self.0.write(folder, title, shown)?;
        match left_out {
            None => Ok(()),
            Some((n, first)) => Ok(warn(
                py,
                &format!("{n} of {} molecules were left out of the SD file: {first}", self.__len__()),
            )?),
        }
    }
}

impl Ranking {
    fn column(&self, of: impl Fn(&Ranked) -> f64) -> Array<f64> {
        Array(self.0.entries().iter().map(of).collect())
    }
}
