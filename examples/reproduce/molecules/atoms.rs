//! The common part of tasks that build atom by atom.

use std::sync::Arc;

use clap::ValueEnum;
use gfn::Result;
use gfn::graph::GraphState;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNetConfig};
use gfn_molecules::{Element, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore};
use serde_json::{Value, json};

use super::train::{MoleculeTask, RunArgs};
use crate::flags::Common;

/// Flags of what is built.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AtomArgs {
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Most rings
    #[arg(long)]
    max_rings: Option<usize>,
    /// Most atoms of a ring
    #[arg(long)]
    max_ring_size: Option<usize>,
    /// Elements of atoms, without charges
    #[arg(long, value_delimiter = ',', value_parser = element, default_value = "C,N,O")]
    elements: Vec<Element>,
    /// All of C, N, O, F, P, S, Cl, Br with N+ and O-
    #[arg(long, conflicts_with = "elements")]
    all_elements: bool,
    /// Stereoisomers, in place of molecules that stand for all of theirs
    #[arg(long)]
    stereo: bool,
    /// Way in which atoms exchange messages
    #[arg(long, value_enum, default_value = "gine")]
    conv: ConvName,
}

fn element(symbol: &str) -> std::result::Result<Element, String> {
    let known = Element::from_symbol(symbol).filter(|(_, aromatic)| !aromatic);
    known.map(|(element, _)| element).ok_or_else(|| "expected symbols of elements such as C,N,Cl".into())
}

/// Message passing by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ConvName {
    /// Sums over neighbours, with what bonds are
    Gine,
    /// Attention along bonds and to a node of the whole molecule, as in recursionpharma/gflownet; four heads
    Transformer,
}

impl AtomArgs {
    /// Trains a task in proportion to a score; `rewarded` says in a word what is.
    pub(super) fn train(
        &self,
        example: &'static str,
        rewarded: &str,
        run: (&RunArgs, &Common),
        exact_limit: usize,
        score: impl MoleculeScore + 'static,
        also: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) -> Result<()> {
        let (args, common) = run;
        let network = GraphNetConfig {
            conv: match self.conv {
                // Bond orders are attributes of edges: `Gin` doesn't see them.
                ConvName::Gine => ConvKind::Gine,
                ConvName::Transformer => ConvKind::Transformer { heads: 4 },
            },
            layers: common.layers.unwrap_or(3),
            embedding: common.embedding.unwrap_or(64),
            identity: false,
            pair_walks: Some(3),
            global: true,
            backward: common.backward(BackwardPolicy::SharedTorso),
            estimators: common.objective.estimators(),
            ..GraphNetConfig::default()
        };
        let mut config = MoleculeConfig {
            max_rings: self.max_rings,
            max_ring_size: self.max_ring_size,
            stereo: self.stereo,
            corrects_symmetry: !args.no_symmetry_correction,
            ..MoleculeConfig::new(self.max_atoms)
        };
        let mut elements = "all with charges".to_owned();
        if !self.all_elements {
            elements = format!("{:?}", self.elements);
            config.elements.clone_from(&self.elements);
            config.charges = Vec::new();
        }
        let title = format!("molecules of at most {} atoms, {rewarded}", self.max_atoms);
        let description = json!({ "max_atoms": self.max_atoms, "max_rings": self.max_rings,
            "max_ring_size": self.max_ring_size, "stereo": self.stereo, "elements": elements });
        let objects = "Kekule forms";
        let task = MoleculeTask { example, title, objects, args, common, network, description, exact_limit };
        let molecules = MoleculeEnv::new(config)?;
        let env = molecules.env().clone();
        let codec = molecules.codec().clone();
        let reader = codec.clone();
        let read = Arc::new(move |graph: &GraphState| reader.molecule(graph));
        task.train(env, score, |score| MoleculeReward::new(&codec, score), read, also)
    }
}
