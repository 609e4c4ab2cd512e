//! The conversion between graphs and molecules. A graph has atoms and bonds, or fragments that are joined to
//! each other.

use std::sync::Arc;

use gfn::env::Reward;
use gfn::graph::{GraphSchema, GraphState, GraphStates};
use gfn::{Error, Result};
use gfn_molecules::fragments::{FragmentReward, Fragments};
use gfn_molecules::{LeftOut, Molecule, MoleculeCodec, MoleculeReward, MoleculeScore, ValenceTable};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::env::{EnvSpec, Failures};
use crate::errors::Outcome;
use crate::kinds::{ByKind, GraphDetails, Space};
use crate::settings::read;

/// The names of node classes, of values of node attributes, of edge classes and of values of edge attributes.
pub(crate) type Encoding = (Vec<String>, Vec<Vec<String>>, Vec<String>, Vec<Vec<String>>);

/// The largest number of unreadable lines that an error message names.
const NAMED: usize = 3;
/// The largest number of trees of fragments that are listed per molecule, unless the caller asks for more.
const LISTED: usize = 1_000;

/// The conversion between an environment's graphs and molecules.
#[derive(Clone)]
pub(crate) struct Reading {
    codec: MoleculeCodecs,
    /// The environment's settings, from which another process rebuilds this conversion.
    pub(crate) settings: Arc<Value>,
}

/// The conversion of graphs to molecules, for nodes that are atoms or nodes that are fragments.
#[derive(Clone)]
pub(crate) enum MoleculeCodecs {
    Atoms(MoleculeCodec),
    Fragments(Box<Fragments>),
}

impl Reading {
    /// Builds the conversion between graphs and molecules for an environment with these settings.
    pub(crate) fn new(settings: &EnvSpec, codec: MoleculeCodecs) -> Result<Self> {
        let settings = serde_json::to_value(settings).map_err(|error| Error::external("settings", error))?;
        Ok(Self { codec, settings: Arc::new(settings) })
    }

    /// Reads the settings of an environment from Python, and builds the conversion between its graphs and
    /// molecules.
    pub(crate) fn read(settings: &Bound<'_, PyAny>) -> Outcome<Self> {
        let spec: EnvSpec = read("an environment", settings)?;
        match spec.build(None, None, &Failures::default())? {
            ByKind::Graphs(Space { details: GraphDetails::Molecules(reading), .. }) => Ok(reading),
            _ => Err(PyValueError::new_err(format!(
                "the environment is {settings}: expected an environment of molecules, such as Molecules or \
                 Fragments"
            ))
            .into()),
        }
    }

    /// Returns names for the classes of nodes and edges, and for the values of their attributes. `schema`
    /// holds the number of classes, and the largest value of each attribute.
    pub(crate) fn encoding(&self, schema: &GraphSchema) -> Encoding {
        let mut edges = vec!["bond".to_owned()];
        match &self.codec {
            MoleculeCodecs::Atoms(codec) => {
                if codec.config().stereo {
                    edges.extend(["leaves", "arrives at", "is seen from", "is of"].map(str::to_owned));
                }
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
                (
                    codec.class_names(),
                    of_nodes.collect(),
                    edges,
                    schema.edge_attributes.iter().map(orders).collect(),
                )
            }
            MoleculeCodecs::Fragments(env) => {
                let fragments = env.library().fragments().iter().map(|fragment| fragment.smiles().to_owned());
                let stems = |most: &u8| {
                    (0..=*most).map(|stem| if stem == 0 { "unset".to_owned() } else { stem.to_string() })
                };
                let of_edges = schema.edge_attributes.iter().map(|most| stems(most).collect());
                (fragments.collect(), Vec::new(), edges, of_edges.collect())
            }
        }
    }

    /// Returns the molecule that a graph represents.
    pub(crate) fn molecule(&self, graph: &GraphState) -> Result<Molecule> {
        match &self.codec {
            MoleculeCodecs::Atoms(codec) => codec.molecule(graph),
            MoleculeCodecs::Fragments(env) => env.library().molecule(graph),
        }
    }

