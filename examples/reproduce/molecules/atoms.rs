//! Molecules atom by atom, up to isomorphism: in proportion to a descriptor, or to the score of a program.

use std::time::Duration;

use gfn_molecules::{Element, ExternalScorer, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore};

use super::train::{MoleculeTask, RewardArgs, RunArgs};
use crate::prelude::*;

/// The flags of tasks that build atom by atom.
#[derive(Args)]
struct AtomArgs {
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Elements of atoms, without charges
    #[arg(long, value_delimiter = ',', value_parser = element, default_value = "C,N,O")]
    elements: Vec<Element>,
    /// All of C, N, O, F, P, S, Cl, Br with N+ and O-
    #[arg(long, conflicts_with = "elements")]
    all_elements: bool,
    /// Stereoisomers, instead of molecules that stand for all of theirs
    #[arg(long)]
    stereo: bool,
    /// Message passing between atoms
    #[arg(long, value_parser = choice(CONVS), default_value = "gine")]
    conv: Selection<ConvKind>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    common: Common,
}

/// Bond orders are attributes of edges, which `Gin` doesn't see.
const CONVS: &[Choice<ConvKind>] = &[
    ("gine", ConvKind::Gine, "Sums over neighbours, with what bonds are"),
    ("transformer", ConvKind::Transformer { heads: 4 }, "Attention along bonds and to the molecule, four heads"),
];

fn element(symbol: &str) -> std::result::Result<Element, String> {
    let known = Element::from_symbol(symbol).filter(|(_, aromatic)| !aromatic);
    known.map(|(element, _)| element).ok_or_else(|| "expected symbols of elements such as C,N,Cl".into())
}

impl AtomArgs {
    /// Trains a task in proportion to a score, which `reward` names.
    fn train(
        &self,
        example: &'static str,
        reward: &str,
        exact_limit: usize,
        properties: Option<&Path>,
        score: impl MoleculeScore + 'static,
        add: impl FnOnce(&mut Report),
    ) -> Result<()> {
        let mut config = MoleculeConfig {
            stereo: self.stereo,
            corrects_symmetry: !self.run.no_symmetry_correction,
            ..MoleculeConfig::new(self.max_atoms)
        };
        let mut elements = "all with charges".to_owned();
        if !self.all_elements {
            elements = format!("{:?}", self.elements);
            config.elements.clone_from(&self.elements);
            config.charges = Vec::new();
        }
        let molecules = MoleculeEnv::new(config)?;
        let (codec, reader) = (molecules.codec().clone(), molecules.codec().clone());
        let task = MoleculeTask {
            example,
            title: format!("molecules of at most {} atoms, {reward}", self.max_atoms),
            objects: "Kekule forms",
            args: &self.run,
            properties,
            common: &self.common,
            env: molecules.env().clone(),
            network: GraphNetConfig {
                conv: self.conv.value,
                identity: false,
                pair_walks: Some(3),
                global: true,
                ..self.common.graph_net(3, 64, BackwardPolicy::SharedTorso)
            },
            built_of: json!({ "max_atoms": self.max_atoms, "stereo": self.stereo, "elements": elements }),
            read: Arc::new(move |graph: &GraphState| reader.molecule(graph)),
            exact_limit,
        };
        task.train(score, |score| MoleculeReward::new(&codec, score), add)
    }
}

/// Train a GNN policy to build molecules atom by atom
#[derive(Args)]
pub(crate) struct Molecules {
    #[command(flatten)]
    reward: RewardArgs,
    #[command(flatten)]
    atoms: AtomArgs,
}

/// States up to which the distribution is exact.
pub(super) const EXACT_LIMIT: usize = 50_000;

impl Task for Molecules {
    fn run(&self) -> Result<()> {
        let (name, properties) = (self.reward.name(), self.reward.score.as_deref());
        self.atoms.train("molecule", &name, EXACT_LIMIT, properties, self.reward.build()?, |_| ())
    }
}

/// Train a GNN policy to build molecules that an external program scores
#[derive(Args)]
pub(crate) struct ExternalMolecules {
    /// Program that reads a SMILES per line and writes a score of 0 or more per line; words are separated by
    /// spaces
    #[arg(long, default_value = "python3 examples/heteroatom_scorer.py")]
    command: String,
    #[command(flatten)]
    atoms: AtomArgs,
}

/// The longest wait for a line, start-up included.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Most states up to which the program scores all molecules, so that the distance is exact.
const EXTERNAL_LIMIT: usize = 2_000;

impl Task for ExternalMolecules {
    fn run(&self) -> Result<()> {
        let scorer = Arc::new(ExternalScorer::new(self.command.split_whitespace(), TIMEOUT)?);
        self.atoms.train("molecule_external", &self.command, EXTERNAL_LIMIT, None, scorer.clone(), |report| {
            report.set("scorer_asked", scorer.n_cached());
        })
    }
}
