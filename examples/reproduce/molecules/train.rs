//! A run on molecules, whatever they are built of.

use gfn_molecules::{FactoredScore, Molecule, MoleculeScore, ScoreConfig};

use super::outputs;
use crate::prelude::*;

/// The flags of reward and samples.
#[derive(Args)]
pub(super) struct RunArgs {
    /// R is the score to this power
    #[arg(long, default_value_t = 1.0)]
    beta: f64,
    /// Train on R instead of R times the number of symmetries: samples R over these
    #[arg(long)]
    pub(super) no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy: what the masks allow
    #[arg(long)]
    random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// Number of best samples whose mean score and mean Tanimoto distance are reported
    #[arg(long, value_parser = at_least_one)]
    top_k: Option<usize>,
}

/// The score of a run, by name or by a file.
#[derive(Args)]
pub(super) struct RewardArgs {
    /// The reward
    #[arg(long, value_parser = choice(REWARDS), default_value = "heteroatoms")]
    reward: Selection<()>,
    /// TOML file of a score instead of the reward by name: a product of powers of properties, as
    /// `ScoreConfig` documents it
    #[arg(long, conflicts_with = "reward")]
    pub(super) score: Option<PathBuf>,
}

const REWARDS: &[Choice<()>] = &[
    ("constant", (), "The same for every molecule"),
    ("heteroatoms", (), "0.1 and the share of atoms that aren't carbon"),
    ("rings", (), "exp(number of rings)"),
    ("hydrogen-bonds", (), "exp(donors + acceptors)"),
    ("drug-like", (), "A weight of 100 to 300 and a polar surface of 40 to 90"),
];

impl RewardArgs {
    /// Returns the name of the reward.
    pub(super) fn name(&self) -> String {
        self.score.as_ref().map_or_else(|| self.reward.words(), |path| path.display().to_string())
    }

    pub(super) fn build(&self) -> Result<FactoredScore> {
        let Some(path) = &self.score else {
            let name = self.reward.name.replace('-', "_");
            let config = ScoreConfig::named(&name);
            return config
                .ok_or_else(|| Error::config("--reward", name, "a score that the library has by name"))?
                .build();
        };
        outputs::read_score(path)
    }
}

/// A score that trainer and report share.
pub(super) type SharedScore = Arc<dyn MoleculeScore>;
/// Reads the molecule of a state.
pub(super) type Reader = Arc<dyn Fn(&GraphState) -> Result<Molecule> + Send + Sync>;

/// One run of a task.
pub(super) struct MoleculeTask<'a> {
    pub(super) example: &'static str,
    pub(super) title: String,
    /// The objects of the exact distribution.
    pub(super) objects: &'static str,
    pub(super) args: &'a RunArgs,
    /// The file of a score whose properties the table of molecules has.
    pub(super) properties: Option<&'a Path>,
    pub(super) common: &'a Common,
    pub(super) env: GraphEnv,
    pub(super) network: GraphNetConfig,
    /// The settings of the environment, for the checkpoint.
    pub(super) built_of: Value,
    pub(super) read: Reader,
    /// States up to which the distribution is exact.
    pub(super) exact_limit: usize,
}

impl MoleculeTask<'_> {
    /// Trains on a score to the power of `--beta`, of at least e^-20 so that every molecule has a finite
    /// log-reward, and reports, with what `add` adds.
    pub(super) fn train<R: Reward<GraphStates> + 'static>(
        self,
        score: impl MoleculeScore + 'static,
        reward: impl Fn(SharedScore) -> R,
        add: impl FnOnce(&mut Report),
    ) -> Result<()> {
        let args = self.args;
        let recipe =
            Recipe { steps: 4_000, batch: 128, exact_up_to: self.exact_limit, samples: 0, ..Recipe::default() };
        let run = Run::begin(self.common, self.example, self.title, recipe)?;
        let score: SharedScore = Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(args.beta)?);
        let task = json!({ "built_of": self.built_of });
        let trainer = run.graph_trainer(self.env, reward(score.clone()), self.network, run.rng(), task)?;
        let read = self.read;
        run.learn(trainer, self.objects, Vec::new(), |report, trainer, exact| {
            let (env, rng) = (trainer.env(), &mut trainer.evaluation_rng());
            let policy: &dyn Policy<GraphEnv> = if args.random { &UniformPolicy } else { trainer.policy() };
            let samples = sample(env, policy, args.samples, rng)?;
            let molecules: Vec<Molecule> = samples.graphs().iter().map(|graph| read(graph)).collect::<Result<_>>()?;
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
                report.extend(outputs::of_molecules(exact, |graph| read(graph))?);
            }
            if args.no_symmetry_correction {
                report.set("log_z_true", None::<f64>);
            }
            Ok(())
        })
    }
}
