//! Parts that several rewards use: the reward of each row of a batch of finished vectors, checks of settings,
//! and tables on a device.

use std::sync::{Mutex, PoisonError};

use gfn::env::{Rows, VectorStates};
use gfn::{Error, Result};
use tch::{Device, Tensor};

/// Tables of numbers that the tensor form of a reward reads. They stay on the device of the last call, so
/// that they cross to the device once, not at each call.
///
/// A clone is empty, and all tables are equal, because they only repeat what the other fields of the reward
/// hold.
///
/// ```
/// use gfn_gym::rewards::DeviceTables;
/// use tch::{Device, Tensor};
/// let tables = DeviceTables::default();
/// let [squares] = tables.get(Device::Cpu, || [Tensor::from_slice(&[0.0, 1.0, 4.0])]);
/// let [again] = tables.get(Device::Cpu, || unreachable!("the table is there"));
/// assert_eq!(squares, again);
/// ```
#[derive(Default, Debug)]
pub struct DeviceTables<const N: usize>(Mutex<Option<[Tensor; N]>>);

impl<const N: usize> DeviceTables<N> {
    /// Returns the tables on a device. `build` makes them, on any device, if none are there yet.
    pub fn get(&self, device: Device, build: impl FnOnce() -> [Tensor; N]) -> [Tensor; N] {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = tables.take().unwrap_or_else(build).map(|table| table.to_device(device));
        tables.insert(kept).each_ref().map(Tensor::shallow_clone)
    }
}

impl<const N: usize> Clone for DeviceTables<N> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<const N: usize> PartialEq for DeviceTables<N> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Computes log R of each state of `width` entries. The closure `log_reward` returns `None` for a vector in
/// which no trajectory can end. Such a vector is refused.
///
/// # Errors
/// [`Error::Shape`] for states of another width, [`Error::Config`] for a vector without a reward.
pub fn score_rows(
    states: &VectorStates,
    width: usize,
    log_reward: impl Fn(&[u16]) -> Option<f64>,
) -> Result<Vec<f64>> {
    check_width(states, width)?;
    let of_row = |row: &[u16]| {
        log_reward(row).ok_or_else(|| {
            Error::config(
                "a state to be rewarded",
                format!("{row:?}"),
                "a state in which a trajectory of the reward's environment can end",
            )
        })
    };
    states.rows().map(of_row).collect()
}

/// Refuses states whose number of entries isn't `width`.
pub(crate) fn check_width(states: &VectorStates, width: usize) -> Result<()> {
    if states.width() == width {
        return Ok(());
    }
    Err(Error::shape(
        "states",
        [states.len() as i64, width as i64],
        [states.len() as i64, states.width() as i64],
        "give the reward states of the environment that it was built for",
    ))
}

/// Returns `x` if it is finite and above zero.
///
/// # Errors
/// [`Error::Config`], which names the setting, if `x` isn't finite and above zero.
pub fn positive(setting: &'static str, x: f64) -> Result<f64> {
    if x > 0.0 && x.is_finite() {
        return Ok(x);
    }
    Err(Error::config(setting, x, "a finite number above 0"))
}
