//! Tests of the warnings of a trainer: rewards instead of log-rewards, few effective samples, and few
//! distinct objects.

use std::cell::Cell;

use crate::watched::WarningRecorder;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, VectorEnv, VectorRules, VectorStates};
use gfn::error::Warning;
use gfn::graph::{GraphKind, GraphState, PerGraph};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::{LogPartitionVariance, Quantities, TrajectoryBalance};
use gfn::optim::Schedule;
use gfn::policy::{Evaluation, GraphPolicy, Policy, UniformPolicy};
use gfn::run::OnWarning;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig, Growth};
use tch::{Device, Kind, Tensor};

const LETTERS: usize = 16;

/// The rules of words of a fixed number of letters, each of which is 1 or 2. There is no exit.
struct Bits;

impl VectorRules for Bits {
    fn width(&self) -> usize {
        LETTERS
    }

    fn n_values(&self) -> usize {
        3
    }

    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { 2 } else { 1 }
    }

    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let n = row.iter().filter(|&&letter| letter > 0).count();
        if direction == Direction::Forward {
            *row.get_mut(n)? = slot as u16 + 1;
            return Some(0);
        }
        let letter = std::mem::take(&mut row[n.checked_sub(1)?]);
        Some(usize::from(letter) - 1)
    }

    fn has_exit(&self) -> bool {
        false
    }

    fn can_end(&self, row: &[u16]) -> bool {
        row[LETTERS - 1] > 0
    }
}

type Words = VectorEnv;

/// Returns a word of 16 letters as a number from 0 to 4,096, exclusive: the word is read as a binary number
/// and divided by 16.
fn number(row: &[u16]) -> f64 {
    row.iter().fold(0.0, |number, &letter| 2.0 * number + f64::from(letter - 1)) / 16.0
}

/// Builds a trainer of words whose policy is uniform and learns nothing.
fn uniform(
    reward: impl Fn(f64) -> f64 + Send + Sync + 'static,
    on_warning: OnWarning,
) -> WarningRecorder<Words> {
    let log_reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| reward(number(row))).collect())
    };
    let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
    let objective = gfn::objective::LogPartitionVariance;
    let made =
        Trainer::new(VectorEnv::new(Bits), log_reward, UniformPolicy, objective, config, Rng::seeded(0));
    WarningRecorder::with_action(made.unwrap(), on_warning)
}

fn first_warnings(reward: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Vec<Warning> {
    let mut trainer = uniform(reward, OnWarning::Keep);
    trainer.steps(1).unwrap();
    trainer.warnings().to_vec()
}

#[test]
fn rewards_instead_of_log_rewards_are_warned_of() {
    for reward in [
        |x: f64| 1e6 * (x % 4.0),
        |x: f64| (x / 400.0).exp(),
        |x: f64| if x % 16.0 < 3.0 { 500.0 } else { 0.0 },
    ] {
        let warnings = first_warnings(reward);
        let [warning @ Warning::NotLogarithms { step: 1, .. }] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        let text = warning.to_string();
        assert!(text.contains("Does the reward return R itself?") && text.contains("logarithm"), "{text}");
    }
    // These are valid log-rewards: of any sign, in proportion to a size, a count or the log of a density, or
    // far from 0. Valid log-rewards must cause no warning.
    for log_reward in [
        |x: f64| -x,
        |x: f64| x / 4096.0,
        |x: f64| 10.0 * (x % 64.0),
        |x: f64| 300.0 + x % 32.0,
        |x: f64| x - 100.0,
        |_: f64| 250.0,
        |x: f64| 32.0 * ((x + 1.0) / 4096.0).ln(),
    ] {
        assert_eq!(first_warnings(log_reward), []);
    }
}

/// Checks that a run is warned if it ends with few effective samples. The samples are uniform, and nearly all
/// of the target's mass lies on a few words.
#[test]
fn a_run_that_ends_with_few_effective_samples_is_warned_of() {
    let end = |scale: f64, steps: usize| {
        let mut trainer = uniform(move |x| -scale * x / 4096.0, OnWarning::Keep);
        trainer.run(steps).unwrap();
        trainer.warnings().to_vec()
    };
    let warnings = end(100.0, 100);
    let [warning @ Warning::FewEffective { step: 100, effective, n: 256 }] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert!((1.0..25.6).contains(effective), "{effective}");
    assert!(warning.to_string().contains("don't trust averages"), "{warning}");
    // A nearly uniform target, and a run with too few steps, must cause no warning.
    assert_eq!(end(1.0, 100), []);
    assert_eq!(end(100.0, 99), []);
    // With `OnWarning::Fail` the warning ends each run with an error. If another run follows, the list of
    // warnings must still contain the warning only once.
    let mut strict = uniform(|x| -x / 40.0, OnWarning::Fail);
    let ended = strict.run(120);
    assert!(matches!(ended, Err(Error::Warned(Warning::FewEffective { step: 120, .. }))), "{ended:?}");
    let ended = strict.run(121);
    assert!(matches!(ended, Err(Error::Warned(Warning::FewEffective { step: 121, .. }))), "{ended:?}");
    assert_eq!(strict.warnings().len(), 1);
}

/// Checks that a policy causes no warning if it was trained to a small loss with the default exploration.
#[test]
fn a_policy_that_has_learned_is_not_warned_of() {
    tch::set_num_threads(1);
    let config = GraphBuildingConfig {
        growth: Growth::Attached,
        ..GraphBuildingConfig::new(GraphKind::Undirected, 4)
    };
    let env = GraphBuilding::new(config).unwrap().into_env();
    let rng = &mut Rng::seeded(0);
    let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, rng).unwrap();
    let reward = PerGraph(|graph: &GraphState| 2.0 * graph.n_edges() as f64);
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let made =
        Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(0)).unwrap();
    let mut trainer = WarningRecorder::new(made);
    trainer.run(300).unwrap();
    assert_eq!(trainer.warnings(), []);
}

