//! Objects of Python's to learn from.

use gfn::env::{Rows, log_rewards};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Container;
use gfn::train::TrainEnv;
use gfn::train::Trainer;
use gfn::{Error, Rng};
use pyo3::prelude::*;
use tch::Tensor;

use crate::errors::raised;
use crate::objects::{Border, some, ways};

/// Objects whose rewards are asked at once.
const AT_ONCE: usize = 4096;

/// A buffer of given objects and what the trainer's reward gives them, under their conditions if there are any.
pub(super) fn buffer<E: TrainEnv>(
    trainer: &Trainer<E>,
    objects: Py<PyAny>,
    conditions: Option<Tensor>,
    border: &Border<E::States>,
    rng: &mut Rng,
) -> PyResult<ReplayBuffer<E>> {
    let objects = Python::attach(|py| (border.read)(objects.bind(py), "Data.objects"))?;
    let fill = || {
        let objects = some(objects)?;
        if let Some(conditions) = conditions.as_ref().filter(|given| given.size()[0] != objects.len() as i64) {
            let remedy = "give one row of conditions for each object";
            return Err(Error::shape(
                "the conditions of objects",
                [objects.len() as i64],
                [conditions.size()[0]],
                remedy,
            ));
        }
        if let (Some(source), Some(conditions)) = (&trainer.context().conditions, &conditions) {
            source.check(conditions)?;
        }
        let config = ReplayConfig { capacity: objects.len(), eviction: Eviction::Fifo, draw: Draw::Uniform };
        let mut buffer = ReplayBuffer::new(config)?.terminal_only();
        let rows: Vec<usize> = (0..objects.len()).collect();
        for rows in rows.chunks(AT_ONCE) {
            let mut walks = ways(trainer.env(), &objects.select(rows), rng)?;
            if let Some(conditions) = &conditions {
                walks = walks.with_conditions(conditions.narrow(0, rows[0] as i64, rows.len() as i64))?;
            }
            let rewards = log_rewards(trainer.reward(), &walks.terminal, walks.conditions())?;
            buffer.add(trainer.env(), &walks, &rewards)?;
        }
        Ok(buffer)
    };
    fill().map_err(raised)
}
