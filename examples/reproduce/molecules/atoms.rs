//! Molecules built atom by atom and fragment by fragment, up to isomorphism: in proportion to a descriptor,
//! or to the score of a program.

use std::time::Duration;

use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{
    Element, ExternalScorer, FactoredScore, MoleculeConfig, MoleculeEnv, MoleculeReward, ScoreConfig,
};

use super::directions::read_all;
use super::outputs;
use crate::prelude::*;

/// The flags of tasks that build atom by atom.
#[derive(Args)]
struct AtomArgs {
    /// Largest number of heavy atoms
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
}

/// The convolutions that `--conv` accepts. `Gin` is missing, because it ignores edge attributes, which bond
/// orders are.
const CONVS: &[Choice<ConvKind>] = &[
    ("gine", ConvKind::Gine, "Sums over neighbours, with what bonds are"),
    (
        "transformer",
        ConvKind::Transformer { heads: 4 },
        "Attention along bonds and to the molecule, four heads",
    ),
];

fn element(symbol: &str) -> std::result::Result<Element, String> {
    let known = Element::from_symbol(symbol).filter(|(_, aromatic)| !aromatic);
    known.map(|(element, _)| element).ok_or_else(|| "expected symbols of elements, such as C,N,Cl".into())
}

impl AtomArgs {
    /// Trains a policy to sample molecules in proportion to a score, and reports.
    fn train(
        &self,
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
        let codec = molecules.codec();
        let task = MoleculeTask {
            objects: "Kekule forms",
            args: &self.run,
            properties,
            env: molecules.env().clone(),
            network: GraphNetConfig {
                conv: self.conv.value,
                identity: false,
                pair_walks: Some(3),
                global: true,
                ..self.run.common.graph_net(3, 64, BackwardPolicy::SharedTorso)
            },
            built_of: json!({ "max_atoms": self.max_atoms, "stereo": self.stereo, "elements": elements }),
            exact_limit,
        };
        task.train(score, |score| MoleculeReward::new(codec, score), |graph| codec.molecule(graph), add)
    }
}

/// Returns the environment of molecules of C, N and O without charges.
pub(crate) fn plain_molecules(max_atoms: usize) -> Result<MoleculeEnv> {
    let elements = vec![Element::C, Element::N, Element::O];
    MoleculeEnv::new(MoleculeConfig { elements, charges: Vec::new(), ..MoleculeConfig::new(max_atoms) })
}

/// Train a GNN policy to build molecules atom by atom
#[derive(Args)]
pub(crate) struct Molecules {
    #[command(flatten)]
    reward: RewardArgs,
    #[command(flatten)]
    atoms: AtomArgs,
}

/// The largest number of states for which the distribution of molecules is exact.
pub(super) const EXACT_LIMIT: usize = 50_000;

impl Task for Molecules {
    fn run(&self) -> Result<()> {
        self.atoms.train(EXACT_LIMIT, self.reward.score.as_deref(), self.reward.build()?, |_| ())
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

/// The longest time that the program may take for a line, its start-up included.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest number of states for which the program scores all molecules, so that the exact distance is
/// known.
const EXTERNAL_LIMIT: usize = 2_000;

impl Task for ExternalMolecules {
    fn run(&self) -> Result<()> {
        let scorer = Arc::new(ExternalScorer::new(self.command.split_whitespace(), TIMEOUT)?);
        self.atoms.train(EXTERNAL_LIMIT, None, scorer.clone(), |report| {
            report.set("scorer_asked", scorer.n_cached());
        })
    }
}

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
    /// Largest number of fragments
    #[arg(long, default_value_t = 3)]
    max_fragments: usize,
    #[command(flatten)]
    run: RunArgs,
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
        let fragments: Vec<String> =
            library.fragments().iter().map(|fragment| fragment.to_string()).collect();
        let task = MoleculeTask {
            objects: "junction trees",
            args: &self.run,
            properties: self.reward.score.as_deref(),
            env: Fragments::new(&library, self.max_fragments)?.into_env().with_symmetry_correction(corrects),
            // `Gin` ignores attributes of arcs, which stems are.
            network: GraphNetConfig {
                conv: ConvKind::Gine,
                ..self.run.common.graph_net(2, 64, BackwardPolicy::SharedTorso)
            },
            built_of: json!({ "max_fragments": self.max_fragments, "fragments": fragments }),
            exact_limit: EXACT_LIMIT,
        };
        let (score, reward) = (self.reward.build()?, |score| FragmentReward::new(&library, score));
        task.train(score, reward, |graph| library.molecule(graph), |_| ())
    }
}

