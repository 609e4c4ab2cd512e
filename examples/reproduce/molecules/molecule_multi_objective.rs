//! Molecules under two rewards that pull apart, hydrogen bonds and a small polar surface: one policy for every preference and temperature.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Parser;
use gfn::env::{Reals, Rows};
use gfn::graph::{CanonicalKey, GraphEnv, GraphStates};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::policy::{GraphPolicy, Policy};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, FocusInHindsight, Temperature,
};
use gfn_extras::pareto::{
    focus_accuracy, hypervolume, inverted_generational_distance, pareto_front, r2_indicator, simplex_grid,
};
use gfn_molecules::{
    Element, Fingerprint, Molecule, MoleculeCodec, MoleculeConfig, MoleculeEnv, MoleculeReward, internal_diversity,
    uniqueness,
};
use serde_json::json;
use tch::Tensor;

use super::seh_frag::focus::focus;
use crate::flags::{Common, refuse_validation};
use crate::plot::{Curve, Panel};
use crate::run::{Recipe, Report, Run, listed, members};

/// Train a GNN policy that is told temperature and preferences
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Least reward exponent
    #[arg(long, default_value_t = 1.0)]
    beta_min: f64,
    /// Largest reward exponent: what is sampled under in the end
    #[arg(long, default_value_t = 8.0)]
    beta_max: f64,
    /// Concentration of the Dirichlet law of preferences
    #[arg(long, default_value_t = 1.0)]
    concentration: f64,
    /// Marks of a number's thermometer
    #[arg(long, default_value_t = 16)]
    bins: usize,
    /// Multiply the logits by a function of the condition, too
    #[arg(long)]
    logit_scale: bool,
    /// Reward only what is within a cone of objectives, of this cosine
    #[arg(long)]
    focus: Option<f64>,
    /// Share of replayed molecules whose focus is turned to where they are
    #[arg(long, requires_all = ["focus", "replay"])]
    hindsight: Option<f64>,
    /// Preferences that are compared, less one
    #[arg(long, default_value_t = 4)]
    preferences: usize,
    /// Molecules that are sampled under each
    #[arg(long, default_value_t = 200)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// Every reward is at least that, so that its log is finite.
const LEAST: f64 = 0.01;
/// The point that the hypervolume is above.
const REFERENCE: [f64; 2] = [0.0, 0.0];
const UTOPIA: [f64; 2] = [1.0, 1.0];

type MoleculeTrainer = Trainer<GraphEnv>;

/// Donors and acceptors of hydrogen bonds, as a share of 4.
fn bonding(molecule: &Molecule) -> f64 {
    let bonds = (molecule.n_donors() + molecule.n_acceptors()) as f64;
    LEAST + (1.0 - LEAST) * (bonds / 4.0).min(1.0)
}

/// 1 without a polar surface, falling to 1 / e over 40 square angstrom.
fn greasy(molecule: &Molecule) -> f64 {
    LEAST + (1.0 - LEAST) * (-molecule.polar_surface() / 40.0).exp()
}

fn conditioning(args: &Args) -> Result<Conditioning> {
    let encoding = Encoding::Thermometer { bins: args.bins };
    let law = if args.beta_min == args.beta_max {
        Temperature::Constant(args.beta_max)
    } else {
        Temperature::Uniform { least: args.beta_min, most: args.beta_max }
    };
    let preferences = Directions::Dirichlet { concentration: args.concentration };
    let conditioning = Conditioning::new(2)?.temperature(law, encoding)?.preferences(preferences, encoding)?;
    match args.focus {
        None => Ok(conditioning),
        Some(cosine) => {
            let directions = Directions::Dirichlet { concentration: args.concentration };
            conditioning.focus(focus(cosine, args.beta_max, LEAST, directions), encoding)
        }
    }
}

/// The conditions under which the policy is looked at: evenly spread preferences, and a focus of the same direction.
fn asked(args: &Args) -> Result<Vec<Condition>> {
    let grid = simplex_grid(2, args.preferences)?;
    let of = |row: &[f64]| Condition {
        beta: args.beta_max,
        preferences: row.to_vec(),
        focus: args.focus.map(|_| row.to_vec()),
    };
    Ok(grid.rows().map(of).collect())
}

/// A sample under one condition: molecules and their objectives.
fn sample(
    args: &Args,
    codec: &MoleculeCodec,
    trainer: &MoleculeTrainer,
    reward: &ConditionedReward<GraphStates>,
    vector: &Tensor,
    rng: &mut Rng,
) -> Result<(Vec<Molecule>, Reals)> {
    let conditions = vector.expand([args.samples as i64, -1], false);
    let sampled = Sampler::new(trainer.env(), trainer.policy()).forward_conditional(&conditions, rng)?;
    let states = sampled.terminal_states();
    let molecules = states.graphs().iter().map(|graph| codec.molecule(graph));
    Ok((molecules.collect::<Result<_>>()?, reward.objectives(states)?))
}

