//! Checkpoints: a folder with `model.safetensors` and `manifest.json`, checked before use and replaced as a whole.

mod differences;
mod persist;
mod resume;

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

/// The states of code around a trainer (of observers, for example), by their names: JSON, and tensors for values that
/// are too large for it.
pub(super) type Attachments = BTreeMap<String, (Value, Vec<(String, Tensor)>)>;

pub(crate) const LAYOUT: FolderKind = FolderKind {
    tensors: "model.safetensors",
    noun: "checkpoint",
    unwritable: "check that the folder can be written to and that the disk isn't full; \
                 a checkpoint that was there before is untouched",
    unreadable: "give the folder of a checkpoint (with `manifest.json` and `model.safetensors`) that you may read",
    damaged: "the file is damaged, cut off or something else: use another checkpoint",
    in_the_way: "choose a new folder: a checkpoint only ever replaces a checkpoint",
};

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
    pub state: Value,
}

impl Manifest {
    /// Returns the same manifest with length and checksum for these bytes of tensors.
    fn sealed(&self, data: &[u8], path: &Path) -> Result<Self> {
        let mut sealed = Self { bytes: data.len() as u64, checksum: String::new(), ..self.clone() };
        sealed.checksum = digest(&sealed, data, path)?;
        Ok(sealed)
    }
}

/// Everything that a run needs to resume: the model's parameters, further tensors by section (the optimiser's moments,
/// a replay buffer's arrays), and a JSON state (random stream, settings, counters).
///
/// Tensors may be f32, f64, i64 or u8, and come back bit for bit. On disk a checkpoint is a folder with two files.
/// [`Checkpoint::save`] writes a new folder beside it and then swaps the two, so that an interruption leaves the old
/// checkpoint or the new one, whole. [`Checkpoint::load`] and [`Checkpoint::restore`] check everything before they
/// change anything.
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
    /// Names are `section/name`; the model's section is `model`.
    tensors: Vec<(String, Tensor)>,
    /// The folder that it was loaded from, for messages; empty for a new checkpoint.
    path: PathBuf,
}

impl Checkpoint {
    /// Makes a checkpoint of a model after `step` training steps. `state` is the trainer's other state. Values are
    /// copied.
    ///
    /// Floating-point numbers in `state` come back exactly, but JSON has no NaN or infinity: they would become `null`.
    ///
    /// # Errors
    /// Those of [`Parameters::check`].
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

    /// Adds named tensors as a section of their own, all their numbers finite. Tensors are shared, not copied, until
    /// they are saved.
    #[must_use]
    pub fn with(mut self, section: &str, tensors: Vec<(String, Tensor)>) -> Self {
        let named = tensors.into_iter().map(|(name, t)| (format!("{section}/{name}"), t));
        self.tensors.extend(named);
        self
    }