/// The flags for the reward and the final samples.
#[derive(Args)]
struct RunArgs {
    /// Power of the score that is R
    #[arg(long, default_value_t = 1.0)]
    beta: f64,
    /// Train on R instead of R times the number of symmetries: samples R divided by that number
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy, to test the masks
    #[arg(long)]
    random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// Number of best samples whose mean score and mean Tanimoto distance are reported
    #[arg(long, value_parser = at_least_one)]
    top_k: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// The flags that choose a score, by its name or by a file.
#[derive(Args)]
struct RewardArgs {
    /// The reward
    #[arg(long, value_enum, default_value = "heteroatoms")]
    reward: NamedScore,
    /// TOML file of a score instead of the reward by name: a product of powers of properties, as
    /// `ScoreConfig` documents it
    #[arg(long, conflicts_with = "reward")]
    score: Option<PathBuf>,
}

/// A score that the library provides by name.
#[derive(Clone, Copy, ValueEnum)]
enum NamedScore {
    /// A constant
    Constant,
    /// 0.1 and the share of atoms that aren't carbon
    Heteroatoms,
    /// exp(number of rings)
    Rings,
    /// exp(donors + acceptors)
    HydrogenBonds,
    /// A weight of 100 to 300 and a polar surface of 40 to 90
    DrugLike,
}

impl RewardArgs {
    fn build(&self) -> Result<FactoredScore> {
        let Some(path) = &self.score else {
            let name = name_of(self.reward).replace('-', "_");
            let config = ScoreConfig::from_name(&name);
            return config
                .ok_or(Error::config("--reward", name, "the name of a score of the library"))?
                .build();
        };
        outputs::read_score(path)
    }
}

/// A score that the trainer and the report share.
pub(super) type SharedScore = Arc<dyn MoleculeScore>;

/// A task on molecules, without its score.
struct MoleculeTask<'a> {
    /// The title of the panel of exact probabilities.
    objects: &'static str,
    args: &'a RunArgs,
    /// The file of a score. Its properties become columns of the table of molecules.
    properties: Option<&'a Path>,
    env: GraphEnv,
    network: GraphNetConfig,
    /// The environment's settings, which the checkpoint records.
    built_of: Value,
    /// The largest number of states for which the distribution is exact.
    exact_limit: usize,
}

impl MoleculeTask<'_> {
    /// Trains on a score to the power of `--beta`, and reports. The power is at least e^-20, so that every
    /// molecule has a finite log-reward. `add` adds numbers to the report, and `read` returns the molecule of
    /// a state.
    fn train<R: Reward<GraphStates> + 'static>(
        self,
        score: impl MoleculeScore + 'static,
        reward: impl Fn(SharedScore) -> R,
        read: impl Fn(&GraphState) -> Result<Molecule>,
        add: impl FnOnce(&mut Report),
    ) -> Result<()> {
        let args = self.args;
        let recipe = Recipe {
            steps: 4_000,
            batch: 128,
            exact_up_to: self.exact_limit,
            samples: 0,
            ..Recipe::default()
        };
        let run = Run::begin(&args.common, recipe)?;
        let score: SharedScore = Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(args.beta)?);
        let task = json!({ "built_of": self.built_of });
        let trainer = run.graph_trainer(self.env, reward(score.clone()), self.network, task)?;
        run.learn(trainer, self.objects, Vec::new(), |report, trainer, exact| {
            let (env, rng) = (trainer.env(), &mut trainer.evaluation_rng());
            let policy: &dyn Policy<GraphEnv> = if args.random { &UniformPolicy } else { trainer.policy() };
            let samples = sample(env, policy, args.samples, rng)?;
            let molecules = read_all(&samples, &read)?;
            let log_scores = score.log_scores(&molecules)?;
            report.extend(outputs::of_samples(&molecules, &log_scores));
            if let Some(k) = args.top_k {
                report.set("top_k", outputs::of_best(k, &molecules, &log_scores)?);
            }
            report.set("symmetry_corrected", !args.no_symmetry_correction);
            add(report);
            let properties = self.properties.map(outputs::read_score).transpose()?;
            outputs::write(run.common, &molecules, &log_scores, properties.as_ref())?;
            if let Some(exact) = exact {
                report.extend(outputs::of_molecules(exact, &read)?);
            }
            if args.no_symmetry_correction {
                report.set("log_z_true", None::<f64>);
            }
            Ok(())
        })
    }
}
