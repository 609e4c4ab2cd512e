//! Tasks that build molecules up to isomorphism, atom by atom or fragment by fragment. The tasks sample in
//! proportion to a score, which is computed from descriptors or by an external program.

use std::time::Duration;

use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{
    Element, ExternalScorer, FactoredScore, MoleculeConfig, MoleculeEnv, MoleculeReward, ScoreConfig,
};

use super::directions::read_all;
use super::outputs;
use crate::prelude::*;

/// The flags of tasks that build molecules atom by atom.
#[derive(Args)]
struct AtomArgs {
    /// Largest number of heavy atoms of a molecule
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Elements that atoms may have, without charges
    #[arg(long, value_delimiter = ',', value_parser = element, default_value = "C,N,O")]
    elements: Vec<Element>,
    /// Use the elements C, N, O, F, P, S, Cl and Br, and the charged atoms N+ and O-
    #[arg(long, conflicts_with = "elements")]
    all_elements: bool,
    /// Build stereoisomers. By default a molecule has no stereochemistry, and represents all its
    /// stereoisomers
    #[arg(long)]
    stereo: bool,
    /// Kind of the layers that pass messages between atoms
    #[arg(long, value_parser = choice(CONVS), default_value = "gine")]
    conv: Selection<ConvKind>,
    #[command(flatten)]
    run: RunArgs,
}

/// The kinds of message-passing layers that `--conv` accepts. `Gin` is missing, because it ignores the
/// attributes of edges, which hold the orders of bonds.
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
    /// Trains a policy to sample molecules in proportion to a score, and prints the report.
    fn train(
        &self,
        exact_limit: usize,
        properties: Option<&Path>,
        score: impl MoleculeScore + 'static,
        add: impl FnOnce(&mut Report),
    ) -> Result<()> {
        let symbols = || self.elements.iter().map(|element| element.symbol().to_owned()).collect();
        let built_of = Atoms {
            max_atoms: self.max_atoms,
            stereo: self.stereo,
            elements: (!self.all_elements).then(symbols),
            corrects_symmetry: !self.run.no_symmetry_correction,
        };
        let molecules = built_of.env()?;
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
            built_of: json!(built_of),
            exact_limit,
        };
        task.train(score, |score| MoleculeReward::new(codec, score), |graph| codec.molecule(graph), add)
    }
}

/// The settings of an environment that builds molecules atom by atom.
#[derive(Serialize, Deserialize)]
pub(crate) struct Atoms {
    max_atoms: usize,
    stereo: bool,
    /// The symbols of the elements; `None` for all elements and charges.
    elements: Option<Vec<String>>,
    corrects_symmetry: bool,
}

impl Atoms {
    pub(crate) fn env(&self) -> Result<MoleculeEnv> {
        let mut config = MoleculeConfig {
            stereo: self.stereo,
            corrects_symmetry: self.corrects_symmetry,
            ..MoleculeConfig::new(self.max_atoms)
        };
        if let Some(symbols) = &self.elements {
            let elements: std::result::Result<_, _> = symbols.iter().map(|symbol| element(symbol)).collect();
            config.elements = elements
                .map_err(|_| Error::config("the elements", symbols.join(","), "symbols such as C,N,Cl"))?;
            config.charges = Vec::new();
        }
        MoleculeEnv::new(config)
    }
}

/// Returns the environment of molecules of C, N and O without charges or stereochemistry.
pub(crate) fn plain_molecules(max_atoms: usize) -> Result<MoleculeEnv> {
    let elements = vec![Element::C, Element::N, Element::O];
    MoleculeEnv::new(MoleculeConfig { elements, charges: Vec::new(), ..MoleculeConfig::new(max_atoms) })
}

/// Train a graph network to build molecules atom by atom
#[derive(Args)]
pub(crate) struct Molecules {
    #[command(flatten)]
    reward: RewardArgs,
    #[command(flatten)]
    atoms: AtomArgs,
}

