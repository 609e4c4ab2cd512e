//! Tests of training on the diffusion environment: objectives, replay, local search, maximum likelihood, and
//! chunks.
use std::sync::Arc;

use gfn::env::{Clipped, Reals, Reward, Rows};
use gfn::metrics::estimate_log_z;
use gfn::objective::Quantity;
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, MaximumLikelihood, Objective, StateFlow, SubTrajectoryBalance,
    TrajectoryBalance, Weighting,
};
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::Policy;
use gfn::replay::{DataSource, Draw, Eviction, RankBy, ReplayBuffer, ReplayConfig};
use gfn::rollout::ReplayEnv;
use gfn::rollout::Sampler;
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_extras::explore::{ObjectSearch, Search};
use gfn_gym::diffusion::{
    BackwardSteps, DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Mala, MalaConfig,
    Mixture, ProcessKind, Target,
};
use tch::{Device, Kind};

use crate::diffusion::{environment, small};

fn trainer(
    objective: impl Objective + 'static,
    (env, target): (DiffusionSampling, Arc<dyn Target>),
    config: DiffusionPolicyConfig,
    training_config: TrainerConfig,
) -> Trainer<DiffusionSampling> {
    let mut rng = Rng::seeded(0);
    let langevin = config.langevin_clip.map(|_| target.clone());
    let policy = DiffusionPolicy::new(&env, config, langevin, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward = Energy::new(target).along(env.process());
    Trainer::new(env, reward, policy, objective, training_config, rng).unwrap()
}

fn training_config(batch: usize) -> TrainerConfig {
    TrainerConfig {
        batch,
        noise: Schedule::Linear { from: 0.2, to: 0.0, steps: 100 },
        adam: AdamConfig { lr: 3e-3, log_z_lr: 0.1, ..AdamConfig::default() },
        ..TrainerConfig::default()
    }
}

/// Checks that training on a Gaussian target finds log Z. The estimate by importance sampling must have an
/// error below 1e-3. The target isn't the Gaussian in which the process without drift ends.
#[test]
fn training_recovers_log_z_of_a_gaussian() {
    let env = environment(1, ProcessKind::PinnedBrownian, 1.0, 6);
    let target: Arc<dyn Target> = Arc::new(Mixture::gaussian(vec![0.5], 0.8).unwrap());
    let config =
        DiffusionPolicyConfig { log_variance_range: Some(4.0), ..small(false, BackwardSteps::Fixed) };
    let schedule = TrainerConfig {
        lr_scale: Schedule::Cosine { from: 1.0, to: 0.01, steps: 600 },
        ..training_config(64)
    };
    let mut trainer = trainer(TrajectoryBalance, (env, target), config, schedule);
    let stats: Vec<_> = (0..600).map(|_| trainer.step().unwrap()).collect();
    let last = stats[stats.len() - 1];
    let env = trainer.env();
    let policy = trainer.policy();
    let estimate =
        estimate_log_z(env, policy, trainer.reward(), 4000, &mut trainer.evaluation_rng()).unwrap();
    println!("loss {} -> {}, log Z {}, {estimate:?}", stats[0].loss, last.loss, last.log_z);
    assert!(estimate.log_z.abs() < 1e-3 && last.log_z.abs() < 2e-2, "{estimate:?}, {last:?}");
}

/// Checks that every objective that is defined on this environment can be trained, also off-policy, and that
/// its loss falls.
#[test]
fn objectives_train() {
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let make = |objective: Box<dyn Objective>, backward| {
        let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 8);
        let config = small(objective.needs().has(Quantity::LogFlow), backward);
        let mut rng = Rng::seeded(0);
        let policy = DiffusionPolicy::new(&env, config, None, Device::Cpu, Kind::Float, &mut rng).unwrap();
        let reward = Energy::new(two.clone()).along(env.process());
        Trainer::new(env, reward, policy, objective, training_config(32), rng).unwrap()
    };
    let learned = BackwardSteps::Learned { range: 0.5 };
    let runs: Vec<(Box<dyn Objective>, BackwardSteps)> = vec![
        (Box::new(TrajectoryBalance), learned),
        (Box::new(LogPartitionVariance), learned),
        (Box::new(DetailedBalance::default()), BackwardSteps::Fixed),
        (Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }), BackwardSteps::Fixed),
        (Box::new(SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap()), learned),
    ];
    for (objective, backward) in runs {
        let name = objective.name();
        let mut trainer = make(objective, backward);
        let losses: Vec<f64> = (0..60).map(|_| trainer.step().unwrap().loss).collect();
        let mean = |range: &[f64]| range.iter().sum::<f64>() / range.len() as f64;
        let first = mean(&losses[..5]);
        let last = mean(&losses[55..]);
        assert!(last < first, "{name}: {first} -> {last}");
    }
}

