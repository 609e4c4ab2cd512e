//! Tests of parts of the tasks `seh-frag` and `seh-frag-moo`: the goal directions of objectives, the cone
//! around a goal direction (the objective vectors that are near it, and have high rewards), and the table of
//! scored molecules.

use std::path::PathBuf;
use std::sync::Arc;

use gfn::env::{Reals, Reward, Rows, Slots, VectorStates};
use gfn::examples::word_env;
use gfn::metrics::sample_objects;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::{SubTrajectoryBalance, Weighting};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_extras::condition::{
    Condition, ConditionedReward, Conditioning, Directions, Encoding, Focus, FocusInHindsight, Temperature,
    cosine_of,
};
use gfn_extras::pareto::{focus_accuracy, pareto_front};
use tch::{Device, Kind, Tensor};

#[path = "../examples/reproduce/molecules/seh_frag/focus.rs"]
mod focus;
#[path = "../examples/reproduce/molecules/seh_frag/scored_table.rs"]
mod scored_table;

use focus::{focus, spread};
use scored_table::ScoredTable;

const COSINE: f64 = 0.98;
const BETA: f64 = 32.0;
const LEAST: f64 = 1e-4;

/// Builds the conditions of the task: a goal direction of four objectives. `focus` holds the settings of the
/// cone around this direction, outside of which the reward is small.
fn conditioning(focus: Focus) -> Conditioning {
    let plain =
        Conditioning::new(4).unwrap().temperature(Temperature::Constant(BETA), Encoding::Number).unwrap();
    plain.focus(focus, Encoding::Thermometer { bins: 16 }).unwrap()
}

fn toward(direction: &[f64]) -> Condition {
    Condition { beta: BETA, preferences: vec![1.0; 4], focus: Some(direction.to_vec()) }
}

/// Checks that, among objects whose objectives have the same sum, those nearer to the goal direction have a
/// higher log-reward. Some of the objects lie inside of the cone around this direction, others outside of it.
#[test]
fn objects_nearer_to_the_direction_are_worth_more() {
    let direction = [0.5; 4];
    let objectives = |step: u32| {
        let off = 0.49 * f64::from(step) / 49.0;
        [0.5 + off, 0.5 - off, 0.5 + off, 0.5 - off]
    };
    let rewards = (0..4).map(|k| {
        let of = move |states: &Slots, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(states.0.iter().map(|&step| objectives(step)[k].ln()).collect())
        };
        Arc::new(of) as Arc<dyn Reward<Slots> + Send + Sync>
    });
    let rewards: Vec<_> = rewards.collect();
    let states = Slots((0..50).collect());
    let inside = (0..50).filter(|&step| cosine_of(&objectives(step), &direction).unwrap() >= COSINE).count();
    assert!((5..45).contains(&inside), "{inside}");
    let falls = |focus: Focus| {
        let reward = ConditionedReward::new(conditioning(focus), rewards.clone()).unwrap();
        let vectors = reward.conditioning().encode(&vec![toward(&direction); 50]).unwrap();
        let logs = reward.log_reward(&states, Some(&vectors)).unwrap();
        logs.windows(2).all(|pair| pair[0] > pair[1])
    };
    let directions = Directions::OneOf(vec![direction.to_vec()]);
    assert!(falls(focus(COSINE, BETA, LEAST, directions.clone())));
    // As a negative control, the log-reward doesn't fall with the distance from the direction under the
    // earlier settings of the task, because they give all objects outside of the cone the same reward.
    assert!(!falls(Focus { cosine: COSINE, ..Focus::new(directions) }));
}

#[test]
fn directions_are_far_apart_and_can_be_reached() {
    let front = Reals::from_rows([[1.0, 0.1], [0.9, 0.2], [0.1, 2.0], [0.5, 0.5]]);
    assert_eq!(spread(&front, 3), [[1.0, 0.1], [0.1, 2.0], [0.5, 0.5]]);
    assert_eq!(spread(&front, 9).len(), 4);
    assert!(spread(&Reals::filled(2, 0, 0.0), 3).is_empty());
}

const LENGTH: usize = 6;
const STEPS: usize = 400;

fn letters() -> Vec<Arc<dyn Reward<VectorStates> + Send + Sync>> {
    let of_letter = |letter: u16| {
        let of = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            let count = |row: &[u16]| row.iter().filter(|&&x| x == letter).count() as f64;
            Ok(states.rows().map(|row| (LEAST + count(row) / LENGTH as f64).ln()).collect())
        };
        Arc::new(of) as Arc<dyn Reward<VectorStates> + Send + Sync>
    };
    (1..=4).map(of_letter).collect()
}