/// The largest number of states for which exact probabilities are computed.
pub(super) const EXACT_LIMIT: usize = 50_000;

impl Task for Molecules {
    fn run(&self) -> Result<()> {
        self.atoms.train(EXACT_LIMIT, self.reward.score.as_deref(), self.reward.build()?, |_| ())
    }
}

/// Train a graph network to build molecules that an external program scores
#[derive(Args)]
pub(crate) struct ExternalMolecules {
    /// Command of the scoring program. The program reads a SMILES per line, and writes a score of at least 0
    /// per line. Spaces separate the words of the command
    #[arg(long, default_value = "python3 examples/heteroatom_scorer.py")]
    command: String,
    #[command(flatten)]
    atoms: AtomArgs,
}

/// The longest time that the scoring program may take for a line, including the time in which the program
/// starts.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest number of states for which exact probabilities are computed. For exact probabilities, the
/// program must score all molecules.
const EXTERNAL_LIMIT: usize = 2_000;

impl Task for ExternalMolecules {
    fn run(&self) -> Result<()> {
        let scorer = Arc::new(ExternalScorer::new(self.command.split_whitespace(), TIMEOUT)?);
        self.atoms.train(EXTERNAL_LIMIT, None, scorer.clone(), |report| {
            report.set("scorer_asked", scorer.n_cached());
        })
    }
}

/// Train a graph network to build molecules from fragments
#[derive(Args)]
pub(crate) struct FragmentTrees {
    #[command(flatten)]
    reward: RewardArgs,
    /// File of fragments, one per line: a SMILES, a blank, and a list of atoms with commas between them.
    /// Other fragments can be attached to the listed atoms, which are counted from 0 in the order of the
    /// SMILES. An atom is listed once for each fragment that may be attached to it, at most once per hydrogen
    #[arg(long)]
    library: Option<PathBuf>,
    /// Use the library's standard set of common rings and groups. The default is eight fragments whose trees
    /// can be listed
    #[arg(long, conflicts_with = "library")]
    all_fragments: bool,
    /// Largest number of fragments of a molecule
    #[arg(long, default_value_t = 3)]
    max_fragments: usize,
    #[command(flatten)]
    run: RunArgs,
}

/// The default set of eight fragments. These fragments form 539 trees of at most three fragments.
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

/// The settings of an environment that builds molecules from fragments.
#[derive(Serialize, Deserialize)]
pub(crate) struct Trees {
    max_fragments: usize,
    /// The lines of the file of fragments.
    fragments: String,
    corrects_symmetry: bool,
}

impl Trees {
    /// Returns the fragments and the environment.
    pub(crate) fn build(&self) -> Result<(FragmentLibrary, GraphEnv)> {
        let library = FragmentLibrary::parse(&self.fragments)?;
        let env = Fragments::new(&library, self.max_fragments)?.into_env();
        Ok((library, env.with_symmetry_correction(self.corrects_symmetry)))
    }
}

impl Task for FragmentTrees {
    fn run(&self) -> Result<()> {
        let library = match &self.library {
            Some(path) => FragmentLibrary::read(path)?,
            None if self.all_fragments => FragmentLibrary::standard()?,
            None => FragmentLibrary::parse(FRAGMENTS)?,
        };
        let built_of = Trees {
            max_fragments: self.max_fragments,
            fragments: library.to_string(),
            corrects_symmetry: !self.run.no_symmetry_correction,
        };
        let (library, env) = built_of.build()?;
        let task = MoleculeTask {
            objects: "junction trees",
            args: &self.run,
            properties: self.reward.score.as_deref(),
            env,
            // `Gin` can't be used: it ignores the attributes of edges. An edge joins two fragments, and its
            // attributes are their stems, the atoms that the bond connects.
            network: GraphNetConfig {
                conv: ConvKind::Gine,
                ..self.run.common.graph_net(2, 64, BackwardPolicy::SharedTorso)
            },
            built_of: json!(built_of),
            exact_limit: EXACT_LIMIT,
        };
        let reward = |score| FragmentReward::new(&library, score);
        task.train(self.reward.build()?, reward, |graph| library.molecule(graph), |_| ())
    }
}

