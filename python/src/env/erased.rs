//! Environments of vectors behind one type: a trainer is compiled once for all of them.

use std::sync::Arc;

use gfn::Result;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Slots, Step, VectorStates};

/// An environment of vectors, which their entries tell apart.
#[derive(Clone)]
pub(crate) struct AnyVectorEnv {
    env: Arc<dyn DiscreteEnv<States = VectorStates, Actions = Slots>>,
    width: usize,
}

impl AnyVectorEnv {
    /// An environment of vectors of so many entries.
    pub(super) fn new(env: impl DiscreteEnv<States = VectorStates, Actions = Slots> + 'static, width: usize) -> Self {
        Self { env: Arc::new(env), width }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

impl Env for AnyVectorEnv {
    type States = VectorStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;
    fn n_instances(&self) -> u32 {
        self.env.n_instances()
    }
    fn initial(&self, instances: &[u32]) -> VectorStates {
        self.env.initial(instances)
    }
    fn instances(&self, states: &VectorStates) -> Vec<u32> {
        self.env.instances(states)
    }
    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        self.env.step(direction, states, actions)
    }
    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        self.env.is_initial(states)
    }
    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        self.env.exit_actions(states)
    }
    fn check_contract(&self) -> Result<()> {
        self.env.check_contract()
    }
}

impl DiscreteEnv for AnyVectorEnv {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        self.env.masks(direction, states)
    }
    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        self.env.describe(direction, states, row, slot)
    }
}

impl EnumerableEnv for AnyVectorEnv {
    type Key = Vec<u16>;
    fn keys(&self, states: &VectorStates) -> Vec<Vec<u16>> {
        states.rows().map(<[u16]>::to_vec).collect()
    }
}
