//! Molecules of fragments with a high affinity to soluble epoxide hydrolase: the field's own measure, by reward calls.

mod baseline;
pub(super) mod focus;
pub(crate) mod moo;
mod scored;
mod seen;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::nn::{BackwardPolicy, ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::optim::Schedule;
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::run::Record;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_extras::condition::{Condition, ConditionedReward, Conditioning, Encoding, Temperature};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{Fingerprint, Molecule, MoleculeScore, SehProxy, internal_diversity};
use serde_json::json;
use tch::Tensor;

use super::outputs;
use super::train::Shared;
use crate::flags::{Common, refuse, refuse_validation, words};
use crate::plot::{Curve, Panel};
use crate::run::{Recipe, Report, Run, Trained, members};
use scored::ScoredTable;
use seen::{Point, Watched};

/// Train a policy on the published proxy of binding to sEH, or run what it is compared with
///
/// The published settings of recursionpharma/gflownet, but for its network, are `--objective tb --replay 0
/// --beta-from 32 --lr 1e-4 --log-z-lr 1e-3 --lr-end 1 --epsilon 0 --backward uniform --ema 0.99 --ema-sampling`.
/// With --out or --run, every molecule that is scored is written to `scored.csv`.
#[derive(Parser, Debug)]
#[command(mut_arg("objective", |objective| objective.default_value("subtb")))]
pub(crate) struct Args {
    /// The proxy's weights: `mols/data/pretrained_proxy/best_params.pkl.gz` of github.com/GFNOrg/gflownet, or its arrays as `.npz`
    #[arg(long)]
    weights: PathBuf,
    /// Search for molecules
    #[arg(long, value_enum, default_value = "policy")]
    by: Method,
    /// The reduced list of 18 fragments, in place of 72
    #[arg(long)]
    reduced: bool,
    /// Most fragments
    #[arg(long, default_value_t = 9)]
    max_fragments: usize,
    /// R is the proxy's output over 8, at least 1e-4, to this power
    #[arg(long, default_value_t = 32.0)]
    beta: f64,
    /// Power at the first step; it rises to --beta over half of the steps. If it equals --beta, the power is constant
    #[arg(long)]
    beta_from: Option<f64>,
    /// One policy for all powers between --beta-from (by default 0.5) and --beta, which it is told
    #[arg(long)]
    any_beta: bool,
    /// Molecules that are sampled in the end
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    #[command(flatten)]
    common: Common,
}

/// A search for molecules.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    /// By a policy that is trained
    Policy,
    /// By uniform random walks
    Random,
    /// By a genetic algorithm on trees
    Genetic,
}

/// Points of the curve.
const POINTS: usize = 50;
/// Molecules that are sampled at once.
const AT_ONCE: usize = 250;
/// Power that a policy begins with where it isn't told it: from 32 at once it takes the first good molecule for all.
const FIRST_BETA: f64 = 4.0;
/// Least power of a policy for all of them, as published.
const LEAST_BETA: f64 = 0.5;

fn library(args: &Args) -> Result<FragmentLibrary> {
    if args.reduced { FragmentLibrary::bengio2021_reduced() } else { FragmentLibrary::bengio2021() }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    refuse_validation()?;
    let library = library(args)?;
    let fragments = Fragments::new(&library, args.max_fragments)?;
    let title = format!("sEH, trees of at most {} of {} fragments", args.max_fragments, library.fragments().len());
    let recipe =
        Recipe { steps: 2_500, batch: 64, lr: 1e-3, replay: 2_000, exact_up_to: 0, samples: 0, ..Recipe::default() };
    let run = Run::begin(common, "seh_frag", title, recipe)?;
    let calls = run.steps() * run.config.batch;
    let table = common.out().filter(|_| members::is_first()).map(|out| ScoredTable::new(out.join("scored.csv")));
    let watched = Arc::new(Watched::new(SehProxy::load(&args.weights, run.device)?, (calls / POINTS).max(1), table));
    match args.by {
        Method::Policy => train(args, &run, fragments, &watched),
        other => {
            refuse(&["--beta", "--beta-from", "--any-beta", "--samples"], "no such flag without a policy")?;
            if !members::sees_all() {
                let one = "one: leave out what makes several";
                return Err(Error::config("the members of a search without a policy", members::count(), one));
            }
            let (started, mut rng) = (Instant::now(), run.rng());
            match other {
                Method::Genetic => baseline::genetic(&fragments, &watched, calls, &mut rng)?,
                _ => baseline::random(&fragments, &watched, calls, &mut rng)?,
            }
            let trained = Trained::without_steps(run.config.batch, started.elapsed().as_secs_f64());
            run.print(&trained, report(args, &watched))
        }
    }
}

/// The power as a condition, where the policy is told it.
fn conditioning(args: &Args) -> Result<Option<Conditioning>> {
    let law = Temperature::Uniform { least: args.beta_from.unwrap_or(LEAST_BETA), most: args.beta };
    let one = || Conditioning::new(1)?.temperature(law, Encoding::Thermometer { bins: 32 });
    args.any_beta.then(one).transpose()
}