/// The flags for the exponent of the reward and for the final samples.
#[derive(Args)]
struct RunArgs {
    /// Exponent beta of the reward, which is the score to the power beta
    #[arg(long, default_value_t = 1.0)]
    beta: f64,
    /// Train on the reward R instead of R times the number of symmetries of the state. The policy then
    /// samples in proportion to R divided by this number
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Draw the final samples by uniform random actions instead of the trained policy, to test the masks
    #[arg(long)]
    random: bool,
    /// Number of final samples
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// Report the mean score of the best samples, and the mean Tanimoto distance between them. The value is
    /// the number of these samples
    #[arg(long, value_parser = at_least_one)]
    top_k: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// The flags that choose a score, by name or by a file.
#[derive(Args)]
struct RewardArgs {
    /// Score of a molecule, by name
    #[arg(long, value_enum, default_value = "heteroatoms")]
    reward: NamedScore,
    /// TOML file that defines the score instead of --reward. The score is a product of powers of properties;
    /// the documentation of `ScoreConfig` describes the format
    #[arg(long, conflicts_with = "reward")]
    score: Option<PathBuf>,
}

/// The scores that `--reward` accepts.
#[derive(Clone, Copy, ValueEnum)]
enum NamedScore {
    /// 1 for every molecule
    Constant,
    /// 0.1 plus the share of atoms other than carbon
    Heteroatoms,
    /// exp(number of rings)
    Rings,
    /// exp(number of donors + number of acceptors of hydrogen bonds)
    HydrogenBonds,
    /// Largest for a molecular weight of 100 to 300 and a polar surface of 40 to 90 square angstrom
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

/// A score that the trainer's reward and the report share.
pub(super) type SharedScore = Arc<dyn MoleculeScore>;

/// The settings of a task on molecules, except for its score.
struct MoleculeTask<'a> {
    /// The title of the panel of exact probabilities.
    objects: &'static str,
    args: &'a RunArgs,
    /// The TOML file that defines the score, if there is one. The properties in the score become columns of
    /// the table of molecules.
    properties: Option<&'a Path>,
    env: GraphEnv,
    network: GraphNetConfig,
    /// The settings of the environment, which are stored in checkpoints.
    built_of: Value,
    /// The largest number of states for which exact probabilities are computed.
    exact_limit: usize,
}

impl MoleculeTask<'_> {
    /// Trains on the score to the power `--beta`, and prints the report. Scores below e^-20 count as e^-20,
    /// so that every molecule has a finite log-reward. `read` returns the molecule of a state, and `add` adds
    /// entries to the report.
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
            let env = trainer.env();
            let rng = &mut trainer.evaluation_rng();
            let policy: &dyn Policy<GraphEnv> = if args.random { &UniformPolicy } else { trainer.policy() };
            let samples = sample(env, policy, args.samples, rng)?;
            let molecules = read_all(&samples, &read)?;
            let log_scores = score.log_scores(&molecules)?;
            report.extend(outputs::describe_samples(&molecules, &log_scores));
            if let Some(k) = args.top_k {
                report.set("top_k", outputs::describe_best(k, &molecules, &log_scores)?);
            }
            report.set("symmetry_corrected", !args.no_symmetry_correction);
            add(report);
            let properties = self.properties.map(outputs::read_score).transpose()?;
            outputs::write(run.common, &molecules, &log_scores, properties.as_ref())?;
            if let Some(exact) = exact {
                report.extend(outputs::compare_molecules(exact, &read)?);
            }
            if args.no_symmetry_correction {
                report.set("log_z_true", None::<f64>);
            }
            Ok(())
        })
    }
}
