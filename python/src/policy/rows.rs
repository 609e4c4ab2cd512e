//! Networks of vectors and of sequences that are modules of Python.

use gfn::Result;
use gfn::Rng;
use gfn::env::VectorEnv;
use gfn::nn::{BackwardPolicy, MlpConfig, Scope};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, VectorTorso};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use super::asked::Asked;
use super::{Adopted, AnyPolicy, boxed, estimators};
use crate::env::Vectors;
use crate::errors::{passed_on, raised};
use crate::kept::Object;
use crate::tensors;

/// What a module is shown of states.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Inputs {
    /// For each entry a block of numbers, 1 at its value and else 0, `[n, entries * values]`.
    OneHot,
    /// The entries, `[n, entries]`.
    Entries,
    /// The entries of sequences, which are 0 where nothing is written yet, and how many are written, `[n]`.
    Prefixes,
}

#[derive(Debug)]
struct ModuleRows {
    asked: Asked,
    width: i64,
    inputs: Inputs,
    /// Values of an entry.
    values: i64,
}

impl ModuleRows {
    fn ask(&self, py: Python<'_>, columns: &Tensor, conditions: Option<&Tensor>) -> PyResult<Tensor> {
        let n = columns.size()[0];
        // An entry's columns begin at a multiple of its number of values.
        let entries = || columns.remainder(self.values);
        let seen = match self.inputs {
            Inputs::OneHot => {
                let (device, kind) = self.asked.made_for;
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
        let arguments = seen.iter().map(|tensor| tensors::to_python(py, tensor)).collect::<PyResult<_>>()?;
        self.asked.one(&self.asked.call(py, arguments, conditions)?, &[n, self.width])
    }
}

impl VectorTorso for ModuleRows {
    fn width(&self) -> i64 {
        self.width
    }

    fn embed(&self, columns: &Tensor, conditions: Option<&Tensor>) -> Result<Tensor> {
        Python::attach(|py| self.ask(py, columns, conditions)).map_err(passed_on("the module"))
    }
}

#[derive(Deserialize)]
struct Settings {
    width: i64,
    inputs: Inputs,
    backward: BackwardPolicy,
    heads: usize,
    #[serde(default)]
    paths: bool,
}

/// A policy around a module.
pub(super) fn of_vectors(
    module: &Object,
    settings: &Value,
    vectors: &Vectors,
    made_for: (Device, Kind),
    rng: &mut Rng,
) -> PyResult<AnyPolicy<VectorEnv>> {
    let asked: Settings =
        serde_json::from_value(settings.clone()).map_err(|error| PyValueError::new_err(format!("policy: {error}")))?;
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![asked.width], ..MlpConfig::default() },
        backward: asked.backward,
        estimators: estimators(settings).map_err(raised)?,
        paths: asked.paths,
        heads: asked.heads,
        ..MlpPolicyConfig::default()
    };
    let adopted = Adopted::new(module.clone())?;
    let mut taken = Ok(());
    let torso = |scope: &mut Scope<'_>| {
        taken = adopted.join(scope);
        ModuleRows {
            asked: Asked::new(module.clone(), &adopted, made_for),
            width: asked.width,
            inputs: asked.inputs,
            values: vectors.values as i64,
        }
    };
    let features = KHot::new(vectors.env.width(), vectors.values);
    let policy = MlpPolicy::with_torso(&vectors.env, features, torso, config, made_for.0, made_for.1, rng);
    taken.map_err(raised)?;
    Ok(boxed(policy)?.of_module(adopted))
}
