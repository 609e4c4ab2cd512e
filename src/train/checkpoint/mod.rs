//! Checkpoints: folders with the files `model.safetensors` and `manifest.json`. A folder is checked before
//! use, and replaced as a whole.

mod differences;
mod load;
mod persist;
mod resume;

pub use load::{BuildPolicy, LoadedPolicy, load, load_with_env};
pub use persist::Persist;
pub(super) use persist::RESERVED;
pub(crate) use resume::to_json;
pub(super) use resume::{make_checkpoint, no_parameters, parts, replica_path, resume};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tch::{Tensor, no_grad};

use crate::io::{FolderKind, TensorKind, TensorSpec, deserialise, digest, file_error, parse, serialise};
use crate::nn::{Parameter, Parameters};
use crate::{Error, Result};
use differences::join_first;
use resume::ATTACHED;

/// The states of code that surrounds a trainer, such as observers, by name. A state consists of a JSON value,
/// and of named tensors for values that are too large for JSON.
pub(super) type Attachments = BTreeMap<String, (Value, Vec<(String, Tensor)>)>;

pub(crate) const LAYOUT: FolderKind = FolderKind {
    tensors: "model.safetensors",
    noun: "checkpoint",
    unwritable: "check that the folder can be written to and that the disk isn't full; \
                 a checkpoint that was there before is untouched",
    unreadable: "give the folder of a checkpoint (with `manifest.json` and `model.safetensors`) that you may \
        read",
    damaged: "the file is damaged or cut off, or it belongs to something else: use another checkpoint",
    in_the_way: "choose a new folder, because a checkpoint may replace only another checkpoint",
};

/// The version of the checkpoint format that this library writes, and the only version that it reads.
const FORMAT: u32 = 2;

/// The part of a checkpoint that is written as JSON (`manifest.json`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the checkpoint format.
    pub format: u32,
    /// The version of this library that wrote the checkpoint.
    pub gfn: String,
    /// The number of training steps done before the checkpoint.
    pub step: u64,
    /// The names, shapes and dtypes of the model's parameters, in the model's order.
    pub model: Vec<TensorSpec>,
    /// The length of `model.safetensors` in bytes.
    pub bytes: u64,
    /// The 64-bit FNV-1a hash of this manifest (written compactly, with this field empty) followed by
    /// `model.safetensors`, in 16 hexadecimal digits. The checksum detects damage, not deliberate changes.
    pub checksum: String,
    /// The part of the trainer's state that isn't stored as tensors: the random stream, settings and
    /// counters.
    pub state: Value,
}

impl Manifest {
    /// Returns a copy of this manifest with the length and the checksum of `data`, the bytes of
    /// `model.safetensors`.
    fn sealed(&self, data: &[u8], path: &Path) -> Result<Self> {
        let mut sealed = Self { bytes: data.len() as u64, checksum: String::new(), ..self.clone() };
        sealed.checksum = digest(&sealed, data, path)?;
        Ok(sealed)
    }
}

/// Everything that a run needs to resume: the model's parameters, further tensors by section (the optimizer's
/// moments, a replay buffer's arrays), and a JSON state (random stream, settings, counters).
///
/// Tensors may be f32, f64, i64 or u8, and are restored bit for bit. On disk a checkpoint is a folder with
/// two files. [`Checkpoint::save`] writes a new folder beside the old folder and then swaps the two, so that
/// after an interruption either the old or the new checkpoint is complete. [`Checkpoint::load`] checks the
/// whole checkpoint before it returns, and [`Checkpoint::restore`] checks the parameters before it changes
/// the model.
///
/// ```
/// use gfn::{nn::Parameters, optim::{Adam, AdamConfig, Optimizer}, train::Checkpoint, Rng};
/// use tch::{Device, Kind};
///
/// let mut rng = Rng::seeded(0);
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
/// parameters.scope(&mut rng).uniform("w", &[3], 1.0);
/// let mut adam = Adam::new(&parameters, AdamConfig::default())?;
///
/// let path = std::env::temp_dir().join(format!("gfn-doc-{}", std::process::id()));
/// let state = serde_json::json!({ "rng": rng });
/// Checkpoint::new(&parameters, 10, state)?.with("adam", adam.state()?).save(&path)?;
///
/// let checkpoint = Checkpoint::load(&path)?;
/// assert_eq!(checkpoint.manifest().step, 10);
/// checkpoint.restore(&parameters)?;
/// adam.load_state(&checkpoint.section("adam"))?;
/// # std::fs::remove_dir_all(&path).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    manifest: Manifest,
    /// The tensors with their names `section/name`. The section of the model's parameters is `model`.
    tensors: Vec<(String, Tensor)>,
    /// The folder from which the checkpoint was loaded, for error messages; empty for a new checkpoint.
    path: PathBuf,
}

