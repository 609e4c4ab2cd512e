//! Objects of Python to learn from.

use std::sync::Arc;

use gfn::env::{Rows, log_rewards};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Container;
use gfn::train::{TrainEnv, Trainer};
use gfn::{Error, Result, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::border::{Border, at_least_one, walks_to};

/// The number of objects whose rewards are computed at once.
const MAX_BATCH: usize = 4096;

/// A buffer of objects with their log-rewards by the trainer's reward, under their conditions if there are any.
pub(super) fn buffer<E: TrainEnv<States: 'static>>(
    trainer: &Trainer<E>,
    objects: &Py<PyAny>,
    conditions: Option<Tensor>,
    border: &Arc<dyn Border<E::States>>,
    rng: &mut Rng,
) -> Result<ReplayBuffer<E>> {
    let objects = at_least_one(border.read_detached(objects, "Data.objects")?)?;
    if let Some(conditions) = &conditions {
        let (expected, got) = ([objects.len() as i64], [conditions.size()[0]]);
        if expected != got {
            let remedy = "give one row of conditions for each object";
            return Err(Error::shape("the conditions of objects", expected, got, remedy));
        }
        if let Some(source) = &trainer.context().conditions {
            source.check(conditions)?;
        }
    }
    let config = ReplayConfig { capacity: objects.len(), eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut buffer = ReplayBuffer::new(config)?.terminal_only();
    let rows: Vec<usize> = (0..objects.len()).collect();
    for rows in rows.chunks(MAX_BATCH) {
        let mut walks = walks_to(trainer.env(), &objects.select(rows), rng)?;
        if let Some(conditions) = &conditions {
            walks = walks.with_conditions(conditions.narrow(0, rows[0] as i64, rows.len() as i64))?;
        }
        let rewards = log_rewards(trainer.reward(), &walks.terminal, walks.conditions())?;
        buffer.add(trainer.env(), &walks, &rewards)?;
    }
    Ok(buffer)
}
