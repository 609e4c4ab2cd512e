//! Molecules under two rewards that pull apart, hydrogen bonds and a small polar surface: one policy for
//! every preference and temperature.

use std::collections::BTreeSet;

use gfn::graph::CanonicalKey;
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, FocusInHindsight, Temperature,
};
use gfn_extras::pareto::{focus_accuracy, hypervolume, pareto_front, simplex_grid};
use gfn_molecules::{
    Element, Fingerprint, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, internal_diversity, uniqueness,
};

use super::atoms::EXACT_LIMIT;
use super::seh_frag::focus::focus;
use crate::prelude::*;

/// Train a GNN policy that takes temperature and preferences as input
#[derive(Args)]
pub(crate) struct MultiObjective {
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Reward only molecules within a cone of objectives, of this cosine
    #[arg(long)]
    focus: Option<f64>,
    /// Share of replayed molecules whose focus is turned to where they are
    #[arg(long, requires_all = ["focus", "replay"])]
    hindsight: Option<f64>,
    /// Molecules that are sampled under each preference
    #[arg(long, default_value_t = 200)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The smallest reward, so that its log is finite.
const LEAST: f64 = 0.01;
/// The least and the largest reward exponent; samples in the end are of the largest.
const BETAS: (f64, f64) = (1.0, 8.0);
/// The number of steps between the two extreme preferences that are compared.
const PREFERENCE_STEPS: usize = 4;
/// The point that the hypervolume is above.
const REFERENCE: [f64; 2] = [0.0, 0.0];

/// Returns donors and acceptors of hydrogen bonds, as a share of 4.
fn bonding(molecule: &Molecule) -> f64 {
    let bonds = (molecule.n_donors() + molecule.n_acceptors()) as f64;
    LEAST + (1.0 - LEAST) * (bonds / 4.0).min(1.0)
}

/// Returns 1 without a polar surface, falling to 1 / e over 40 square angstrom.
fn greasy(molecule: &Molecule) -> f64 {
    LEAST + (1.0 - LEAST) * (-molecule.polar_surface() / 40.0).exp()
}

/// Returns the rows of the front, along the first objective.
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
        let conditioning = Conditioning::new(2)?.temperature(betas, encoding)?.preferences(directions(), encoding)?;
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
        let title = format!("molecules of at most {} atoms, two rewards", self.max_atoms);
        let recipe = Recipe {
            steps: 4_000,
            batch: 128,
            log_z_lr: 1e-2,
            exact_up_to: EXACT_LIMIT,
            repeats_graphs: true,
            ..Recipe::default()
        };
        let run = Run::begin(common, "molecule_multi_objective", title, recipe)?;
        let molecules = MoleculeEnv::new(MoleculeConfig {
            elements: vec![Element::C, Element::N, Element::O],
            charges: Vec::new(),
            ..MoleculeConfig::new(self.max_atoms)
        })?;
        let (env, codec) = (molecules.env().clone(), molecules.codec());
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
        let graph = if members::is_first() { listed(run.recipe.exact_up_to, &env)? } else { None };
        let task = json!({ "max_atoms": self.max_atoms, "conditioning": conditioning });
        let mut trainer =
            run.graph_trainer(env, reward.clone(), network, run.rng(), task)?.with_conditions(conditioning.clone());
        if let Some(share) = self.hindsight {
            trainer = trainer.with_hindsight(FocusInHindsight(reward.clone()), share)?;
        }
        let Some((trainer, mut report)) = run.train(trainer, |_| Ok(jsd(None)), Vec::new())? else { return Ok(()) };

        let (mut rng, mut rows, mut distances) = (trainer.evaluation_rng(), Vec::new(), Vec::new());
        let (mut all, mut objectives) = (Vec::new(), Reals::filled(2, 0, 0.0));
        // Evenly spread preferences, and a focus of the same direction.
        for preferences in simplex_grid(2, PREFERENCE_STEPS)?.rows().map(<[f64]>::to_vec) {
            let focus = self.focus.map(|_| preferences.clone());
            let condition = Condition { beta: BETAS.1, preferences: preferences.clone(), focus };
            let vector = conditioning.encode(&[condition])?;
            let conditions = vector.expand([self.samples as i64, -1], false);
            let sampled = Sampler::new(trainer.env(), trainer.policy()).forward_conditional(&conditions, &mut rng)?;
            let states = sampled.terminal_states();
            let molecules: Vec<Molecule> =
                states.graphs().iter().map(|graph| codec.molecule(graph)).collect::<Result<_>>()?;
            let own = reward.objectives(states)?;
            let mean = |k: usize| own.rows().map(|row| row[k]).sum::<f64>() / own.len() as f64;
            let fingerprints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::of).collect();
            let mut row = json!({ "preferences": preferences, "mean_bonding": mean(0), "mean_greasy": mean(1),
                "internal_diversity": internal_diversity(&fingerprints)?, "uniqueness": uniqueness(&molecules)? });
            if let Some(cosine) = self.focus {
                row["focus_accuracy"] = json!(focus_accuracy(&own, &preferences, cosine)?);
            }
            if let Some(graph) = &graph {
                let target = graph.target_distribution(&reward, Some(&vector))?;
                let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), Some(&vector))?;
                let d = Distances::between(&learned.probs, &target.probs)?;
                let log_z = Policy::<GraphEnv>::log_z(trainer.policy(), Some(&vector), 1).map(|z| z.double_value(&[0]));
                merge(&mut row, json!({ "tv": d.tv, "log_z": log_z, "log_z_true": target.log_z }));
                distances.push(d);
            }
            rows.push(row);
            all.extend(molecules);
            objectives.append(own);
        }

        let found = front(&objectives)?;
        let distinct: BTreeSet<CanonicalKey> = all.iter().map(Molecule::key).collect();
        report.extend(json!({ "hypervolume": hypervolume(&objectives, &REFERENCE)?, "front_size": found.len(),
            "distinct_samples": distinct.len(), "conditions": rows, "front": found }));
        let points = objectives.rows().map(|row| (row[0], row[1]));
        let mut panel = Panel::scatter("samples, their front, and that of all (line)", points)
            .labels("hydrogen bonds", "small polar surface")
            .equal_aspect()
            .curve(Curve::new("front", found));
        if let Some(graph) = &graph {
            report.exact_mean(&distances);
            let whole = reward.objectives(&graph.states().select(&graph.ends()))?;
            let best = front(&whole)?;
            report.extend(json!({ "hypervolume_of_all": hypervolume(&whole, &REFERENCE)? }));
            panel = panel.outlines([best]);
        } else {
            report.not_listed(&run);
        }
        report.panels.push(panel);
        run.print(report)
    }
}
