//! A task with four objectives of molecules at once: affinity to sEH, drug-likeness, synthetic accessibility
//! and weight. These are the objectives of Roy et al., *Goal-conditioned GFlowNets for Controllable
//! Multi-Objective Molecular Design*, 2023.

use gfn_extras::condition::{Directions, FocusInHindsight};
use gfn_extras::pareto::{focus_accuracy, hypervolume, pareto_front, simplex_grid};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{Factor, Property, ScoreConfig, SehProxy, Shape};

use super::super::directions::{ConditionSampler, mean};
use super::focus::{focus, spread};
use super::{BETA, FIRST_BETA, MAX_FRAGMENTS, network};
use crate::prelude::*;

/// Train a policy on four objectives of molecules at once; the weights of the objectives are inputs of the
/// policy
#[derive(Args)]
pub(crate) struct SehObjectives {
    /// File with the weights of the sEH proxy: `mols/data/pretrained_proxy/best_params.pkl.gz` of
    /// github.com/GFNOrg/gflownet, or the arrays of that file as `.npz`
    #[arg(long)]
    weights: PathBuf,
    /// File with RDKit's table of synthetic accessibility, `Contrib/SA_Score/fpscores.pkl.gz`
    #[arg(long)]
    sa_table: PathBuf,
    /// Train for directions in the space of the four objectives instead of preferences, and report the share
    /// of samples in a cone around each direction. The value is the cosine of the cone's angle. The
    /// directions are those of the best objectives (the Pareto front) of 1,000 random molecules
    #[arg(long)]
    focus: Option<f64>,
    /// Number of molecules that are sampled under each preference or direction
    #[arg(long, default_value_t = 64)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The number of steps from 0 to 1 that each weight of the preferences takes. With 2 steps, a weight is 0,
/// 0.5 or 1. The policy is measured under all preferences with such weights or, with --focus, under an equal
/// number of directions.
const PREFERENCE_STEPS: usize = 2;
/// The names of the four objectives.
const NAMES: [&str; 4] = ["seh", "qed", "sa", "weight"];
/// The smallest value of each objective.
const LEAST: f64 = 1e-4;
/// The share of replayed molecules for which the goal direction of `--focus` is replaced by the direction of
/// the molecule's objectives.
const HINDSIGHT: f64 = 0.3;
/// The default capacity of the replay buffer with --focus. Without --focus there is no replay buffer by
/// default.
const REPLAYED: usize = 2_000;
/// The number of random molecules (trees of fragments) whose best objectives define the goal directions of
/// `--focus`.
const RANDOM: usize = 1_000;
/// The reference point of the hypervolume, a measure of a Pareto front: the front's volume is measured from
/// this point. No objective is below 0.
const REFERENCE: [f64; 4] = [0.0; 4];

type ObjectiveReward = Arc<dyn Reward<GraphStates> + Send + Sync>;

/// Returns a score that is a function of one property, with values from `LEAST` to 1.
fn shaped(property: Property, shape: Shape) -> Result<impl MoleculeScore + 'static> {
    ScoreConfig { factors: vec![Factor { shape, ..Factor::from_property(property) }] }
        .build()?
        .clamped(LEAST, 1.0)
}

/// Returns the objective vectors on the Pareto front of random molecules, which are trees of fragments built
/// by uniform random actions. Their directions are the goal directions of `--focus`, because some molecules
/// have objectives in these directions. The molecules are the same for every seed of the run.
fn random_front(env: &GraphEnv, rewards: &[ObjectiveReward]) -> Result<Reals> {
    let plain = ConditionedReward::<GraphStates>::new(Conditioning::new(NAMES.len())?, rewards.to_vec())?;
    let objectives = plain.objectives(&sample(env, &UniformPolicy, RANDOM, &mut Rng::seeded(0))?)?;
    Ok(objectives.select(&pareto_front(&objectives)?))
}

impl SehObjectives {
    fn rewards(&self, run: &Run<'_>, library: &FragmentLibrary) -> Result<Vec<ObjectiveReward>> {
        let seh = SehProxy::load(&self.weights, run.device)?.clamped(LEAST, 1.0)?;
        let qed = shaped(Property::Qed, Shape::Value)?;
        let table = Property::SyntheticAccessibility { table: self.sa_table.clone() };
        let sa = shaped(table, Shape::Linear { zero: 10.0, one: 1.0 })?;
        let weight = shaped(Property::Weight, Shape::Linear { zero: 1_000.0, one: 300.0 })?;
        let scores: [Box<dyn MoleculeScore>; 4] =
            [Box::new(seh), Box::new(qed), Box::new(sa), Box::new(weight)];
        Ok(scores.map(|score| Arc::new(FragmentReward::new(library, score)) as _).into())
    }