/// Trains with goal directions, and cones around them, from the settings `focus`. Returns, for each tested
/// direction, the share of samples whose objectives lie in the cone around this direction. `hindsight` is the
/// share of replayed objects whose goal direction is replaced by the direction of their own objectives.
fn accuracy(focus: Focus, hindsight: Option<f64>, tested: &[Vec<f64>]) -> Vec<f64> {
    let env = word_env(4, LENGTH);
    let reward = ConditionedReward::new(conditioning(focus), letters()).unwrap();
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() },
        backward: BackwardPolicy::Uniform,
        estimators: EstimatorsConfig {
            flow: true,
            ..EstimatorsConfig::conditional(reward.conditioning().width() as i64)
        },
        ..MlpPolicyConfig::default()
    };
    let mut rng = Rng::seeded(3);
    let policy =
        MlpPolicy::new(&env, KHot::new(LENGTH, 5), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig {
        batch: 64,
        adam: AdamConfig { lr: 3e-3, log_z_lr: 1e-2, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        reward_exponent: Schedule::Linear { from: 4.0 / BETA, to: 1.0, steps: STEPS / 2 },
        ..TrainerConfig::default()
    };
    let objective = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng).unwrap();
    let mut trainer = trainer.with_conditions(reward.conditioning().clone());
    if let Some(share) = hindsight {
        let fifo = ReplayConfig { capacity: 2_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
        let replayed = trainer.with_replay(ReplayBuffer::new(fifo).unwrap());
        trainer = replayed.with_hindsight(FocusInHindsight(reward.clone()), share).unwrap();
    }
    for _ in 0..STEPS {
        trainer.step().unwrap();
    }
    let share = |direction: &Vec<f64>| {
        let vector = reward.conditioning().encode(&[toward(direction)]).unwrap().expand([100, -1], false);
        let sampler = Sampler::new(trainer.env(), trainer.policy());
        let sampled = sampler.forward_conditional(&vector, &mut Rng::seeded(1)).unwrap();
        let objectives = reward.objectives(sampled.terminal_states()).unwrap();
        focus_accuracy(&objectives, direction, COSINE).unwrap()
    };
    tested.iter().map(share).collect()
}

/// Tests the settings of `seh-frag-moo --focus` on words. There are four objectives, one per letter: how
/// often the letter occurs in the word.
#[test]
fn a_policy_follows_the_focus() {
    tch::set_num_threads(1);
    let plain = ConditionedReward::new(Conditioning::new(4).unwrap(), letters()).unwrap();
    let random = sample_objects(&word_env(4, LENGTH), &UniformPolicy, 1_000, &mut Rng::seeded(0)).unwrap();
    let random = plain.objectives(&random).unwrap();
    let front = random.select(&pareto_front(&random).unwrap());
    let tested = spread(&front, 10);
    let directions = Directions::OneOf(front.rows().map(<[f64]>::to_vec).collect());
    let learned = accuracy(focus(COSINE, BETA, LEAST, directions), Some(0.3), &tested);
    let of_random: Vec<f64> =
        tested.iter().map(|one| focus_accuracy(&random, one, COSINE).unwrap()).collect();
    let as_before = Focus { cosine: COSINE, ..Focus::new(Directions::Dirichlet { concentration: 1.0 }) };
    let as_before = accuracy(as_before, None, &tested);
    println!("{learned:?}\nrandom {of_random:?}\nbefore {as_before:?}");
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean(&learned) > 3.0 * mean(&of_random), "{learned:?} of {of_random:?}");
    assert!(learned.iter().filter(|share| **share > 0.0).count() >= 8, "{learned:?}");
    // The earlier settings of the task must be worse than uniform actions. They are directions from a
    // Dirichlet distribution, cones outside of which all objects have the same reward, and no replacement of
    // the goal directions of replayed objects.
    assert!(mean(&as_before) < mean(&of_random), "{as_before:?} of {of_random:?}");
}

struct TableFile(PathBuf);

impl TableFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("gfn-scored-{name}-{}.csv", std::process::id())))
    }
    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn finish(table: &mut ScoredTable, smiles: &str, step: Option<usize>) {
    table.push(smiles.into(), 0.5);
    table.finish_step(step).unwrap();
}

#[test]
fn every_scored_molecule_has_a_row() {
    let file = TableFile::new("rows");
    let mut table = ScoredTable::new(file.0.clone());
    table.push("C".into(), 0.25);
    finish(&mut table, "CC", None);
    table.finish_step(None).unwrap();
    finish(&mut table, "N", None);
    assert_eq!(file.text(), "step,smiles,reward\n1,C,0.25\n1,CC,0.5\n3,N,0.5\n");
}

#[test]
fn a_table_goes_on_where_its_run_goes_on() {
    let file = TableFile::new("resumed");
    let mut table = ScoredTable::new(file.0.clone());
    for step in 1..=4 {
        finish(&mut table, "C", Some(step));
    }
    drop(table);
    // This run was killed while it wrote a row, after a checkpoint at step 2. The incomplete row must be
    // removed.
    std::fs::write(&file.0, file.text() + "1").unwrap();
    finish(&mut ScoredTable::new(file.0.clone()), "N", Some(3));
    assert_eq!(file.text(), "step,smiles,reward\n1,C,0.5\n2,C,0.5\n3,N,0.5\n");
    // A new run must not continue the table of another run.
    finish(&mut ScoredTable::new(file.0.clone()), "O", Some(1));
    assert_eq!(file.text(), "step,smiles,reward\n1,O,0.5\n");
    // A run that resumes in another folder must start a new table there.
    std::fs::remove_file(&file.0).unwrap();
    finish(&mut ScoredTable::new(file.0.clone()), "O", Some(7));
    assert_eq!(file.text(), "step,smiles,reward\n7,O,0.5\n");
}

#[test]
fn molecules_scored_after_the_last_step_have_rows() {
    let file = TableFile::new("after");
    let mut table = ScoredTable::new(file.0.clone());
    finish(&mut table, "C", Some(1));
    finish(&mut table, "N", Some(2));
    drop(table);
    // A run that resumes after its last step must add no row.
    finish(&mut ScoredTable::new(file.0.clone()), "O", Some(3));
    assert_eq!(file.text(), "step,smiles,reward\n1,C,0.5\n2,N,0.5\n3,O,0.5\n");
    ScoredTable::new(file.0.clone()).finish_step(Some(4)).unwrap();
    assert_eq!(file.text(), "step,smiles,reward\n1,C,0.5\n2,N,0.5\n3,O,0.5\n");
}
