//! The settings of environments, and the functions that build environments from settings.

use gfn::graph::{GraphKind, GraphState, Scaffold, Semantics};
use gfn::{Error, Result};
use gfn_dags::{BayesianStructure, StructureConfig};
use gfn_gym::bit_sequence::{BitSequence, NonAutoregressiveBitSequence, PrependAppendBitSequence};
use gfn_gym::diffusion::{DiffusionSampling, Process, ProcessKind};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem};
use gfn_gym::{
    boxes, colored_graphs, discrete_ebm, hypergrid, line, perfect_tree, phylo_tree, ring, sequence,
};
use gfn_gym::{set_addition, toy_dag, triangle};
use gfn_molecules::fragments::{Fragment, FragmentError, FragmentLibrary, Fragments};
use gfn_molecules::{BondOrder, Element, MoleculeConfig, MoleculeEnv};
use serde::{Deserialize, Serialize};

use super::batch_env::BatchEnvSettings;
use super::declared::GraphDeclaration;
use super::declared_vectors::VectorDeclaration;
use super::rules::Failures;
use super::tensor_env::TensorEnvSettings;
use crate::kinds::{AnySpace, ByKind, GraphDetails, NamedStructures, Space};
use crate::molecules::{MoleculeCodecs, Reading};
use crate::references::Object;

/// The settings of each environment. The variants have the names of the Python classes.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) enum EnvSpec {
    Ring { n_nodes: usize, directed: bool },
    Triangle { colors: u16, directed: bool },
    ColoredGraphs { max_nodes: usize },
    GraphBuilding(BuildingSpec),
    GraphProblem { problem: Problem, for_size: bool },
    GraphEnv(GraphDeclaration),
    Molecules(MoleculeSpec),
    Fragments(FragmentSpec),
    BayesianStructure { structures: StructureConfig, names: Option<Vec<String>> },
    HyperGrid { ndim: usize, height: usize },
    BitSequence { word_size: usize, seq_size: usize },
    PrependAppendBitSequence { word_size: usize, seq_size: usize },
    NonAutoregressiveBitSequence { word_size: usize, seq_size: usize },
    TokenSequence { n_tokens: usize, length: usize, min_length: Option<usize> },
    DiscreteEbm { n: usize },
    SetAddition { n_items: usize, max_items: usize, fixed_length: bool },
    PerfectBinaryTree { depth: usize },
    PhyloTree { n: usize },
    ToyDag {},
    VectorEnv(VectorDeclaration),
    Env(BatchEnvSettings),
    TensorEnv(TensorEnvSettings),
    Box { ndim: usize, delta: f64, polar: bool },
    Line { n_steps: usize },
    Diffusion { dim: usize, steps: usize, sigma: f64, process: ProcessKind },
}

fn kind(directed: bool) -> GraphKind {
    if directed { GraphKind::Directed } else { GraphKind::Undirected }
}

