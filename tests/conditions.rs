//! Tests of a single policy for many rewards. Reward exponents, preferences and goal directions are inputs
//! of the policy, of log Z and of the reward. Exact metrics check the result.

use std::sync::Arc;

use gfn::condition::ConditionSource;
use gfn::env::StateGraph;
use gfn::env::{Reward, Rows, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::AdamConfig;
use gfn::optim::Schedule;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, Focus, FocusInHindsight, Temperature,
};
use gfn_extras::pareto::focus_accuracy;
use tch::{Device, Kind, Tensor};

const LETTERS: u16 = 2;
const LENGTH: usize = 3;
const STEPS: usize = 300;

fn words() -> VectorEnv {
    word_env(LETTERS, LENGTH)
}

/// Returns a reward that grows with the number of times that a letter occurs in a word.
fn letters(letter: u16) -> Arc<dyn Reward<VectorStates> + Send + Sync> {
    Arc::new(move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        let count = |row: &[u16]| row.iter().filter(|&&x| x == letter).count() as f64;
        Ok(states.rows().map(|row| (0.2 + count(row)).ln()).collect())
    })
}

fn reward(conditioning: Conditioning) -> ConditionedReward<VectorStates> {
    ConditionedReward::new(conditioning, vec![letters(1), letters(2)]).unwrap()
}

fn plain() -> Conditioning {
    let thermometer = Encoding::Thermometer { bins: 8 };
    let conditioning = Conditioning::new(2).unwrap();
    let law = Temperature::Uniform { least: 0.5, most: 2.0 };
    let conditioning = conditioning.temperature(law, thermometer).unwrap();
    conditioning.preferences(Directions::Dirichlet { concentration: 1.0 }, thermometer).unwrap()
}

fn policy(conditioning: &Conditioning, logit_scale: bool, seed: u64) -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() };
    let config = MlpPolicyConfig {
        mlp,
        backward: BackwardPolicy::Uniform,
        estimators: EstimatorsConfig {
            logit_scale: logit_scale.then(|| MlpConfig { hidden: vec![16], ..MlpConfig::default() }),
            ..EstimatorsConfig::conditional(conditioning.width() as i64)
        },
        ..MlpPolicyConfig::default()
    };
    let features = KHot::new(LENGTH, usize::from(LETTERS) + 1);
    MlpPolicy::new(&words(), features, config, Device::Cpu, Kind::Float, &mut Rng::seeded(seed)).unwrap()
}

type WordTrainer = Trainer<VectorEnv>;

fn trainer(
    reward: &ConditionedReward<VectorStates>,
    policy: MlpPolicy<KHot>,
    source: DataSource,
) -> WordTrainer {
    tch::set_num_threads(1);
    let adam = AdamConfig { lr: 6e-3, log_z_lr: 3e-2, ..AdamConfig::default() };
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.05, steps: STEPS };
    let config =
        TrainerConfig { batch: 64, adam, source, lr_scale, replay_after: 0, ..TrainerConfig::default() };
    Trainer::new(words(), reward.clone(), policy, TrajectoryBalance, config, Rng::seeded(7))
        .unwrap()
        .with_conditions(reward.conditioning().clone())
}

fn buffer() -> ReplayBuffer<VectorEnv> {
    ReplayBuffer::new(ReplayConfig { capacity: 2_000, eviction: Eviction::Fifo, draw: Draw::Uniform })
        .unwrap()
}

/// Returns conditions that differ strongly from each other.
fn test_conditions() -> Vec<Condition> {
    let of = |beta: f64, first: f64| Condition { beta, preferences: vec![first, 1.0 - first], focus: None };
    vec![of(0.6, 0.9), of(1.8, 0.9), of(1.8, 0.1), of(1.0, 0.5)]
}

/// Returns two results. The first is the total variation between the learned distribution at each condition
/// (rows) and the target of each condition (columns). The second is the error of log Z at each condition.
fn exact(trainer: &WordTrainer, reward: &ConditionedReward<VectorStates>) -> (Vec<Vec<f64>>, Vec<f64>) {
    let graph = StateGraph::build(&words(), 100).unwrap();
    let vector = |condition: Condition| reward.conditioning().encode(&[condition]).unwrap();
    let targets: Vec<_> = test_conditions()
        .into_iter()
        .map(|c| graph.target_distribution(reward, Some(&vector(c))).unwrap())
        .collect();
    let mut distances = Vec::new();
    let mut of_log_z = Vec::new();
    for (condition, target) in test_conditions().into_iter().zip(&targets) {
        let vector = vector(condition);
        let learned = graph.terminating_distribution(&words(), trainer.policy(), Some(&vector)).unwrap();
        let tv = |target: &[f64]| Distances::between(&learned.probs, target).unwrap().tv;
        distances.push(targets.iter().map(|target| tv(&target.probs)).collect());
        let log_z =
            Policy::<VectorEnv>::log_z(trainer.policy(), Some(&vector), 1).unwrap().double_value(&[0]);
        of_log_z.push((log_z - target.log_z).abs());
    }
    (distances, of_log_z)
}

