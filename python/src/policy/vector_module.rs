//! Policies of vectors and of sequences around custom Python modules.

use gfn::Result;
use gfn::env::VectorEnv;
use gfn::nn::{MlpConfig, Scope};
use gfn::policy::{MlpPolicy, MlpPolicyConfig, VectorTorso};
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

#[derive(Debug)]
struct ModuleRows {
    caller: ModuleCaller,
    width: i64,
    inputs: Inputs,
    /// The number of values that an entry can have.
    values: i64,
}

impl ModuleRows {
    fn ask(&self, py: Python<'_>, columns: &Tensor, conditions: Option<&Tensor>) -> PyResult<Tensor> {
        let n = columns.size()[0];
        // `columns` has the position of each entry's 1 in the one-hot encoding. Each entry has `values`
        // positions, so the position modulo `values` is the entry's value.
        let entries = || columns.remainder(self.values);
        let inputs = match self.inputs {
            Inputs::OneHot => {
                let device = self.caller.device;
                let kind = self.caller.kind;
                let zeros = Tensor::zeros([n, columns.size()[1] * self.values], (kind, device));
                vec![zeros.scatter_value(1, columns, 1.0)]
            }
            Inputs::Entries => vec![entries()],
            Inputs::Prefixes => {
                let entries = entries();
                let lengths = entries.ne(0).sum_dim_intlist([1i64].as_slice(), false, Kind::Int64);
                vec![entries, lengths]
            }
        };
        let arguments =
            inputs.iter().map(|tensor| tensors::to_python(py, tensor)).collect::<PyResult<_>>()?;
        self.caller.single_tensor(&self.caller.call(py, arguments, conditions)?, &[n, self.width])
    }
}

impl VectorTorso for ModuleRows {
    fn width(&self) -> i64 {
        self.width
    }

    fn embed(&self, columns: &Tensor, conditions: Option<&Tensor>) -> Result<Tensor> {
        call_python("the module", |py| self.ask(py, columns, conditions))
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
    plan.build_around(|config: MlpPolicyConfig, of: Shape, plan, join| {
        let Shape { width, inputs } = of;
        let config = MlpPolicyConfig { mlp: MlpConfig { hidden: vec![width], ..config.mlp }, ..config };
        let values = space.details.values as i64;
        let torso = |scope: &mut Scope<'_>| ModuleRows { caller: join(scope), width, inputs, values };
        MlpPolicy::with_torso(&space.env, space.features(), torso, config, plan.device, plan.kind, plan.rng)
    })
}
