//! A run on molecules, whatever they are built of.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gfn::env::Reward;
use gfn::graph::{GraphEnv, GraphRules, GraphState, GraphStates};
use gfn::metrics::sample_objects;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::ReplayBuffer;
use gfn::train::{Observer, Trainer};
use gfn::{Result, Rng};
use gfn_molecules::{Molecule, MoleculeScore};
use gfn_record::{Described, TrainingRecord};
use serde_json::{Value, json};

use super::outputs;
use crate::cli::{Common, Defaults, Distance, Exact, Report, at_least_one, members, train_with_actors, try_file};

/// How molecules are rewarded, sampled and recorded.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// R is the score to this power
    #[arg(long, default_value_t = 1.0)]
    pub(crate) beta: f64,
    /// Train on R in place of R times the symmetries of what is built: samples R over these
    #[arg(long)]
    pub(crate) no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy: what the masks allow
    #[arg(long)]
    pub(crate) random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    pub(crate) samples: usize,
    /// Report the mean score of so many best samples, and how different they are (mean Tanimoto distance)
    #[arg(long, value_parser = at_least_one)]
    pub(crate) top_k: Option<usize>,
    /// SQLite file to record all molecules in that training draws
    #[arg(long)]
    pub(crate) record: Option<PathBuf>,
}

/// A score that several share.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<dyn MoleculeScore>);

impl MoleculeScore for Shared {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.0.log_scores(molecules)
    }
}

/// What molecule a state is.
type Reader = Arc<dyn Fn(&GraphState) -> Result<Molecule> + Send + Sync>;

/// One run of a task.
pub(crate) struct Run<'a> {
    pub(crate) example: &'static str,
    pub(crate) title: String,
    /// What the exact distribution is over.
    pub(crate) objects: &'static str,
    pub(crate) args: &'a RunArgs,
    pub(crate) common: &'a Common,
    pub(crate) network: GraphNetConfig,
    /// What the environment was made of, for the checkpoint.
    pub(crate) description: Value,
    /// States up to which the distribution is exact.
    pub(crate) exact_limit: usize,
}

impl Run<'_> {
    /// Trains on a score to the power of `--beta`, of at least e^-20 so that every molecule has a finite log-reward, and reports,
    /// with what is known in the end besides.
    pub(crate) fn train<G: GraphRules + 'static, R: Reward<GraphStates> + 'static>(
        &self,
        env: GraphEnv<G>,
        score: impl MoleculeScore + 'static,
        (reward, read): (impl Fn(Shared) -> R, Reader),
        also: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) -> Result<()> {
        let (common, args, example) = (self.common, self.args, self.example);
        args.record.as_deref().filter(|_| members::is_first()).map_or(Ok(()), try_file)?;
        let runtime = common.runtime()?;
        let score = Shared(Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(args.beta)?));
        let defaults = Defaults { steps: 4_000, batch: 128, ..Defaults::default() };
        let mut rng = Rng::seeded(common.seed);
        let description = json!({ "example": example, "built_of": self.description, "network": self.network });
        let net = GraphNet::new(&env, self.network.clone(), runtime.device(), tch::Kind::Float, &mut rng)?;
        let exact = Exact::up_to(self.exact_limit, common, &env, &reward(score.clone()))?;
        let config = common.trainer(&defaults);
        let objective = common.objective.build()?;
        let reward = reward(score.clone());
        let trainer =
            Trainer::new(env, reward, GraphPolicy(net), objective, config, rng)?.described_by(&description)?;
        let trainer = common.replayed(trainer, &defaults, ReplayBuffer::distinct)?;
        let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
        let mut record = self.record(&read);
        let observers = record.as_mut().map(|record| record as &mut dyn Observer<_, _>).into_iter().collect();
        let Some((trainer, trained)) = train_with_actors(trainer, common, (example, &defaults), look, observers)?
        else {
            return Ok(());
        };

        let molecules = self.sample(&trainer, &read)?;
        let log_scores = score.log_scores(&molecules)?;
        let mut extra = outputs::of_samples(&molecules, &log_scores);
        extra.extend(args.top_k.map(|k| outputs::of_best(k, &molecules, &log_scores)).transpose()?);
        extra.push(("symmetry_corrected", json!(!args.no_symmetry_correction)));
        extra.extend(also());
        extra.extend(record.map(|record| ("record_s", json!(record.spent().as_secs_f64()))));
        outputs::write(common, &molecules, &log_scores)?;
        args.record.iter().for_each(|path| common.written.add(path));
        let mut distance = Distance::not_listed(common, self.exact_limit);
        let mut panels = Vec::new();
        if let Some(exact) = &exact {
            let (learned, probs) = exact.learned(&trainer)?;
            distance = learned;
            extra.extend(outputs::of_symmetry(exact, trainer.env(), &probs)?);
            let (tv, finished, molecules) = outputs::tv_of_molecules(exact, &probs, |graph| read(graph))?;
            let counts = [("states", exact.graph.len()), ("finished_states", finished), ("molecules", molecules)];
            extra.push(("tv_molecules", json!(tv)));
            extra.extend(counts.map(|(name, count)| (name, json!(count))));
            extra.extend(exact.modes(&probs)?);
            panels.push(exact.panel(self.objects, &probs));
        } else {
            extra.extend([("modes_found", json!(null)), ("modes_total", json!(null))]);
        }
        let corrected = exact.as_ref().filter(|_| !args.no_symmetry_correction);
        let log_z_true = corrected.map(|exact| exact.target.log_z);
        Report { title: self.title.clone(), log_z_true, distance, extra, panels }.print(common, &trained)
    }

    /// What is recorded of a molecule: its canonical SMILES, which is its key, too, and three descriptors.
    fn record<R: GraphRules>(&self, read: &Reader) -> Option<TrainingRecord<GraphEnv<R>>> {
        let path = self.args.record.as_ref()?;
        let read = read.clone();
        let describe = move |_: &GraphEnv<R>, states: &GraphStates| {
            let described = |graph| {
                let molecule = read(graph)?;
                let scores = vec![molecule.weight(), molecule.n_rings() as f64, molecule.polar_surface()];
                let text = molecule.smiles();
                Ok(Described { key: text.clone().into(), text, scores })
            };
            states.graphs().iter().map(described).collect()
        };
        Some(TrainingRecord::new(path, &["weight", "rings", "polar_surface"], describe))
    }

    /// Molecules by the trained policy, or by the masks alone.
    fn sample<R: GraphRules>(
        &self,
        trainer: &Trainer<GraphEnv<R>, GraphPolicy<GraphNet>>,
        read: &Reader,
    ) -> Result<Vec<Molecule>> {
        let (env, rng, n) = (trainer.env(), &mut trainer.evaluation_rng(), self.args.samples);
        let sampled = match self.args.random {
            true => sample_objects(env, &UniformPolicy, n, rng)?,
            false => sample_objects(env, trainer.policy(), n, rng)?,
        };
        sampled.graphs().iter().map(|graph| read(graph)).collect()
    }
}
