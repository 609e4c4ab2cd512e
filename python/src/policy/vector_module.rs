//! Policies of vectors and of sequences around custom Python modules.

use gfn::Result;
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Rows, VectorEnv, VectorStates};
use gfn::nn::{MlpConfig, Scope};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, MlpPolicy, MlpPolicyConfig, Policy, VectorTorso};
use pyo3::prelude::*;
use serde::Deserialize;
use tch::{Kind, Tensor};

use super::module::ModuleCaller;
use super::{BuiltPolicy, Plan};
use crate::errors::{Outcome, call_python};
use crate::kinds::Space;
use crate::tensors;

/// The encoding of states as a module's input.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Inputs {
    /// The one-hot encoding of the entries, `[n, entries * values]`: each entry has a block of `values`
    /// numbers, which are 0 except for a 1 at the entry's value.
    OneHot,
    /// The entries themselves, `[n, entries]`.
    Entries,
    /// The entries of sequences, `[n, entries]`, which are 0 at unwritten positions, and the number of
    /// entries written so far, `[n]`.
    Prefixes,
}

/// A module that is called with vectors.
#[derive(Debug)]
struct VectorCaller {
    caller: ModuleCaller,
    inputs: Inputs,
    /// The number of values that an entry can have.
    values: i64,
}

impl VectorCaller {
    /// Calls the module with the entries of states, `[n, entries]`.
    fn call<'py>(
        &self,
        py: Python<'py>,
        entries: Tensor,
        conditions: Option<&Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inputs = match self.inputs {
            Inputs::OneHot => vec![entries.one_hot(self.values).flatten(1, 2).to_kind(self.caller.kind)],
            Inputs::Entries => vec![entries],
            Inputs::Prefixes => {
                let lengths = entries.ne(0).sum_dim_intlist([1i64].as_slice(), false, Kind::Int64);
                vec![entries, lengths]
            }
        };
        let arguments =
            inputs.iter().map(|tensor| tensors::to_python(py, tensor)).collect::<PyResult<_>>()?;
        self.caller.call(py, arguments, conditions)
    }
}

/// A module that computes embeddings of vectors.
#[derive(Debug)]
struct ModuleTorso {
    vectors: VectorCaller,
    width: i64,
}

impl VectorTorso for ModuleTorso {
    fn width(&self) -> i64 {
        self.width
    }

    fn embed(&self, columns: &Tensor, conditions: Option<&Tensor>) -> Result<Tensor> {
        let Self { vectors, width } = self;
        // `columns` has the position of each entry's 1 in the one-hot encoding. Each entry has `values`
        // positions, so the position modulo `values` is the entry's value.
        let entries = columns.remainder(vectors.values);
        call_python("the module", |py| {
            let answer = vectors.call(py, entries, conditions)?;
            vectors.caller.single_tensor(&answer, [columns.size()[0], *width])
        })
    }
}

/// A policy that has only log F, which a module computes.
#[derive(Debug)]
struct ModuleFlow(VectorCaller);

impl Policy<VectorEnv> for ModuleFlow {
    fn evaluate(
        &self,
        _env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        _wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let caller = &self.0.caller;
        let size = [states.len() as i64, states.width() as i64];
        if states.is_empty() {
            let none = Tensor::zeros([0], (caller.kind, caller.device));
            return Ok(Evaluation::default().with(Quantity::LogFlow, none));
        }
        let entries: Vec<i64> = states.rows().flatten().map(|&entry| i64::from(entry)).collect();
        let entries = Tensor::from_slice(&entries).view(size).to_device(caller.device);
        let conditions = conditions.map(|rows| rows.to_device(caller.device).to_kind(caller.kind));
        let log_flow = call_python("the module", |py| {
            caller.numbers(&self.0.call(py, entries, conditions.as_ref())?, "log F of states", size[0])
        })?;
        Ok(Evaluation::default().with(Quantity::LogFlow, log_flow))
    }
}

/// The settings of a module's input and output: the encoding of states, and the width of embeddings.
#[derive(Deserialize)]
struct Shape {
    width: i64,
    inputs: Inputs,
}

/// Builds a policy of vectors around a Python module.
pub(crate) fn policy(plan: Plan<'_>, space: &Space<VectorEnv>) -> Outcome<BuiltPolicy<VectorEnv>> {
    let Shape { width, inputs } = plan.own_settings()?;
    let values = space.details.values as i64;
    let vectors = |caller| VectorCaller { caller, inputs, values };
    plan.build_around(
        |config: MlpPolicyConfig, plan, join| {
            let config = MlpPolicyConfig { mlp: MlpConfig { hidden: vec![width], ..config.mlp }, ..config };
            let torso = |scope: &mut Scope<'_>| ModuleTorso { vectors: vectors(join(scope)), width };
            let features = space.features();
            MlpPolicy::with_torso(&space.env, features, torso, config, plan.device, plan.kind, plan.rng)
        },
        |caller| Box::new(ModuleFlow(vectors(caller))),
    )
}
