use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::TensorEnv;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, Rows, VectorStates};
use crate::{Error, Result};

/// The second form of an environment, whose states are a tensor, together with the conversion between the two
/// forms of states.
pub struct TensorForm<S> {
    env: Arc<dyn TensorEnv>,
    to_tensor: fn(&dyn TensorEnv, &S) -> Tensor,
    from_tensor: fn(&Tensor) -> S,
}

impl<S> Clone for TensorForm<S> {
    fn clone(&self) -> Self {
        Self { env: Arc::clone(&self.env), ..*self }
    }
}

impl<S> std::fmt::Debug for TensorForm<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorForm").field("width", &self.env.width()).finish_non_exhaustive()
    }
}

impl TensorForm<VectorStates> {
    /// Creates the form of an environment over vectors.
    pub(in crate::env) fn for_vectors(env: Arc<dyn TensorEnv>) -> Self {
        Self { env, to_tensor: |_, states| vectors_to_tensor(states), from_tensor: vectors_from_tensor }
    }
}

impl<S: Rows> TensorForm<S> {
    /// Creates a form of an environment whose states have another type than vectors. `to_tensor` returns the
    /// states as a tensor on the host, `[n, width]` (i64). `from_tensor` receives such a tensor, whose
    /// entries are below [`TensorEnv::n_values`].
    pub fn new(
        env: impl TensorEnv + 'static,
        to_tensor: fn(&dyn TensorEnv, &S) -> Tensor,
        from_tensor: fn(&Tensor) -> S,
    ) -> Self {
        Self { env: Arc::new(env), to_tensor, from_tensor }
    }

    /// Returns the environment whose states are a tensor.
    #[must_use]
    pub fn env(&self) -> &dyn TensorEnv {
        self.env.as_ref()
    }

    /// Copies states to a device, `[n, width]` (i64).
    pub fn to_tensor(&self, states: &S, device: Device) -> Tensor {
        crate::tensor::to_device(&(self.to_tensor)(self.env(), states), device)
    }

    /// Copies states `[n, width]` of any device to the host.
    ///
    /// # Errors
    /// [`Error::Shape`] for another width; [`Error::Config`] for an entry that isn't at least 0 and below
    /// [`TensorEnv::n_values`].
    pub fn to_host(&self, states: &Tensor) -> Result<S> {
        let states = states.to_device(Device::Cpu);
        self.check(&states)?;
        Ok(self.to_host_unchecked(&states))
    }

    /// Copies states to the host, whose shape and entries are known to be valid.
    pub(crate) fn to_host_unchecked(&self, states: &Tensor) -> S {
        (self.from_tensor)(&states.to_device(Device::Cpu))
    }

    /// Checks the shape and the entries of states.
    ///
    /// # Errors
    /// The errors of [`to_host`](Self::to_host).
    pub(crate) fn check(&self, states: &Tensor) -> Result<()> {
        let size = states.size();
        let width = self.env.width() as i64;
        if size.len() != 2 || size[1] != width || states.kind() != Kind::Int64 {
            let what = format!("the states ({:?}) of a tensor environment", states.kind());
            let remedy = "let `TensorEnv::step` and `initial` return i64 of shape `[n, width()]`";
            return Err(Error::shape(what, [-1, width], size, remedy));
        }
        if self.is_wrong(states).int64_value(&[]) != 0 {
            let is_wrong = self.are_wrong(states);
            let value = states.masked_select(&is_wrong).int64_value(&[0]);
            return Err(Error::config(
                "an entry of a state of a tensor environment",
                value,
                "an integer of at least 0 and below `TensorEnv::n_values`",
            ));
        }
        Ok(())
    }

    /// Returns `true` for each entry of states that isn't at least 0 and below [`TensorEnv::n_values`].
    fn are_wrong(&self, states: &Tensor) -> Tensor {
        let n_values = self.env.n_values().min(1 << 16) as i64;
        states.lt(0).logical_or(&states.ge(n_values))
    }

    /// Returns `true`, a single value on the device of the states, if an entry of the states is out of range.
    pub(crate) fn is_wrong(&self, states: &Tensor) -> Tensor {
        self.are_wrong(states).any()
    }

    /// Returns the number of slots of a direction: its moves, and the exit, if there is one.
    #[must_use]
    pub fn n_slots(&self, direction: Direction) -> usize {
        self.env.n_moves(direction) + usize::from(self.exit_slot(direction).is_some())
    }

    /// Returns the slot of the exit; `None` for backward actions and for an environment without an exit.
    #[must_use]
    pub fn exit_slot(&self, direction: Direction) -> Option<i64> {
        let has_exit = direction == Direction::Forward && self.env.has_exit();
        has_exit.then(|| self.env.n_moves(direction) as i64)
    }

    /// Returns `true` for each legal slot of each state, `[n, slots]` (bool). The last forward slot is the
    /// exit, if there is one.
    pub fn masks(&self, direction: Direction, states: &Tensor) -> Tensor {
        let legal = self.env.legal(direction, states);
        match self.exit_slot(direction) {
            Some(_) => Tensor::cat(&[legal, self.env.can_end(states).unsqueeze(1)], 1),
            None => legal,
        }
    }

    /// Creates the distribution over the legal slots of each state. `logits` is `[n, slots]`; `None` gives
    /// the uniform distribution.
    ///
    /// # Errors
    /// [`Error::Shape`] if the logits have another shape.
    pub fn distribution(
        &self,
        direction: Direction,
        states: &Tensor,
        logits: Option<&Tensor>,
    ) -> Result<GraphActionCategorical> {
        let has_exit = self.exit_slot(direction).is_some();
        GraphActionCategorical::from_tensors(direction, self.masks(direction, states), has_exit, logits)
    }
}

/// Copies vectors to a tensor on the host, `[n, width]` (i64).
pub(super) fn vectors_to_tensor(states: &VectorStates) -> Tensor {
    let values: Vec<i64> = states.values().iter().map(|&x| i64::from(x)).collect();
    Tensor::from_slice(&values).view([states.len() as i64, states.width() as i64])
}

/// Copies states `[n, width]` on the host to vectors. All entries are below 65,536.
fn vectors_from_tensor(states: &Tensor) -> VectorStates {
    let width = states.size()[1] as usize;
    let mut values = vec![0i64; states.numel()];
    states.contiguous().copy_data(&mut values, states.numel());
    VectorStates::from_vecs(width, vec![values.into_iter().map(|value| value as u16).collect()])
}
