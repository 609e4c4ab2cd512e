//! A task on molecules with two conflicting objectives: many donors and acceptors of hydrogen bonds, and a
//! small polar surface. One policy learns all preferences and temperatures, which are its input.

use gfn_extras::condition::{Directions, FocusInHindsight};
use gfn_extras::pareto::{hypervolume, pareto_front, simplex_grid};
use gfn_molecules::{MoleculeReward, uniqueness};

use super::atoms::{EXACT_LIMIT, plain_molecules};
use super::directions::{ConditionSampler, mean};
use super::seh_frag::focus::focus;
use crate::prelude::*;

/// Train a graph network on two objectives of molecules; temperature and preferences are inputs of the
/// network
#[derive(Args)]
pub(crate) struct MultiObjective {
    /// Largest number of heavy atoms of a molecule
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Reward only molecules whose objectives are within a cone around a direction, which is an input of the
    /// network. The value is the cosine of the cone's angle
    #[arg(long)]
    focus: Option<f64>,
    /// Share of replayed molecules for which the direction of the cone (see --focus) is replaced by the
    /// direction of the molecule's objectives
    #[arg(long, requires_all = ["focus", "replay"])]
    hindsight: Option<f64>,
    /// Number of final samples under each preference
    #[arg(long, default_value_t = 200)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The smallest value of an objective. This value is above 0, so that the logarithm of an objective is
/// finite.
const LEAST: f64 = 0.01;
/// The smallest and the largest exponent beta of the reward in training. Final samples use the largest
/// exponent.
const BETAS: (f64, f64) = (1.0, 8.0);
/// The number of steps of equal size from the preferences (0, 1) to the preferences (1, 0). The policy is
/// measured under the first preferences and under those after each step.
const PREFERENCE_STEPS: usize = 4;
/// The reference point of the hypervolume, a measure of a Pareto front: the front's volume is measured from
/// this point. No objective is below 0.
const REFERENCE: [f64; 2] = [0.0, 0.0];

/// Returns the first objective: it grows from `LEAST` to 1 with the number of donors and acceptors of
/// hydrogen bonds, and reaches 1 at 4 of them.
fn bonding(molecule: &Molecule) -> f64 {
    let bonds = (molecule.n_donors() + molecule.n_acceptors()) as f64;
    LEAST + (1.0 - LEAST) * (bonds / 4.0).min(1.0)
}

/// Returns the second objective: 1 for a molecule without polar surface, and about 1 / e for 40 square
/// angstrom.
fn greasy(molecule: &Molecule) -> f64 {
    LEAST + (1.0 - LEAST) * (-molecule.polar_surface() / 40.0).exp()
}

/// Returns the pairs of objectives that are on the Pareto front, ordered by the first objective.
fn front(objectives: &Reals) -> Result<Vec<(f64, f64)>> {
    let row = |i: usize| (objectives.row(i)[0], objectives.row(i)[1]);
    let mut front: Vec<(f64, f64)> = pareto_front(objectives)?.into_iter().map(row).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(front)
}

impl MultiObjective {
    fn conditioning(&self) -> Result<Conditioning> {
        let encoding = Encoding::Thermometer { bins: 16 };
        let betas = Temperature::Uniform { least: BETAS.0, most: BETAS.1 };
        let directions = || Directions::Dirichlet { concentration: 1.0 };
        let conditioning =
            Conditioning::new(2)?.temperature(betas, encoding)?.preferences(directions(), encoding)?;
        match self.focus {
            None => Ok(conditioning),
            Some(cosine) => conditioning.focus(focus(cosine, BETAS.1, LEAST, directions()), encoding),
        }
    }
}

impl Task for MultiObjective {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        if self.samples < 2 {
            return Err(Error::config("--samples", self.samples, "at least 2"));
        }
        refuse_validation()?;
        let recipe = Recipe {
            steps: 4_000,
            batch: 128,
            log_z_lr: 1e-2,
            exact_up_to: EXACT_LIMIT,
            repeats_graphs: true,
            ..Recipe::default()
        };
        let run = Run::begin(common, recipe)?;
        let molecules = plain_molecules(self.max_atoms)?;
        let env = molecules.env().clone();
        let codec = molecules.codec();
        let conditioning = self.conditioning()?;
        let scored = |score: fn(&Molecule) -> f64| Arc::new(MoleculeReward::new(codec, score));
        let reward: ConditionedReward<GraphStates> =
            ConditionedReward::new(conditioning.clone(), vec![scored(bonding), scored(greasy)])?;
        let mut network = GraphNetConfig {
            conv: ConvKind::Gine,
            identity: false,
            pair_walks: Some(3),
            ..common.graph_net(3, 64, BackwardPolicy::SharedTorso)
        };
        network.estimators.n_conditions = conditioning.width() as i64;
        let graph = list_states(run.recipe.exact_up_to, &env)?;
        let task = json!({ "max_atoms": self.max_atoms, "conditioning": conditioning });
        let mut trainer =
            run.graph_trainer(env, reward.clone(), network, task)?.with_conditions(conditioning.clone());
        if let Some(share) = self.hindsight {
            trainer = trainer.with_hindsight(FocusInHindsight(reward.clone()), share)?;
        }
        run.finish(trainer, unmeasured, Vec::new(), |trainer, report| {
            // The policy is measured under evenly spread preferences. The direction of focus, if there is
            // one, is equal to the preferences.
            let tested: Vec<Vec<f64>> =
                simplex_grid(2, PREFERENCE_STEPS)?.rows().map(<[f64]>::to_vec).collect();
            let read = |graph: &GraphState| codec.molecule(graph);
            let samples = self.samples;
            let mut distances = Vec::new();
            let sampler =
                ConditionSampler { reward: &reward, beta: BETAS.1, focus: self.focus, samples, read: &read };
            let rng = &mut trainer.evaluation_rng();
            let found = sampler.sample(trainer, &tested, rng, |preferences, condition, objectives,
                molecules| {
                let mut row = json!({ "preferences": preferences, "mean_bonding": mean(objectives, 0),
                    "mean_greasy": mean(objectives, 1), "uniqueness": uniqueness(molecules)? });
                if let Some(graph) = &graph {
                    let (d, target) = compare(graph, trainer.env(), trainer.policy(), &reward,
                        Some(condition))?;
                    merge(
                        &mut row,
                        json!({ "tv": d.tv, "log_z": log_z(trainer, condition), "log_z_true": target.log_z }),
                    );
                    distances.push(d);
                }
                Ok(row)
            })?;

            let objectives = &found.objectives;
            let best = front(&found.objectives)?;
            let distinct: BTreeSet<CanonicalKey> = found.molecules.iter().map(Molecule::key).collect();
            report.extend(json!({ "hypervolume": hypervolume(objectives, &REFERENCE)?,
                "front_size": best.len(),
                "distinct_samples": distinct.len(), "conditions": found.rows, "front": best }));
            let points = objectives.rows().map(|row| (row[0], row[1]));
            let mut panel = Panel::scatter("samples, their front, and that of all (line)", points)
                .labels("hydrogen bonds", "small polar surface")
                .equal_aspect()
                .curve(Curve::new("front", best));
            if let Some(graph) = &graph {
                report.exact_mean(&distances);
                let whole = reward.objectives(&graph.states().select(&graph.ends()))?;
                report.set("hypervolume_of_all", hypervolume(&whole, &REFERENCE)?);
                panel = panel.outlines([front(&whole)?]);
            } else {
                report.not_listed(&run);
            }
            report.panels.push(panel);
            Ok(())
        })
    }
}
