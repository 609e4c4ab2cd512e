//! Tests of the initial log Z, which is estimated from the first batch unless a value is given.

use crate::words::{count, fresh, words};
use gfn::env::{StateGraph, VectorEnv, VectorStates};
use gfn::group::replicate;
use gfn::metrics::{Distances, importance_log_z};
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::{Objective, RelativeTrajectoryBalance, TrajectoryBalance, score};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior};
use gfn::rollout::Trajectories;
use gfn::tensor::to_host;
use gfn::train::{AverageFor, Checkpoint, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use tch::{Device, Kind, Tensor};

type Learner = MlpPolicy<KHot>;

fn learner(initial_log_z: Option<f64>) -> Learner {
    tch::set_num_threads(1);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![32], ..MlpConfig::default() },
        estimators: EstimatorsConfig { initial_log_z, ..EstimatorsConfig::default() },
        ..MlpPolicyConfig::default()
    };
    MlpPolicy::new(&words(), KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
}

/// Returns a log-reward that is 300 plus the number of ones in a word.
fn high_reward(words: &VectorStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(count(words, conditions)?.into_iter().map(|log_reward| log_reward + 300.0).collect())
}

fn trainer(policy: Learner, config: TrainerConfig) -> Trainer<VectorEnv> {
    Trainer::new(words(), high_reward, policy, TrajectoryBalance, config, Rng::seeded(1)).unwrap()
}

/// Returns log Z as it is before the first update of parameters.
fn first_log_z<E: gfn::train::TrainEnv>(trainer: &mut Trainer<E>) -> f64 {
    trainer.step().unwrap().log_z
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3
}

#[test]
fn log_z_starts_at_the_importance_estimate_of_the_first_batch() {
    for chunk in [None, Some(7)] {
        let mut trainer = trainer(learner(None), TrainerConfig { chunk, ..fresh(16) });
        let started = first_log_z(&mut trainer);
        let scores =
            score(&words(), &high_reward, &learner(None), trainer.latest().unwrap(), Quantities::NONE)
                .unwrap();
        let [log_pf, log_pb] = [&scores.log_pf, &scores.log_pb].map(|rows| to_host(&scores.sums(rows)));
        let weights: Vec<f64> =
            (0..16).map(|i| to_host(&scores.log_reward)[i] + log_pb[i] - log_pf[i]).collect();
        assert!(is_close(started, importance_log_z(&weights).unwrap().log_z), "{started}");
        // log Z must be estimated only once, so the next step may change it only a little.
        assert!((first_log_z(&mut trainer) - started).abs() < 0.11);
    }
}

