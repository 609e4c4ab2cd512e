//! `VectorEnv`, the single type of all environments over vectors of small integers.

mod rules;

pub use rules::VectorRules;

use std::sync::Arc;

use serde_json::Value;
use smallvec::SmallVec;

use super::tensors::TensorRules;
use super::{
    Direction, DiscreteEnv, EnumerableEnv, Env, Grouping, Masks, Slots, Step, Symmetry, TensorEnv,
    TensorForm, VectorStates,
};
use crate::Result;
use crate::distribution::GraphActionCategorical;
use rules::RulesEnv;

/// The key of a vector, which identifies it in a list of all states. The key consists of the entries of the
/// vector.
pub type VectorKey = SmallVec<[u16; 12]>;

/// An environment over [`VectorStates`]. A `VectorEnv` is made from [`VectorRules`], or from any other
/// environment whose states are vectors and whose keys consist of the entries of the state.
///
/// The type has no type parameter, so that all environments over vectors share one compiled trainer. Methods
/// are called through a pointer, but only once per batch. A clone shares the rules. If a `VectorEnv` is made
/// from rules, slot `k` of a state is move `k`, and the exit is the last slot.
#[derive(Clone)]
pub struct VectorEnv {
    env: Arc<dyn EnumerableEnv<States = VectorStates, Key = VectorKey>>,
    n_values: usize,
    tensors: Option<TensorForm<VectorStates>>,
}

impl VectorEnv {
    /// Creates the environment with these rules.
    pub fn new(rules: impl VectorRules + 'static) -> Self {
        let n_values = rules.n_values();
        Self::from_env(RulesEnv(rules), n_values)
    }

    /// Creates a `VectorEnv` from a custom environment that is implemented without rules, and whose states
    /// have entries below `n_values`.
    pub fn from_env(
        env: impl EnumerableEnv<States = VectorStates, Key = VectorKey> + 'static,
        n_values: usize,
    ) -> Self {
        Self { env: Arc::new(env), n_values, tensors: None }
    }

    /// Creates a `VectorEnv` from a [`TensorEnv`] alone. On a device, roll-outs stay on the device. On the
    /// host, the moves are computed by the same tensor operations, which is slower than
    /// [rules](VectorRules).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) and [`Error::Config`](crate::Error::Config) for an initial state
    /// or legal moves of a wrong shape, type or range. [`check_tensors`](crate::contract::check_tensors)
    /// tests more.
    pub fn from_tensors(env: impl TensorEnv + 'static) -> Result<Self> {
        let form = TensorForm::for_vectors(Arc::new(env));
        let n_values = form.env().n_values();
        let env = Self::from_env(TensorRules::new(form.clone())?, n_values);
        Ok(Self { tensors: Some(form), ..env })
    }

    /// Adds a second form of this environment, with which roll-outs stay on a device. `env` must have the
    /// same states, moves and slots as the environment, which
    /// [`check_tensors`](crate::contract::check_tensors) tests.
    #[must_use]
    pub fn with_tensors(self, env: impl TensorEnv + 'static) -> Self {
        Self { tensors: Some(TensorForm::for_vectors(Arc::new(env))), ..self }
    }

    /// Returns the number of entries of a state.
    #[must_use]
    pub fn width(&self) -> usize {
        self.env.initial(&[0]).width()
    }

    /// The number of values that an entry of a state can have.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.n_values
    }
}

impl std::fmt::Debug for VectorEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VectorEnv").field("width", &self.width()).finish_non_exhaustive()
    }
}

impl Env for VectorEnv {
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

    fn settings(&self) -> Value {
        self.env.settings()
    }

    fn tensor_form(&self) -> Option<&TensorForm<VectorStates>> {
        self.tensors.as_ref()
    }

    fn describe_state(&self, states: &VectorStates, row: usize) -> Option<String> {
        self.env.describe_state(states, row)
    }

    fn symmetry(&self) -> &dyn Symmetry<VectorStates, Slots> {
        self.env.symmetry()
    }
}

impl DiscreteEnv for VectorEnv {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        self.env.masks(direction, states)
    }

    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        self.env.describe(direction, states, row, slot)
    }
}

impl EnumerableEnv for VectorEnv {
    type Key = VectorKey;

    fn keys(&self, states: &VectorStates) -> Vec<VectorKey> {
        self.env.keys(states)
    }

    fn child_keys(&self, states: &VectorStates, rows: &[usize], slots: &Slots) -> Result<Vec<VectorKey>> {
        self.env.child_keys(states, rows, slots)
    }

    fn objects(&self, states: &VectorStates) -> Result<Grouping> {
        self.env.objects(states)
    }

    fn merges_isomorphic(&self) -> bool {
        self.env.merges_isomorphic()
    }
}
