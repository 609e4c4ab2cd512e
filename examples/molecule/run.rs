//! What examples on molecules share: their flags, the run, and what is reported of it.

use std::path::PathBuf;
use std::sync::Arc;

use gfn::graph::{GraphStates, log_automorphisms};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::ReplayBuffer;
use gfn::sampler::Sampler;
use gfn::train::{Observer, Trainer};
use gfn::{Result, Rng};
use gfn_gym::molecule::{Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore};
use gfn_gym::record::{Described, TrainingRecord};
use serde_json::{Value, json};

use crate::cli::{Common, Defaults, Distance, Exact, Outcome, train_observed};
use crate::outputs;

/// What is built, and how it is sampled.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Flags {
    /// R is the score to this power
    #[arg(long, default_value_t = 1.0)]
    pub(crate) beta: f64,
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    pub(crate) max_atoms: usize,
    /// Most rings
    #[arg(long)]
    max_rings: Option<usize>,
    /// Most atoms of a ring
    #[arg(long)]
    max_ring_size: Option<usize>,
    /// All of C, N, O, F, P, S, Cl, Br with N+ and O-, in place of C, N and O without charges
    #[arg(long)]
    all_elements: bool,
    /// Train on R(G) in place of |Aut(G)| R(G): samples R(G) / |Aut(G)|
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy: what the masks allow
    #[arg(long)]
    random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// SQLite file to record all molecules in that training draws
    #[arg(long)]
    record: Option<PathBuf>,
}

/// A score that reward and report share.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<dyn MoleculeScore>);

impl MoleculeScore for Shared {
    fn log_scores(&self, molecules: &[Molecule]) -> Result<Vec<f64>> {
        self.0.log_scores(molecules)
    }
}

/// One run of an example.
pub(crate) struct Run<'a> {
    pub(crate) example: &'static str,
    /// What is rewarded, in a word, for the title.
    pub(crate) rewarded: String,
    pub(crate) flags: &'a Flags,
    pub(crate) common: &'a Common,
    /// Its steps, where none are given.
    pub(crate) steps: usize,
    /// States up to which the distribution is exact.
    pub(crate) exact_limit: usize,
}

/// Molecules that are sampled at once.
const CHUNK: usize = 1_000;