/// Tests the estimate of the initial log Z in an environment up to isomorphism. The importance weights must
/// include log |Aut|, as the loss does. Without it, the first log Z would be off by some tenths.
#[test]
fn the_estimate_is_of_the_reward_that_is_trained_on() {
    tch::set_num_threads(1);
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let config = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let net = || GraphNet::new(&env, config.clone(), Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap();
    let reward = ColoredGraphReward::default();
    let batch = fresh(64);
    let trained =
        Trainer::new(env.clone(), reward, GraphPolicy(net()), TrajectoryBalance, batch, Rng::seeded(1));
    let mut trainer = trained.unwrap();
    let started = first_log_z(&mut trainer);
    let scores = score(
        &env,
        &reward,
        &GraphPolicy(net()),
        trainer.latest().unwrap(),
        Quantities::from(Quantity::LogZ),
    )
    .unwrap();
    let ratio = to_host(&scores.sums(&(&scores.log_pb - &scores.log_pf)));
    let of = |log_reward: &Tensor| {
        let weights: Vec<f64> = to_host(log_reward).iter().zip(&ratio).map(|(r, ratio)| r + ratio).collect();
        importance_log_z(&weights).unwrap().log_z
    };
    assert!(is_close(started, of(&scores.log_reward)), "{started} {}", of(&scores.log_reward));
    assert!((of(&scores.raw_log_reward) - started).abs() > 0.05);
}

/// Tests the estimate of the initial log Z for an objective relative to a prior. The target of the importance
/// weights must be the posterior, which is the prior times a power of the reward.
#[test]
fn relative_to_a_prior_it_is_the_posteriors() {
    let objective = RelativeTrajectoryBalance::new(2.0).unwrap();
    assert!(objective.needs().has(Quantity::LogZ));
    let policy = WithPrior { policy: learner(None), prior: UniformPolicy };
    let trained = Trainer::new(words(), high_reward, policy, objective, fresh(64), Rng::seeded(1));
    let started = first_log_z(&mut trained.unwrap());
    // Z is the mean of R^2 over the prior, which is exp(600) times a number of the order of 1.
    assert!((600.0..606.0).contains(&started), "{started}");
}

#[test]
fn a_value_that_was_chosen_restored_or_learned_stays() {
    assert_eq!(first_log_z(&mut trainer(learner(Some(0.0)), fresh(16))), 0.0);
    assert_eq!(first_log_z(&mut trainer(learner(Some(7.0)), fresh(16))), 7.0);
    let folder = crate::trainers::Folder::new("first-log-z");
    let path = folder.join("run");
    let mut whole = trainer(learner(None), fresh(16));
    let started = first_log_z(&mut whole);
    whole.save(&path).unwrap();
    let next = first_log_z(&mut whole);
    let mut resumed = trainer(learner(None), fresh(16));
    resumed.resume(&path).unwrap();
    assert_eq!(first_log_z(&mut resumed), next);
    // This case restores only the parameters, in a new run. The restored log Z must stay.
    let restored = learner(None);
    Checkpoint::load(&path).unwrap().restore(restored.parameters()).unwrap();
    let restored = first_log_z(&mut trainer(restored, fresh(16)));
    assert!(restored != started && is_close(restored, next), "{restored} {started} {next}");
}

/// Tests the moving average of parameters. The average of log Z must start at the estimated log Z, because an
/// average that starts at 0 would be too low for thousands of steps.
#[test]
fn an_average_starts_there_too() {
    let mut trainer = trainer(learner(None), fresh(16)).with_average(0.999, AverageFor::Evaluation).unwrap();
    let started = first_log_z(&mut trainer);
    let log_z = |policy: &dyn Policy<VectorEnv>| Ok(policy.log_z(None, 1).unwrap().double_value(&[0]));
    let of_average = trainer.averaged(log_z).unwrap();
    assert!((of_average - started).abs() < 1e-2, "{of_average} {started}");
}

#[test]
fn replicas_start_at_the_estimate_of_all() {
    let started = std::sync::Mutex::new(Vec::new());
    replicate(3, |replica| {
        let mut trainer = trainer(learner(None), fresh(16)).with_group(replica)?;
        let log_z = first_log_z(&mut trainer);
        let own: Trajectories<VectorEnv> = trainer.latest().unwrap().clone();
        let scores = score(&words(), &high_reward, &learner(None), &own, Quantities::NONE)?;
        let ratio = to_host(&scores.sums(&(&scores.log_pb - &scores.log_pf)));
        let weights: Vec<f64> =
            to_host(&scores.log_reward).iter().zip(ratio).map(|(r, ratio)| r + ratio).collect();
        started.lock().unwrap().push((log_z, weights));
        Ok(())
    })
    .unwrap();
    let started = started.into_inner().unwrap();
    let all: Vec<f64> = started.iter().flat_map(|(_, weights)| weights.clone()).collect();
    assert_eq!(all.len(), 16);
    let expected = importance_log_z(&all).unwrap().log_z;
    assert!(
        started.iter().all(|(log_z, _)| *log_z == started[0].0 && is_close(*log_z, expected)),
        "{started:?} {expected}"
    );
}

/// Tests a log Z of about 300. Training would need 3,000 steps to reach this number from 0 with a learning
/// rate of 0.1.
#[test]
fn a_large_log_z_is_learned_as_fast_as_a_small_one() {
    let config = TrainerConfig { lr_scale: gfn::optim::Schedule::Constant(1.0), ..fresh(32) };
    let mut watched = crate::watched::WarningRecorder::new(trainer(learner(None), config));
    watched.steps(300).unwrap();
    let space = StateGraph::build(&words(), 100).unwrap();
    let learned = space.terminating_distribution(&words(), watched.trainer.policy(), None).unwrap();
    let target = space.target_distribution(&high_reward, None).unwrap();
    let tv = Distances::between(&learned.probs, &target.probs).unwrap().tv;
    assert!(tv < 0.1, "{tv}");
    assert_eq!(watched.warnings(), []);
}
