//! Policies of every quality, from uniform to exact.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, Slots};
use gfn::objective::Quantities;
use gfn::policy::Evaluation;

use crate::prelude::*;

/// A policy whose logits in one direction are multiplied by `keep`; `noise` times standard normal numbers are
/// added, which belong to pairs of states, so that moves to isomorphic states stay equally probable.
pub(super) struct BlurredPolicy<'a, E: EnumerableEnv> {
    pub(super) policy: &'a dyn Policy<E>,
    pub(super) direction: Direction,
    pub(super) graph: &'a StateGraph<E>,
    pub(super) keep: f64,
    pub(super) noise: f64,
    pub(super) seed: u64,
}

impl<E: EnumerableEnv> BlurredPolicy<'_, E> {
    /// The number of a pair of states, or of a state and its exit.
    fn noise(&self, from: usize, to: Option<usize>) -> f64 {
        let to = to.map_or(0, |to| 1 + to as u64);
        Rng::seeded(Rng::mix64(self.seed ^ Rng::mix64(from as u64 ^ Rng::mix64(to)))).normal()
    }

    fn blurred(&self, env: &E, states: &E::States, dist: &GraphActionCategorical) -> Result<GraphActionCategorical> {
        let masks = dist.masks().clone();
        let from = self.graph.indices(env, states);
        let (log_probs, offsets, legal) = (dist.host_log_probs()?, dist.legal_offsets(), dist.legal_slots());
        // Moves to other states, and where their logits stand.
        let (mut rows, mut slots, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut logits, mut first) = (Vec::new(), 0);
        for row in 0..masks.len() {
            let own = masks.row(row).len();
            logits.resize(first + own, 0.0f32);
            for k in offsets[row]..offsets[row + 1] {
                let place = first + legal[k] as usize;
                logits[place] = (self.keep * log_probs[k]) as f32;
                if masks.is_exit(row, legal[k]) {
                    logits[place] += (self.noise * self.noise(from[row].unwrap_or_default(), None)) as f32;
                } else {
                    rows.push(row);
                    slots.push(legal[k]);
                    places.push(place);
                }
            }
            first += own;
        }
        let slots = Slots(slots);
        let neighbours = if self.direction == Direction::Forward {
            env.child_keys(states, &rows, &slots)?
        } else {
            let mut parents = states.select(&rows);
            env.step(Direction::Backward, &mut parents, &slots)?;
            env.keys(&parents)
        };
        for ((row, key), place) in rows.into_iter().zip(neighbours).zip(places) {
            let to = self.graph.index_of_key(&key);
            logits[place] += (self.noise * self.noise(from[row].unwrap_or_default(), to)) as f32;
        }
        GraphActionCategorical::on_host(masks, logits)
    }
}

impl<E: EnumerableEnv> Policy<E> for BlurredPolicy<'_, E> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut evaluation = self.policy.evaluate(env, states, conditions, wants)?;
        let dist = if self.direction == Direction::Forward { &mut evaluation.pf } else { &mut evaluation.pb };
        *dist = dist.take().map(|dist| self.blurred(env, states, &dist)).transpose()?;
        Ok(evaluation)
    }
}
