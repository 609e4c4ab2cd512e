//! Learning from a file of trajectories: a data set is written, read again, and learned from without a sample of the policy.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use gfn::env::{VectorEnv, log_rewards};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::Quantity;
use gfn::objective::{MaximumLikelihood, Objective};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use serde_json::json;

use crate::cli::{Common, Defaults, Distance, Exact, Report, SAMPLES, sampled, train};

/// Train a perceptron on a data set of trajectories
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Points along each of the two dimensions of the grid
    #[arg(long, default_value_t = 8)]
    height: usize,
    /// The data set; made, of the given size, if there is no such file
    #[arg(long, default_value = "out/offline/trajectories.safetensors")]
    data: PathBuf,
    /// Trajectories of a data set that is made
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    /// What is learned from it
    #[arg(long, value_enum, default_value = "balance")]
    learn: Learn,
    #[command(flatten)]
    common: Common,
}

/// What is learned from a data set.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Learn {
    /// The reward's distribution, by a balance objective on trajectories that some other policy took
    Balance,
    /// The data's own distribution, by maximum likelihood of paths to it
    Likelihood,
}

/// States up to which the distribution is exact.
const EXACT_LIMIT: usize = 100_000;

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    common.refuse_replay()?;
    let env = HyperGrid::new(2, args.height)?;
    let reward = OriginalReward::standard(&env)?;
    let mut rng = Rng::seeded(common.seed);
    if !args.data.exists() {
        make_data(args, &env, &reward, &mut rng)?;
        common.written.add(&args.data);
    }
    let trajectories = Trajectories::load(&env, &args.data)?;
    let mut data = ReplayBuffer::new(ReplayConfig {
        capacity: trajectories.len(),
        eviction: Eviction::Fifo,
        draw: Draw::Uniform,
    })?;
    let log_r = log_rewards(&reward, trajectories.terminal_states(), None)?;
    data.add(&env, &trajectories.walks(&env)?, &log_r)?;

    let exact = Exact::up_to(EXACT_LIMIT, common, &env, &reward)?;
    // Where points aren't listed, in closed form.
    let log_z_true = Some(exact.as_ref().map_or_else(|| reward.log_z(), |exact| exact.target.log_z));
    let objective: Box<dyn Objective> = match args.learn {
        Learn::Balance => common.objective.build()?,
        Learn::Likelihood => Box::new(MaximumLikelihood),
    };
    let defaults = Defaults { steps: 2_000, batch: 64, epsilon: 0.0, lr: 3e-3, ..Defaults::default() };
    let network = MlpPolicyConfig {
        mlp: MlpConfig {
            hidden: vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)],
            ..MlpConfig::default()
        },
        backward: common.backward.map_or(BackwardPolicy::SharedTorso, Into::into),
        estimators: EstimatorsConfig::with_flow(objective.needs().has(Quantity::LogFlow)),
        ..MlpPolicyConfig::default()
    };
    let description = json!({ "example": "offline", "height": args.height, "network": network });
    let features = KHot::new(2, args.height);
    let policy = MlpPolicy::new(&env, features, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        source: DataSource::new(0.0, 0.0, 1.0)?,
        // A balance objective takes the paths that there are; likelihood needs those of one P_B.
        replay_path: match args.learn {
            Learn::Balance => ReplayPath::Stored,
            Learn::Likelihood => ReplayPath::UniformBackward,
        },
        ..common.trainer(&defaults)
    };
    let trainer =
        Trainer::new(env, reward, policy, objective, config, rng)?.with_data(data).described_by(&description)?;
    let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
    let Some((trainer, trained)) = train(trainer, common, ("offline", &defaults), look, Vec::new())? else {
        return Ok(());
    };

    let mut extra = vec![("data_size", json!(trajectories.len()))];
    let mut distance = Distance::not_listed(common, EXACT_LIMIT);
    let mut panels = Vec::new();
    if let Some(exact) = &exact {
        let (to_reward, probs) = exact.learned(&trainer)?;
        let shares = exact.graph.empirical(&env, trajectories.terminal_states())?;
        let to_data = Distances::between(&probs, &shares)?;
        extra.push(("tv_to_data", json!(to_data.tv)));
        distance = match args.learn {
            Learn::Balance => to_reward,
            Learn::Likelihood => to_data.into(),
        };
        panels.push(exact.panel("points", &probs));
    } else {
        extra.push(("tv_to_data", json!(null)));
        if !common.is_frozen() {
            extra.extend(sampled(&trainer, SAMPLES)?);
        }
    }
    let title = "learned from a data set".into();
    Report { title, log_z_true, distance, extra, panels }.print(common, &trained)
}

/// Uniform random walks with their rewards: what a policy that knows nothing leaves behind.
fn make_data(args: &Args, env: &VectorEnv<HyperGrid>, reward: &OriginalReward, rng: &mut Rng) -> Result<()> {
    if let Some(folder) = args.data.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    let walks = Sampler::new(env, &UniformPolicy).forward(args.size, rng)?;
    let log_r = log_rewards(reward, walks.terminal_states(), None)?;
    walks.with_log_rewards(log_r)?.save(env, &args.data)
}