fn train(args: &Args, run: &Run<'_>, fragments: Fragments, watched: &Arc<Watched>) -> Result<()> {
    let (common, library) = (&args.common, fragments.library().clone());
    let (conditioning, mut rng) = (conditioning(args)?, run.rng());
    let network = network(common, conditioning.as_ref());
    let description = json!({ "example": "seh_frag", "max_fragments": args.max_fragments, "reduced": args.reduced,
        "conditioning": conditioning, "network": network });
    let policy = GraphPolicy(GraphNet::new(fragments.env(), network, run.device, tch::Kind::Float, &mut rng)?);
    let (score, mut config) = (Shared(watched.clone()), run.config.clone());
    let trainer = match &conditioning {
        Some(conditioning) => {
            let rewards = vec![Arc::new(FragmentReward::new(&library, score)) as _];
            let reward = ConditionedReward::<GraphStates>::new(conditioning.clone(), rewards)?;
            Trainer::new(fragments.into_env(), reward, policy, run.objective()?, config, rng)?
                .with_conditions(conditioning.clone())
        }
        None => {
            let (from, steps) = (args.beta_from.unwrap_or(FIRST_BETA.min(args.beta)), run.steps().div_ceil(2));
            config.reward_exponent = Schedule::Linear { from: from / args.beta, to: 1.0, steps };
            let reward = FragmentReward::new(&library, score.to_the(args.beta)?);
            Trainer::new(fragments.into_env(), reward, policy, run.objective()?, config, rng)?
        }
    };
    let trainer = run.replayed(trainer.described_by(&description)?, ReplayBuffer::distinct)?;
    let mut write_scored = |_: &Trainer<GraphEnv>, record: &mut Record| {
        watched.finish_step(Some(record.step))?;
        Ok(ControlFlow::Continue(()))
    };
    let Some((trainer, trained)) = run.train(trainer, |_| Ok(None), vec![&mut write_scored])? else { return Ok(()) };
    // Without a step, molecules that filled the replay buffer aren't written yet.
    watched.finish_step(Some(trainer.steps_done() + 1))?;

    let asked = |conditioning: &Conditioning| {
        conditioning.encode(&[Condition { beta: args.beta, preferences: vec![1.0], focus: None }])
    };
    let asked = conditioning.as_ref().map(asked).transpose()?;
    let molecules = sampled(args, &trainer, asked.as_ref(), &library)?;
    let log_scores = watched.unseen(&molecules)?;
    let mut report = report(args, watched);
    report.extend(outputs::of_samples(&molecules, &log_scores));
    let n = molecules.len().max(1) as f64;
    report.set("mean_score", log_scores.iter().map(|log| log.exp()).sum::<f64>() / n);
    if molecules.len() > 1 {
        let prints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::of).collect();
        report.set("internal_diversity", internal_diversity(&prints)?);
    }
    outputs::write(common, &molecules, &log_scores, None)?;
    run.print(&trained, report)
}

/// The policy's network; with a condition that it is told, one that scales the logits by it, too.
fn network(common: &Common, conditioning: Option<&Conditioning>) -> GraphNetConfig {
    let embedding = common.embedding.unwrap_or(128);
    GraphNetConfig {
        // Stems are attributes of arcs: `Gin` doesn't see them.
        conv: ConvKind::Gine,
        layers: common.layers.unwrap_or(4),
        embedding,
        backward: common.backward(BackwardPolicy::SharedTorso),
        estimators: EstimatorsConfig {
            n_conditions: conditioning.map_or(0, |conditioning| conditioning.width() as i64),
            logit_scale: conditioning.map(|_| MlpConfig { hidden: vec![embedding], ..MlpConfig::default() }),
            ..common.objective.estimators()
        },
        ..GraphNetConfig::default()
    }
}

/// Molecules that the policy makes in the end, under a condition if it is told one.
fn sampled(
    args: &Args,
    trainer: &Trainer<GraphEnv>,
    asked: Option<&Tensor>,
    library: &FragmentLibrary,
) -> Result<Vec<Molecule>> {
    let (sampler, rng) = (Sampler::new(trainer.env(), trainer.policy()), &mut trainer.evaluation_rng());
    let (mut molecules, mut left) = (Vec::new(), args.samples);
    while left > 0 {
        let n = left.min(AT_ONCE);
        let trajectories = match asked {
            Some(vector) => sampler.forward_conditional(&vector.expand([n as i64, -1], false), rng)?,
            None => sampler.forward(n, rng)?,
        };
        for graph in trajectories.terminal_states().graphs() {
            molecules.push(library.molecule(graph)?);
        }
        left -= n;
    }
    Ok(molecules)
}

/// Figures and curves of what was found.
fn report(args: &Args, watched: &Watched) -> Report {
    let (seen, mut report) = (watched.seen(), Report::default());
    let last = seen.point();
    report.extend([
        ("by", json!(words(&args.by))),
        ("beta", json!(args.beta)),
        ("scored", json!(last.reward_calls)),
        ("mean_last_1000", json!(last.mean)),
        ("top_100", json!(last.top_100)),
        ("modes", json!(last.modes)),
        ("distinct_scored", json!(last.distinct)),
        ("curve", json!(seen.curve)),
        ("why_not_exact", json!("there are more trees than can be listed")),
    ]);
    let panel = |title: &str, of: fn(&Point) -> f64| {
        let points = seen.curve.iter().map(|point| (point.reward_calls as f64, of(point)));
        Panel::new(title).labels("reward calls", "").curve(Curve::new(title, points))
    };
    report.panels.push(panel("mean score of the last 1,000", |point| point.mean));
    report.panels.push(panel("mean score of the best 100", |point| point.top_100));
    report.panels.push(panel("modes", |point| point.modes as f64));
    report
}
