//! An environment of your own on vectors: permutations, written item by item; R is e to the number of items in their place.

use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, StateGraph, Step, VectorStates};
use gfn::metrics::Distances;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::runtime::{DeviceKind, Runtime};
use gfn::testing::check_env;
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng};

/// Permutations of `N` items: entry `k` is the item at place `k`, from 1 on, or 0 for none yet.
struct Permutations;
const N: usize = 5;

impl Env for Permutations {
    type States = VectorStates;
    type Actions = Slots;
    fn initial(&self, n: usize) -> VectorStates {
        VectorStates::filled(N, n, 0)
    }
    // A forward slot is the item that comes next; the one backward slot takes the last away. A full row is finished: there is no exit.
    fn step(&self, direction: Direction, states: &mut VectorStates, slots: &Slots) -> Result<Step<Slots>> {
        let mut step = Step { reverse: slots.clone(), exit: vec![false; slots.len()], done: vec![false; slots.len()] };
        for (i, row) in states.values_mut().chunks_exact_mut(N).enumerate() {
            let length = row.iter().filter(|&&item| item > 0).count();
            match direction {
                Direction::Forward => (row[length], step.reverse.0[i]) = (slots.0[i] as u16 + 1, 0),
                Direction::Backward => step.reverse.0[i] = u32::from(std::mem::take(&mut row[length - 1])) - 1,
            }
            step.done[i] = row[0] == 0 || row[N - 1] > 0;
        }
        Ok(step)
    }
    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|row| row[0] == 0).collect()
    }
    fn exit_actions(&self, _: &VectorStates) -> Option<Slots> {
        None
    }
}

impl DiscreteEnv for Permutations {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        let forward = direction == Direction::Forward;
        let width = if forward { N } else { 1 };
        let is_legal = move |row: &[u16], item| if forward { !row.contains(&item) } else { row[0] > 0 };
        let legal = states.rows().flat_map(|row| (1..=width as u16).map(move |item| is_legal(row, item)));
        Masks::of_rows(direction, states.len(), width, legal.collect(), false)
    }
    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        format!("{direction} slot {slot} at {:?}", states.row(row))
    }
}

impl EnumerableEnv for Permutations {
    type Key = Vec<u16>;
    fn keys(&self, states: &VectorStates) -> Vec<Vec<u16>> {
        states.rows().map(<[u16]>::to_vec).collect()
    }
}

fn main() -> Result<()> {
    let (runtime, mut rng) = (Runtime::new(1, DeviceKind::Cpu)?, Rng::seeded(0));
    check_env(&Permutations, 100, &mut rng)?;
    let reward = |states: &VectorStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().zip(1..).filter(|(item, place)| *item == place).count() as f64).collect())
    };
    let (env, features, network) = (Permutations, KHot::new(N, N + 1), MlpPolicyConfig::default());
    let policy = MlpPolicy::new(&env, features, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), rng)?;
    let space = StateGraph::build(trainer.env(), 1_000)?;
    let target = space.target_distribution(&reward, None)?;
    Fit::new(1_000).run(&mut trainer)?;
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
    let tv = Distances::between(&learned.probs, &target.probs)?.tv;
    println!("Total variation {tv:.4} over {} permutations.", space.ends().len());
    Ok(())
}