impl EnvSpec {
    /// Builds the environment. The Python rules of a `GraphEnv` are added later. Here only their presence
    /// matters: it decides which checks of the declaration are made.
    pub(crate) fn build(
        &self,
        rules: Option<Object>,
        initial: Option<&[GraphState]>,
        failures: &Failures,
    ) -> Result<AnySpace> {
        let env = match self {
            Self::Ring { n_nodes, directed } => ring::Ring::new(*n_nodes, kind(*directed))?.into_env(),
            Self::Triangle { colors, directed } => {
                triangle::Triangle::new(kind(*directed), *colors)?.into_env()
            }
            Self::ColoredGraphs { max_nodes } => colored_graphs::ColoredGraphs::new(*max_nodes)?.into_env(),
            Self::GraphBuilding(spec) => GraphBuilding::new(spec.config())?.into_env(),
            Self::GraphEnv(declaration) => declaration.build(rules.is_some(), initial)?,
            Self::GraphProblem { problem, for_size } => {
                let graphs = Instances::new(initial.unwrap_or_default().to_vec())?;
                let make = if *for_size { GraphProblem::for_size } else { GraphProblem::new };
                let env = make(*problem, &graphs)?.into_env();
                return Ok(Space::graphs(env, GraphDetails::Problem(*problem)));
            }
            Self::Molecules(spec) => {
                let env = MoleculeEnv::new(spec.config()?)?;
                let reading = Reading::new(self, MoleculeCodecs::Atoms(env.codec().clone()))?;
                return Ok(Space::graphs(env.into_env(), GraphDetails::Molecules(reading)));
            }
            Self::Fragments(spec) => {
                let env = spec.build()?;
                let reading = Reading::new(self, MoleculeCodecs::Fragments(Box::new(env.clone())))?;
                return Ok(Space::graphs(env.into_env(), GraphDetails::Molecules(reading)));
            }
            Self::BayesianStructure { structures, names } => {
                let structures = BayesianStructure::new(structures.clone())?;
                let env = structures.env().clone();
                let named = NamedStructures { structures, names: names.clone() };
                return Ok(Space::graphs(env, GraphDetails::Structures(Box::new(named))));
            }
            Self::Box { ndim, delta, polar: false } => {
                return Ok(unit_box(boxes::BoxEnv::cartesian(*ndim, *delta)?));
            }
            Self::Box { ndim: 2, delta, polar: true } => return Ok(unit_box(boxes::BoxEnv::polar(*delta)?)),
            Self::Box { ndim, polar: true, .. } => {
                return Err(Error::config("ndim of a polar box", ndim, "2"));
            }
            Self::Line { n_steps } => return Ok(ByKind::Line(Space::points(line::Line::new(*n_steps)?, 2))),
            Self::Diffusion { dim, steps, sigma, process } => {
                let process = Process::new(*process, *sigma, *steps)?;
                return Ok(Space::diffusion(DiffusionSampling::new(*dim, process)?));
            }
            Self::VectorEnv(declaration) => return Ok(ByKind::Vectors(declaration.build(rules, failures)?)),
            Self::Env(settings) => return Ok(ByKind::Vectors(settings.build(rules, failures)?)),
            Self::TensorEnv(settings) => return Ok(ByKind::Vectors(settings.build(rules, failures)?)),
            vectors => return vectors.build_vectors(),
        };
        Ok(Space::graphs(env, GraphDetails::Plain))
    }

    fn build_vectors(&self) -> Result<AnySpace> {
        let env = match *self {
            Self::HyperGrid { ndim, height } => hypergrid::HyperGrid::new(ndim, height)?.env(),
            Self::BitSequence { word_size: size, seq_size: n } => BitSequence::new(size, n)?.env(),
            Self::PrependAppendBitSequence { word_size: size, seq_size: n } => {
                PrependAppendBitSequence::new(size, n)?.env()
            }
            Self::NonAutoregressiveBitSequence { word_size: size, seq_size: n } => {
                NonAutoregressiveBitSequence::new(size, n)?.env()
            }
            Self::TokenSequence { n_tokens, length, min_length } => {
                token_sequence(n_tokens, length, min_length)?.env()
            }
            Self::DiscreteEbm { n } => discrete_ebm::DiscreteEbm::new(n)?.env(),
            Self::SetAddition { n_items, max_items, fixed_length } => {
                set_addition::SetAddition::new(n_items, max_items, fixed_length)?.env()
            }
            Self::PerfectBinaryTree { depth } => perfect_tree::PerfectBinaryTree::new(depth)?.env(),
            Self::PhyloTree { n } => phylo_tree::PhyloTree::new(n)?.env(),
            _ => toy_dag::ToyDag.env(),
        };
        let mut space = Space::vectors(env);
        space.details.is_sequence = matches!(self, Self::BitSequence { .. } | Self::TokenSequence { .. });
        space.details.spec = Some(self.clone());
        Ok(ByKind::Vectors(space))
    }
}

fn unit_box(env: boxes::BoxEnv) -> AnySpace {
    let width = env.ndim();
    ByKind::Box(Space::points(env, width))
}

/// Returns an environment of token sequences whose lengths are from `min_length` to `length`.
pub(crate) fn token_sequence(
    n_tokens: usize,
    length: usize,
    min_length: Option<usize>,
) -> Result<sequence::TokenSequence> {
    match min_length {
        None => sequence::TokenSequence::fixed(n_tokens, length),
        Some(least) => sequence::TokenSequence::variable(n_tokens, least, length),
    }
}

/// The settings of `GraphBuilding`.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildingSpec {
    max_nodes: usize,
    directed: bool,
    max_edges: Option<usize>,
    min_nodes: usize,
    node_classes: u16,
    edge_classes: u16,
    node_attributes: Vec<u8>,
    edge_attributes: Vec<u8>,
    attached: bool,
    labelled: bool,
    corrects_symmetry: bool,
}

