//! One policy for a family of rewards: the grid's reward under a condition between 0 (flat) and 1 (the original).

use clap::Parser;
use gfn::env::VectorEnv;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward};
use serde_json::json;
use tch::Tensor;

use crate::flags::Common;
use crate::plot::{Curve, Panel};
use crate::run::{Recipe, Report, Run, listed, members};

/// Train a perceptron that is told the condition
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 8)]
    height: usize,
    #[command(flatten)]
    common: Common,
}

/// Samples under each condition where it isn't exact.
const SAMPLES: usize = 2_000;
/// The conditions under which it is compared with the target.
const CONDITIONS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

type GridTrainer = Trainer<VectorEnv>;

fn condition(c: f64) -> Tensor {
    Tensor::from_slice(&[c as f32]).view([1, 1])
}

/// The share of samples in modes, where probabilities aren't known.
fn mode_share(trainer: &GridTrainer, reward: &OriginalReward, c: f64) -> Result<f64> {
    let conditions = condition(c).expand([SAMPLES as i64, 1], false);
    let sampler = Sampler::new(trainer.env(), trainer.policy());
    let samples = sampler.forward_conditional(&conditions, &mut trainer.evaluation_rng())?;
    let in_modes = reward.is_mode(samples.terminal_states()).into_iter().filter(|is_mode| *is_mode).count();
    Ok(in_modes as f64 / SAMPLES as f64)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let recipe = Recipe { steps: 2_000, batch: 64, exact_up_to: 10_000, ..Recipe::default() };
    let title = format!("conditional grid of {}^{}", args.height, args.ndim);
    let run = Run::begin(common, "conditional_hypergrid", title, recipe)?;
    let grid = HyperGrid::new(args.ndim, args.height)?;
    let env = grid.env();
    let reward = ConditionalReward::new(OriginalReward::standard(&grid)?);
    let mut rng = run.rng();
    let network = MlpPolicyConfig {
        estimators: EstimatorsConfig { n_conditions: 1, ..common.objective.estimators() },
        ..common.perceptron(BackwardPolicy::Uniform)
    };
    let description = json!({ "example": "conditional_hypergrid", "ndim": args.ndim, "height": args.height,
        "network": network });
    let features = KHot::new(args.ndim, args.height);
    let policy = MlpPolicy::new(&env, features, network, run.device, tch::Kind::Float, &mut rng)?;
    let graph = if members::is_first() { listed(run.recipe.exact_up_to, &env)? } else { None };
    let drawn = reward.clone();
    let trainer = Trainer::new(env, reward.clone(), policy, run.objective()?, run.config.clone(), rng)?
        .with_conditions(move |n: usize, rng: &mut Rng| Ok(drawn.sample_conditions(n, rng)))
        .described_by(&description)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let exact = |trainer: &GridTrainer, c: f64| -> Result<Option<Distances>> {
        let (Some(graph), condition) = (&graph, condition(c)) else { return Ok(None) };
        let target = graph.target_distribution(&reward, Some(&condition))?;
        let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), Some(&condition))?;
        Distances::between(&learned.probs, &target.probs).map(Some)
    };
    let look = |trainer: &GridTrainer| Ok(exact(trainer, 1.0)?.map(|distances| distances.jsd));
    let Some((trainer, trained)) = run.train(trainer, look, Vec::new())? else { return Ok(()) };

    let (mut rows, mut mean) = (Vec::new(), [0.0; 3]);
    let (mut learned, mut truth) = (Vec::new(), Vec::new());
    for c in CONDITIONS {
        let (distances, log_z_true) = (exact(&trainer, c)?, reward.log_z(c)?);
        let log_z = Policy::<VectorEnv>::log_z(trainer.policy(), Some(&condition(c)), 1);
        let log_z = log_z.map(|z| z.double_value(&[0]));
        learned.push((c, log_z.unwrap_or(f64::NAN)));
        truth.push((c, log_z_true));
        let l1 = distances.map(|d| d.l1);
        let mut row = json!({ "condition": c, "l1": l1, "log_z": log_z, "log_z_true": log_z_true });
        match distances {
            Some(d) => {
                let of_all = mean.iter_mut().zip([d.l1, d.tv, d.jsd]);
                of_all.for_each(|(sum, value)| *sum += value / CONDITIONS.len() as f64);
            }
            None => row["mode_share"] = json!(mode_share(&trainer, reward.original(), c)?),
        }
        rows.push(row);
    }
    let panel = Panel::new("log Z by condition").labels("condition", "");
    let panel = panel.curve(Curve::new("learned", learned)).curve(Curve::new("true", truth));
    let mut report = Report { panels: vec![panel], ..Report::default() };
    match &graph {
        Some(_) => report.exact_mean(mean),
        None => report.not_listed(&run),
    }
    report.set("conditions", rows);
    run.print(&trained, report)
}
