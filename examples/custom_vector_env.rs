//! Defines a custom environment on vectors. The objects are permutations, which are written item by item. log
//! R is the number of items whose number is equal to their position.

use gfn::contract::{Budget, check_env};
use gfn::env::{Direction, StateGraph, VectorEnv, VectorRules, VectorStates};
use gfn::metrics::Distances;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::run::Fit;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng, tch};

/// The rules of permutations of `N` items. Entry `k` of a state is the number of the item at position `k`.
/// Items are numbered from 1, and the entry of an empty position is 0.
struct Permutations;
const N: usize = 5;

impl VectorRules for Permutations {
    fn width(&self) -> usize {
        N
    }
    // A forward action appends one of `N` items. The only backward action removes the last item.
    fn n_moves(&self, direction: Direction) -> usize {
        if direction == Direction::Forward { N } else { 1 }
    }
    // A trajectory ends by itself when the permutation is complete, without an exit action.
    fn has_exit(&self) -> bool {
        false
    }
    fn can_end(&self, row: &[u16]) -> bool {
        row[N - 1] > 0
    }
    fn apply(&self, direction: Direction, row: &mut [u16], item: usize) -> Option<usize> {
        let length = row.iter().filter(|&&item| item > 0).count();
        match direction {
            Direction::Forward if length < N && !row.contains(&(item as u16 + 1)) => {
                row[length] = item as u16 + 1
            }
            Direction::Backward if length > 0 => {
                return Some(usize::from(std::mem::take(&mut row[length - 1])) - 1);
            }
            _ => return None,
        }
        Some(0)
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let env = VectorEnv::new(Permutations);
    check_env(&env, Budget::thorough(), &mut rng)?;
    let reward = |states: &VectorStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
        Ok(states
            .rows()
            .map(|row| row.iter().zip(1..).filter(|(item, place)| *item == place).count() as f64)
            .collect())
    };
    let features = KHot::new(N, N + 1);
    let network = MlpPolicyConfig::default();
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