/// Tests that stored objects are replayed on backward trajectories, with priorities by rank.
#[test]
fn terminal_states_are_replayed() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 8);
    let draw = Draw::RankPrioritised { by: RankBy::Reward, exponent: 1.0 };
    let replay = ReplayConfig { capacity: 200, eviction: Eviction::Fifo, draw };
    for path in [ReplayPath::Stored, ReplayPath::UniformBackward, ReplayPath::PolicyBackward] {
        let buffer = ReplayBuffer::new(replay).unwrap();
        let buffer = if path == ReplayPath::Stored { buffer } else { buffer.terminal_only() };
        let settings = TrainerConfig { replay_path: path, replay_after: 1, ..training_config(16) };
        let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
        let mut trainer =
            trainer(TrajectoryBalance, (env.clone(), two), small(false, BackwardSteps::Fixed), settings)
                .with_replay(buffer);
        trainer.prefill(20).unwrap();
        for _ in 0..5 {
            assert!(trainer.step().unwrap().loss.is_finite());
        }
        assert_eq!(trainer.latest().unwrap().len(), 16);
        assert!(trainer.replay().unwrap().len() > 20);
    }
}

/// Checks that the policy learns the distribution of the data by maximum likelihood on backward trajectories
/// from exact samples. The samples of the untrained policy are spread over the whole plane.
#[test]
fn maximum_likelihood_learns_from_bridges() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 10);
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let mut rng = Rng::seeded(9);
    let data = env.terminal(two.sample(500, &mut rng).unwrap());
    let paths = Sampler::new(&env, &env.uniform()).backward(&data, &mut rng).unwrap();
    let config = ReplayConfig { capacity: 500, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut buffer = ReplayBuffer::new(config).unwrap().terminal_only();
    buffer.add(&env, &paths.walks(&env).unwrap(), &[0.0; 500]).unwrap();
    let settings = TrainerConfig { source: DataSource::new(0.0, 0.0, 1.0).unwrap(), ..training_config(64) };
    let mut trainer =
        trainer(MaximumLikelihood, (env.clone(), two), small(false, BackwardSteps::Fixed), settings)
            .with_data(buffer);
    // This closure counts samples within three standard deviations of each mode. An exact sampler has a share
    // of 0.989 times the mode's weight there.
    let near_modes = |policy: &dyn Policy<DiffusionSampling>| {
        let samples = Sampler::new(&env, policy).forward(1000, &mut Rng::seeded(10)).unwrap();
        [-4.0, 4.0].map(|mean| {
            let near = |x: &&[f64]| (x[0] - mean).powi(2) + (x[1] - mean).powi(2) < 9.0;
            samples.terminal_states().points.rows().filter(near).count()
        })
    };
    let learned = |[left, right]: [usize; 2]| {
        left + right > 700 && (0.55..0.75).contains(&(right as f64 / (left + right) as f64))
    };
    let before = near_modes(trainer.policy());
    for _ in 0..400 {
        let _ = trainer.step().unwrap();
    }
    let after = near_modes(trainer.policy());
    assert!(
        !learned(before) && learned(after),
        "near the modes of weights 0.35 and 0.65: {before:?}, then {after:?}"
    );
}

