//! The hyper-grid: a tensor-state environment under the same sampler, losses and trainer as the graphs.

use clap::Parser;
use gfn::env::{EnumerableEnv, Rows, VectorEnv};
use gfn::metrics::{modes_covered, sample_objects};
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::{Error, Result};
use gfn_gym::hypergrid::{GridReward, HyperGrid, OriginalReward, Preset, RewardKind};
use gfn_plot::Panel;
use serde_json::json;

use crate::cli::{BufferName, Common, Defaults, Exact, ObjectiveName, VectorTask};

/// Train a perceptron to sample the points of a grid
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 8)]
    height: usize,
    /// The reward: original, cosine, sparse, deceptive, bitwise-xor, multiplicative-coprime, conditional-multiscale, uniform-random
    /// or corrupted
    #[arg(long, default_value_t = RewardKind::Original)]
    reward: RewardKind,
    /// The reward's settings by name: easy, medium, hard, challenging, impossible, ...; the reward's own if none is named
    #[arg(long)]
    preset: Option<Preset>,
    /// Smallest reward of the original one, in place of 0.1
    #[arg(long, conflicts_with = "preset")]
    r0: Option<f64>,
    /// Points of the replay buffer lie farther apart than this, 2 for each coordinate in which they differ; any may be kept unless told so
    #[arg(long)]
    diverse: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact: 20^4.
const EXACT_LIMIT: usize = 160_000;
/// Final samples from which modes are counted where probabilities aren't known.
const SAMPLES: usize = 10_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let env = HyperGrid::new(args.ndim, args.height)?;
    let reward = reward(args, &env)?;
    // In closed form, or by adding up the points.
    let totals = reward.totals(EXACT_LIMIT as u64).ok();
    let defaults = Defaults {
        steps: if args.ndim <= 2 { 2_000 } else { 5_000 },
        batch: 16,
        buffer: BufferName::Fifo,
        epsilon: 0.0,
        lr: match common.objective {
            ObjectiveName::Db | ObjectiveName::Subtb => 2e-3,
            _ => 1e-3,
        },
        backward: BackwardPolicy::SharedTorso,
        ..Defaults::default()
    };
    let task = VectorTask {
        example: "hypergrid",
        title: format!("grid of {}^{}, {} reward", args.height, args.ndim, args.reward),
        features: KHot::new(env.ndim(), env.height()),
        env,
        reward: reward.clone(),
        defaults,
        exact_limit: EXACT_LIMIT,
        log_z_true: totals.map(|totals| totals.log_z),
        description: json!({ "ndim": args.ndim, "height": args.height, "reward": args.reward, "preset": args.preset,
            "r0": args.r0 }),
        adjust: Box::new(|config| config),
        diverse: args.diverse,
        is_mode: Some(Box::new(|points| reward.is_mode(points))),
    };
    task.run(common, |run| {
        let trainer = &run.trainer;
        let points = &sample_objects(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
        let valid = points.rows().filter(|point| point.iter().all(|&x| usize::from(x) < args.height)).count();
        let is_mode = reward.is_mode(points);
        let sampled_modes: Vec<usize> = (0..SAMPLES).filter(|&k| is_mode[k]).collect();
        let mut found = points.select(&sampled_modes).group().first.len();
        let mut panels = Vec::new();
        if let Some((exact, probs)) = &run.exact {
            let modes = reward.is_mode(exact.graph.states());
            found = modes_covered(probs, &exact.target.probs, &modes)?;
            if args.ndim == 2 {
                panels.extend(heat_maps(&env, exact, probs));
            }
        }
        let extra = vec![
            ("modes_found", json!(found)),
            ("modes_total", json!(totals.map(|totals| totals.n_modes))),
            ("mode_share", json!(sampled_modes.len() as f64 / SAMPLES as f64)),
            ("valid_share", json!(valid as f64 / SAMPLES as f64)),
            ("samples", json!(SAMPLES)),
        ];
        Ok((extra, panels))
    })
}

/// The reward that the flags name.
fn reward(args: &Args, env: &HyperGrid) -> Result<Box<dyn GridReward>> {
    match (args.preset, args.r0) {
        (Some(preset), _) => args.reward.preset(env, preset),
        (None, None) => args.reward.standard(env),
        (None, Some(r0)) if args.reward == RewardKind::Original => Ok(OriginalReward::new(env, r0, 0.5, 2.0)?.boxed()),
        (None, Some(r0)) => Err(Error::config(
            "--r0",
            format!("{r0} with --reward {}", args.reward),
            "--reward original; other rewards take --preset",
        )),
    }
}

/// The target and what is learned, on one scale.
fn heat_maps(env: &VectorEnv<HyperGrid>, exact: &Exact<VectorEnv<HyperGrid>>, probs: &[f64]) -> [Panel; 2] {
    let target = &exact.target.probs;
    let max = target.iter().chain(probs).copied().fold(0.0, f64::max);
    // States are listed as they are reached; cells are drawn by key.
    let keys = env.keys(exact.graph.states());
    let cells = |values: &[f64]| {
        let mut cells = vec![0.0; values.len()];
        keys.iter().zip(values).for_each(|(&key, &value)| cells[key as usize] = value);
        cells
    };
    [("target", target.as_slice()), ("learned", probs)].map(|(title, values)| {
        Panel::heat_map(title, env.height(), cells(values), max).labels("x", "y").colour_label("probability")
    })
}