/// The rows of the front, along the first objective.
fn front(objectives: &Reals) -> Result<Vec<(f64, f64)>> {
    let mut front: Vec<(f64, f64)> =
        pareto_front(objectives)?.into_iter().map(|i| (objectives.row(i)[0], objectives.row(i)[1])).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(front)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    if args.samples < 2 {
        return Err(Error::config("--samples", args.samples, "at least 2"));
    }
    refuse_validation()?;
    let asked = asked(args)?;
    let title = format!("molecules of at most {} atoms, two rewards", args.max_atoms);
    let recipe = Recipe { steps: 4_000, batch: 128, log_z_lr: 1e-2, exact_up_to: 50_000, ..Recipe::default() };
    let run = Run::begin(common, "molecule_multi_objective", title, recipe)?;
    let molecules = MoleculeEnv::new(MoleculeConfig {
        elements: vec![Element::C, Element::N, Element::O],
        charges: Vec::new(),
        ..MoleculeConfig::new(args.max_atoms)
    })?;
    let (env, codec) = (molecules.env().clone(), molecules.codec());
    let conditioning = conditioning(args)?;
    let of = |score: fn(&Molecule) -> f64| Arc::new(MoleculeReward::new(codec, score));
    let reward: ConditionedReward<GraphStates> =
        ConditionedReward::new(conditioning.clone(), vec![of(bonding), of(greasy)])?;
    let mut rng = run.rng();
    let embedding = common.embedding.unwrap_or(64);
    let network = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: common.layers.unwrap_or(3),
        embedding,
        identity: false,
        pair_walks: Some(3),
        backward: common.backward(BackwardPolicy::SharedTorso),
        estimators: EstimatorsConfig {
            n_conditions: conditioning.width() as i64,
            logit_scale: args.logit_scale.then(|| MlpConfig { hidden: vec![embedding], ..MlpConfig::default() }),
            ..common.objective.estimators()
        },
        ..GraphNetConfig::default()
    };
    let description = json!({ "example": "molecule_multi_objective", "max_atoms": args.max_atoms,
        "conditioning": conditioning, "network": network });
    let policy = GraphPolicy(GraphNet::new(&env, network, run.device, tch::Kind::Float, &mut rng)?);
    let graph = if members::is_first() { listed(run.recipe.exact_up_to, &env)? } else { None };
    let trainer = Trainer::new(env, reward.clone(), policy, run.objective()?, run.config.clone(), rng)?
        .with_conditions(conditioning.clone())
        .described_by(&description)?;
    let mut trainer = run.replayed(trainer, ReplayBuffer::new)?;
    if let Some(share) = args.hindsight {
        trainer = trainer.with_hindsight(FocusInHindsight(reward.clone()), share)?;
    }
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), Vec::new())? else { return Ok(()) };

    let (mut rng, mut rows, mut distances) = (trainer.evaluation_rng(), Vec::new(), Vec::new());
    let (mut all, mut objectives) = (Vec::new(), Reals::filled(2, 0, 0.0));
    for condition in &asked {
        let vector = conditioning.encode(std::slice::from_ref(condition))?;
        let (molecules, own) = sample(args, codec, &trainer, &reward, &vector, &mut rng)?;
        let of = |k: usize| own.rows().map(|row| row[k]).sum::<f64>() / own.len() as f64;
        let fingerprints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::of).collect();
        let mut row = json!({ "preferences": condition.preferences, "mean_bonding": of(0), "mean_greasy": of(1),
            "internal_diversity": internal_diversity(&fingerprints)?, "uniqueness": uniqueness(&molecules)? });
        if let (Some(direction), Some(cosine)) = (&condition.focus, args.focus) {
            row["focus_accuracy"] = json!(focus_accuracy(&own, direction, cosine)?);
        }
        if let Some(graph) = &graph {
            let target = graph.target_distribution(&reward, Some(&vector))?;
            let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), Some(&vector))?;
            let d = Distances::between(&learned.probs, &target.probs)?;
            let log_z = Policy::<GraphEnv>::log_z(trainer.policy(), Some(&vector), 1).map(|z| z.double_value(&[0]));
            distances.push(d);
            (row["tv"], row["log_z"], row["log_z_true"]) = (json!(d.tv), json!(log_z), json!(target.log_z));
        }
        rows.push(row);
        all.extend(molecules);
        objectives.append(own);
    }

    let found = front(&objectives)?;
    let distinct: BTreeSet<CanonicalKey> = all.iter().map(Molecule::key).collect();
    let weights = simplex_grid(2, 20)?;
    let mut report = Report::default();
    report.set("hypervolume", hypervolume(&objectives, &REFERENCE)?);
    report.set("r2", r2_indicator(&objectives, &weights, &UTOPIA)?);
    report.set("front_size", found.len());
    report.set("distinct_samples", distinct.len());
    report.set("conditions", rows);
    report.set("front", &found);
    let points = objectives.rows().map(|row| (row[0], row[1]));
    let mut panel = Panel::scatter("samples, their front, and that of all (line)", points)
        .labels("hydrogen bonds", "small polar surface")
        .equal_aspect()
        .curve(Curve::new("front", found));
    match &graph {
        Some(graph) => {
            let mean = |of: fn(&Distances) -> f64| distances.iter().map(|d| of(d) / asked.len() as f64).sum::<f64>();
            report.exact_mean([mean(|d| d.l1), mean(|d| d.tv), mean(|d| d.jsd)]);
            let whole = reward.objectives(&graph.states().select(&graph.ends()))?;
            let best = front(&whole)?;
            let points = Reals::from_rows(best.iter().map(|&(x, y)| [x, y]));
            report.set("hypervolume_of_all", hypervolume(&whole, &REFERENCE)?);
            report.set("r2_of_all", r2_indicator(&whole, &weights, &UTOPIA)?);
            report.set("igd", inverted_generational_distance(&objectives, &points)?);
            panel = panel.outlines([best]);
        }
        None => report.not_listed(&run),
    }
    report.panels.push(panel);
    run.print(&trained, report)
}