/// Checks that Langevin chains from distant points reach the moments of the target, and that their share of
/// accepted proposals is the requested one.
#[test]
fn mala_samples_its_target() {
    let env = environment(3, ProcessKind::PinnedBrownian, 1.0, 4);
    let target = Arc::new(Mixture::gaussian(vec![1.0, -2.0, 0.5], 0.4).unwrap());
    let config = MalaConfig { steps: 600, burn_in: 300, ..MalaConfig::default() };
    let mala = Mala::new(&env, target.clone(), config).unwrap();
    let start = Reals::filled(3, 200, 3.0);
    let (points, log_p, share) = mala.run(&start, &mut Rng::seeded(1)).unwrap();
    assert_eq!((points.len(), log_p.len()), (200 * 30, 200 * 30));
    assert!((share - 0.574).abs() < 0.05, "{share}");
    for (j, mean) in [1.0, -2.0, 0.5].into_iter().enumerate() {
        let n = points.len() as f64;
        let got = points.rows().map(|x| x[j]).sum::<f64>() / n;
        let variance = points.rows().map(|x| (x[j] - mean).powi(2)).sum::<f64>() / n;
        assert!((got - mean).abs() < 0.03 && (variance - 0.16).abs() < 0.015, "{got}, {variance}");
    }
    assert_eq!(target.log_density(&points).unwrap(), log_p);
    let nowhere = MalaConfig { steps: 100, ..MalaConfig::default() };
    assert!(Mala::new(&env, target, nowhere).unwrap_err().to_string().contains("burn-in"));
}

/// Checks that the points found by a local search are stored with the trainer's reward, not with the density
/// that the chains follow.
#[test]
fn a_search_records_the_reward() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 5);
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let mala =
        Mala::new(&env, two.clone(), MalaConfig { steps: 30, burn_in: 20, thin: 5, ..MalaConfig::default() });
    let start = env.terminal(Reals::from_rows([[4.0, 4.0], [-3.0, -5.0], [0.0, 0.0]]));
    let reward = Clipped::new(Energy::new(two), -4.0).unwrap();
    let found = mala.unwrap().search(&env, &start, &reward, &mut Rng::seeded(0)).unwrap();
    assert_eq!(found.log_rewards, reward.log_reward(&found.objects, None).unwrap());
    assert!(found.log_rewards.contains(&-4.0), "no find below the floor: {:?}", found.log_rewards);
    // Each of the 3 chains evaluates the density at its start and in 30 steps, and the reward is computed for
    // 6 results.
    assert_eq!(found.reward_calls, 3 * 31 + 6);
}

/// Checks that a trainer refuses data or a local search if its settings give them no share of the batch.
#[test]
fn unused_data_and_searches_are_refused() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 5);
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let buffer = || {
        let config = ReplayConfig { capacity: 50, eviction: Eviction::Fifo, draw: Draw::Uniform };
        ReplayBuffer::new(config).unwrap().terminal_only()
    };
    let make = || {
        let settings = TrainerConfig { source: DataSource::default(), ..training_config(8) };
        trainer(TrajectoryBalance, (env.clone(), two.clone()), small(false, BackwardSteps::Fixed), settings)
    };
    let refused = |mut trainer: Trainer<DiffusionSampling>, words: &str| {
        let error = trainer.step().unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && error.to_string().contains(words), "{error}");
    };
    refused(make().with_data(buffer()), "offline share");
    let mala = Mala::new(&env, two.clone(), MalaConfig::default()).unwrap();
    let searching =
        make().with_replay(buffer()).with_refill(Search::new(mala, 3, 10).unwrap()).map(drop).unwrap_err();
    assert!(matches!(searching, Error::Config { .. }) && searching.to_string().contains("replay share"));
    assert!(make().with_replay(buffer()).step().is_ok());
}

