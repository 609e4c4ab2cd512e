//! Four objectives at once: affinity to sEH, drug-likeness, synthetic accessibility and weight, as published for preference- and goal-conditioned policies.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use gfn::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, Focus, FocusInHindsight, Temperature,
};
use gfn::env::{Reals, Reward, Rows};
use gfn::graph::GraphStates;
use gfn::nn::GraphNet;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::pareto::{focus_accuracy, hypervolume, pareto_front, simplex_grid};
use gfn_molecules::{
    Factor, Fingerprint, Molecule, MoleculeScore, Property, ScoreConfig, SehProxy, Shape, internal_diversity,
};
use serde_json::json;

use super::{FragmentEnv, network};
use crate::flags::{Common, refuse_validation};
use crate::plot::Panel;
use crate::run::{Recipe, Report, Run, sample};

/// Train a policy on four objectives of molecules at once, which it is told the weights of
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// The proxy's weights: `mols/data/pretrained_proxy/best_params.pkl.gz` of github.com/GFNOrg/gflownet, or its arrays as `.npz`
    #[arg(long)]
    weights: PathBuf,
    /// RDKit's table of synthetic accessibility, `Contrib/SA_Score/fpscores.pkl.gz`
    #[arg(long)]
    sa_table: PathBuf,
    /// Most fragments
    #[arg(long, default_value_t = 9)]
    max_fragments: usize,
    /// R is the weighted sum of objectives to this power
    #[arg(long, default_value_t = 32.0)]
    beta: f64,
    /// Reward only what is within a cone of objectives, of this cosine
    #[arg(long)]
    focus: Option<f64>,
    /// Preferences that are compared: multiples of one over so much
    #[arg(long, default_value_t = 2)]
    preferences: usize,
    /// Molecules that are sampled under each
    #[arg(long, default_value_t = 64)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// The objectives, each between these bounds.
const NAMES: [&str; 4] = ["seh", "qed", "sa", "weight"];
const LEAST: f64 = 1e-4;
/// Share of replayed molecules whose focus is turned to where they are.
const HINDSIGHT: f64 = 0.3;
/// The point that the hypervolume is above.
const REFERENCE: [f64; 4] = [0.0; 4];

/// The score of one property.
fn shaped(property: Property, shape: Shape) -> Result<impl MoleculeScore + 'static> {
    ScoreConfig { factors: vec![Factor { shape, ..Factor::of(property) }] }.build()?.clamped(LEAST, 1.0)
}

fn rewards(
    args: &Args,
    run: &Run<'_>,
    library: &FragmentLibrary,
) -> Result<Vec<Arc<dyn Reward<GraphStates> + Send + Sync>>> {
    let seh = SehProxy::load(&args.weights, run.device)?.clamped(LEAST, 1.0)?;
    let qed = shaped(Property::Qed, Shape::Value)?;
    let table = Property::SyntheticAccessibility { table: args.sa_table.clone() };
    let sa = shaped(table, Shape::Linear { zero: 10.0, one: 1.0 })?;
    let weight = shaped(Property::Weight, Shape::Linear { zero: 1_000.0, one: 300.0 })?;
    let of = |score: Box<dyn MoleculeScore>| Arc::new(FragmentReward::new(library, score)) as _;
    Ok(vec![of(Box::new(seh)), of(Box::new(qed)), of(Box::new(sa)), of(Box::new(weight))])
}