    /// Returns the SMILES of a graph. The SMILES is an empty text for the initial state, which has no atoms.
    pub(crate) fn smiles(&self, graph: &GraphState) -> Result<String> {
        if graph.n_nodes() == 0 { Ok(String::new()) } else { Ok(self.molecule(graph)?.smiles()) }
    }

    /// Reads a line that begins with a SMILES; any text may follow after a blank. Returns the molecule, and
    /// how many stereo marks and atom-map numbers of the SMILES it lacks.
    fn read_line(&self, line: &str) -> Result<(Molecule, LeftOut)> {
        let smiles = line.split_whitespace().next().unwrap_or_default();
        let (molecule, mut left_out) = Molecule::read_noting(&ValenceTable::default(), smiles)?;
        if matches!(&self.codec, MoleculeCodecs::Atoms(codec) if codec.config().stereo) {
            // An environment with stereochemistry drops only stereo marks that carry no information, for
            // example at an atom that isn't a stereocentre. Such marks don't count as lost.
            return Ok((molecule, LeftOut { stereo: 0, ..left_out }));
        }
        left_out.stereo += molecule.marks().len();
        Ok((molecule.without_stereo(), left_out))
    }

    /// Returns the states that represent a molecule: one graph of atoms, or up to `most` trees of fragments.
    fn states(&self, molecule: &Molecule, most: usize) -> Result<Vec<GraphState>> {
        let refuse = |got: String, expected| {
            Err(Error::config("a molecule", format!("{}, {got}", molecule.smiles()), expected))
        };
        match &self.codec {
            MoleculeCodecs::Atoms(codec) => {
                let graph = codec.graph(molecule)?;
                let isomers = if codec.config().stereo { molecule.n_stereoisomers() } else { Some(1) };
                if isomers == Some(1) {
                    return Ok(vec![graph]);
                }
                let number = isomers.map_or("too many".to_owned(), |n| n.to_string());
                refuse(
                    format!("which is {number} stereoisomers"),
                    "a single stereoisomer: mark all stereocentres and double bonds in the SMILES",
                )
            }
            MoleculeCodecs::Fragments(env) => {
                let mut trees = env.trees(molecule, LISTED.max(most))?;
                trees.truncate(most);
                if !trees.is_empty() {
                    return Ok(trees);
                }
                let got = if env.library().trees(molecule, 1)?.is_empty() {
                    "which isn't a tree of fragments of the library".to_owned()
                } else {
                    format!("of which no tree of at most {} fragments was found", env.max_fragments())
                };
                refuse(got, "a molecule of at most `max_fragments` fragments of the library")
            }
        }
    }

    /// Warns about fragments of the library that were read without their stereochemistry.
    pub(crate) fn warn_of_fragments(&self, py: Python<'_>) -> PyResult<()> {
        let MoleculeCodecs::Fragments(env) = &self.codec else { return Ok(()) };
        let fragments = env.library().fragments().iter();
        let lost = fragments.map(|fragment| (fragment.left_out().stereo > 0).then(|| fragment.smiles()));
        warn_of_stereo(py, lost, |_, smiles| format!("the fragment {smiles:?}"))
    }

    /// Converts a score of molecules to a reward of graphs.
    pub(crate) fn reward(&self, score: impl MoleculeScore + 'static) -> Box<dyn Reward<GraphStates>> {
        match &self.codec {
            MoleculeCodecs::Atoms(codec) => Box::new(MoleculeReward::new(codec, score)),
            MoleculeCodecs::Fragments(env) => Box::new(FragmentReward::new(env.library(), score)),
        }
    }
}

/// Converts SMILES (each may have a name after a blank) or molecules of RDKit to lines of text.
pub(crate) fn lines(molecules: &Bound<'_, PyAny>, who: &str) -> PyResult<Vec<String>> {
    molecules.py().import("gfn_rs._objects")?.call_method1("lines", (molecules, who))?.extract()
}

/// Returns the reason why a line can't be read, for each line; `None` for a line that can be read.
pub(crate) fn refusals(reading: &Reading, lines: &[String]) -> Vec<Option<String>> {
    let read = |line: &String| reading.states(&reading.read_line(line)?.0, 1);
    lines.iter().map(|line| read(line).err().map(|error| error.to_string())).collect()
}

