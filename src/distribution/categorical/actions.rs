//! Sampling of actions, and their log-probabilities.

use tch::Tensor;

use super::{GraphActionCategorical, MIN_ROWS_PER_THREAD};
use crate::distribution::behaviour::{Behaviour, inverse_cdf};
use crate::distribution::{Distribution, Exploration};
use crate::error::check_len;
use crate::rows::{Rows, Slots};
use crate::tensor::{from_host, select_rows};
use crate::{Error, Result, Rng, parallel};

impl Distribution for GraphActionCategorical {
    type Actions = Slots;

    fn sample(&self, rows: &[usize], exploration: &Exploration, rng: &mut Rng) -> Result<Slots> {
        check_noise(exploration)?;
        // Random numbers are drawn before threads start, so that the result doesn't depend on the number of
        // threads.
        let draws: Vec<f64> = rows.iter().map(|_| rng.uniform()).collect();
        if self.logits.is_uniform() && exploration.exit_bias() == 0.0 {
            let slots = rows.iter().zip(&draws).map(|(&row, u)| {
                let range = self.legal_range(row)?;
                let k = (u * range.len() as f64) as usize;
                self.nth_legal(row, k.min(range.len() - 1))
            });
            return slots.collect::<Result<_>>().map(Slots);
        }
        self.check_finite()?;
        let mut is_used = vec![false; self.len()];
        for &row in rows {
            *is_used.get_mut(row).ok_or(Error::out_of_range(row, self.len()))? = true;
        }
        let behaviour = Behaviour {
            masks: self.masks(),
            legal_ptr: self.legal_offsets(),
            logits: self.host_logits(),
            exploration,
        };
        let behaviours = parallel::try_map_range(self.len(), MIN_ROWS_PER_THREAD, |row| {
            if is_used[row] { behaviour.probs(row) } else { Ok(Vec::new()) }
        })?;
        let slots =
            rows.iter().zip(&draws).map(|(&row, &u)| self.nth_legal(row, inverse_cdf(&behaviours[row], u)));
        slots.collect::<Result<_>>().map(Slots)
    }

    fn log_prob(&self, rows: &[usize], actions: &Slots) -> Result<Tensor> {
        if let Some(masks) = &self.tensor_masks {
            check_len("actions", rows.len(), actions.len(), "give one action for each row")?;
            let positions = masks.positions(rows, actions)?;
            let dense = || self.logits.log_probs_with(&masks.penalties());
            return Ok(match self.dense.get_or_init(dense) {
                Some(log_probs) => log_probs.index_select(0, &positions),
                None => masks.uniform_log_prob(rows, &positions),
            });
        }
        self.check_actions(rows, actions)?;
        if self.logits.is_uniform() {
            let values = rows.iter().map(|&row| {
                let n = self.slots().ptr[row + 1] - self.slots().ptr[row];
                -(n as f64).ln()
            });
            return Ok(from_host(&values.collect::<Vec<_>>(), self.logits.kind(), self.logits.device()));
        }
        if let Some(log_probs) = self.dense.get_or_init(|| self.logits.dense_log_probs(self.masks())) {
            let positions =
                rows.iter().zip(&actions.0).map(|(&row, &slot)| self.masks().slot_ptr[row] + slot as usize);
            return Ok(select_rows(log_probs, &positions.collect::<Vec<_>>()));
        }
        Ok(self.action_logits(rows, actions) - select_rows(self.log_sum(), rows))
    }

    fn sample_tensor(&self, exploration: &Exploration, draws: &Tensor) -> Result<(Tensor, Tensor)> {
        check_noise(exploration)?;
        let masks = self.tensor_masks.as_ref().ok_or_else(|| {
            let remedy = "build it by `GraphActionCategorical::from_tensors`";
            Error::missing("sampling on a device", "a distribution whose masks are a tensor", remedy)
        })?;
        Ok(masks.sample(self.logits.scaled_block().as_ref(), exploration, draws))
    }

    fn slots_as_actions(slots: Vec<u32>) -> Option<Slots> {
        Some(Slots(slots))
    }

    fn log_weights(&self, rows: &[usize], actions: &Slots) -> Result<Tensor> {
        self.check_actions(rows, actions)?;
        Ok(self.action_logits(rows, actions))
    }

    fn log_total(&self) -> Result<Tensor> {
        Ok(self.log_sum().shallow_clone())
    }

    fn entropies(&self) -> Option<Tensor> {
        Some(self.entropy())
    }

    fn support(&self, rows: &[usize]) -> Result<(Vec<usize>, Slots)> {
        let mut offsets = vec![0];
        let mut slots = Vec::new();
        for &row in rows {
            slots.extend_from_slice(&self.legal_slots()[self.legal_range(row)?]);
            offsets.push(slots.len());
        }
        Ok((offsets, Slots(slots)))
    }
}

/// Returns an error if noise is set, which discrete actions don't have.
fn check_noise(exploration: &Exploration) -> Result<()> {
    if exploration.noise() != 0.0 {
        return Err(Error::config(
            "noise",
            exploration.noise(),
            "0, because discrete actions explore by epsilon and temperature",
        ));
    }
    Ok(())
}