impl Run<'_> {
    /// The environment that the flags ask for.
    fn env(&self) -> Result<MoleculeEnv> {
        let flags = self.flags;
        let mut config = MoleculeConfig {
            max_rings: flags.max_rings,
            max_ring_size: flags.max_ring_size,
            corrects_symmetry: !flags.no_symmetry_correction,
            ..MoleculeConfig::new(flags.max_atoms)
        };
        if !flags.all_elements {
            config.elements = vec![Element::C, Element::N, Element::O];
            config.charges = Vec::new();
        }
        MoleculeEnv::new(config)
    }

    fn network(&self) -> GraphNetConfig {
        let common = self.common;
        GraphNetConfig {
            // Bond orders are attributes of edges: `Gin` doesn't see them.
            conv: ConvKind::Gine,
            layers: common.layers.unwrap_or(3),
            embedding: common.embedding.unwrap_or(64),
            identity: false,
            pair_walks: Some(3),
            global: true,
            backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
            flow: common.objective.needs_flow(),
            ..GraphNetConfig::default()
        }
    }

    /// What is recorded of a molecule: its canonical SMILES, which is its key, too, and three descriptors.
    fn record(&self) -> Option<TrainingRecord<MoleculeEnv>> {
        let describe = |env: &MoleculeEnv, states: &GraphStates| {
            let described = |graph| {
                let molecule = env.codec().molecule(graph)?;
                let scores = vec![molecule.weight(), molecule.n_rings() as f64, molecule.polar_surface()];
                let text = molecule.smiles();
                Ok(Described { key: text.clone().into(), text, scores })
            };
            states.graphs().iter().map(described).collect()
        };
        let path = self.flags.record.as_ref()?;
        Some(TrainingRecord::new(path, &["weight", "rings", "polar_surface"], describe))
    }

    /// Molecules by the trained policy, or by the masks alone.
    fn sample(&self, trainer: &Trainer<MoleculeEnv, GraphPolicy<GraphNet>>) -> Result<Vec<Molecule>> {
        let (env, mut rng, samples) = (trainer.env(), trainer.evaluation_rng(), self.flags.samples);
        let mut out = Vec::with_capacity(samples);
        while out.len() < samples {
            let n = CHUNK.min(samples - out.len());
            let sampled = match self.flags.random {
                true => Sampler::new(env, &UniformPolicy).forward(n, &mut rng)?,
                false => Sampler::new(env, trainer.policy()).forward(n, &mut rng)?,
            };
            for graph in sampled.terminal_states().graphs() {
                out.push(env.codec().molecule(graph)?);
            }
        }
        Ok(out)
    }

    /// Trains on a score to the power of `--beta`, of at least e^-20 so that every molecule has a finite log-reward, and reports,
    /// with what is known in the end besides.
    pub(crate) fn train(
        &self,
        score: impl MoleculeScore + 'static,
        also: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) -> Result<()> {
        let (common, flags, example) = (self.common, self.flags, self.example);
        let runtime = common.runtime()?;
        let env = self.env()?;
        let codec = env.codec().clone();
        let score = Shared(Arc::new(score.clamped((-20f64).exp(), f64::MAX)?.to_the(flags.beta)?));
        let reward = MoleculeReward::new(&codec, score);
        let defaults = Defaults { steps: self.steps, batch: 128, ..Defaults::default() };
        let mut rng = Rng::seeded(common.seed);
        let network = self.network();
        let description = json!({ "example": example, "max_atoms": flags.max_atoms, "network": network });
        let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
        let exact = match common.lr {
            Some(0.0) => None,
            _ => Exact::up_to(self.exact_limit, &env, &reward)?,
        };
        let config = common.trainer(&defaults);
        let (steps, batch) = (common.steps(&defaults), config.batch);
        let objective = common.objective.build()?;
        let policy = GraphPolicy(net);
        let mut trainer = Trainer::boxed(env, Box::new(reward.clone()), policy, objective, config, rng)?
            .described_by(&description)?;
        let replay = common.replay(&defaults)?;
        if let Some((config, _)) = replay {
            trainer = trainer.with_replay(ReplayBuffer::distinct(config)?);
        }
        let prefill = replay.map_or(0, |(_, prefill)| prefill);
        let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
        let mut record = self.record();
        let observers = record.as_mut().map(|record| record as &mut dyn Observer<_, _>).into_iter().collect();
        let trained = train_observed(&mut trainer, common, example, (steps, prefill), look, observers)?;

        let molecules = self.sample(&trainer)?;
        let log_scores = reward.score().log_scores(&molecules)?;
        let round_trips =
            molecules.iter().filter(|m| Molecule::from_smiles(&m.smiles()).is_ok_and(|again| again.key() == m.key()));
        let mut distinct: Vec<_> = molecules.iter().map(Molecule::key).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut extra = vec![
            ("round_trip_share", json!(round_trips.count() as f64 / molecules.len().max(1) as f64)),
            ("distinct_samples", json!(distinct.len())),
            ("mean_log_score", json!(log_scores.iter().sum::<f64>() / log_scores.len().max(1) as f64)),
            ("symmetry_corrected", json!(!flags.no_symmetry_correction)),
        ];
        extra.extend(also());
        extra.extend(record.map(|record| ("record_s", json!(record.spent().as_secs_f64()))));
        outputs::write(common, &molecules, &log_scores)?;
        let mut distance = Distance::default();
        let mut panel = None;
        if let Some(exact) = &exact {
            let (learned, probs) = exact.learned(trainer.env(), trainer.policy())?;
            distance = learned;
            let states = exact.graph.states().graphs();
            // What is sampled without the correction.
            let mut biased = exact.target.probs.clone();
            for &end in &exact.graph.ends() {
                biased[end] /= log_automorphisms(&states[end]).exp();
            }
            let total: f64 = biased.iter().sum();
            biased.iter_mut().for_each(|p| *p /= total);
            extra.push(("tv_to_r_over_aut", json!(Distances::between(&probs, &biased)?.tv)));
            extra.push(("tv_of_r_over_aut", json!(Distances::between(&exact.target.probs, &biased)?.tv)));
            extra.push(("tv_molecules", json!(outputs::tv_of_molecules(&codec, exact, &probs)?)));
            extra.push(("states", json!(exact.graph.len())));
            extra.extend(exact.modes(&probs));
            panel = Some(exact.panel("Kekule forms", &probs));
        } else {
            extra.extend([("modes_found", json!(null)), ("modes_total", json!(null))]);
        }
        let corrected = exact.as_ref().filter(|_| !flags.no_symmetry_correction);
        let log_z_true = corrected.map(|exact| exact.target.log_z);
        let title = format!("molecules of at most {} atoms, {}", flags.max_atoms, self.rewarded);
        trained.draw(common, &title, log_z_true, panel)?;
        let params = trainer.n_parameters();
        Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
        Ok(())
    }
}