/// Calls `read` for each line. If lines can't be read, the error message names the first of these lines and
/// contains `remedy`.
pub(crate) fn rows_of<T: Send>(
    py: Python<'_>,
    lines: &[String],
    read: impl Fn(&String) -> Result<T> + Sync,
    who: &str,
    remedy: &str,
) -> PyResult<Vec<T>> {
    let mut out = Vec::with_capacity(lines.len());
    let mut wrong = Vec::new();
    for (row, read) in py.detach(|| lines.iter().map(&read).collect::<Vec<_>>()).into_iter().enumerate() {
        match read {
            Ok(read) => out.push(read),
            Err(error) => wrong.push(format!("row {row}, {:?}: {error}", lines[row])),
        }
    }
    if wrong.is_empty() {
        return Ok(out);
    }
    let n = wrong.len();
    let of = lines.len();
    let first = wrong[..wrong.len().min(NAMED)].join("; ");
    let more = if n > NAMED { format!("; and {} more rows", n - NAMED) } else { String::new() };
    Err(PyValueError::new_err(format!("{n} of {of} rows of {who} can't be used ({remedy}): {first}{more}")))
}

/// Returns the states of the molecule in each line. Warns if stereo marks of a molecule are lost in its
/// states. In an environment of atoms, the result has one state per molecule, even if the molecule has
/// several Kekule forms.
pub(crate) fn states_of(
    py: Python<'_>,
    reading: &Reading,
    lines: &[String],
    most: usize,
    who: &str,
) -> PyResult<Vec<Vec<GraphState>>> {
    let read = |line: &String| {
        let (molecule, left_out) = reading.read_line(line)?;
        Ok((reading.states(&molecule, most)?, left_out.stereo > 0))
    };
    let (states, flat): (Vec<_>, Vec<bool>) =
        rows_of(py, lines, read, who, "find them by `accepts` of the environment, and leave them out")?
            .into_iter()
            .unzip();
    warn_of_rows(py, &flat, lines, who)?;
    Ok(states)
}

/// Warns about the lines whose stereo marks were lost, if there are any.
pub(crate) fn warn_of_rows(py: Python<'_>, lost: &[bool], lines: &[String], who: &str) -> PyResult<()> {
    let lost = lost.iter().zip(lines).map(|(lost, line)| lost.then_some(line));
    warn_of_stereo(py, lost, |row, line| format!("row {row} of {who}, {line:?}"))
}

/// Warns about molecules whose stereo marks were lost, if there are any. `name` returns the text by which the
/// warning identifies the first of these molecules.
fn warn_of_stereo<T>(
    py: Python<'_>,
    lost: impl Iterator<Item = Option<T>>,
    name: impl FnOnce(usize, T) -> String,
) -> PyResult<()> {
    let mut lost = lost.enumerate().filter_map(|(row, lost)| Some((row, lost?)));
    let Some((row, first)) = lost.next() else { return Ok(()) };
    let what = match lost.count() {
        0 => "it".to_owned(),
        n => format!("it and {n} others"),
    };
    let marks = "lost marks of stereochemistry, because this reading treats stereoisomers as one molecule";
    warn(py, &format!("{}: {what} {marks}", name(row, first)))
}

/// Issues a `UserWarning` with this text.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &std::ffi::CString::new(text)?, 2)
}

/// Returns the graph of the molecule in each line. Returns an error for environments of fragments.
pub(crate) fn graphs_of(
    py: Python<'_>,
    reading: &Reading,
    lines: &[String],
    who: &str,
) -> PyResult<Vec<GraphState>> {
    if let MoleculeCodecs::Fragments(_) = &reading.codec {
        let expected = "expected Graphs of fragments, because a molecule may have several trees of \
            fragments; convert each molecule by `trees` of the environment";
        return Err(PyValueError::new_err(format!("{who} are SMILES: {expected}")));
    }
    Ok(states_of(py, reading, lines, 1, who)?.into_iter().flatten().collect())
}