/// A policy of adjustable sharpness: it is uniform at 0, and chooses the first letter nearly always at large
/// values.
struct SharpPolicy(Cell<f64>);

impl Policy<Words> for SharpPolicy {
    fn evaluate(
        &self,
        env: &Words,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut given = UniformPolicy.evaluate(env, states, conditions, wants)?;
        let masks = env.masks(Direction::Forward, states);
        let logits = |block: &gfn::env::Block| {
            let rows = block.rows() as i64;
            let width = block.width as i64;
            let row = Tensor::arange(width, (Kind::Float, Device::Cpu)) * -self.0.get();
            row.expand([rows, width], false).contiguous()
        };
        let blocks: Vec<Tensor> = masks.blocks.iter().map(logits).collect();
        given.pf = Some(GraphActionCategorical::new(masks, &blocks)?);
        Ok(given)
    }
}

#[test]
fn a_policy_that_comes_to_draw_few_objects_is_warned_of() {
    let run = |step: f64, sharpness: f64| {
        // With a small `step`, log R differs between all words. With a large `step` it has only a few values.
        let reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
            Ok(states.rows().map(|row| -(number(row) / step).floor() * step / 64.0).collect())
        };
        let epsilon = Some(Schedule::Constant(0.0));
        let config = TrainerConfig { batch: 100, epsilon, ..TrainerConfig::default() };
        let policy = SharpPolicy(Cell::new(0.0));
        let objective = LogPartitionVariance;
        let made =
            Trainer::new(VectorEnv::new(Bits), reward, policy, objective, config, Rng::seeded(0)).unwrap();
        let mut trainer = WarningRecorder::new(made);
        trainer.steps(20).unwrap();
        assert_eq!(trainer.warnings(), []);
        trainer.trainer.policy_as::<SharpPolicy>().unwrap().0.set(sharpness);
        trainer.steps(20).unwrap();
        trainer.warnings().to_vec()
    };
    let warnings = run(1.0 / 16.0, 4.0);
    let [warning @ Warning::FewObjects { step: 30, share, first }] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert!(*share < 0.5 && *first > 0.9, "{warning}");
    assert!(warning.to_string().contains("unless the target has such sharp peaks"), "{warning}");
    // There must be no warning if the policy is so little sharper (0.3) that most words of a batch are still
    // different, or if log R has only a few values from the start (step 64).
    assert_eq!(run(1.0 / 16.0, 0.3), []);
    assert_eq!(run(64.0, 4.0), []);
}
