//! Environments of one type, whoever wrote their rules: a trainer is compiled once for all of them.

use std::sync::Arc;

use gfn::env::{BatchRules, Direction, VectorEnv, VectorRules, VectorStates};
use gfn::graph::{GraphEnv, GraphRules};

/// A graph environment of any rules.
pub(crate) type AnyGraphEnv = GraphEnv<Arc<dyn GraphRules>>;

/// An environment of vectors of any rules.
pub(crate) type AnyVectorEnv = VectorEnv<AnyRules>;

/// A graph environment with the type of its rules left out.
pub(crate) fn any_graphs<R: GraphRules + 'static>(env: GraphEnv<R>) -> AnyGraphEnv {
    env.with_rules(|rules| Arc::new(rules) as Arc<dyn GraphRules>)
}

/// The same of vectors.
pub(crate) fn any_vectors<R: VectorRules + 'static>(env: VectorEnv<R>) -> AnyVectorEnv {
    VectorEnv(AnyRules(Arc::new(ByEntries(env.0))))
}

/// Rules of vectors, told apart by their entries.
#[derive(Clone)]
pub(crate) struct AnyRules(Arc<dyn VectorRules<Key = Vec<u16>>>);

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

impl VectorRules for AnyRules {
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
        self.0.key(row)
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
