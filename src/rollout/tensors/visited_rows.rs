//! The states before all transitions of a batch, on the host or on a device.

use std::cell::OnceCell;

use tch::Tensor;

use crate::env::{Rows, TensorForm};
use crate::tensor::index_tensor;

/// The states before all transitions of a batch.
#[derive(Debug)]
pub(crate) enum VisitedRows<S> {
    OnHost(S),
    OnDevice(DeviceStates<S>),
}

/// The states of trajectories on a device, with valid shapes and entries. They are copied to the host if they
/// are needed there.
#[derive(Debug)]
pub(crate) struct DeviceStates<S> {
    pub(crate) form: TensorForm<S>,
    /// The states before all transitions, `[transitions, width]` (i64).
    pub(crate) states: Tensor,
    /// The terminal states, `[trajectories, width]` (i64).
    pub(crate) terminal: Tensor,
    on_host: OnceCell<S>,
}

impl<S: Rows> DeviceStates<S> {
    pub(crate) fn new(form: TensorForm<S>, states: Tensor, terminal: Tensor) -> Self {
        Self { form, states, terminal, on_host: OnceCell::new() }
    }
}

impl<S: Rows> VisitedRows<S> {
    /// Returns the states on the host.
    pub(crate) fn host(&self) -> &S {
        match self {
            Self::OnHost(states) => states,
            Self::OnDevice(DeviceStates { form, states, on_host, .. }) => {
                on_host.get_or_init(|| form.to_host_unchecked(states))
            }
        }
    }

    /// Returns the states on the device; `None` if they are only on the host.
    pub(crate) fn device(&self) -> Option<&DeviceStates<S>> {
        match self {
            Self::OnHost(_) => None,
            Self::OnDevice(states) => Some(states),
        }
    }

    /// Selects the states of the transitions `rows`, and the terminal states of `trajectories`.
    pub(in crate::rollout) fn select(&self, rows: &[usize], trajectories: &[usize]) -> Self {
        match self {
            Self::OnHost(states) => Self::OnHost(states.select(rows)),
            Self::OnDevice(DeviceStates { form, states, terminal, .. }) => {
                let select =
                    |from: &Tensor, rows: &[usize]| from.index_select(0, &index_tensor(rows, from.device()));
                let states = select(states, rows);
                Self::OnDevice(DeviceStates::new(form.clone(), states, select(terminal, trajectories)))
            }
        }
    }

    /// Appends the states of other trajectories. If some of the states are on a device, the others are copied
    /// to this device. `terminal` has the terminal states of both batches.
    pub(in crate::rollout) fn append(&mut self, other: Self, terminal: [&S; 2]) {
        let device = self.device().or(other.device()).map(|kept| (kept.form.clone(), kept.states.device()));
        let Some((form, device)) = device else {
            if let (Self::OnHost(states), Self::OnHost(more)) = (self, other) {
                states.append(more);
            }
            return;
        };
        let upload = |rows: &Self, terminal: &S| match rows {
            Self::OnDevice(kept) => [kept.states.shallow_clone(), kept.terminal.shallow_clone()],
            Self::OnHost(states) => [form.to_tensor(states, device), form.to_tensor(terminal, device)],
        };
        let first = upload(self, terminal[0]);
        let second = upload(&other, terminal[1]);
        let [states, ends] = [0, 1].map(|part| Tensor::cat(&[&first[part], &second[part]], 0));
        *self = Self::OnDevice(DeviceStates::new(form, states, ends));
    }
}
