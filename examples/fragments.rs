//! Molecules fragment by fragment: junction trees, up to isomorphism and the fragments' own symmetries, in proportion to a score.

mod cli;

use std::path::PathBuf;

use clap::Parser;
use cli::molecules::{self, ScoreArgs};
use cli::{Common, Defaults, Distance, Exact, Outcome, main_of, train};
use gfn::graph::GraphState;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_gym::molecule::MoleculeScore;
use serde_json::json;

/// Train a GNN policy to build molecules from fragments
#[derive(Parser, Debug)]
struct Args {
    #[command(flatten)]
    score: ScoreArgs,
    /// File of fragments, one per line: a SMILES, a blank, and the atoms that others can be attached to, counted from 0 as written, with
    /// commas between them; an atom is listed as often as it may have something attached, at most once per hydrogen
    #[arg(long)]
    library: Option<PathBuf>,
    /// The library's standard set of common rings and groups, in place of the eight that are exact
    #[arg(long, conflicts_with = "library")]
    all_fragments: bool,
    /// Most fragments
    #[arg(long, default_value_t = 3)]
    max_fragments: usize,
    /// Train on R(G) in place of R(G) |Aut(G)| / prod |Aut(F)|: samples R(G) prod |Aut(F)| / |Aut(G)|
    #[arg(long)]
    no_symmetry_correction: bool,
    /// Sample by uniform random moves in the end, not by the trained policy: what the masks allow
    #[arg(long)]
    random: bool,
    /// Molecules that are sampled at the end
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// What is built with if nothing else is asked for: 539 trees of at most three.
const FEW: &str = "\
c1ccccc1 0,1,2,3,4,5
N1CCNCC1 0,3
O=CN 1,2,2
C=O 0,0
C 0,0
N 0,0,0
O 0,0
F 0
";

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 50_000;

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn library(args: &Args) -> Result<FragmentLibrary> {
    match &args.library {
        Some(path) => FragmentLibrary::read(path),
        None if args.all_fragments => FragmentLibrary::standard(),
        None => FragmentLibrary::parse(FEW),
    }
}

fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    let library = library(args)?;
    let env = Fragments::new(&library, args.max_fragments)?.with_symmetry_correction(!args.no_symmetry_correction);
    let reward = FragmentReward::new(&library, molecules::score(&args.score)?);
    let defaults = Defaults { steps: 4_000, batch: 128, ..Defaults::default() };
    let mut rng = Rng::seeded(common.seed);
    let network = GraphNetConfig {
        // Stems are attributes of arcs: `Gin` doesn't see them.
        conv: ConvKind::Gine,
        layers: common.layers.unwrap_or(2),
        embedding: common.embedding.unwrap_or(64),
        backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
        flow: common.objective.needs_flow(),
        ..GraphNetConfig::default()
    };
    let fragments: Vec<String> = library.fragments().iter().map(|fragment| fragment.to_string()).collect();
    let description = json!({ "example": "fragments", "max_fragments": args.max_fragments, "network": network,
        "fragments": fragments });
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let exact = match common.lr {
        Some(0.0) => None,
        _ => Exact::up_to(EXACT_LIMIT, &env, &reward)?,
    };
    let config = common.trainer(&defaults);
    let (steps, batch) = (common.steps(&defaults), config.batch);
    let objective = common.objective.build()?;
    let policy = GraphPolicy(net);
    let mut trainer =
        Trainer::boxed(env, Box::new(reward.clone()), policy, objective, config, rng)?.described_by(&description)?;
    let replay = common.replay(&defaults)?;
    if let Some((config, _)) = replay {
        trainer = trainer.with_replay(ReplayBuffer::distinct(config)?);
    }
    let prefill = replay.map_or(0, |(_, prefill)| prefill);
    let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
    let trained = train(&mut trainer, common, "fragments", steps, prefill, look)?;

    let read = |graph: &GraphState| library.molecule(graph);
    let sampled = molecules::sample(&trainer, (args.samples, args.random), read)?;
    let log_scores = reward.score().log_scores(&sampled)?;
    let mut extra = molecules::of_samples(&sampled, &log_scores);
    extra.push(("symmetry_corrected", json!(!args.no_symmetry_correction)));
    molecules::write(common, &sampled, &log_scores)?;
    let mut distance = Distance::default();
    let mut panel = None;
    if let Some(exact) = &exact {
        let (learned, probs) = exact.learned(trainer.env(), trainer.policy())?;
        distance = learned;
        extra.extend(molecules::of_symmetry(exact, trainer.env(), &probs)?);
        let (tv_molecules, n_trees, n_molecules) = molecules::tv_of_molecules(exact, &probs, read)?;
        let counts = [("states", exact.graph.len()), ("trees", n_trees), ("molecules", n_molecules)];
        extra.push(("tv_molecules", json!(tv_molecules)));
        extra.extend(counts.map(|(name, count)| (name, json!(count))));
        panel = Some(exact.panel("junction trees", &probs));
    }
    let corrected = exact.as_ref().filter(|_| !args.no_symmetry_correction);
    let log_z_true = corrected.map(|exact| exact.target.log_z);
    let title = format!("trees of at most {} fragments, {:?}", args.max_fragments, args.score.reward).to_lowercase();
    trained.draw(common, &title, log_z_true, panel)?;
    let params = trainer.n_parameters();
    let example = "fragments";
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