#[test]
fn one_policy_samples_the_target_of_each_condition() {
    let reward = reward(plain());
    for (logit_scale, hindsight) in [(false, true), (true, false)] {
        let half = DataSource::new(0.5, 0.5, 0.0).unwrap();
        let source = if hindsight { half } else { DataSource::default() };
        let mut trainer = trainer(&reward, policy(reward.conditioning(), logit_scale, 1), source);
        if hindsight {
            let again = reward.conditioning().clone();
            let redraw =
                move |objects: &VectorStates, _: &Tensor, rng: &mut Rng| again.draw(objects.len(), rng);
            trainer = trainer.with_replay(buffer()).with_hindsight(redraw, 0.5).unwrap();
        }
        let before = exact(&trainer, &reward).0;
        for _ in 0..STEPS {
            trainer.step().unwrap();
        }
        let (distances, of_log_z) = exact(&trainer, &reward);
        let case = format!(
            "scale {logit_scale}, hindsight {hindsight}: {distances:?}, {of_log_z:?}, before {before:?}"
        );
        println!("{case}");
        for (i, row) in distances.iter().enumerate() {
            assert!(row[i] < 0.05 && before[i][i] > 0.1, "{case}");
            // The distribution at one condition must differ from the targets of the other conditions.
            assert!((0..row.len()).filter(|j| *j != i).all(|j| row[j] > 0.1), "{case}");
        }
        assert!(of_log_z.iter().all(|gap| *gap < 0.15), "{case}");
    }
}

#[test]
fn a_policy_with_unrelated_conditions_fits_no_condition() {
    // Each trajectory is rewarded under the condition of another trajectory. The condition that the policy
    // gets therefore says nothing about the reward.
    let reward = reward(plain());
    let deaf = policy(reward.conditioning(), false, 1);
    let conditioning = reward.conditioning().clone();
    let own_reward = reward.clone();
    let shuffled = move |states: &VectorStates, conditions: Option<&Tensor>| {
        let of_another = conditions.map(|c| c.roll([1], [0]));
        own_reward.log_reward(states, of_another.as_ref())
    };
    let config = TrainerConfig {
        batch: 64,
        adam: AdamConfig { lr: 3e-3, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let trainer = Trainer::new(words(), shuffled, deaf, TrajectoryBalance, config, Rng::seeded(7)).unwrap();
    let mut trainer = trainer.with_conditions(conditioning);
    for _ in 0..STEPS / 2 {
        trainer.step().unwrap();
    }
    let (distances, _) = exact(&trainer, &reward);
    assert!((0..3).all(|i| distances[i][i] > 0.08), "{distances:?}");
}

#[test]
fn replayed_objects_are_in_focus_in_hindsight() {
    let number = Encoding::Thermometer { bins: 8 };
    let focus = Focus::new(Directions::OneOf(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
    let conditioning = Conditioning::new(2).unwrap().focus(focus, number).unwrap();
    let reward = reward(conditioning.clone());
    for share in [0.0, 1.0] {
        let half = DataSource::new(0.5, 0.5, 0.0).unwrap();
        let mut trainer = trainer(&reward, policy(&conditioning, false, 2), half)
            .with_replay(buffer())
            .with_hindsight(FocusInHindsight(reward.clone()), share)
            .unwrap();
        // Objects that were prefilled into the buffer must have conditions, too.
        assert_eq!(trainer.prefill(500).unwrap(), 500);
        trainer.step().unwrap();
        let latest = trainer.latest().unwrap();
        let objects = latest.terminal_states();
        let conditions = latest.conditions().unwrap();
        let log_rewards = latest.recorded_log_rewards().unwrap();
        assert_eq!(log_rewards, reward.log_reward(objects, Some(conditions)).unwrap());
        // Fresh trajectories come first in the batch. Many of their objects get -75, the fixed log-reward of
        // objects whose objectives point too far away from the goal direction. The goal directions are the
        // axes of the objectives, and only words of a single letter are near an axis.
        let outside = |rows: std::ops::Range<usize>| rows.filter(|&i| log_rewards[i] == -75.0).count();
        assert!(outside(0..32) > 10);
        let decoded = conditioning.decode(conditions).unwrap();
        let replayed: Vec<usize> = (32..64).collect();
        let objectives = reward.objectives(&objects.select(&replayed)).unwrap();
        let own = replayed.iter().zip(0..).filter(|&(&i, k)| {
            let direction = decoded[i].focus.clone().unwrap();
            focus_accuracy(&objectives.select(&[k]), &direction, 0.999_999).unwrap() == 1.0
        });
        match share {
            0.0 => assert!(outside(32..64) > 10 && own.count() < 22),
            _ => assert!(outside(32..64) == 0 && own.count() == 32),
        }
    }
}

#[test]
fn missing_requirements_of_hindsight_are_reported() {
    let reward = reward(plain());
    let new =
        || trainer(&reward, policy(reward.conditioning(), false, 0), DataSource::new(0.5, 0.5, 0.0).unwrap());
    let narrow = |_: &VectorStates, c: &Tensor, _: &mut Rng| -> Result<Tensor> { Ok(c.narrow(1, 0, 1)) };
    assert!(matches!(new().with_hindsight(narrow, 1.0), Err(Error::Missing { .. })));
    assert!(matches!(new().with_replay(buffer()).with_hindsight(narrow, 1.5), Err(Error::Config { .. })));
    let draw = Draw::LossPrioritised { exponent: 1.0 };
    let by_loss = ReplayBuffer::new(ReplayConfig { capacity: 10, eviction: Eviction::Fifo, draw }).unwrap();
    let refused = new().with_replay(by_loss).with_hindsight(narrow, 0.5).unwrap_err().to_string();
    assert!(refused.contains("doesn't draw by loss"), "{refused}");
    let mut trainer = new().with_replay(buffer()).with_hindsight(narrow, 1.0).unwrap();
    trainer.prefill(8).unwrap();
    assert!(matches!(trainer.step(), Err(Error::Shape { .. })));
    let estimators =
        EstimatorsConfig { logit_scale: Some(MlpConfig::default()), ..EstimatorsConfig::default() };
    let scale = MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() };
    let refused =
        MlpPolicy::new(&words(), KHot::new(3, 3), scale, Device::Cpu, Kind::Float, &mut Rng::seeded(0));
    assert!(refused.unwrap_err().to_string().contains("logit_scale"));
}
