//! Four objectives at once: affinity to sEH, drug-likeness, synthetic accessibility and weight, the objectives of
//! Roy et al., *Goal-conditioned GFlowNets for Controllable Multi-Objective Molecular Design*, 2023.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use gfn::env::{Reals, Reward, Rows};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::nn::GraphNet;
use gfn::optim::Schedule;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, FocusInHindsight, Temperature,
};
use gfn_extras::pareto::{focus_accuracy, hypervolume, pareto_front, simplex_grid};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{
    Factor, Fingerprint, Molecule, MoleculeScore, Property, ScoreConfig, SehProxy, Shape, internal_diversity,
};
use serde_json::json;

use super::focus::{focus, spread};
use super::{FIRST_BETA, network};
use crate::flags::{BufferName, Common, refuse_validation};
use crate::plot::Panel;
use crate::run::lines::tell;
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
    /// Train for directions of objectives instead of preferences, and report the share of samples in a cone of this
    /// cosine around each direction. The directions are those of the front of 1,000 random trees
    #[arg(long)]
    focus: Option<f64>,
    /// Preferences that are compared: multiples of one over this number. With --focus as many directions are compared
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
/// The number of molecules in the replay buffer, which only a run with a focus has by default.
const REPLAYED: usize = 2_000;
/// The number of random trees whose front has the directions of focus.
const RANDOM: usize = 1_000;
/// The point that the hypervolume is above.
const REFERENCE: [f64; 4] = [0.0; 4];

type ObjectiveReward = Arc<dyn Reward<GraphStates> + Send + Sync>;

/// The score of one property.
fn shaped(property: Property, shape: Shape) -> Result<impl MoleculeScore + 'static> {
    ScoreConfig { factors: vec![Factor { shape, ..Factor::of(property) }] }.build()?.clamped(LEAST, 1.0)
}

fn rewards(args: &Args, run: &Run<'_>, library: &FragmentLibrary) -> Result<Vec<ObjectiveReward>> {
    let seh = SehProxy::load(&args.weights, run.device)?.clamped(LEAST, 1.0)?;
    let qed = shaped(Property::Qed, Shape::Value)?;
    let table = Property::SyntheticAccessibility { table: args.sa_table.clone() };
    let sa = shaped(table, Shape::Linear { zero: 10.0, one: 1.0 })?;
    let weight = shaped(Property::Weight, Shape::Linear { zero: 1_000.0, one: 300.0 })?;
    let of = |score: Box<dyn MoleculeScore>| Arc::new(FragmentReward::new(library, score)) as _;
    Ok(vec![of(Box::new(seh)), of(Box::new(qed)), of(Box::new(sa)), of(Box::new(weight))])
}

/// The front of uniform random trees, the same for every seed: objectives whose directions can be reached.
fn random_front(env: &GraphEnv, rewards: &[ObjectiveReward]) -> Result<Reals> {
    let plain = ConditionedReward::<GraphStates>::new(Conditioning::new(NAMES.len())?, rewards.to_vec())?;
    let objectives = plain.objectives(&sample(env, &UniformPolicy, RANDOM, &mut Rng::seeded(0))?)?;
    Ok(objectives.select(&pareto_front(&objectives)?))
}

