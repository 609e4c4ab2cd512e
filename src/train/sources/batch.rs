//! A training batch.

use std::ops::Range;

use crate::env::Env;
use crate::quantity::Values;
use crate::rollout::Trajectories;

/// A training batch ([`Trainer::draw`](crate::train::Trainer::draw)).
#[non_exhaustive]
pub struct Batch<E: Env> {
    /// The trajectories that the policy learns from: fresh ones first, then those of the other sources in their order.
    pub trajectories: Trajectories<E>,
    /// The number of fresh trajectories: those that the policy, local search or the source in the policy's place supplied in this step.
    pub fresh: usize,
    /// `true` if the current policy sampled all of them.
    pub on_policy: bool,
    /// The rows that the replay buffer supplied.
    pub replayed: Range<usize>,
    /// The log importance weight of each trajectory, known once the step is made; empty if the trajectories weren't scored together.
    pub log_weights: Vec<f64>,
    /// The row range of each source; empty for a batch that no trainer drew.
    pub(super) rows: Vec<Range<usize>>,
    /// The scores of the first update on this batch, for objectives that compare later updates with it.
    pub(in crate::train) old: Option<Values>,
    /// The id of the draw; `None` for a batch that no trainer drew.
    pub(super) draw: Option<u64>,
}

// Written by hand: derive would require `E: Clone + Debug`.
impl<E: Env> Clone for Batch<E> {
    fn clone(&self) -> Self {
        Self {
            fresh: self.fresh,
            on_policy: self.on_policy,
            replayed: self.replayed.clone(),
            log_weights: self.log_weights.clone(),
            rows: self.rows.clone(),
            old: self.old_values(),
            draw: self.draw,
            ..Self::from(self.trajectories.clone())
        }
    }
}

impl<E: Env> std::fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Batch");
        out.field("trajectories", &self.trajectories).field("fresh", &self.fresh).finish_non_exhaustive()
    }
}

impl<E: Env> Batch<E> {
    /// Returns the scores of the first update on this batch.
    pub(in crate::train) fn old_values(&self) -> Option<Values> {
        let old = self.old.as_ref()?;
        Some(old.iter().map(|(quantity, tensor)| (quantity, tensor.shallow_clone())).collect())
    }

    /// Returns `true` for a whole batch that a trainer drew.
    pub(in crate::train) fn is_drawn(&self) -> bool {
        self.draw.is_some()
    }
}

impl<E: Env> From<Trajectories<E>> for Batch<E> {
    /// Makes a batch of trajectories that a custom loop has from elsewhere: none counts as drawn in this step.
    fn from(trajectories: Trajectories<E>) -> Self {
        Self {
            trajectories,
            fresh: 0,
            on_policy: false,
            replayed: 0..0,
            log_weights: Vec::new(),
            rows: Vec::new(),
            old: None,
            draw: None,
        }
    }
}
