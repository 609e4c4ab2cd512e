//! Tests of a file with many short trajectories, which takes few bytes on disk, but many states in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::trainers::Folder;
use gfn::Rng;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Env, Masks, Slots, Step};
use gfn::examples::{Chain, Positions};
use gfn::policy::UniformPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;

/// An environment like `Chain`, which records the largest number of initial states that were built in one
/// call.
struct CountsInitialStates(Chain, AtomicUsize);

impl Env for CountsInitialStates {
    type States = Positions;
    type Actions = Slots;
    type Dist = GraphActionCategorical;
    fn initial(&self, instances: &[u32]) -> Positions {
        self.1.fetch_max(instances.len(), Ordering::Relaxed);
        self.0.initial(&vec![0; instances.len()])
    }
    fn step(
        &self,
        direction: Direction,
        states: &mut Positions,
        actions: &Slots,
    ) -> gfn::Result<Step<Slots>> {
        self.0.step(direction, states, actions)
    }
    fn is_initial(&self, states: &Positions) -> Vec<bool> {
        self.0.is_initial(states)
    }
    fn exit_actions(&self, states: &Positions) -> Option<Slots> {
        self.0.exit_actions(states)
    }
}

impl DiscreteEnv for CountsInitialStates {
    fn masks(&self, direction: Direction, states: &Positions) -> Masks {
        self.0.masks(direction, states)
    }
    fn describe(&self, direction: Direction, states: &Positions, row: usize, slot: u32) -> String {
        self.0.describe(direction, states, row, slot)
    }
}

/// Checks that reading a file into a buffer doesn't build more states than the buffer can hold. A trajectory
/// of one action takes a few bytes on disk, but a whole state in memory. A buffer must refuse too many
/// trajectories before it builds their states; containers without a limit build one state per trajectory.
#[test]
fn a_file_of_short_walks_makes_no_more_states_than_there_is_room_for() {
    const WALKS: usize = 5000;
    let folder = Folder::new("data-short");
    let env = CountsInitialStates(Chain::new(1), AtomicUsize::new(0));
    let trajectories = Sampler::new(&env, &UniformPolicy).forward(WALKS, &mut Rng::seeded(0)).unwrap();
    assert_eq!(trajectories.n_transitions(), WALKS);
    let config = |capacity| ReplayConfig { capacity, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut large = ReplayBuffer::new(config(WALKS)).unwrap();
    large.add(&env, &trajectories.walks(&env).unwrap(), &[0.0; WALKS]).unwrap();
    let state = large.state(&env).unwrap();
    trajectories.save(&env, folder.join("walks")).unwrap();
    let take_largest = || env.1.swap(0, Ordering::Relaxed);
    take_largest();
    let error = ReplayBuffer::new(config(100)).unwrap().load_state(&env, &state).unwrap_err();
    assert!(error.to_string().contains("the capacity is 100"), "{error}");
    assert!(take_largest() <= 1);
    assert_eq!(Trajectories::load(&env, folder.join("walks")).unwrap().len(), WALKS);
    assert_eq!(take_largest(), WALKS);
}
