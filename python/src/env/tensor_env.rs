//! Custom environments whose rules are Python methods of torch tensors, on any device.

use gfn::Result;
use gfn::env::{Direction, TensorEnv, VectorEnv};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::batch_env::{BatchEnvSettings, failed};
use super::rules::Failures;
use crate::kinds::Space;
use crate::references::Object;
use crate::tensors::{PyTensor, to_python};

/// The settings of a custom environment of tensors, without its rules.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct TensorEnvSettings {
    env: BatchEnvSettings,
    /// `true` if the rules define the method `can_end`. If `false`, a trajectory can end in every state.
    has_can_end: bool,
    n_steps: Option<usize>,
}

impl TensorEnvSettings {
    /// Builds the environment. The initial state is the result of a method of the rules.
    pub(super) fn build(&self, rules: Option<Object>, failures: &Failures) -> Result<Space<VectorEnv>> {
        let rules = self.env.check(rules)?;
        let mut env =
            PyTensorEnv { settings: self.clone(), initial: Vec::new(), rules, failures: failures.clone() };
        let initial =
            env.call_rules("initial", &[], Kind::Int64, &[self.env.width as i64]).ok_or_else(failed)?;
        env.initial = Vec::try_from(initial.contiguous())?;
        Ok(Space::vectors(VectorEnv::from_tensors(env)?))
    }
}

/// An environment whose rules are in Python. Each method of the rules is called once per batch.
struct PyTensorEnv {
    settings: TensorEnvSettings,
    initial: Vec<i64>,
    rules: Object,
    failures: Failures,
}

impl PyTensorEnv {
    /// Calls a method of the rules, without gradients. Returns its result, a tensor of this type and shape
    /// on the device of the arguments; `None` if the method fails.
    fn call_rules(&self, method: &str, arguments: &[&Tensor], kind: Kind, shape: &[i64]) -> Option<Tensor> {
        let call = |py: Python<'_>| {
            let dtype = if kind == Kind::Bool { "bool" } else { "int64" };
            let arguments: Vec<_> =
                arguments.iter().map(|each| to_python(py, each)).collect::<PyResult<_>>()?;
            let checked = (
                self.rules.bind(py).getattr(method)?,
                PyTuple::new(py, arguments)?,
                format!("`{method}`"),
                dtype,
                shape.to_vec(),
            );
            py.import("gfn_rs._tensors")?.call_method1("call_on_tensors", checked)?.extract()
        };
        self.failures.call(|py| tch::no_grad(|| call(py))).map(|PyTensor(answer)| answer)
    }
}

/// If a method of the rules fails, its result is replaced by a tensor that ends the roll-out: no move is
/// legal, and each trajectory can end. The exception is raised later.
impl TensorEnv for PyTensorEnv {
    fn width(&self) -> usize {
        self.settings.env.width
    }

    fn n_values(&self) -> usize {
        self.settings.env.values
    }

    fn n_moves(&self, direction: Direction) -> usize {
        self.settings.env.n_moves(direction)
    }

    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        let method = if direction == Direction::Forward { "masks" } else { "backward_masks" };
        let shape = [states.size()[0], self.n_moves(direction) as i64];
        let legal = self.call_rules(method, &[states], Kind::Bool, &shape);
        legal.unwrap_or_else(|| Tensor::zeros(shape, (Kind::Bool, states.device())))
    }

    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        let method = if direction == Direction::Forward { "step" } else { "backward_step" };
        let after = self.call_rules(method, &[states, moves], Kind::Int64, &states.size());
        after.unwrap_or_else(|| states.shallow_clone())
    }

    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        if !self.settings.env.reverses {
            return moves.shallow_clone();
        }
        let method = if direction == Direction::Forward { "reverse" } else { "backward_reverse" };
        let reverse = self.call_rules(method, &[states, moves], Kind::Int64, &moves.size());
        reverse.unwrap_or_else(|| moves.zeros_like())
    }

    fn initial(&self, n: i64, device: Device) -> Tensor {
        Tensor::from_slice(&self.initial).to_device(device).repeat([n, 1])
    }

    fn has_exit(&self) -> bool {
        self.settings.env.has_exit
    }

    fn can_end(&self, states: &Tensor) -> Tensor {
        if !self.has_exit() {
            return self.legal(Direction::Forward, states).any_dim(1, false).logical_not();
        }
        let n = states.size()[0];
        let has_method = self.settings.has_can_end;
        let can_end = has_method.then(|| self.call_rules("can_end", &[states], Kind::Bool, &[n])).flatten();
        can_end.unwrap_or_else(|| Tensor::ones([n], (Kind::Bool, states.device())))
    }

    fn n_steps(&self) -> Option<usize> {
        self.settings.n_steps
    }
}