/// Preferences, or directions of focus with equal preferences: both would contradict each other.
fn conditioning(args: &Args, directions: Directions) -> Result<Conditioning> {
    let encoding = Encoding::Thermometer { bins: 16 };
    let conditioning = Conditioning::new(NAMES.len())?.temperature(Temperature::Constant(args.beta), encoding)?;
    match args.focus {
        None => conditioning.preferences(Directions::Dirichlet { concentration: 1.0 }, encoding),
        Some(cosine) => conditioning.focus(focus(cosine, args.beta, LEAST, directions), encoding),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    if args.samples < 2 {
        return Err(Error::config("--samples", args.samples, "at least 2"));
    }
    refuse_validation()?;
    let library = FragmentLibrary::bengio2021()?;
    let env = Fragments::new(&library, args.max_fragments)?.into_env();
    let title = format!("sEH and three more, trees of at most {} fragments", args.max_fragments);
    let mut recipe = Recipe { steps: 5_000, batch: 64, lr: 1e-3, exact_up_to: 0, samples: 0, ..Recipe::default() };
    if args.focus.is_some() {
        recipe.replay = REPLAYED;
        recipe.buffer = BufferName::Fifo;
        // log Z is a network of the condition here, which the rate of a single number would spoil.
        recipe.log_z_lr = 1e-2;
    }
    let mut run = Run::begin(common, "seh_frag_moo", title, recipe)?;
    let rewards = rewards(args, &run, &library)?;
    let front = args.focus.map(|_| random_front(&env, &rewards)).transpose()?;
    let front = front.unwrap_or_else(|| Reals::filled(NAMES.len(), 0, 0.0));
    let directions = Directions::OneOf(front.rows().map(<[f64]>::to_vec).collect());
    let conditioning = conditioning(args, directions)?;
    let reward = ConditionedReward::<GraphStates>::new(conditioning.clone(), rewards)?;
    if args.focus.is_some() {
        let from = FIRST_BETA.min(args.beta) / args.beta;
        run.config.reward_exponent = Schedule::Linear { from, to: 1.0, steps: run.steps().div_ceil(2) };
    }
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
    } else if args.focus.is_some() {
        tell("no hindsight: there is no replay buffer, so no direction is set to where a molecule is");
    }
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), Vec::new())? else { return Ok(()) };

    let (mut rng, mut rows, mut all) = (trainer.evaluation_rng(), Vec::new(), Reals::filled(NAMES.len(), 0, 0.0));
    let grid = simplex_grid(NAMES.len(), args.preferences)?;
    let (tested, row_name, rows_name) = match args.focus {
        Some(_) => (spread(&front, grid.len()), "direction", "focus_directions"),
        None => (grid.rows().map(<[f64]>::to_vec).collect(), "preferences", "conditions"),
    };
    for direction in &tested {
        // With a focus, preferences are constant: they aren't encoded.
        let focus = args.focus.map(|_| direction.clone());
        let condition = Condition { beta: args.beta, preferences: direction.clone(), focus };
        let vector = conditioning.encode(&[condition])?.expand([args.samples as i64, -1], false);
        let sampled = Sampler::new(trainer.env(), trainer.policy()).forward_conditional(&vector, &mut rng)?;
        let states = sampled.terminal_states();
        let molecules =
            states.graphs().iter().map(|graph| library.molecule(graph)).collect::<Result<Vec<Molecule>>>()?;
        let own = reward.objectives(states)?;
        let prints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::of).collect();
        let mut row = json!({ (row_name): direction, "means": means(&own),
            "internal_diversity": internal_diversity(&prints)? });
        if let Some(cosine) = args.focus {
            row["focus_accuracy"] = json!(focus_accuracy(&own, direction, cosine)?);
        }
        rows.push(row);
        all.append(own);
    }
    // As many uniform random trees, to compare with.
    let random = reward.objectives(&sample(trainer.env(), &UniformPolicy, all.len(), &mut rng)?)?;
    let mut report = Report::default();
    if let Some(cosine) = args.focus {
        for (row, direction) in rows.iter_mut().zip(&tested) {
            row["focus_accuracy_random"] = json!(focus_accuracy(&random, direction, cosine)?);
        }
        for name in ["focus_accuracy", "focus_accuracy_random"] {
            report.set(name, rows.iter().filter_map(|row| row[name].as_f64()).sum::<f64>() / rows.len() as f64);
        }
    }
    report.extend([
        ("objectives", json!(NAMES)),
        ("hypervolume", json!(hypervolume(&all, &REFERENCE)?)),
        ("hypervolume_random", json!(hypervolume(&random, &REFERENCE)?)),
        ("means", json!(means(&all))),
        ("means_random", json!(means(&random))),
        ("front_size", json!(pareto_front(&all)?.len())),
        ("samples", json!(all.len())),
        (rows_name, json!(rows)),
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
