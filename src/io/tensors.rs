//! Named tensors as safetensors bytes, and checked reading of single tensors.

use std::collections::HashSet;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::layout::{FolderKind, file_error};
use crate::{Error, Result};

/// The dtypes that a file can hold. Each entry names the same dtype in libtorch, in safetensors and in this
/// library.
const KINDS: [(Kind, Dtype, TensorKind); 4] = [
    (Kind::Float, Dtype::F32, TensorKind::F32),
    (Kind::Double, Dtype::F64, TensorKind::F64),
    (Kind::Int64, Dtype::I64, TensorKind::I64),
    (Kind::Uint8, Dtype::U8, TensorKind::U8),
];

/// The dtypes of tensors that a file can hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TensorKind {
    /// The dtype of floating-point numbers of 32 bits.
    F32,
    /// The dtype of floating-point numbers of 64 bits.
    F64,
    /// The dtype of signed integers of 64 bits.
    I64,
    /// The dtype of bytes.
    U8,
}

impl TensorKind {
    /// Returns the dtype of a libtorch tensor; `None` if a file can't hold this dtype.
    pub fn from_tensor(tensor: &Tensor) -> Option<Self> {
        KINDS.iter().find(|(kind, ..)| *kind == tensor.kind()).map(|(.., kind)| *kind)
    }

    /// Returns `true` if values of this dtype may be NaN or infinite.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// The name, the shape and the dtype of a tensor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorSpec {
    /// The name of the tensor.
    pub name: String,
    /// The shape of the tensor.
    pub shape: Vec<i64>,
    /// The dtype of the tensor.
    pub kind: TensorKind,
}

impl std::fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {:?} {:?}", self.name, self.shape, self.kind)
    }
}

/// Converts tensors to safetensors bytes. `path` is used only in error messages.
pub(crate) fn serialise(tensors: &[(String, Tensor)], path: &Path) -> Result<Vec<u8>> {
    let refuse = |problem: String| {
        file_error(
            path,
            problem,
            "give each tensor of a section a different name and one of the kinds f32, f64, i64 and u8",
        )
    };
    let mut names = HashSet::new();
    let mut buffers = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        if !names.insert(name) {
            return Err(refuse(format!("two tensors are named `{name}`")));
        }
        let Some(&(_, dtype, _)) = KINDS.iter().find(|(kind, ..)| *kind == tensor.kind()) else {
            return Err(refuse(format!("`{name}` has kind {:?}", tensor.kind())));
        };
        let host = tensor.detach().f_to_device(Device::Cpu)?.f_contiguous()?;
        let mut bytes = vec![0; host.numel() * host.kind().elt_size_in_bytes()];
        host.f_copy_data_u8(&mut bytes, host.numel())?;
        let shape: Vec<usize> = host.size().iter().map(|&size| size as usize).collect();
        buffers.push((name, dtype, shape, bytes));
    }
    let views = buffers.iter().map(|(name, dtype, shape, bytes)| {
        TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name.as_str(), view))
    });
    let written = views
        .collect::<std::result::Result<Vec<_>, _>>()
        .and_then(|views| safetensors::serialize(views, None));
    written.map_err(|e| refuse(format!("the tensors can't be written ({e})")))
}

/// Returns the tensors in safetensors bytes, on the host and sorted by name. `path` and `layout` are used
/// only in error messages.
pub(crate) fn deserialise(data: &[u8], path: &Path, layout: &FolderKind) -> Result<Vec<(String, Tensor)>> {
    let refuse = |problem: String| file_error(path, problem, layout.damaged);
    let file = SafeTensors::deserialize(data)
        .map_err(|e| refuse(format!("this isn't a file of safetensors ({e})")))?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.iter() {
        let Some(&(kind, ..)) = KINDS.iter().find(|(_, dtype, _)| *dtype == view.dtype()) else {
            return Err(refuse(format!("`{name}` has kind {:?}", view.dtype())));
        };
        let size: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
        let tensor = Tensor::f_from_data_size(view.data(), &size, kind)?;
        tensors.push((name.to_owned(), tensor));
    }
    // The tensors are sorted because the file doesn't store their order.
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// Tensors from a file, which are looked up by name and checked when they are requested.
pub(crate) struct NamedTensors<'a>(pub(crate) &'a [(String, Tensor)]);

impl NamedTensors<'_> {
    /// Returns the tensor with this name; `None` if there is no such tensor.
    pub(crate) fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, tensor)| tensor)
    }

    /// Returns the numbers of a tensor, which must have the dtype of `T`. A tensor with another dtype is
    /// refused, because the library saved a tensor of the dtype of `T`, and a conversion would round or wrap
    /// the numbers.
    pub(crate) fn numbers<T: tch::kind::Element>(&self, name: &str) -> Result<Vec<T>>
    where
        for<'t> Vec<T>: TryFrom<&'t Tensor>,
    {
        let tensor = self.get(name).filter(|tensor| tensor.kind() == T::KIND);
        tensor.and_then(|tensor| Vec::try_from(tensor).ok()).ok_or_else(|| malformed(name))
    }

    /// Returns `values`, the numbers of the tensor `name`, if there are exactly `n` of them. Otherwise
    /// returns the error for a malformed tensor.
    pub(crate) fn column<T>(&self, values: Vec<T>, name: &str, n: usize) -> Result<Vec<T>> {
        if values.len() == n { Ok(values) } else { Err(malformed(name)) }
    }
}

/// Returns the error for a tensor that is missing or malformed.
pub(crate) fn malformed(name: &str) -> Error {
    Error::contract(
        "the tensors of a container must be those with which it was saved",
        format!("`{name}` is missing or malformed"),
    )
}
