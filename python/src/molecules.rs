//! Graphs that stand for molecules: atoms and bonds, or fragments that are joined.

use std::sync::Arc;

use gfn::env::Reward;
use gfn::graph::{GraphSchema, GraphState, GraphStates};
use gfn::{Error, Result};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward};
use gfn_molecules::{LeftOut, Molecule, MoleculeCodec, MoleculeReward, MoleculeScore, ValenceTable};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::env::{EnvKind, GraphSpec};
use crate::errors::raised;
use crate::settings::read;

/// What stands for what in the graphs, by name: classes of nodes, values of their attributes, the same of edges.
pub(crate) type Encoding = (Vec<String>, Vec<Vec<String>>, Vec<String>, Vec<Vec<String>>);

/// Rows that are named in an error.
const NAMED: usize = 3;

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

    /// What stands for what in the graphs, which are of this schema.
    pub(crate) fn encoding(&self, schema: &GraphSchema) -> Encoding {
        let edges = vec!["bond".to_owned()];
        match &self.how {
            How::Atoms(codec) => {
                let charges = codec
                    .charges()
                    .iter()
                    .map(|charge| if *charge == 0 { "0".to_owned() } else { format!("{charge:+}") })
                    .collect::<Vec<_>>();
                let valences = (0..=codec.config().extra_valences).map(|more| more.to_string()).collect();
                let of_nodes = [charges, valences].into_iter().filter(|names: &Vec<String>| names.len() > 1);
                let orders = |most: &u8| {
                    ["single", "double", "triple", "aromatic"]
                        .iter()
                        .take(1 + usize::from(*most))
                        .map(ToString::to_string)
                        .collect()
                };
                (codec.class_names(), of_nodes.collect(), edges, schema.edge_attributes.iter().map(orders).collect())
            }
            How::Fragments(library) => {
                let fragments = library.fragments().iter().map(|fragment| fragment.smiles().to_owned());
                let stems =
                    |most: &u8| (0..=*most).map(|stem| if stem == 0 { "unset".to_owned() } else { stem.to_string() });
                let of_edges = schema.edge_attributes.iter().map(|most| stems(most).collect());
                (fragments.collect(), Vec::new(), edges, of_edges.collect())
            }
        }
    }

    /// The molecule that a graph is.
    pub(crate) fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        match &self.how {
            How::Atoms(codec) => codec.molecule(graph),
            How::Fragments(library) => library.molecule(graph),
        }
    }

    /// The SMILES of a graph; none of the start, which has no atoms.
    pub(crate) fn smiles(&self, graph: &GraphState) -> Result<String> {
        if graph.n_nodes() == 0 { Ok(String::new()) } else { Ok(self.molecule(graph)?.smiles()) }
    }

    /// The graph of what a line says: a SMILES, and whatever stands behind a blank; and what was left out.
    pub(crate) fn read_line(&self, line: &str) -> Result<(GraphState, LeftOut)> {
        let smiles = line.split_whitespace().next().unwrap_or_default();
        let (molecule, mut left_out) = Molecule::read_noting(&ValenceTable::default(), smiles)?;
        left_out.stereo += molecule.marks().len();
        Ok((self.graph(&molecule.without_stereo())?, left_out))
    }

    /// The number of fragments of its library that were read without their stereochemistry, and the first.
    fn without_stereo(&self) -> Option<(usize, String)> {
        let How::Fragments(library) = &self.how else { return None };
        let mut flat = library.fragments().iter().filter(|fragment| fragment.left_out().stereo > 0);
        let first = flat.next()?.smiles().to_owned();
        Some((1 + flat.count(), first))
    }

    /// Says so in a warning of Python's.
    pub(crate) fn warn_of_fragments(&self, py: Python<'_>) -> PyResult<()> {
        self.without_stereo().map_or(Ok(()), |(n, first)| warn_of_stereo(py, n, &format!("the fragment {first:?}")))
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

/// SMILES, each with a name behind it perhaps, or molecules of RDKit, as text.
pub(crate) fn lines(given: &Bound<'_, PyAny>, who: &str) -> PyResult<Vec<String>> {
    let wrong = |what: String| {
        PyTypeError::new_err(format!("{who} {what}: expected Graphs, or a list of SMILES or of molecules of RDKit"))
    };
    if given.is_instance_of::<PyString>() {
        return Err(wrong("is a str".into()));
    }
    let Ok(rows) = given.try_iter() else { return Err(wrong(format!("is a {}", given.get_type().name()?))) };
    let line = |(row, each): (usize, PyResult<Bound<'_, PyAny>>)| {
        let each = each?;
        if let Ok(text) = each.extract::<String>() {
            return Ok(text);
        }
        let kind = each.get_type();
        if !kind.module()?.to_string().starts_with("rdkit") || !kind.name()?.to_string().contains("Mol") {
            return Err(wrong(format!("has a {} in row {row}", kind.name()?)));
        }
        let text: String = given.py().import("rdkit.Chem")?.call_method1("MolToSmiles", (each,))?.extract()?;
        Ok(text)
    };
    rows.enumerate().map(line).collect()
}

/// What each line is read as, or why it isn't.
pub(crate) fn read_lines(reading: &Reading, lines: &[String]) -> Vec<Result<(GraphState, LeftOut)>> {
    lines.iter().map(|line| reading.read_line(line)).collect()
}

/// The graphs of lines, with a warning of stereochemistry that they lose; an error names the first of the rows that aren't read.
pub(crate) fn graphs_of(py: Python<'_>, reading: &Reading, lines: &[String], who: &str) -> PyResult<Vec<GraphState>> {
    let (mut graphs, mut wrong, mut flat) = (Vec::with_capacity(lines.len()), Vec::new(), Vec::new());
    for (row, read) in read_lines(reading, lines).into_iter().enumerate() {
        match read {
            Ok((graph, left_out)) => {
                graphs.push(graph);
                flat.extend((left_out.stereo > 0).then_some(row));
            }
            Err(error) => wrong.push(format!("row {row}, {:?}: {error}", lines[row])),
        }
    }
    if !wrong.is_empty() {
        let (n, of, first) = (wrong.len(), lines.len(), wrong[..wrong.len().min(NAMED)].join("; "));
        let more = if n > NAMED { format!("; and {} rows more", n - NAMED) } else { String::new() };
        return Err(PyValueError::new_err(format!(
            "{n} of {of} rows of {who} can't be taken (`accepts` of the environment says which): {first}{more}"
        )));
    }
    if let Some(&first) = flat.first() {
        warn_of_stereo(py, flat.len(), &format!("row {first} of {who}, {:?}", lines[first]))?;
    }
    Ok(graphs)
}

fn warn_of_stereo(py: Python<'_>, n: usize, first: &str) -> PyResult<()> {
    let what = if n == 1 { "it".to_owned() } else { format!("it and {} others", n - 1) };
    let text = format!("{first}: {what} lost marks of stereochemistry when read; stereoisomers are one molecule here");
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(text)?, 2)
}
