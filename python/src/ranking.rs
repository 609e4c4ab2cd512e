//! Scores of molecules by their properties, and the best molecules as tables, files and pictures.

use std::path::PathBuf;

use gfn::Error;
use gfn_molecules::{FactoredScore, Molecule, MoleculeScore, Ranked, ScoreConfig};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raised;
use crate::inside::Inside;
use crate::molecules::lines;
use crate::settings::read;

type Numbers<'py> = Bound<'py, PyArray1<f64>>;

/// A score of the library's: one by its name, or factors.
pub(crate) fn molecule_score(settings: serde_json::Value) -> gfn::Result<FactoredScore> {
    if let Some(name) = settings.as_str() {
        let unknown = || Error::config("score", name, "one of the names of `MoleculeReward`");
        return ScoreConfig::named(name).ok_or_else(unknown)?.build();
    }
    let config = serde_path_to_error::deserialize::<_, ScoreConfig>(settings);
    config.map_err(|error| Error::config("factors of a score", error, "those of `MoleculeScore`"))?.build()
}

/// The molecules of SMILES, or of molecules of RDKit.
fn molecules(objects: &Bound<'_, PyAny>) -> PyResult<Vec<Molecule>> {
    let read = |(row, line): (usize, String)| {
        let smiles = line.split_whitespace().next().unwrap_or_default();
        Molecule::from_smiles(smiles)
            .map_err(|error| PyValueError::new_err(format!("row {row} of molecules, {line:?}: {error}")))
    };
    lines(objects, "molecules")?.into_iter().enumerate().map(read).collect()
}

/// A score that factors make.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Score(FactoredScore);

#[pymethods]
impl Score {
    #[new]
    fn new(settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        molecule_score(read("MoleculeScore", settings)?).map(Self).map_err(raised)
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn properties<'py>(&self, py: Python<'py>, molecules: &Bound<'_, PyAny>) -> PyResult<Vec<Numbers<'py>>> {
        let molecules = self::molecules(molecules)?;
        let _inside = Inside::enter(py)?;
        let rows = py.detach(|| self.0.properties(&molecules)).map_err(raised)?;
        let column = |k: usize| rows.iter().map(|row| row[k]).collect::<Vec<_>>().into_pyarray(py);
        Ok((0..self.0.names().len()).map(column).collect())
    }

    fn log_scores<'py>(&self, py: Python<'py>, molecules: &Bound<'_, PyAny>) -> PyResult<Numbers<'py>> {
        let molecules = self::molecules(molecules)?;
        let _inside = Inside::enter(py)?;
        Ok(py.detach(|| self.0.log_scores(&molecules)).map_err(raised)?.into_pyarray(py))
    }
}

/// Different molecules, the best first.
#[pyclass(frozen, module = "gfn_rs._gfn")]
pub(crate) struct Ranking(gfn_molecules::Ranking);

#[pymethods]
impl Ranking {
    #[new]
    fn new(
        molecules: &Bound<'_, PyAny>,
        log_scores: PyReadonlyArray1<'_, f64>,
        columns: Vec<(String, PyReadonlyArray1<'_, f64>)>,
    ) -> PyResult<Self> {
        let molecules = self::molecules(molecules)?;
        let log_scores = log_scores.as_array().to_vec();
        let mut ranking = gfn_molecules::Ranking::new(&molecules, &log_scores).map_err(raised)?;
        // A ranking has each molecule once: the columns are those of its first row.
        let mut rows = std::collections::BTreeMap::new();
        for (row, molecule) in molecules.iter().enumerate() {
            rows.entry(molecule.key()).or_insert(row);
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let row = |molecule: &Molecule| {
            let row = rows.get(&molecule.key()).copied().unwrap_or_default();
            columns.iter().filter_map(|(_, values)| values.as_array().get(row).copied()).collect()
        };
        ranking = ranking.with_columns(&names, |entries| Ok(entries.iter().map(row).collect())).map_err(raised)?;
        Ok(Self(ranking))
    }

    fn best(&self, k: usize) -> Self {
        Self(self.0.best(k))
    }

    fn diverse(&self, k: usize, similarity: f64) -> PyResult<Self> {
        self.0.diverse(k, similarity).map(Self).map_err(raised)
    }

    fn of_scaffolds(&self, per_scaffold: usize) -> Self {
        Self(self.0.of_scaffolds(per_scaffold))
    }

    fn __len__(&self) -> usize {
        self.0.entries().len()
    }

    fn smiles(&self) -> Vec<String> {
        self.0.entries().iter().map(|entry| entry.molecule.smiles()).collect()
    }

    fn log_scores<'py>(&self, py: Python<'py>) -> Numbers<'py> {
        self.column(py, |entry| entry.log_score)
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (k, name) in self.0.columns().iter().enumerate() {
            out.set_item(name, self.column(py, |entry| entry.values[k]))?;
        }
        Ok(out)
    }

    fn csv(&self) -> String {
        self.0.csv()
    }

    fn sdf(&self) -> PyResult<String> {
        self.0.sdf().map_err(|error| raised(error.into()))
    }

    fn svg(&self, title: &str, shown: usize) -> PyResult<String> {
        self.0.sheet(title, shown).to_svg().map_err(raised)
    }

    fn html(&self, shown: usize) -> PyResult<String> {
        self.0.html(shown).map_err(raised)
    }

    fn write(&self, py: Python<'_>, folder: PathBuf, title: &str, shown: usize) -> PyResult<()> {
        let left_out = self.0.write(folder, title, shown).map_err(raised)?;
        left_out.map_or(Ok(()), |(n, first)| {
            let text = format!("{n} of {} molecules aren't in the SD file: {first}", self.__len__());
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(text)?, 2)
        })
    }
}

impl Ranking {
    fn column<'py>(&self, py: Python<'py>, of: impl Fn(&Ranked) -> f64) -> Numbers<'py> {
        self.0.entries().iter().map(of).collect::<Vec<_>>().into_pyarray(py)
    }
}
