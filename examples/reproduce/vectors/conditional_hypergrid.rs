//! One policy for a family of rewards: the grid's reward under a condition between 0 (flat) and 1 (the original).

use clap::Parser;
use gfn::env::VectorEnv;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::ReplayBuffer;
use gfn::rollout::Sampler;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward};
use gfn_plot::{Curve, Panel};
use serde_json::json;
use tch::Tensor;

use crate::cli::{Common, Defaults, Distance, Report, listed, train_with_actors};

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

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 10_000;
/// Samples under each condition where it isn't.
const SAMPLES: usize = 2_000;
/// The conditions under which it is compared with the target.
const CONDITIONS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

fn condition(c: f64) -> Tensor {
    Tensor::from_slice(&[c as f32]).view([1, 1])
}

/// The share of samples in modes, where probabilities aren't known.
fn mode_share(
    env: &VectorEnv<HyperGrid>,
    trainer: &Trainer<VectorEnv<HyperGrid>, MlpPolicy<KHot>>,
    reward: &OriginalReward,
    c: f64,
) -> Result<f64> {
    let conditions = condition(c).expand([SAMPLES as i64, 1], false);
    let sampler = Sampler::new(env, trainer.policy());
    let samples = sampler.forward_conditional(&conditions, &mut trainer.evaluation_rng())?;
    let in_modes = reward.is_mode(samples.terminal_states()).into_iter().filter(|is_mode| *is_mode).count();
    Ok(in_modes as f64 / SAMPLES as f64)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    let env = HyperGrid::new(args.ndim, args.height)?;
    let reward = ConditionalReward::new(OriginalReward::standard(&env)?);
    let defaults = Defaults { steps: 2_000, batch: 64, epsilon: 0.1, lr: 3e-3, ..Defaults::default() };
    let mut rng = Rng::seeded(common.seed);
    let network = MlpPolicyConfig {
        mlp: MlpConfig {
            hidden: vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)],
            ..MlpConfig::default()
        },
        backward: common.backward.map_or(BackwardPolicy::Uniform, Into::into),
        estimators: EstimatorsConfig { n_conditions: 1, ..common.objective.estimators() },
        ..MlpPolicyConfig::default()
    };
    let description = json!({ "example": "conditional_hypergrid", "ndim": args.ndim, "height": args.height,
        "network": network });
    let features = KHot::new(args.ndim, args.height);
    let policy = MlpPolicy::new(&env, features, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = common.trainer(&defaults);
    let objective = common.objective.build()?;
    let drawn = reward.clone();
    let trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng)?
        .with_conditions(move |n: usize, rng: &mut Rng| Ok(drawn.sample_conditions(n, rng)))
        .described_by(&description)?;
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::new)?;
    let graph = listed(EXACT_LIMIT, &env)?;
    let exact = |trainer: &Trainer<_, MlpPolicy<KHot>>, c: f64| -> Result<Option<Distances>> {
        let (Some(graph), condition) = (&graph, condition(c)) else { return Ok(None) };
        let target = graph.target_distribution(&reward, Some(&condition))?;
        let learned = graph.terminating_distribution(trainer.env(), trainer.policy(), Some(&condition))?;
        Distances::between(&learned.probs, &target.probs).map(Some)
    };
    let look = |trainer: &Trainer<_, MlpPolicy<KHot>>| Ok(exact(trainer, 1.0)?.map(|distances| distances.jsd));
    let Some((trainer, trained)) =
        train_with_actors(trainer, common, ("conditional_hypergrid", &defaults), look, Vec::new())?
    else {
        return Ok(());
    };

    let (mut rows, mut mean) = (Vec::new(), [0.0; 3]);
    let mut points = (Vec::new(), Vec::new());
    for c in CONDITIONS {
        let (distances, log_z_true) = (exact(&trainer, c)?, reward.log_z(c)?);
        let log_z = Policy::<VectorEnv<HyperGrid>>::log_z(trainer.policy(), Some(&condition(c)), 1)
            .map(|z| z.double_value(&[0]));
        points.0.push((c, log_z.unwrap_or(f64::NAN)));
        points.1.push((c, log_z_true));
        let mut row =
            json!({ "condition": c, "l1": distances.map(|d| d.l1), "log_z": log_z, "log_z_true": log_z_true });
        match distances {
            Some(d) => {
                mean.iter_mut()
                    .zip([d.l1, d.tv, d.jsd])
                    .for_each(|(sum, value)| *sum += value / CONDITIONS.len() as f64);
            }
            None => row["mode_share"] = json!(mode_share(&env, &trainer, reward.original(), c)?),
        }
        rows.push(row);
    }
    let panel = Panel::new("log Z by condition")
        .labels("condition", "")
        .curve(Curve::new("learned", points.0))
        .curve(Curve::new("true", points.1));
    let [l1, tv, jsd] = mean.map(Some);
    let distance = match &graph {
        Some(_) => Distance { l1, tv, jsd, exact: true, why_not_exact: None },
        None => Distance::not_listed(common, EXACT_LIMIT),
    };
    let title = format!("conditional grid of {}^{}", args.height, args.ndim);
    let extra = vec![("conditions", json!(rows))];
    Report { title, log_z_true: None, distance, extra, panels: vec![panel] }.print(common, &trained)
}