impl BuildingSpec {
    fn config(&self) -> GraphBuildingConfig {
        let of = self.clone();
        GraphBuildingConfig {
            max_edges: of.max_edges,
            min_nodes: of.min_nodes,
            node_classes: of.node_classes,
            edge_classes: of.edge_classes,
            node_attributes: of.node_attributes,
            edge_attributes: of.edge_attributes,
            growth: if of.attached { Growth::Attached } else { Growth::Free },
            semantics: if of.labelled { Semantics::Labelled } else { Semantics::UpToIsomorphism },
            corrects_symmetry: of.corrects_symmetry,
            ..GraphBuildingConfig::new(kind(of.directed), of.max_nodes)
        }
    }
}

/// The settings of `Fragments`.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct FragmentSpec {
    max_fragments: usize,
    /// The text of the file of fragments. The text is stored instead of the path, because the file may have
    /// changed when an environment is rebuilt from these settings.
    library: Option<String>,
}

impl FragmentSpec {
    fn build(&self) -> Result<Fragments> {
        let library = match &self.library {
            None => FragmentLibrary::standard()?,
            Some(text) => FragmentLibrary::parse(text)?,
        };
        Fragments::new(&library, self.max_fragments)
    }
}

/// The settings of `Molecules`.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoleculeSpec {
    max_atoms: usize,
    elements: Option<Vec<String>>,
    charges: bool,
    extra_valences: u8,
    max_bond_order: u8,
    max_rings: Option<usize>,
    max_ring_size: Option<usize>,
    corrects_symmetry: bool,
    /// A SMILES in which `*` marks the attachment points, unless `attachments` lists them as atom numbers.
    scaffold: Option<String>,
    attachments: Option<Vec<usize>>,
    #[serde(default)]
    told_apart: bool,
    #[serde(default)]
    stereo: bool,
}

impl MoleculeSpec {
    fn config(&self) -> Result<MoleculeConfig> {
        let mut config = MoleculeConfig {
            extra_valences: self.extra_valences,
            max_order: match self.max_bond_order {
                1 => BondOrder::Single,
                2 => BondOrder::Double,
                3 => BondOrder::Triple,
                other => return Err(Error::config("max_bond_order", other, "1, 2 or 3")),
            },
            max_rings: self.max_rings,
            max_ring_size: self.max_ring_size,
            stereo: self.stereo,
            corrects_symmetry: self.corrects_symmetry,
            scaffold: self.scaffold()?,
            scaffold_atoms: if self.told_apart { Scaffold::ToldApart } else { Scaffold::Alike },
            ..MoleculeConfig::new(self.max_atoms)
        };
        if let Some(symbols) = &self.elements {
            config.elements = symbols.iter().map(|symbol| element(symbol)).collect::<Result<_>>()?;
            let listed = config.elements.clone();
            config.charges.retain(|(element, _)| listed.contains(element));
        }
        if !self.charges {
            config.charges.clear();
        }
        Ok(config)
    }

    fn scaffold(&self) -> Result<Option<Fragment>> {
        match (&self.scaffold, &self.attachments) {
            (None, None) if self.told_apart => {
                Err(Error::config("told_apart", "True", "False if there is no scaffold"))
            }
            (None, None) => Ok(None),
            (Some(smiles), None) => match Fragment::from_marked(smiles) {
                Err(FragmentError::NoStem { smiles }) => Err(Error::config(
                    "scaffold",
                    format!("{smiles}, which has no attachment point"),
                    "[*:1] at each atom that other atoms may be attached to, as in c1ccc([*:1])cc1, or the \
                     numbers of these atoms as `attachments`",
                )),
                fragment => Ok(Some(fragment?)),
            },
            (Some(smiles), Some(stems)) => Ok(Some(Fragment::new(smiles, stems)?)),
            (None, Some(stems)) => Err(Error::config(
                "attachments",
                format!("{stems:?}"),
                "None if there is no scaffold; give a scaffold, too",
            )),
        }
    }
}

fn element(symbol: &str) -> Result<Element> {
    let known = "symbols of elements whose valence is known: B, C, N, O, F, Si, P, S, Cl, Se, Br, I";
    match Element::from_symbol(symbol) {
        Some((element, false)) => Ok(element),
        _ => Err(Error::config("elements", symbol, known)),
    }
}
