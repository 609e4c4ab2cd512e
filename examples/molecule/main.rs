//! Molecules atom by atom, up to isomorphism, in proportion to a score: a descriptor, or whatever an external program says.

#[path = "../cli/mod.rs"]
mod cli;

use clap::{Parser, ValueEnum};
use cli::molecules::{self, ScoreArgs};
use cli::{Common, Defaults, Distance, Exact, Outcome, main_of, train};
use gfn::graph::GraphState;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::molecule::{Element, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore};
use serde_json::json;

/// Train a GNN policy to build molecules atom by atom
#[derive(Parser, Debug)]
struct Args {
    #[command(flatten)]
    score: ScoreArgs,
    /// Most heavy atoms
    #[arg(long, default_value_t = 4)]
    max_atoms: usize,
    /// Most rings
    #[arg(long)]
    max_rings: Option<usize>,
    /// Most atoms of a ring
    #[arg(long)]
    max_ring_size: Option<usize>,
    /// Elements of atoms, without charges
    #[arg(long, value_delimiter = ',', value_parser = element, default_value = "C,N,O")]
    elements: Vec<Element>,
    /// All of C, N, O, F, P, S, Cl, Br with N+ and O-
    #[arg(long, conflicts_with = "elements")]
    all_elements: bool,
    /// How atoms exchange messages
    #[arg(long, value_enum, default_value = "gine")]
    conv: ConvName,
    /// Train on R(G) in place of |Aut(G)| R(G): samples R(G) / |Aut(G)|
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

fn element(symbol: &str) -> std::result::Result<Element, String> {
    let known = Element::from_symbol(symbol).filter(|(_, aromatic)| !aromatic);
    known.map(|(element, _)| element).ok_or_else(|| "expected symbols of elements such as C,N,Cl".into())
}

/// How atoms exchange messages.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ConvName {
    /// Sums over neighbours, with what bonds are
    Gine,
    /// Attention along bonds and to a node of the whole molecule, as in recursionpharma/gflownet; four heads
    Transformer,
}

impl From<ConvName> for ConvKind {
    fn from(name: ConvName) -> Self {
        match name {
            // Bond orders are attributes of edges: `Gin` doesn't see them.
            ConvName::Gine => Self::Gine,
            ConvName::Transformer => Self::Transformer { heads: 4 },
        }
    }
}

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 50_000;

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    let mut config = MoleculeConfig {
        max_rings: args.max_rings,
        max_ring_size: args.max_ring_size,
        corrects_symmetry: !args.no_symmetry_correction,
        ..MoleculeConfig::new(args.max_atoms)
    };
    if !args.all_elements {
        config.elements.clone_from(&args.elements);
        config.charges = Vec::new();
    }
    let env = MoleculeEnv::new(config)?;
    let codec = env.codec().clone();
    let reward = MoleculeReward::new(&codec, molecules::score(&args.score)?);
    let defaults = Defaults { steps: 4_000, batch: 128, ..Defaults::default() };
    let mut rng = Rng::seeded(common.seed);
    let network = GraphNetConfig {
        conv: args.conv.into(),
        layers: common.layers.unwrap_or(3),
        embedding: common.embedding.unwrap_or(64),
        identity: false,
        pair_walks: Some(3),
        global: true,
        backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
        flow: common.objective.needs_flow(),
        ..GraphNetConfig::default()
    };
    let description = json!({ "example": "molecule", "max_atoms": args.max_atoms, "network": network });
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
    let trained = train(&mut trainer, common, "molecule", steps, prefill, look)?;

    let read = |graph: &GraphState| codec.molecule(graph);
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
        extra.push(("tv_molecules", json!(molecules::tv_of_molecules(exact, &probs, read)?.0)));
        extra.push(("states", json!(exact.graph.len())));
        extra.extend(exact.modes(&probs));
        panel = Some(exact.panel("Kekule forms", &probs));
    } else {
        extra.extend([("modes_found", json!(null)), ("modes_total", json!(null))]);
    }
    let corrected = exact.as_ref().filter(|_| !args.no_symmetry_correction);
    let log_z_true = corrected.map(|exact| exact.target.log_z);
    let title = format!("molecules of at most {} atoms, {:?}", args.max_atoms, args.score.reward).to_lowercase();
    trained.draw(common, &title, log_z_true, panel)?;
    let params = trainer.n_parameters();
    let example = "molecule";
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
