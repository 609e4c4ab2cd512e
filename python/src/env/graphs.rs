//! Environments of graphs.

use gfn::graph::{GraphKind, Scaffold, Semantics};
use gfn::{Error, Result};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use gfn_gym::ring::Ring;
use gfn_gym::triangle::Triangle;
use gfn_molecules::fragments::{Fragment, FragmentLibrary, Fragments};
use gfn_molecules::{BondOrder, Element, MoleculeConfig, MoleculeEnv};
use serde::{Deserialize, Serialize};

use crate::kinds::{AnySpace, GraphFacts, Space};
use crate::molecules::{MoleculeCodecs, Reading};

/// Their settings, by the name of the class in Python.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) enum GraphSpec {
    Ring {
        n_nodes: usize,
        directed: bool,
    },
    Triangle {
        colors: u16,
        directed: bool,
    },
    ColoredGraphs {
        max_nodes: usize,
    },
    GraphBuilding {
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
    },
    Molecules {
        max_atoms: usize,
        elements: Option<Vec<String>>,
        charges: bool,
        extra_valences: u8,
        max_bond_order: u8,
        max_rings: Option<usize>,
        max_ring_size: Option<usize>,
        corrects_symmetry: bool,
        /// A SMILES in which `*` marks where something is attached, unless that is said by numbers.
        #[serde(default)]
        scaffold: Option<String>,
        #[serde(default)]
        attachments: Option<Vec<usize>>,
        #[serde(default)]
        told_apart: bool,
        #[serde(default)]
        stereo: bool,
    },
    Fragments {
        max_fragments: usize,
        /// The contents of the file: the file may be another one by the time that something is made again from these settings.
        library: Option<String>,
    },
}

fn kind(directed: bool) -> GraphKind {
    if directed { GraphKind::Directed } else { GraphKind::Undirected }
}

impl GraphSpec {
    pub(super) const NAMES: [&str; 6] =
        ["Ring", "Triangle", "ColoredGraphs", "GraphBuilding", "Molecules", "Fragments"];

    pub(crate) fn build(&self) -> Result<AnySpace> {
        let env = match self {
            Self::Ring { n_nodes, directed } => Ring::new(*n_nodes, kind(*directed))?.into_env(),
            Self::Triangle { colors, directed } => Triangle::new(kind(*directed), *colors)?.into_env(),
            Self::ColoredGraphs { max_nodes } => ColoredGraphs::new(*max_nodes)?.into_env(),
            Self::GraphBuilding {
                max_nodes,
                directed,
                max_edges,
                min_nodes,
                node_classes,
                edge_classes,
                node_attributes,
                edge_attributes,
                attached,
                labelled,
                corrects_symmetry,
            } => {
                let config = GraphBuildingConfig {
                    max_edges: *max_edges,
                    min_nodes: *min_nodes,
                    node_classes: *node_classes,
                    edge_classes: *edge_classes,
                    node_attributes: node_attributes.clone(),
                    edge_attributes: edge_attributes.clone(),
                    growth: if *attached { Growth::Attached } else { Growth::Free },
                    semantics: if *labelled { Semantics::Labelled } else { Semantics::UpToIsomorphism },
                    corrects_symmetry: *corrects_symmetry,
                    ..GraphBuildingConfig::new(kind(*directed), *max_nodes)
                };
                GraphBuilding::new(config)?.into_env()
            }
            Self::Molecules { .. } => return self.molecules(),
            Self::Fragments { max_fragments, library } => {
                let library = match library {
                    None => FragmentLibrary::standard()?,
                    Some(text) => FragmentLibrary::parse(text)?,
                };
                let env = Fragments::new(&library, *max_fragments)?;
                let reading = Reading::new(self, MoleculeCodecs::Fragments(env.clone()))?;
                return Ok(Space::graphs(env.into_env(), GraphFacts::Molecules(reading)));
            }
        };
        Ok(Space::graphs(env, GraphFacts::Plain))
    }

    fn molecules(&self) -> Result<AnySpace> {
        let Self::Molecules {
            max_atoms,
            elements,
            charges,
            extra_valences,
            max_bond_order,
            max_rings,
            max_ring_size,
            corrects_symmetry,
            scaffold,
            attachments,
            told_apart,
            stereo,
        } = self
        else {
            return Err(Error::config("an environment of molecules", format!("{self:?}"), "`Molecules`"));
        };
        let mut config = MoleculeConfig {
            extra_valences: *extra_valences,
            max_order: match max_bond_order {
                1 => BondOrder::Single,
                2 => BondOrder::Double,
                3 => BondOrder::Triple,
                other => return Err(Error::config("max_bond_order", other, "1, 2 or 3")),
            },
            max_rings: *max_rings,
            max_ring_size: *max_ring_size,
            stereo: *stereo,
            corrects_symmetry: *corrects_symmetry,
            scaffold: match (scaffold, attachments) {
                (None, None) if *told_apart => {
                    return Err(Error::config("told_apart", "true", "false without a scaffold"));
                }
                (None, None) => None,
                (Some(smiles), None) => Some(Fragment::from_marked(smiles)?),
                (Some(smiles), Some(stems)) => Some(Fragment::new(smiles, stems)?),
                (None, Some(stems)) => {
                    return Err(Error::config("attachments", format!("{stems:?}"), "none without a scaffold"));
                }
            },
            scaffold_atoms: if *told_apart { Scaffold::ToldApart } else { Scaffold::Alike },
            ..MoleculeConfig::new(*max_atoms)
        };
        if let Some(symbols) = elements {
            config.elements = symbols.iter().map(|symbol| element(symbol)).collect::<Result<_>>()?;
            let listed = config.elements.clone();
            config.charges.retain(|(element, _)| listed.contains(element));
        }
        if !charges {
            config.charges.clear();
        }
        let env = MoleculeEnv::new(config)?;
        let reading = Reading::new(self, MoleculeCodecs::Atoms(env.codec().clone()))?;
        Ok(Space::graphs(env.into_env(), GraphFacts::Molecules(reading)))
    }
}

fn element(symbol: &str) -> Result<Element> {
    let known = "symbols of elements that the valence table has: B, C, N, O, F, Si, P, S, Cl, Se, Br, I";
    match Element::from_symbol(symbol) {
        Some((element, false)) => Ok(element),
        _ => Err(Error::config("elements", symbol, known)),
    }
}
