//! A run on molecules, whatever they are built of.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use gfn::env::Reward;
use gfn::graph::{GraphEnv, GraphState, GraphStates};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_molecules::{FactoredScore, Molecule, MoleculeScore, ScoreConfig};
use serde_json::{Value, json};

use super::outputs;
use crate::flags::{Common, at_least_one, words};
use crate::run::{Recipe, Run, sample};

/// How molecules are rewarded and sampled.
#[derive(Args, Clone, Debug)]
pub(super) struct RunArgs {
    /// R is the score to this power
    #[arg(long, default_value_t = 1.0)]
    pub(super) beta: f64,
    /// Train on R in place of R times the symmetries of what is built: samples R over these
    #[arg(long)]
    pub(super) no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy: what the masks allow
    #[arg(long)]
    pub(super) random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    pub(super) samples: usize,
    /// Report the mean score of so many best samples, and how different they are (mean Tanimoto distance)
    #[arg(long, value_parser = at_least_one)]
    pub(super) top_k: Option<usize>,
    /// The file of a score whose properties the table of molecules has: set by tasks that take one.
    #[arg(skip)]
    properties: Option<PathBuf>,
}

/// The score of a run, by name or by a file.
#[derive(Args, Clone, Debug)]
pub(super) struct RewardArgs {
    /// The reward
    #[arg(long, value_enum, default_value = "heteroatoms")]
    reward: RewardName,
    /// TOML file of a score, in place of the reward by name: a product of powers of properties, as `ScoreConfig` documents it
    #[arg(long, conflicts_with = "reward")]
    score: Option<PathBuf>,
}

/// Scores by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum RewardName {
    /// Every molecule alike
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
    /// The name of what is rewarded.
    pub(super) fn rewarded(&self) -> String {
        self.score.as_ref().map_or_else(|| words(&self.reward), |path| path.display().to_string())
    }

    pub(super) fn score(&self) -> Result<FactoredScore> {
        match &self.score {
            Some(path) => outputs::read_score(path),
            None => {
                let name = words(&self.reward).replace(' ', "_");
                let config = ScoreConfig::named(&name);
                config.ok_or_else(|| Error::config("--reward", name, "a score that the library has by name"))?.build()
            }
        }
    }

    /// The run, which is to write the properties of the score's file.
    pub(super) fn noted(&self, run: &RunArgs) -> RunArgs {
        RunArgs { properties: self.score.clone(), ..run.clone() }
    }
}

/// A score that several share.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Arc<dyn MoleculeScore>);

impl MoleculeScore for Shared {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.0.log_scores(molecules)
    }
}

/// The molecule that a state is.
type Reader = Arc<dyn Fn(&GraphState) -> Result<Molecule> + Send + Sync>;

/// One run of a task.
pub(super) struct MoleculeTask<'a> {
    pub(super) example: &'static str,
    pub(super) title: String,
    /// The objects of the exact distribution.
    pub(super) objects: &'static str,
    pub(super) args: &'a RunArgs,
    pub(super) common: &'a Common,
    pub(super) network: GraphNetConfig,
    /// What the environment was made of, for the checkpoint.
    pub(super) description: Value,
    /// States up to which the distribution is exact.
    pub(super) exact_limit: usize,
}

impl MoleculeTask<'_> {
    /// Trains on a score to the power of `--beta`, of at least e^-20 so that every molecule has a finite log-reward, and reports,
    /// with what is known in the end besides.
    pub(super) fn train<R: Reward<GraphStates> + 'static>(
        self,
        env: GraphEnv,
        score: impl MoleculeScore + 'static,
        reward: impl Fn(Shared) -> R,
        read: Reader,
        also: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) -> Result<()> {
        let args = self.args;
        let recipe =
            Recipe { steps: 4_000, batch: 128, exact_up_to: self.exact_limit, samples: 0, ..Recipe::default() };
        let run = Run::begin(self.common, self.example, self.title, recipe)?;
        let score = Shared(Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(args.beta)?));
        let mut rng = run.rng();
        let description = json!({ "example": self.example, "built_of": self.description, "network": self.network });
        let policy = GraphPolicy(GraphNet::new(&env, self.network, run.device, tch::Kind::Float, &mut rng)?);
        let (reward, objective, config) = (reward(score.clone()), run.objective()?, run.config.clone());
        let trainer = Trainer::new(env, reward, policy, objective, config, rng)?.described_by(&description)?;
        let trainer = run.replayed(trainer, ReplayBuffer::distinct)?;
        let Some(mut learned) = run.learn(trainer, self.objects, Vec::new())? else { return Ok(()) };

        let trainer = &learned.trainer;
        let (env, rng) = (trainer.env(), &mut trainer.evaluation_rng());
        let samples = if args.random {
            sample(env, &UniformPolicy, args.samples, rng)?
        } else {
            sample(env, trainer.policy(), args.samples, rng)?
        };
        let molecules: Vec<Molecule> = samples.graphs().iter().map(|graph| read(graph)).collect::<Result<_>>()?;
        let log_scores = score.log_scores(&molecules)?;
        let report = &mut learned.report;
        report.extend(outputs::of_samples(&molecules, &log_scores));
        report.extend(args.top_k.map(|k| outputs::of_best(k, &molecules, &log_scores)).transpose()?);
        report.set("symmetry_corrected", !args.no_symmetry_correction);
        report.extend(also());
        let properties = args.properties.as_deref().map(outputs::read_score).transpose()?;
        outputs::write(self.common, &molecules, &log_scores, properties.as_ref())?;
        if let Some(exact) = &learned.exact {
            report.extend(outputs::of_symmetry(exact, env)?);
            let (tv, finished, molecules) = outputs::tv_of_molecules(exact, |graph| read(graph))?;
            report.set("tv_molecules", tv);
            report.set("states", exact.graph.len());
            report.set("finished_states", finished);
            report.set("molecules", molecules);
        }
        if args.no_symmetry_correction {
            report.set("log_z_true", None::<f64>);
        }
        learned.print()
    }
}