    /// Returns the distribution of the conditions that are inputs of the policy. With `--focus`, the
    /// direction varies and all preferences are equal. Otherwise, the preferences vary and there is no
    /// direction. The two never vary together, because they can contradict each other.
    fn conditioning(&self, directions: Directions) -> Result<Conditioning> {
        let encoding = Encoding::Thermometer { bins: 16 };
        let conditioning =
            Conditioning::new(NAMES.len())?.temperature(Temperature::Constant(BETA), encoding)?;
        match self.focus {
            None => conditioning.preferences(Directions::Dirichlet { concentration: 1.0 }, encoding),
            Some(cosine) => conditioning.focus(focus(cosine, BETA, LEAST, directions), encoding),
        }
    }
}

impl Task for SehObjectives {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        if self.samples < 2 {
            return Err(Error::config("--samples", self.samples, "at least 2"));
        }
        refuse_validation()?;
        let library = FragmentLibrary::bengio2021()?;
        let env = Fragments::new(&library, MAX_FRAGMENTS)?.into_env();
        let mut recipe = Recipe {
            steps: 5_000,
            lr: 1e-3,
            exact_up_to: 0,
            samples: 0,
            repeats_graphs: true,
            ..Recipe::default()
        };
        if self.focus.is_some() {
            recipe.replay = REPLAYED;
            recipe.buffer = NEWEST;
            // A network computes log Z from the condition. The usual learning rate of log Z is meant for a
            // single number, and is too large for a network.
            recipe.log_z_lr = 1e-2;
        }
        let mut run = Run::begin(common, recipe)?;
        let rewards = self.rewards(&run, &library)?;
        let front = self.focus.map(|_| random_front(&env, &rewards)).transpose()?;
        let front = front.unwrap_or_else(|| Reals::filled(NAMES.len(), 0, 0.0));
        let directions = Directions::OneOf(front.rows().map(<[f64]>::to_vec).collect());
        let conditioning = self.conditioning(directions)?;
        let reward = ConditionedReward::<GraphStates>::new(conditioning.clone(), rewards)?;
        if self.focus.is_some() {
            let steps = run.steps().div_ceil(2);
            run.config.reward_exponent = Schedule::Linear { from: FIRST_BETA / BETA, to: 1.0, steps };
        }
        let network = network(common, Some(&conditioning));
        let task = json!({ "conditioning": conditioning });
        let mut trainer =
            run.graph_trainer(env, reward.clone(), network, task)?.with_conditions(conditioning.clone());
        if self.focus.is_some() && trainer.replay().is_some() {
            trainer = trainer.with_hindsight(FocusInHindsight(reward.clone()), HINDSIGHT)?;
        } else if self.focus.is_some() {
            tell(
                "--focus has no hindsight, because the run has no replay buffer: directions of sampled \
                 molecules aren't corrected; give --replay for hindsight",
            );
        }
        run.finish(trainer, unmeasured, Vec::new(), |trainer, report| {
            let mut rng = trainer.evaluation_rng();
            let grid = simplex_grid(NAMES.len(), PREFERENCE_STEPS)?;
            let (tested, row_name, rows_name) = match self.focus {
                Some(_) => (spread(&front, grid.len()), "direction", "focus_directions"),
                None => (grid.rows().map(<[f64]>::to_vec).collect(), "preferences", "conditions"),
            };
            let read = |graph: &GraphState| library.molecule(graph);
            let samples = self.samples;
            let sampler =
                ConditionSampler { reward: &reward, beta: BETA, focus: self.focus, samples, read: &read };
            let found = sampler.sample(trainer, &tested, &mut rng, |direction, _, objectives, _| {
                Ok(json!({ (row_name): direction, "means": means(objectives) }))
            })?;
            let mut rows = found.rows;
            let all = found.objectives;
            // For comparison, the metrics are also computed for an equal number of molecules that uniform
            // random actions build.
            let random = reward.objectives(&sample(trainer.env(), &UniformPolicy, all.len(), &mut rng)?)?;
            if let Some(cosine) = self.focus {
                for (row, direction) in rows.iter_mut().zip(&tested) {
                    row["focus_accuracy_random"] = json!(focus_accuracy(&random, direction, cosine)?);
                }
                for name in ["focus_accuracy", "focus_accuracy_random"] {
                    report.set(
                        name,
                        rows.iter().filter_map(|row| row[name].as_f64()).sum::<f64>() / rows.len() as f64,
                    );
                }
            }
            report.extend(json!({ "objectives": NAMES, "hypervolume": hypervolume(&all, &REFERENCE)?,
                "hypervolume_random": hypervolume(&random, &REFERENCE)?, "means": means(&all),
                "means_random": means(&random), "front_size": pareto_front(&all)?.len(), "samples": all.len(),
                (rows_name): rows, "why_not_exact": "there are more trees than can be listed" }));
            for (title, objectives) in [("samples", &all), ("random trees", &random)] {
                let points = objectives.rows().map(|row| (row[0], row[1])).collect::<Vec<_>>();
                report.panels.push(Panel::scatter(title, points).labels(NAMES[0], NAMES[1]));
            }
            Ok(())
        })
    }
}

fn means(objectives: &Reals) -> Vec<f64> {
    (0..NAMES.len()).map(|k| mean(objectives, k)).collect()
}
