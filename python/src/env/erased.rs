//! Environments of one type, whoever wrote their rules: a trainer is compiled once for all of them.

use std::sync::Arc;

use gfn::Result;
use gfn::env::{
    BatchRules, Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Slots, Step, VectorEnv, VectorRules, VectorStates,
};
use gfn::graph::{GraphEnv, GraphRules};

/// A graph environment of any rules.
pub(crate) type AnyGraphEnv = GraphEnv<Arc<dyn GraphRules>>;

/// A graph environment with the type of its rules left out.
pub(crate) fn any_graphs<R: GraphRules + 'static>(env: GraphEnv<R>) -> AnyGraphEnv {
    env.with_rules(|rules| Arc::new(rules) as Arc<dyn GraphRules>)
}

/// An environment of vectors, told apart by their entries.
type OfVectors = dyn EnumerableEnv<States = VectorStates, Actions = Slots, Key = Vec<u16>>;

/// An environment of vectors of any rules, or of none: all of them are asked by the batch.
#[derive(Clone)]
pub(crate) struct AnyVectorEnv {
    env: Arc<OfVectors>,
    width: usize,
}

/// An environment of vectors with the type of its rules left out.
pub(crate) fn any_vectors<R: VectorRules + 'static>(env: VectorEnv<R>) -> AnyVectorEnv {
    let width = env.width();
    AnyVectorEnv::new(VectorEnv(ByEntries(env.0)), width)
}

impl AnyVectorEnv {
    /// An environment of vectors of so many entries.
    pub(super) fn new(
        env: impl EnumerableEnv<States = VectorStates, Actions = Slots, Key = Vec<u16>> + 'static,
        width: usize,
    ) -> Self {
        Self { env: Arc::new(env), width }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }
}

impl Env for AnyVectorEnv {
    type States = VectorStates;
    type Actions = Slots;
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
        self.env.keys(states)
    }
    fn child_keys(&self, states: &VectorStates, rows: &[usize], slots: &Slots) -> Result<Vec<Vec<u16>>> {
        self.env.child_keys(states, rows, slots)
    }
}

/// Rules whose keys are the entries themselves, so that those of all environments are of one type.
struct ByEntries<R>(R);

impl<R: VectorRules> VectorRules for ByEntries<R> {
    type Key = Vec<u16>;
    fn width(&self) -> usize {
        self.0.width()
    }
    fn n_moves(&self, direction: Direction) -> usize {
        self.0.n_moves(direction)
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        self.0.apply(direction, row, slot)
    }
    fn key(&self, row: &[u16]) -> Vec<u16> {
        row.to_vec()
    }
    fn starts(&self) -> &[Vec<u16>] {
        self.0.starts()
    }
    fn instance(&self, row: &[u16]) -> u32 {
        self.0.instance(row)
    }
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        self.0.mark(direction, row, legal);
    }
    fn has_exit(&self) -> bool {
        self.0.has_exit()
    }
    fn can_end(&self, row: &[u16]) -> bool {
        self.0.can_end(row)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        self.0.describe(direction, row, slot)
    }
    fn batched(&self) -> Option<&dyn BatchRules<VectorStates, (usize, u32)>> {
        self.0.batched()
    }
}
