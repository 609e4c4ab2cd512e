//! Molecules fragment by fragment: junction trees, up to isomorphism and the fragments' own symmetries, in
//! proportion to a score.

use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};

use super::atoms::EXACT_LIMIT;
use super::train::{MoleculeTask, RewardArgs, RunArgs};
use crate::prelude::*;

/// Train a GNN policy to build molecules from fragments
#[derive(Args)]
pub(crate) struct FragmentTrees {
    #[command(flatten)]
    reward: RewardArgs,
    /// File of fragments, one per line: a SMILES, a blank, and the atoms that others can be attached to,
    /// counted from 0 as written, with commas between them; an atom is listed as often as it may have
    /// something attached, at most once per hydrogen
    #[arg(long)]
    library: Option<PathBuf>,
    /// The library's standard set of common rings and groups, instead of the eight that are exact
    #[arg(long, conflicts_with = "library")]
    all_fragments: bool,
    /// Most fragments
    #[arg(long, default_value_t = 3)]
    max_fragments: usize,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    common: Common,
}

/// The default fragments: 539 trees of at most three.
const FRAGMENTS: &str = "\
c1ccccc1 0,1,2,3,4,5
N1CCNCC1 0,3
O=CN 1,2,2
C=O 0,0
C 0,0
N 0,0,0
O 0,0
F 0
";

impl Task for FragmentTrees {
    fn run(&self) -> Result<()> {
        let library = match &self.library {
            Some(path) => FragmentLibrary::read(path)?,
            None if self.all_fragments => FragmentLibrary::standard()?,
            None => FragmentLibrary::parse(FRAGMENTS)?,
        };
        let corrects = !self.run.no_symmetry_correction;
        let fragments: Vec<String> = library.fragments().iter().map(|fragment| fragment.to_string()).collect();
        let reader = library.clone();
        let task = MoleculeTask {
            example: "fragments",
            title: format!("trees of at most {} fragments, {}", self.max_fragments, self.reward.name()),
            objects: "junction trees",
            args: &self.run,
            properties: self.reward.score.as_deref(),
            common: &self.common,
            env: Fragments::new(&library, self.max_fragments)?.into_env().with_symmetry_correction(corrects),
            // Stems are attributes of arcs, which `Gin` doesn't see.
            network: GraphNetConfig {
                conv: ConvKind::Gine,
                ..self.common.graph_net(2, 64, BackwardPolicy::SharedTorso)
            },
            built_of: json!({ "max_fragments": self.max_fragments, "fragments": fragments }),
            read: Arc::new(move |graph: &GraphState| reader.molecule(graph)),
            exact_limit: EXACT_LIMIT,
        };
        task.train(self.reward.build()?, |score| FragmentReward::new(&library, score), |_| ())
    }
}
