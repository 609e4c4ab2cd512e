//! A task that learns from a file of trajectories. The task writes a data set, reads it, and trains on it
//! without any on-policy samples.

use gfn::rollout::Trajectories;

use crate::prelude::*;
use crate::run::task_flags::is_one_of_several;

/// Train a perceptron on a file of trajectories, without on-policy samples
#[derive(Args)]
pub(crate) struct Offline {
    /// File with the trajectories. If it doesn't exist, it is created with uniform random trajectories
    #[arg(long, default_value = "out/offline/trajectories.safetensors")]
    data: PathBuf,
    /// Number of trajectories in the file, if the file is created
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    #[command(flatten)]
    common: Common,
}

/// The number of points along each of the two dimensions of the grid.
const HEIGHT: usize = 8;

impl Task for Offline {
    fn run(&self) -> Result<()> {
        refuse_replay()?;
        let recipe = Recipe { steps: 2_000, epsilon: 0.0, ..Recipe::default() };
        let mut run = Run::begin(&self.common, recipe)?;
        let grid = HyperGrid::new(2, HEIGHT)?;
        let env = grid.env();
        let reward = OriginalReward::standard(&grid)?;
        let mut rng = run.rng();
        let log_z = reward.log_z();
        if !self.data.exists() {
            if is_one_of_several() {
                let problem = "it doesn't exist, and all of several seeds read the same file";
                return Err(Error::file(&self.data, problem, "create it by a run without --seeds first"));
            }
            self.make_data(&env, &reward, &mut rng)?;
        }
        let trajectories = Trajectories::load(&env, &self.data)?;
        let (eviction, draw) = NEWEST;
        let mut data = ReplayBuffer::new(ReplayConfig { capacity: trajectories.len(), eviction, draw })?;
        let log_r = log_rewards(&reward, trajectories.terminal_states(), None)?;
        data.add(&env, &trajectories.walks(&env)?, &log_r)?;

        // Each batch has trajectories of the data set, with their stored paths. Balance objectives may be
        // trained on any trajectories.
        run.config.source = DataSource::new(0.0, 0.0, 1.0)?;
        run.config.replay_path = ReplayPath::Stored;
        let network = MlpPolicyConfig { paths: false, ..self.common.perceptron(BackwardPolicy::SharedTorso) };
        let task = json!({ "ndim": 2, "height": HEIGHT });
        let trainer = run.build(env, reward, network, task, rng, |env, network, device, kind, rng| {
            MlpPolicy::new(env, KHot::new(2, HEIGHT), network, device, kind, rng)
        })?;
        let trainer = trainer.with_data(data);
        run.learn(trainer, "points", Vec::new(), |report, _, exact| {
            report.set("data_size", trajectories.len());
            if exact.is_none() {
                report.set("log_z_true", log_z);
            }
            Ok(())
        })
    }
}

impl Offline {
    /// Writes a file of uniform random trajectories with their rewards.
    fn make_data(&self, env: &VectorEnv, reward: &OriginalReward, rng: &mut Rng) -> Result<()> {
        try_file(&self.data)?;
        let trajectories = Sampler::new(env, &UniformPolicy).forward(self.size, rng)?;
        let log_r = log_rewards(reward, trajectories.terminal_states(), None)?;
        trajectories.with_log_rewards(log_r)?.save(env, &self.data)?;
        report_file(&self.data);
        Ok(())
    }
}