impl Checkpoint {
    /// Makes a checkpoint of a model after `step` training steps, with copies of the parameters. `state` is
    /// the rest of the trainer's state (random stream, settings, counters).
    ///
    /// Floating-point numbers in `state` are restored exactly, but JSON has no NaN or infinity: they would
    /// become `null`.
    ///
    /// # Errors
    /// The errors of [`Parameters::check`].
    pub fn new(parameters: &Parameters, step: u64, state: Value) -> Result<Self> {
        let manifest = Manifest {
            format: FORMAT,
            gfn: env!("CARGO_PKG_VERSION").to_owned(),
            step,
            model: describe_model(parameters)?,
            bytes: 0,
            checksum: String::new(),
            state,
        };
        let values = parameters.iter().map(|p| (p.name.clone(), p.tensor.detach().copy())).collect();
        let new = Self { manifest, tensors: Vec::new(), path: PathBuf::new() };
        Ok(new.with("model", values))
    }

    /// Adds named tensors as a section. The tensors are shared, not copied, until the checkpoint is saved.
    /// Saving returns an error for numbers that aren't finite.
    #[must_use]
    pub fn with(mut self, section: &str, tensors: Vec<(String, Tensor)>) -> Self {
        let named = tensors.into_iter().map(|(name, t)| (format!("{section}/{name}"), t));
        self.tensors.extend(named);
        self
    }

