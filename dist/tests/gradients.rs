//! Tests that several processes, each with a share of a batch, compute the gradient that one process computes
//! on the whole batch.

use std::sync::{Arc, Mutex};

use crate::recorded_gradients::RecordedGradients;
use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::group::Group;
use gfn::nn::EstimatorsConfig;
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, Objective, SubTrajectoryBalance, TrajectoryBalance, Weighting,
};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::replay::DataSource;
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_dist::ProcessGroup;
use tch::{Device, Kind, Tensor};

const OBJECTIVES: [fn() -> Box<dyn Objective>; 4] = [
    || Box::new(TrajectoryBalance),
    || Box::new(LogPartitionVariance),
    || Box::new(DetailedBalance::default()),
    || Box::new(SubTrajectoryBalance::new(Weighting::Geometric { lambda: 0.9 }).unwrap()),
];
const BATCH: usize = 11;

/// A source of trajectories that returns consecutive trajectories of `all`, beginning with index `start`.
struct FixedTrajectories {
    all: Trajectories<VectorEnv>,
    start: usize,
}

impl Persist<VectorEnv> for FixedTrajectories {
    fn name(&self) -> &str {
        "dealt"
    }
}

impl Source<VectorEnv> for FixedTrajectories {
    fn draw(
        &mut self,
        request: BatchRequest,
        _: &Context<VectorEnv>,
        _: &mut Rng,
    ) -> Result<Option<Trajectories<VectorEnv>>> {
        self.all.select(self.start..self.start + request.max).map(Some)
    }
}

/// A group that several trainers use one after the other. Before each sum, the tensor of this process is
/// multiplied by `weight`. A weight other than 1 simulates an error in the gradient.
#[derive(Debug)]
struct SharedGroup {
    group: Arc<Mutex<ProcessGroup>>,
    weight: f64,
}

impl Group for SharedGroup {
    fn rank(&self) -> usize {
        self.group.lock().unwrap().rank()
    }
    fn size(&self) -> usize {
        self.group.lock().unwrap().size()
    }
    fn join(&self, mine: &Tensor) -> Result<Vec<Tensor>> {
        self.group.lock().unwrap().join(mine)
    }
    fn sum(&self, tensor: &mut Tensor) -> Result<()> {
        *tensor *= self.weight;
        self.group.lock().unwrap().sum(tensor)
    }
}

/// Returns the gradient of an objective on a batch. Without a group, the gradient is that of the whole batch
/// of eleven trajectories. With a group, this process computes on its share of the batch.
fn gradient(objective: Box<dyn Objective>, group: Option<SharedGroup>) -> Vec<f64> {
    tch::set_num_threads(1);
    let env = word_env(2, 3);
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    let policy =
        MlpPolicy::new(&env, KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let count = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
    };
    let all = Sampler::new(&env, &UniformPolicy).forward(BATCH, &mut Rng::seeded(5)).unwrap();
    let start = group.as_ref().map_or(0, |group| group.rank() * BATCH / group.size());
    let recorded = RecordedGradients::default();
    let config = TrainerConfig { batch: BATCH, source: DataSource::default(), ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, count, policy, objective, config, Rng::seeded(1))
        .and_then(|trainer| trainer.with_source(1.0, FixedTrajectories { all, start }))
        .and_then(|trainer| trainer.with_optimizer(|parameters| Ok(recorded.optimizer(parameters, 0.1))))
        .unwrap();
    if let Some(group) = group {
        trainer = trainer.with_group(group).unwrap();
    }
    trainer.step().unwrap();
    recorded.take().remove(0)
}

#[test]
#[ignore = "a part of another test"]
fn part_gradients() {
    let Some(group) = crate::group(crate::TIMEOUT) else { return };
    let rank = group.rank();
    let group = Arc::new(Mutex::new(group));
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    for make in OBJECTIVES {
        let whole = gradient(make(), None);
        // In the second round, the gradient of one process is multiplied by 1.00001. The comparison must
        // detect this error.
        for weight in [1.0, if rank == 1 { 1.0 + 1e-5 } else { 1.0 }] {
            let joined = gradient(make(), Some(SharedGroup { group: Arc::clone(&group), weight }));
            let off =
                norm(&mut whole.iter().zip(&joined).map(|(a, b)| a - b)) / norm(&mut whole.iter().copied());
            println!("SAYS {off}");
        }
    }
}

#[test]
fn the_gradient_of_processes_is_that_of_the_joined_batch() {
    for size in [2, 3] {
        let outputs = crate::run("gradients::part_gradients", size);
        assert_eq!(outputs.len(), size);
        for lines in outputs {
            let off: Vec<f64> = lines.iter().map(|line| line.parse().unwrap()).collect();
            println!("{size} processes: {off:?}");
            assert_eq!(off.len(), 2 * OBJECTIVES.len());
            for off in off.chunks(2) {
                assert!(off[0] <= 1e-6 && off[1] > 1e-6, "{off:?}");
            }
        }
    }
}
