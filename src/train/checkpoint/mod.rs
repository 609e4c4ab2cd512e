//! Checkpoints: a folder with `model.safetensors` and `manifest.json`, checked before use and replaced as a whole.

mod attachments;
mod differences;
mod manifest;
mod persist;
mod resume;

pub(in crate::train) use attachments::Attachments;
pub use manifest::Manifest;
pub use persist::Persist;
pub(in crate::train) use persist::check_name;
pub(crate) use resume::to_json;
pub(in crate::train) use resume::{check_savable, make_checkpoint, parts, resume, save};

use std::path::{Path, PathBuf};

use tch::{Tensor, no_grad};

use crate::Result;
use crate::io::{FolderKind, TensorKind, deserialise, file_error, serialise};
use crate::nn::Parameters;

pub(crate) const LAYOUT: FolderKind = FolderKind {
    tensors: "model.safetensors",
    noun: "checkpoint",
    unwritable: "check that the folder can be written to and that the disk isn't full; \
                 a checkpoint that was there before is untouched",
    unreadable: "give the folder of a checkpoint (with `manifest.json` and `model.safetensors`) that you may read",
    damaged: "the file is damaged, cut off or something else: use another checkpoint",
    in_the_way: "choose a new folder: a checkpoint only ever replaces a checkpoint",
};

/// Everything that a run needs to resume: the model's parameters, further tensors by section (the optimiser's moments,
/// a replay buffer's arrays), and a JSON state (random stream, settings, counters).
///
/// Tensors may be f32, f64, i64 or u8, and come back bit for bit. On disk a checkpoint is a folder with two files.
/// [`Checkpoint::save`] writes a new folder beside it and then swaps the two, so that an interruption leaves the old
/// checkpoint or the new one, whole. [`Checkpoint::load`] and [`Checkpoint::restore`] check everything before they change
/// anything.
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
    /// Makes a checkpoint of a model after `step` training steps. `state` is the trainer's other state. Values are copied.
    ///
    /// Floating-point numbers in `state` come back exactly, but JSON has no NaN or infinity: they would become `null`.
    ///
    /// # Errors
    /// Those of [`Parameters::check`].
    pub fn new(parameters: &Parameters, step: u64, state: serde_json::Value) -> Result<Self> {
        let manifest = Manifest::new(parameters, step, state)?;
        let values = no_grad(|| {
            let copies = parameters.iter();
            copies.map(|p| (p.name.clone(), p.tensor.detach().copy())).collect()
        });
        let new = Self { manifest, tensors: Vec::new(), path: PathBuf::new() };
        Ok(new.with("model", values))
    }

    /// Adds named tensors as a section of their own, all their numbers finite. Tensors are shared, not copied, until they are
    /// saved.
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

    /// The description that the run that saved it gave of itself ([`Trainer::with_description`](crate::train::Trainer::with_description)).
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
    pub fn note(&self) -> &serde_json::Value {
        self.manifest.state.get("note").unwrap_or(&serde_json::Value::Null)
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
    /// [`crate::Error::File`] for another model (with the first differences) and for values that aren't finite. The model is
    /// unchanged then.
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
    pub(in crate::train) fn fitting(&self, parameters: &Parameters) -> Result<Vec<Tensor>> {
        self.manifest.check_model(parameters, &self.path)?;
        let saved = self.section("model");
        self.check_finite(&saved)?;
        let mut found = Vec::with_capacity(saved.len());
        for parameter in parameters {
            let value = saved.iter().find(|(name, _)| *name == parameter.name);
            let fits = |t: &Tensor| t.size() == parameter.tensor.size() && t.kind() == parameter.tensor.kind();
            match value {
                Some((_, value)) if fits(value) => found.push(value.shallow_clone()),
                _ => {
                    return Err(file_error(
                        &self.path,
                        format!("no tensor fits parameter `{}`, which the manifest lists", parameter.name),
                        "the checkpoint is damaged: use another one",
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Writes the checkpoint to a folder, replacing the checkpoint that is there, if any.
    ///
    /// # Errors
    /// [`crate::Error::File`] if a parameter or a number of any section isn't finite, if something that isn't a checkpoint (or
    /// holds other files too) is in the way, or if writing fails. An earlier checkpoint in this place is untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.stage(path.as_ref())?;
        LAYOUT.publish(path.as_ref())
    }

    /// Writes the checkpoint to a hidden folder beside `path`; [`FolderKind::publish`] moves it there.
    pub(in crate::train) fn stage(&self, path: &Path) -> Result<()> {
        self.check_finite(&self.tensors)?;
        LAYOUT.check_target(path)?;
        let data = serialise(&self.tensors, path)?;
        LAYOUT.stage(path, &data, &self.manifest.sealed(&data, path)?)
    }

    /// Checks whether a checkpoint could be saved at `path`, by making and removing a folder beside it. A run does so before its first step.
    ///
    /// # Errors
    /// [`crate::Error::File`] if something that isn't a checkpoint is in the way, and if no folder can be made there.
    pub fn try_path(path: impl AsRef<Path>) -> Result<()> {
        LAYOUT.try_target(path.as_ref())
    }

    /// Returns `true` if there is a checkpoint that [`load`](Self::load) would read. It may be the older one that an interrupted save moved away.
    #[must_use]
    pub fn exists(path: impl AsRef<Path>) -> bool {
        LAYOUT.resolve(path.as_ref()).exists()
    }

    /// Reads a checkpoint onto the host and checks that it is whole: format, length and checksum before any tensor is made.
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
        let manifest = Manifest::parse(&text, &file)?;
        let (file, data) = LAYOUT.tensors(&path, manifest.bytes)?;
        manifest.check_bytes(&data, &file)?;
        let tensors = deserialise(&data, &file, &LAYOUT)?;
        Ok(Self { manifest, tensors, path })
    }

    fn check_finite(&self, tensors: &[(String, Tensor)]) -> Result<()> {
        for (name, tensor) in tensors {
            let float = TensorKind::of(tensor).is_some_and(TensorKind::is_float);
            if float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                let name = name.strip_prefix("model/").unwrap_or(name);
                return Err(file_error(
                    &self.path,
                    format!("`{name}` isn't finite"),
                    "training has diverged: go on from an earlier checkpoint, with a lower learning rate or clipping",
                ));
            }
        }
        Ok(())
    }
}