    /// The manifest: step, model and state.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The description that the run that saved it gave of itself
    /// ([`Trainer::with_description`](crate::train::Trainer::with_description)).
    ///
    /// # Errors
    /// [`crate::Error::File`] for a checkpoint without a description, or with one of another form.
    pub fn description<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let description = self.manifest.state.get("description").cloned().unwrap_or_default();
        serde_json::from_value(description).map_err(|e| {
            file_error(
                &self.path,
                format!("it doesn't say what it is a checkpoint of in the form that is asked for ({e})"),
                "use a checkpoint that was saved by a run that describes itself so (`Trainer::with_description`)",
            )
        })
    }

    /// The note that the run left ([`Trainer::with_note`](crate::train::Trainer::with_note)); null without one.
    pub fn note(&self) -> &Value {
        self.manifest.state.get("note").unwrap_or(&Value::Null)
    }

    /// The tensors of a section, on the host; empty if there is none of that name.
    pub fn section(&self, section: &str) -> Vec<(String, Tensor)> {
        let inside = |name: &str| Some(name.strip_prefix(section)?.strip_prefix('/')?.to_owned());
        let tensors = self.tensors.iter();
        tensors.filter_map(|(name, t)| Some((inside(name)?, t.shallow_clone()))).collect()
    }

    /// Copies the parameters' values into a model that has the same names, shapes and kinds.
    ///
    /// # Errors
    /// [`crate::Error::File`] for another model (with the first differences) and for values that aren't finite. The
    /// model is unchanged then.
    pub fn restore(&self, parameters: &Parameters) -> Result<()> {
        let found = self.fitting(parameters)?;
        no_grad(|| {
            for (parameter, value) in parameters.iter().zip(found) {
                parameter.tensor.shallow_clone().f_copy_(&value)?;
            }
            Ok(())
        })
    }

    /// The saved values of a model's parameters, in its order; fails where [`restore`](Self::restore) would.
    fn fitting(&self, parameters: &Parameters) -> Result<Vec<Tensor>> {
        self.check_model(parameters)?;
        let saved = self.section("model");
        self.check_finite(&saved)?;
        let find = |parameter: &Parameter| {
            let fits = |t: &Tensor| t.size() == parameter.tensor.size() && t.kind() == parameter.tensor.kind();
            let value = saved.iter().find(|(name, value)| *name == parameter.name && fits(value));
            value.map(|(_, value)| value.shallow_clone()).ok_or_else(|| {
                let problem = format!("no tensor fits parameter `{}`, which the manifest lists", parameter.name);
                file_error(&self.path, problem, "the checkpoint is damaged: use another one")
            })
        };
        parameters.iter().map(find).collect()
    }

    /// Compares the model that was saved with the one that is to be restored.
    fn check_model(&self, parameters: &Parameters) -> Result<()> {
        const SHOWN: usize = 3;
        let (saved, model) = (&self.manifest.model, describe_model(parameters)?);
        if *saved == model {
            return Ok(());
        }
        let mut differences = Vec::new();
        for there in saved {
            match model.iter().find(|here| here.name == there.name) {
                Some(here) if here == there => {}
                Some(here) => differences.push(format!("it has {there}, the model {here}")),
                None => differences.push(format!("it has {there}, the model lacks it")),
            }
        }
        let added = model.iter().filter(|here| saved.iter().all(|there| there.name != here.name));
        differences.extend(added.map(|here| format!("it lacks {here}")));
        if differences.is_empty() {
            differences.push("the same parameters in another order".to_owned());
        }
        Err(file_error(
            &self.path,
            format!("the checkpoint of another model: {}", join_first(differences, SHOWN)),
            "build the model with the settings of the run that saved it (the manifest's `state` has them)",
        ))
    }

    /// Writes the checkpoint to a folder, replacing the checkpoint that is there, if any.
    ///
    /// # Errors
    /// [`crate::Error::File`] if a parameter or a number of any section isn't finite, if something that isn't a
    /// checkpoint (or holds other files too) is in the way, or if writing fails. An earlier checkpoint in this place is
    /// untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.stage(path.as_ref())?;
        LAYOUT.publish(path.as_ref())
    }

    /// Writes the checkpoint to a hidden folder beside `path`; [`FolderKind::publish`] moves it there.
    pub(super) fn stage(&self, path: &Path) -> Result<()> {
        self.check_finite(&self.tensors)?;
        LAYOUT.check_target(path)?;
        let data = serialise(&self.tensors, path)?;
        LAYOUT.stage(path, &data, &self.manifest.sealed(&data, path)?)
    }

    /// Checks whether a checkpoint could be saved at `path`, by making and removing a folder beside it. A run does so
    /// before its first step.
    ///
    /// # Errors
    /// [`crate::Error::File`] if something that isn't a checkpoint is in the way, and if no folder can be made there.
    pub fn try_path(path: impl AsRef<Path>) -> Result<()> {
        LAYOUT.try_target(path.as_ref())
    }

    /// Returns `true` if there is a checkpoint that [`load`](Self::load) would read. It may be the older one that an
    /// interrupted save moved away.
    #[must_use]
    pub fn exists(path: impl AsRef<Path>) -> bool {
        LAYOUT.resolve(path.as_ref()).exists()
    }

    /// Reads a checkpoint onto the host and checks that it is whole: format, length and checksum before any tensor is
    /// made.
    ///
    /// If a save was interrupted between moving the old checkpoint away and the new one in, the old one is read.
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
            let problem = format!("checksum {found}, the manifest says {}", manifest.checksum);
            return Err(file_error(&file, problem, "the tensors or the manifest are damaged: use another checkpoint"));
        }
        let tensors = deserialise(&data, &file, &LAYOUT)?;
        Ok(Self { manifest, tensors, path })
    }

    fn check_finite(&self, tensors: &[(String, Tensor)]) -> Result<()> {
        for (name, tensor) in tensors {
            let float = TensorKind::of(tensor).is_some_and(TensorKind::is_float);
            if float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                let name = name.strip_prefix("model/").unwrap_or(name);
                let remedy =
                    "training has diverged: go on from an earlier checkpoint, with a lower learning rate or clipping";
                return Err(file_error(&self.path, format!("`{name}` isn't finite"), remedy));
            }
        }
        Ok(())
    }
}

/// The model's parameters as the manifest lists them.
fn describe_model(parameters: &Parameters) -> Result<Vec<TensorSpec>> {
    parameters.check()?;
    let mut specs = Vec::new();
    for Parameter { name, tensor, .. } in parameters {
        let Some(kind) = TensorKind::of(tensor) else {
            let got = format!("{:?} for `{name}`", tensor.kind());
            return Err(Error::config("a parameter's kind", got, "Float or Double"));
        };
        specs.push(TensorSpec { name: name.clone(), shape: tensor.size(), kind });
    }
    Ok(specs)
}