fn conditioning(args: &Args) -> Result<Conditioning> {
    let encoding = Encoding::Thermometer { bins: 16 };
    let law = Directions::Dirichlet { concentration: 1.0 };
    let conditioning = Conditioning::new(NAMES.len())?
        .temperature(Temperature::Constant(args.beta), encoding)?
        .preferences(law.clone(), encoding)?;
    match args.focus {
        None => Ok(conditioning),
        Some(cosine) => conditioning.focus(Focus { cosine, ..Focus::new(law) }, encoding),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    if args.samples < 2 {
        return Err(Error::config("--samples", args.samples, "at least 2"));
    }
    refuse_validation()?;
    let library = FragmentLibrary::bengio2021()?;
    let env = Fragments::new(&library, args.max_fragments)?;
    let title = format!("sEH and three more, trees of at most {} fragments", args.max_fragments);
    let recipe = Recipe { steps: 5_000, batch: 64, lr: 1e-3, exact_up_to: 0, samples: 0, ..Recipe::default() };
    let run = Run::begin(common, "seh_frag_moo", title, recipe)?;
    let conditioning = conditioning(args)?;
    let reward = ConditionedReward::<GraphStates>::new(conditioning.clone(), rewards(args, &run, &library)?)?;
    let (network, mut rng) = (network(common, Some(&conditioning)), run.rng());
    let description = json!({ "example": "seh_frag_moo", "max_fragments": args.max_fragments,
        "conditioning": conditioning, "network": network });
    let policy = GraphPolicy(GraphNet::new(&env, network, run.device, tch::Kind::Float, &mut rng)?);
    let trainer = Trainer::new(env, reward.clone(), policy, run.objective()?, run.config.clone(), rng)?
        .with_conditions(conditioning.clone())
        .described_by(&description)?;
    let mut trainer = run.replayed(trainer, ReplayBuffer::new)?;
    if args.focus.is_some() && trainer.replay().is_some() {
        trainer = trainer.with_hindsight(FocusInHindsight(reward.clone()), HINDSIGHT)?;
    }
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), Vec::new())? else { return Ok(()) };

    let (mut rng, mut rows, mut all) = (trainer.evaluation_rng(), Vec::new(), Reals::filled(NAMES.len(), 0, 0.0));
    for preferences in simplex_grid(NAMES.len(), args.preferences)?.rows() {
        let focus = args.focus.map(|_| preferences.to_vec());
        let condition = Condition { beta: args.beta, preferences: preferences.to_vec(), focus: focus.clone() };
        let vector = conditioning.encode(&[condition])?.expand([args.samples as i64, -1], false);
        let sampled = Sampler::new(trainer.env(), trainer.policy()).forward_conditional(&vector, &mut rng)?;
        let states = sampled.terminal_states();
        let molecules =
            states.graphs().iter().map(|graph| library.molecule(graph)).collect::<Result<Vec<Molecule>>>()?;
        let own = reward.objectives(states)?;
        let prints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::of).collect();
        let mut row = json!({ "preferences": preferences, "means": means(&own),
            "internal_diversity": internal_diversity(&prints)? });
        if let (Some(direction), Some(cosine)) = (&focus, args.focus) {
            row["focus_accuracy"] = json!(focus_accuracy(&own, direction, cosine)?);
        }
        rows.push(row);
        all.append(own);
    }
    // As many uniform random trees, to compare with.
    let random = reward.objectives(&sample::<FragmentEnv, _>(trainer.env(), &UniformPolicy, all.len(), &mut rng)?)?;
    let mut report = Report::default();
    report.extend([
        ("objectives", json!(NAMES)),
        ("hypervolume", json!(hypervolume(&all, &REFERENCE)?)),
        ("hypervolume_random", json!(hypervolume(&random, &REFERENCE)?)),
        ("means", json!(means(&all))),
        ("means_random", json!(means(&random))),
        ("front_size", json!(pareto_front(&all)?.len())),
        ("samples", json!(all.len())),
        ("conditions", json!(rows)),
        ("why_not_exact", json!("there are more trees than can be listed")),
    ]);
    let points = |of: &Reals| of.rows().map(|row| (row[0], row[1])).collect::<Vec<_>>();
    report.panels.push(Panel::scatter("samples", points(&all)).labels(NAMES[0], NAMES[1]));
    report.panels.push(Panel::scatter("random trees", points(&random)).labels(NAMES[0], NAMES[1]));
    run.print(&trained, report)
}

fn means(objectives: &Reals) -> Vec<f64> {
    let n = objectives.len().max(1) as f64;
    (0..NAMES.len()).map(|k| objectives.rows().map(|row| row[k]).sum::<f64>() / n).collect()
}