/// Checks that the results of a local search enter the replay buffer at the requested interval, and that a
/// resumed run equals an uninterrupted run bit for bit.
#[test]
fn a_search_fills_the_buffer() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 5);
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let make = || {
        let draw = Draw::WeightedRanks { by: RankBy::Reward, k: 0.01 };
        let replay = ReplayConfig { capacity: 500, eviction: Eviction::Fifo, draw };
        let settings = TrainerConfig { replay_after: 1, ..training_config(8) };
        let search = MalaConfig { steps: 30, burn_in: 20, thin: 5, ..MalaConfig::default() };
        let mala = Mala::new(&env, two.clone(), search).unwrap();
        let network = small(false, BackwardSteps::Fixed);
        let made = trainer(TrajectoryBalance, (env.clone(), two.clone()), network, settings);
        assert!(
            trainer(
                TrajectoryBalance,
                (env.clone(), two.clone()),
                small(false, BackwardSteps::Fixed),
                training_config(8)
            )
            .with_refill(Search::new(mala.clone(), 3, 10).unwrap())
            .is_err()
        );
        made.with_replay(ReplayBuffer::new(replay).unwrap().terminal_only())
            .with_refill(Search::new(mala, 3, 10).unwrap())
            .unwrap()
    };
    let mut whole = make();
    let held: Vec<usize> = (0..7)
        .map(|_| {
            let _ = whole.step().unwrap();
            whole.replay().unwrap().len()
        })
        .collect();
    // The first step adds 8 objects to the buffer. Later steps add 4, because the other 4 of a batch are
    // replayed. The search adds 20 points from 10 chains before steps 3 and 6, counted from 0.
    assert_eq!(held, [8, 12, 16, 40, 44, 48, 72]);
    let folder = std::env::temp_dir().join(format!("gfn-search-{}", std::process::id()));
    let mut first = make();
    for _ in 0..4 {
        let _ = first.step().unwrap();
    }
    first.save(&folder).unwrap();
    let mut second = make();
    second.resume(&folder).unwrap();
    let mut last = second.step().unwrap();
    for _ in 0..2 {
        last = second.step().unwrap();
    }
    let reference = {
        let mut again = make();
        (0..7).map(|_| again.step().unwrap()).last().unwrap()
    };
    assert_eq!(
        (last.loss, last.log_z, last.grad_norm),
        (reference.loss, reference.log_z, reference.grad_norm)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// Checks for each objective that scoring in chunks gives the same loss and gradient as scoring the whole
/// batch.
#[test]
fn chunks_give_the_same_gradient() {
    let env = environment(2, ProcessKind::PinnedBrownian, 4.0, 6);
    let two: Arc<dyn Target> = Arc::new(Mixture::two_modes());
    let run = |objective: Box<dyn Objective>, chunk| {
        let mut rng = Rng::seeded(0);
        let config = small(objective.needs().has(Quantity::LogFlow), BackwardSteps::Learned { range: 0.5 });
        let policy = DiffusionPolicy::new(&env, config, None, Device::Cpu, Kind::Double, &mut rng).unwrap();
        let settings = TrainerConfig { chunk, ..training_config(10) };
        let reward = Energy::new(two.clone());
        let mut trainer = Trainer::new(env.clone(), reward, policy, objective, settings, rng).unwrap();
        let stats = (0..3).map(|_| trainer.step().unwrap()).last().unwrap();
        (stats.loss, stats.grad_norm, stats.log_z)
    };
    let objectives: [fn() -> Box<dyn Objective>; 4] = [
        || Box::new(TrajectoryBalance),
        || Box::new(LogPartitionVariance),
        || Box::new(DetailedBalance::default()),
        || Box::new(SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap()),
    ];
    for make in objectives {
        let whole = run(make(), None);
        for chunk in [1, 20, 60] {
            let chunked = run(make(), Some(chunk));
            let near = |a: f64, b: f64| (a - b).abs() < 1e-8 * (1.0 + b.abs());
            assert!(
                near(chunked.0, whole.0) && near(chunked.1, whole.1) && near(chunked.2, whole.2),
                "{whole:?} {chunked:?}"
            );
        }
    }
}
