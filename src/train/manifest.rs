//! What a checkpoint says about itself: the manifest, and the checks that need nothing but it and the bytes.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::{
    Error, Result,
    nn::{Parameter, Parameters},
};

/// The format that this version writes, and the only one that it reads.
const FORMAT: u32 = 1;

/// The kinds of tensors that a checkpoint can hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TensorKind {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// Signed 64-bit integers.
    I64,
    /// Bytes.
    U8,
}

impl TensorKind {
    /// The kind of a tensor of libtorch, if a checkpoint can hold it.
    pub fn of(tensor: &Tensor) -> Option<Self> {
        match tensor.kind() {
            Kind::Float => Some(Self::F32),
            Kind::Double => Some(Self::F64),
            Kind::Int64 => Some(Self::I64),
            Kind::Uint8 => Some(Self::U8),
            _ => None,
        }
    }

    /// Whether it holds numbers that may not be finite.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// Name, shape and kind of a parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorSpec {
    /// The parameter's name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<i64>,
    /// Its kind.
    pub kind: TensorKind,
}

impl std::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {:?} {:?}", self.name, self.shape, self.kind)
    }
}

/// The JSON half of a checkpoint (`manifest.json`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The version of this library that wrote the checkpoint.
    pub gfn: String,
    /// How many training steps were done.
    pub step: u64,
    /// The parameters that the model has, in its order.
    pub model: Vec<TensorSpec>,
    /// The length of `model.safetensors` in bytes.
    pub bytes: u64,
    /// The 64-bit FNV-1a hash of this manifest (written compactly, with this field empty) followed by
    /// `model.safetensors`, in 16 hexadecimal digits: against damage, not against malice.
    pub checksum: String,
    /// Whatever else a trainer needs to go on: the random stream, its settings, counters.
    pub state: serde_json::Value,
}

impl Manifest {
    /// A manifest for a model; length and checksum are filled in by [`Manifest::sealed`].
    pub(super) fn new(parameters: &Parameters, step: u64, state: serde_json::Value) -> Result<Self> {
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
    pub(super) fn sealed(&self, data: &[u8], path: &Path) -> Result<Self> {
        let mut sealed = self.clone();
        sealed.bytes = data.len() as u64;
        sealed.checksum = sealed.digest(data, path)?;
        Ok(sealed)
    }

    fn digest(&self, data: &[u8], path: &Path) -> Result<String> {
        let mut unsealed = self.clone();
        unsealed.checksum = String::new();
        let head = serde_json::to_vec(&unsealed).map_err(|e| {
            file_error(
                path,
                format!("the manifest can't be written as JSON ({e})"),
                "keep to keys that are strings and numbers of at most 64 bits in `state`",
            )
        })?;
        let hash = fnv1a(fnv1a(FNV_START, &head), data);
        Ok(format!("{hash:016x}"))
    }

    /// Reads a manifest, its format first: another one may differ in everything else.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Self> {
        let damaged = |e: serde_json::Error| {
            file_error(
                path,
                format!("not the manifest of a checkpoint ({e})"),
                "the file is damaged or something else: use another checkpoint",
            )
        };
        let value: serde_json::Value = serde_json::from_slice(text).map_err(damaged)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if format.is_some_and(|format| format != u64::from(FORMAT)) {
            return Err(file_error(
                path,
                format!("checkpoint format {}, this version reads format {FORMAT}", format.unwrap_or_default()),
                "load it with the version of gfn that wrote it",
            ));
        }
        serde_json::from_value(value).map_err(damaged)
    }

    /// Compares the checksum with that of the bytes of tensors that were found.
    pub(super) fn check_bytes(&self, data: &[u8], path: &Path) -> Result<()> {
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
    pub(super) fn check_model(&self, parameters: &Parameters, path: &Path) -> Result<()> {
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
        let kind = TensorKind::of(tensor).ok_or_else(|| Error::Config {
            setting: "a parameter's kind",
            got: format!("{:?} for `{name}`", tensor.kind()),
            expected: "Float or Double",
        })?;
        Ok(TensorSpec { name: name.clone(), shape: tensor.size(), kind })
    };
    parameters.iter().map(spec).collect()
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// 64-bit FNV-1a (Fowler, Noll and Vo), going on from a hash.
fn fnv1a(start: u64, data: &[u8]) -> u64 {
    data.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The one kind of error that checkpoints give.
pub(super) fn file_error(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::File { path: path.to_owned(), problem, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_published_test_vectors() {
        assert_eq!(fnv1a(FNV_START, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_START, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(fnv1a(FNV_START, b"foo"), b"bar"), 0x8594_4171_f739_67e8);
    }
}