    /// Returns the manifest of this checkpoint. Its length and checksum are set only when the checkpoint is
    /// saved.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the description of the run that saved the checkpoint
    /// ([`Trainer::with_description`](crate::train::Trainer::with_description)).
    ///
    /// # Errors
    /// [`crate::Error::File`] for a checkpoint without a description, or with a description that can't be
    /// read as `T`.
    pub fn description<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let description = self.manifest.state.get("description").cloned().unwrap_or_default();
        serde_json::from_value(description).map_err(|e| {
            file_error(
                &self.path,
                format!("the checkpoint has no description of the requested type ({e})"),
                "use a checkpoint of a run with such a description (`Trainer::with_description`)",
            )
        })
    }

    /// Returns the note that the saving run stored
    /// ([`Trainer::with_note`](crate::train::Trainer::with_note)); `null` without a note.
    pub fn note(&self) -> &Value {
        self.manifest.state.get("note").unwrap_or(&Value::Null)
    }

    /// Returns the named tensors of a section, in host memory; an empty list if the checkpoint has no section
    /// of this name.
    pub fn section(&self, section: &str) -> Vec<(String, Tensor)> {
        let inside = |name: &str| Some(name.strip_prefix(section)?.strip_prefix('/')?.to_owned());
        let tensors = self.tensors.iter();
        tensors.filter_map(|(name, t)| Some((inside(name)?, t.shallow_clone()))).collect()
    }

    /// Returns the tensors that were [attached](crate::train::Trainer::attach) to the trainer under this
    /// name, in host memory.
    pub fn attached(&self, name: &str) -> Vec<(String, Tensor)> {
        self.section(&format!("{ATTACHED}/{name}"))
    }

    /// Copies the saved values into the parameters of a model with the same names, shapes and dtypes.
    ///
    /// # Errors
    /// [`crate::Error::File`] for another model (the message names the first differences) and for values that
    /// aren't finite. If it fails, the model is unchanged.
    pub fn restore(&self, parameters: &Parameters) -> Result<()> {
        let found = self.fitting(parameters)?;
        no_grad(|| {
            for (parameter, value) in parameters.iter().zip(found) {
                parameter.tensor.shallow_clone().f_copy_(&value)?;
            }
            Ok(())
        })
    }

    /// Returns the saved values of a model's parameters, in the model's order. Returns the errors that
    /// [`restore`](Self::restore) returns.
    fn fitting(&self, parameters: &Parameters) -> Result<Vec<Tensor>> {
        self.check_model(parameters)?;
        let saved = self.section("model");
        self.check_finite(&saved)?;
        let find = |parameter: &Parameter| {
            let fits =
                |t: &Tensor| t.size() == parameter.tensor.size() && t.kind() == parameter.tensor.kind();
            let value = saved.iter().find(|(name, value)| *name == parameter.name && fits(value));
            value.map(|(_, value)| value.shallow_clone()).ok_or_else(|| {
                let problem =
                    format!("no tensor fits parameter `{}`, which the manifest lists", parameter.name);
                file_error(&self.path, problem, "the checkpoint is damaged: use another one")
            })
        };
        parameters.iter().map(find).collect()
    }

    /// Returns an error unless the saved parameters have the names, shapes and dtypes of `parameters`.
    fn check_model(&self, parameters: &Parameters) -> Result<()> {
        const SHOWN: usize = 3;
        let saved = &self.manifest.model;
        let model = describe_model(parameters)?;
        if *saved == model {
            return Ok(());
        }
        let mut differences = Vec::new();
        for there in saved {
            match model.iter().find(|here| here.name == there.name) {
                Some(here) if here == there => {}
                Some(here) => {
                    differences.push(format!("the checkpoint has {there}, but the model has {here}"))
                }
                None => differences.push(format!("the checkpoint has {there}, but the model doesn't")),
            }
        }
        let added = model.iter().filter(|here| saved.iter().all(|there| there.name != here.name));
        differences.extend(added.map(|here| format!("the model has {here}, but the checkpoint doesn't")));
        if differences.is_empty() {
            differences.push("they have the same parameters in another order".to_owned());
        }
        Err(file_error(
            &self.path,
            format!("this is the checkpoint of another model: {}", join_first(differences, SHOWN)),
            "build the model with the settings of the run that saved it (the manifest's `state` has them)",
        ))
    }

    /// Writes the checkpoint to the folder `path`, and replaces an older checkpoint at `path`.
    ///
    /// # Errors
    /// [`crate::Error::File`] if a parameter or a number of any section isn't finite, if `path` is a file or
    /// a folder with files that don't belong to a checkpoint, or if writing fails. If it fails, an older
    /// checkpoint at `path` is unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.stage(path.as_ref())?;
        LAYOUT.publish(path.as_ref())
    }

    /// Writes the checkpoint to a hidden folder beside `path`; [`FolderKind::publish`] moves it to `path`.
    pub(super) fn stage(&self, path: &Path) -> Result<()> {
        self.check_finite(&self.tensors)?;
        LAYOUT.check_target(path)?;
        let data = serialise(&self.tensors, path)?;
        LAYOUT.stage(path, &data, &self.manifest.sealed(&data, path)?)
    }

    /// Checks that a checkpoint could be saved at `path`, by making and removing a folder beside it. A run
    /// calls this function before its first step.
    ///
    /// # Errors
    /// [`crate::Error::File`] if `path` exists and isn't a checkpoint, or if no folder can be made beside it.
    pub fn try_path(path: impl AsRef<Path>) -> Result<()> {
        LAYOUT.try_target(path.as_ref())
    }

    /// Returns `true` if [`load`](Self::load) finds a checkpoint for `path`. The checkpoint found may be an
    /// older checkpoint, which an interrupted save moved away from `path`.
    #[must_use]
    pub fn exists(path: impl AsRef<Path>) -> bool {
        LAYOUT.resolve(path.as_ref()).exists()
    }

    /// Reads a checkpoint into host memory. Format, length and checksum are checked before any tensor is
    /// made.
    ///
    /// If a save was interrupted after it moved the old checkpoint away and before it moved the new
    /// checkpoint to `path`, the old checkpoint is read.
    ///
    /// # Errors
    /// [`crate::Error::File`] for a checkpoint that can't be read or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_folder(LAYOUT.resolve(path.as_ref()))
    }

    fn load_folder(path: PathBuf) -> Result<Self> {
        let (file, text) = LAYOUT.manifest(&path)?;
        let manifest: Manifest = parse(&text, &file, FORMAT, &LAYOUT)?;
        let (file, data) = LAYOUT.tensors(&path, manifest.bytes)?;
        let found = manifest.sealed(&data, &file)?.checksum;
        if found != manifest.checksum {
            let problem = format!("the checksum is {found}, but the manifest says {}", manifest.checksum);
            return Err(file_error(
                &file,
                problem,
                "the tensors or the manifest are damaged: use another checkpoint",
            ));
        }
        let tensors = deserialise(&data, &file, &LAYOUT)?;
        Ok(Self { manifest, tensors, path })
    }

    fn check_finite(&self, tensors: &[(String, Tensor)]) -> Result<()> {
        for (name, tensor) in tensors {
            let float = TensorKind::from_tensor(tensor).is_some_and(TensorKind::is_float);
            if float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                let name = name.strip_prefix("model/").unwrap_or(name);
                let remedy = "training has diverged: resume from an earlier checkpoint, with a lower \
                    learning rate or with clipping (`max_norm`)";
                return Err(file_error(&self.path, format!("`{name}` isn't finite"), remedy));
            }
        }
        Ok(())
    }
}

/// Returns the name, the shape and the dtype of each of the model's parameters, as the manifest lists them.
fn describe_model(parameters: &Parameters) -> Result<Vec<TensorSpec>> {
    parameters.check()?;
    let mut specs = Vec::new();
    for Parameter { name, tensor, .. } in parameters {
        let Some(kind) = TensorKind::from_tensor(tensor) else {
            let got = format!("{:?} for `{name}`", tensor.kind());
            return Err(Error::config("a parameter's kind", got, "Float or Double"));
        };
        specs.push(TensorSpec { name: name.clone(), shape: tensor.size(), kind });
    }
    Ok(specs)
}
