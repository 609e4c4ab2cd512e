//! Data sets: files that hold trajectories.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::Result;
use crate::io::{FolderKind, TensorKind, TensorSpec, deserialise, digest, file_error, parse, serialise};
use crate::rollout::{ReplayEnv, Trajectories};

/// The version of the data-set format that this library writes, and the only version that it reads.
const FORMAT: u32 = 2;

const LAYOUT: FolderKind = FolderKind {
    tensors: "data.safetensors",
    noun: "data set",
    unwritable: "check that the folder can be written to and that the disk isn't full; \
                 a data set that was there before is untouched",
    unreadable: "give the folder of a data set (with `manifest.json` and `data.safetensors`) that you may \
        read",
    damaged: "the data set is damaged or incomplete, or the file belongs to something else: use another data \
        set",
    in_the_way: "choose a new folder, because a data set may replace only another data set",
};

/// The contents of the manifest of a data set.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataManifest {
    /// The version of the format of the data set.
    format: u32,
    /// The version of this library that wrote the data set.
    gfn: String,
    /// The fingerprint of the trajectories' environment ([`ReplayEnv::fingerprint`]).
    environment: String,
    /// The number of trajectories.
    len: u64,
    /// The names, shapes and dtypes of the tensors in `data.safetensors`.
    tensors: Vec<TensorSpec>,
    /// The length of `data.safetensors` in bytes.
    bytes: u64,
    /// The checksum of the manifest (with this field empty) and of `data.safetensors`.
    checksum: String,
}

impl DataManifest {
    /// Returns the checksum of the manifest (with an empty checksum) and the data.
    fn digest(&self, data: &[u8], path: &Path) -> Result<String> {
        digest(&Self { checksum: String::new(), ..self.clone() }, data, path)
    }
}

/// Writes a data set of `len` trajectories and replaces an older data set at the same path. If writing fails,
/// the older data set is unchanged.
pub(super) fn write<E: ReplayEnv>(
    env: &E,
    path: &Path,
    mut tensors: Vec<(String, Tensor)>,
    len: usize,
) -> Result<()> {
    LAYOUT.check_target(path)?;
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let data = serialise(&tensors, path)?;
    let mut manifest = DataManifest {
        format: FORMAT,
        gfn: env!("CARGO_PKG_VERSION").to_owned(),
        environment: env.fingerprint()?,
        len: len as u64,
        tensors: specs(&tensors),
        bytes: data.len() as u64,
        checksum: String::new(),
    };
    manifest.checksum = manifest.digest(&data, path)?;
    LAYOUT.write(path, &data, &manifest)
}

/// Reads a data set, and converts its tensors to trajectories by `convert`. The function first checks format,
/// environment, length and checksum, in this order, and creates tensors only if all of these checks pass.
pub(super) fn read<E: ReplayEnv>(
    env: &E,
    path: &Path,
    convert: impl FnOnce(&[(String, Tensor)]) -> Result<Trajectories<E>>,
) -> Result<Trajectories<E>> {
    let folder = LAYOUT.resolve(path);
    let (file, text) = LAYOUT.manifest(&folder)?;
    let manifest: DataManifest = parse(&text, &file, FORMAT, &LAYOUT)?;
    let environment = env.fingerprint()?;
    if manifest.environment != environment {
        let problem = format!(
            "this is the data set of another environment: its environment is {}, this one is {environment}",
            manifest.environment
        );
        return Err(file_error(
            &file,
            problem,
            "load it into the environment that it was sampled in, with the same size",
        ));
    }
    let (file, data) = LAYOUT.tensors(&folder, manifest.bytes)?;
    let checksum = manifest.digest(&data, &file)?;
    if checksum != manifest.checksum {
        let problem =
            format!("the checksum of the data is {checksum}, but the manifest says {}", manifest.checksum);
        return Err(file_error(&file, problem, LAYOUT.damaged));
    }
    let tensors = deserialise(&data, &file, &LAYOUT)?;
    if specs(&tensors) != manifest.tensors {
        return Err(file_error(
            &file,
            "the tensors of the file differ from those that the manifest lists".into(),
            LAYOUT.damaged,
        ));
    }
    let trajectories = convert(&tensors).map_err(|error| {
        let remedy =
            "load the data set with the environment and the settings with which it was saved, or use another \
             data set";
        file_error(path, format!("the contents of the data set can't be used here ({error})"), remedy)
    })?;
    if trajectories.len() as u64 != manifest.len {
        let problem = format!(
            "the data set has {} elements, but the manifest says {}",
            trajectories.len(),
            manifest.len
        );
        return Err(file_error(path, problem, LAYOUT.damaged));
    }
    Ok(trajectories)
}

/// Returns the name, the shape and the dtype of each tensor.
fn specs(tensors: &[(String, Tensor)]) -> Vec<TensorSpec> {
    let spec = |(name, tensor): &(String, Tensor)| {
        Some(TensorSpec { name: name.clone(), shape: tensor.size(), kind: TensorKind::from_tensor(tensor)? })
    };
    tensors.iter().filter_map(spec).collect()
}
