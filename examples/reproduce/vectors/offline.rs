//! Learning from a file of trajectories: a data set is written, read again, and learned from without a sample of the policy.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use gfn::env::{VectorEnv, log_rewards};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig};
use gfn::objective::Quantity;
use gfn::objective::{MaximumLikelihood, Objective};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{ReplayPath, Trainer};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use serde_json::json;

use crate::flags::{Common, refuse_replay};
use crate::run::files::written;
use crate::run::{Recipe, Run};

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
    /// Kind of learning from it
    #[arg(long, value_enum, default_value = "balance")]
    learn: Learn,
    #[command(flatten)]
    common: Common,
}

/// Kinds of learning from a data set by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Learn {
    /// The reward's distribution, by a balance objective on trajectories that some other policy took
    Balance,
    /// The data's own distribution, by maximum likelihood of paths to it
    Likelihood,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    refuse_replay()?;
    let recipe = Recipe { steps: 2_000, epsilon: 0.0, ..Recipe::default() };
    let mut run = Run::begin(common, "offline", "learned from a data set".to_owned(), recipe)?;
    let grid = HyperGrid::new(2, args.height)?;
    let env = grid.env();
    let reward = OriginalReward::standard(&grid)?;
    let log_z = reward.log_z();
    let mut rng = run.rng();
    if !args.data.exists() {
        make_data(args, &env, &reward, &mut rng)?;
        written(&args.data);
    }
    let trajectories = Trajectories::load(&env, &args.data)?;
    let capacity = trajectories.len();
    let mut data = ReplayBuffer::new(ReplayConfig { capacity, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
    let log_r = log_rewards(&reward, trajectories.terminal_states(), None)?;
    data.add(&env, &trajectories.walks(&env)?, &log_r)?;

    // A balance objective takes the paths that there are; likelihood needs those of one P_B.
    let (objective, path): (Box<dyn Objective>, _) = match args.learn {
        Learn::Balance => (run.objective()?, ReplayPath::Stored),
        Learn::Likelihood => (Box::new(MaximumLikelihood), ReplayPath::UniformBackward),
    };
    (run.config.source, run.config.replay_path) = (DataSource::new(0.0, 0.0, 1.0)?, path);
    let network = MlpPolicyConfig {
        estimators: EstimatorsConfig::with_flow(objective.needs().has(Quantity::LogFlow)),
        ..common.perceptron(BackwardPolicy::SharedTorso)
    };
    let description = json!({ "example": "offline", "height": args.height, "network": network });
    let policy = MlpPolicy::new(&env, KHot::new(2, args.height), network, run.device, tch::Kind::Float, &mut rng)?;
    let trainer = Trainer::new(env, reward, policy, objective, run.config.clone(), rng)?
        .with_data(data)
        .described_by(&description)?;
    let Some(mut learned) = run.learn(trainer, "points", Vec::new())? else { return Ok(()) };
    learned.report.set("data_size", trajectories.len());
    learned.report.set("tv_to_data", None::<f64>);
    if let Some(exact) = &learned.exact {
        let shares = exact.graph.empirical(learned.trainer.env(), trajectories.terminal_states())?;
        let to_data = Distances::between(&exact.probs, &shares)?;
        learned.report.set("tv_to_data", to_data.tv);
        if args.learn == Learn::Likelihood {
            learned.report.exact(&to_data);
        }
    } else {
        // Where points aren't listed, in closed form.
        learned.report.set("log_z_true", log_z);
    }
    learned.print()
}

/// Uniform random walks with their rewards: what a policy that knows nothing leaves behind.
fn make_data(args: &Args, env: &VectorEnv, reward: &OriginalReward, rng: &mut Rng) -> Result<()> {
    if let Some(folder) = args.data.parent() {
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    let walks = Sampler::new(env, &UniformPolicy).forward(args.size, rng)?;
    let log_r = log_rewards(reward, walks.terminal_states(), None)?;
    walks.with_log_rewards(log_r)?.save(env, &args.data)
}
