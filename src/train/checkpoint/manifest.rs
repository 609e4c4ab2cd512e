//! The manifest of a checkpoint, and the checks that need only the manifest and the bytes of the tensors.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::LAYOUT;
use crate::io::{TensorKind, TensorSpec, digest, file_error, parse};
use crate::nn::{Parameter, Parameters};
use crate::{Error, Result};

/// The format that this version writes, and the only one that it reads.
const FORMAT: u32 = 2;

/// The JSON half of a checkpoint (`manifest.json`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The version of this library that wrote the checkpoint.
    pub gfn: String,
    /// The number of training steps that were done.
    pub step: u64,
    /// The parameters that the model has, in its order.
    pub model: Vec<TensorSpec>,
    /// The length of `model.safetensors` in bytes.
    pub bytes: u64,
    /// The 64-bit FNV-1a hash of this manifest (written compactly, with this field empty) followed by
    /// `model.safetensors`, in 16 hexadecimal digits: against damage, not against malice.
    pub checksum: String,
    /// The other state that a trainer needs to resume: the random stream, its settings, counters.
    pub state: serde_json::Value,
}

impl Manifest {
    /// A manifest for a model; length and checksum are filled in by [`Manifest::sealed`].
    pub(in crate::train) fn new(parameters: &Parameters, step: u64, state: serde_json::Value) -> Result<Self> {
        Ok(Self {
            format: FORMAT,
            gfn: env!("CARGO_PKG_VERSION").to_owned(),
            step,
            model: specs(parameters)?,
            bytes: 0,
            checksum: String::new(),
            state,
        })
    }

    /// The same manifest with length and checksum for these bytes of tensors.
    pub(in crate::train) fn sealed(&self, data: &[u8], path: &Path) -> Result<Self> {
        let mut sealed = self.clone();
        sealed.bytes = data.len() as u64;
        sealed.checksum = sealed.digest(data, path)?;
        Ok(sealed)
    }

    fn digest(&self, data: &[u8], path: &Path) -> Result<String> {
        digest(&Self { checksum: String::new(), ..self.clone() }, data, path)
    }

    /// Reads a manifest.
    pub(in crate::train) fn parse(text: &[u8], path: &Path) -> Result<Self> {
        parse(text, path, FORMAT, &LAYOUT)
    }

    /// Compares the checksum with that of the bytes of tensors that were found.
    pub(in crate::train) fn check_bytes(&self, data: &[u8], path: &Path) -> Result<()> {
        let found = self.digest(data, path)?;
        if found == self.checksum {
            return Ok(());
        }
        Err(file_error(
            path,
            format!("checksum {found}, the manifest says {}", self.checksum),
            "the tensors or the manifest are damaged: use another checkpoint",
        ))
    }

    /// Compares the model that was saved with the one that is to be restored.
    pub(in crate::train) fn check_model(&self, parameters: &Parameters, path: &Path) -> Result<()> {
        const SHOWN: usize = 3;
        let model = specs(parameters)?;
        if model == self.model {
            return Ok(());
        }
        let mut differences = Vec::new();
        for saved in &self.model {
            match model.iter().find(|spec| spec.name == saved.name) {
                Some(spec) if spec == saved => {}
                Some(spec) => differences.push(format!("it has {saved}, the model {spec}")),
                None => differences.push(format!("it has {saved}, the model lacks it")),
            }
        }
        for spec in &model {
            if self.model.iter().all(|saved| saved.name != spec.name) {
                differences.push(format!("it lacks {spec}"));
            }
        }
        let more = differences.len().saturating_sub(SHOWN);
        let mut problem = differences[..differences.len() - more].join("; ");
        if differences.is_empty() {
            problem = "the same parameters in another order".to_owned();
        } else if more > 0 {
            problem += &format!("; and {more} more differences");
        }
        Err(file_error(
            path,
            format!("the checkpoint of another model: {problem}"),
            "build the model with the settings of the run that saved it (the manifest's `state` has them)",
        ))
    }
}

/// The model's parameters as the manifest lists them.
fn specs(parameters: &Parameters) -> Result<Vec<TensorSpec>> {
    parameters.check()?;
    let spec = |parameter: &Parameter| {
        let Parameter { name, tensor, .. } = parameter;
        let kind = TensorKind::of(tensor).ok_or_else(|| {
            Error::config("a parameter's kind", format!("{:?} for `{name}`", tensor.kind()), "Float or Double")
        })?;
        Ok(TensorSpec { name: name.clone(), shape: tensor.size(), kind })
    };
    parameters.iter().map(spec).collect()
}
