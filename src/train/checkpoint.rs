//! Checkpoints: a folder with `model.safetensors` and `manifest.json`, checked before use and replaced as a whole.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use tch::{Device, Kind, Tensor, no_grad};

use super::manifest::{Manifest, TensorKind, file_error};
use crate::{Result, nn::Parameters};

const TENSORS: &str = "model.safetensors";
const MANIFEST: &str = "manifest.json";
const WRITE_REMEDY: &str = "check that the folder can be written to and that the disk isn't full; \
                            a checkpoint that was there before is untouched";
const READ_REMEDY: &str =
    "give the folder of a checkpoint (with `manifest.json` and `model.safetensors`) that you may read";

/// Everything that a run needs to go on: the model's parameters, further tensors by section (the optimiser's moments,
/// a replay buffer's arrays), and a JSON state (random stream, settings, counters).
///
/// Tensors may be f32, f64, i64 or u8, and come back bit for bit. On disk a checkpoint is a folder with two files.
/// [`Checkpoint::save`] writes a new folder beside it and then swaps the two, so that an interruption leaves the old
/// checkpoint or the new one, whole. [`Checkpoint::load`] and [`Checkpoint::restore`] check everything before they change
/// anything.
///
/// ```
/// use gfn::{Rng, nn::Parameters, train::{Adam, AdamConfig, Checkpoint}};
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
    /// Where it was loaded from, for messages; empty for a new one.
    path: PathBuf,
}

impl Checkpoint {
    /// A checkpoint of a model after `step` training steps, with what else a trainer keeps as JSON. Values are copied.
    ///
    /// Floating-point numbers in `state` come back exactly, but JSON has no NaN or infinity: they would become `null`.
    ///
    /// # Errors
    /// [`crate::Error::Config`] for what [`Parameters::check`] finds.
    pub fn new(parameters: &Parameters, step: u64, state: serde_json::Value) -> Result<Self> {
        let manifest = Manifest::new(parameters, step, state)?;
        let values = no_grad(|| {
            let copies = parameters.iter();
            copies.map(|p| (p.name.clone(), p.tensor.detach().copy())).collect()
        });
        let new = Self { manifest, tensors: Vec::new(), path: PathBuf::new() };
        Ok(new.with("model", values))
    }

    /// Adds named tensors as a section of their own. Tensors are shared, not copied, until they are saved.
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

    /// What the run that saved it said of itself ([`Trainer::described_by`](super::Trainer::described_by)).
    ///
    /// # Errors
    /// [`crate::Error::File`] for a checkpoint without a description, or with one of another form.
    pub fn description<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let description = self.manifest.state.get("description").cloned().unwrap_or_default();
        serde_json::from_value(description).map_err(|e| {
            file_error(
                &self.path,
                format!("it doesn't say what it is a checkpoint of in the form that is asked for ({e})"),
                "use a checkpoint that was saved by a run that describes itself so (`Trainer::described_by`)",
            )
        })
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
    pub(super) fn fitting(&self, parameters: &Parameters) -> Result<Vec<Tensor>> {
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
    /// [`crate::Error::File`] if a parameter isn't finite, if something that isn't a checkpoint (or holds other files too) is in
    /// the way, or if writing fails. What was there before is untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check_finite(&self.section("model"))?;
        check_target(path)?;
        let data = self.serialise(path)?;
        let manifest = self.manifest.sealed(&data, path)?;
        let text = serde_json::to_vec_pretty(&manifest).map_err(|e| file_error(path, e.to_string(), WRITE_REMEDY))?;
        replace(path, &[(TENSORS, &data), (MANIFEST, &text)])
            .map_err(|e| file_error(path, format!("can't be written ({e})"), WRITE_REMEDY))
    }

    /// Reads a checkpoint onto the host and checks that it is whole: format, length and checksum before any tensor is made.
    ///
    /// If a save was cut off in the moment between moving the old checkpoint away and the new one in, the old one is read.
    ///
    /// # Errors
    /// [`crate::Error::File`], with what is wrong and what to do.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let asked = path.as_ref();
        let previous = sibling(asked, "previous");
        let path = if !asked.exists() && previous.exists() { previous } else { asked.to_owned() };
        let read =
            |file: PathBuf| fs::read(&file).map_err(|e| file_error(&file, format!("can't be read ({e})"), READ_REMEDY));
        let file = path.join(MANIFEST);
        let manifest = Manifest::parse(&read(file.clone())?, &file)?;

        let file = path.join(TENSORS);
        let metadata =
            fs::metadata(&file).map_err(|e| file_error(&file, format!("can't be read ({e})"), READ_REMEDY))?;
        if metadata.len() != manifest.bytes {
            return Err(file_error(
                &file,
                format!("{} bytes, the manifest says {}", metadata.len(), manifest.bytes),
                "the file was cut off or belongs to another manifest: use another checkpoint",
            ));
        }
        let data = read(file.clone())?;
        manifest.check_bytes(&data, &file)?;
        let tensors = deserialise(&data, &file)?;
        Ok(Self { manifest, tensors, path })
    }

    fn check_finite(&self, tensors: &[(String, Tensor)]) -> Result<()> {
        for (name, tensor) in tensors {
            let float = TensorKind::of(tensor).is_some_and(TensorKind::is_float);
            if float && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                return Err(file_error(
                    &self.path,
                    format!("parameter `{name}` isn't finite"),
                    "training has diverged: go on from an earlier checkpoint, with a lower learning rate or clipping",
                ));
            }
        }
        Ok(())
    }

    fn serialise(&self, path: &Path) -> Result<Vec<u8>> {
        let refuse = |problem: String| {
            file_error(
                path,
                problem,
                "give each tensor of a section its own name and one of the kinds f32, f64, i64, u8",
            )
        };
        let mut names = std::collections::HashSet::new();
        let mut buffers = Vec::with_capacity(self.tensors.len());
        for (name, tensor) in &self.tensors {
            if !names.insert(name) {
                return Err(refuse(format!("two tensors are named `{name}`")));
            }
            let dtype = match TensorKind::of(tensor) {
                Some(TensorKind::F32) => Dtype::F32,
                Some(TensorKind::F64) => Dtype::F64,
                Some(TensorKind::I64) => Dtype::I64,
                Some(TensorKind::U8) => Dtype::U8,
                None => return Err(refuse(format!("`{name}` has kind {:?}", tensor.kind()))),
            };
            let host = tensor.detach().f_to_device(Device::Cpu)?.f_contiguous()?;
            let mut bytes = vec![0; host.numel() * host.kind().elt_size_in_bytes()];
            host.f_copy_data_u8(&mut bytes, host.numel())?;
            let shape: Vec<usize> = host.size().iter().map(|&size| size as usize).collect();
            buffers.push((name, dtype, shape, bytes));
        }
        let views = buffers
            .iter()
            .map(|(name, dtype, shape, bytes)| Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?)));
        let views: std::result::Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
        views
            .and_then(|views| safetensors::serialize(views, None))
            .map_err(|e| refuse(format!("the tensors can't be written ({e})")))
    }
}

fn deserialise(data: &[u8], path: &Path) -> Result<Vec<(String, Tensor)>> {
    let refuse =
        |problem: String| file_error(path, problem, "the file wasn't written by this library: use another checkpoint");
    let file = SafeTensors::deserialize(data).map_err(|e| refuse(format!("not a file of safetensors ({e})")))?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.iter() {
        let kind = match view.dtype() {
            Dtype::F32 => Kind::Float,
            Dtype::F64 => Kind::Double,
            Dtype::I64 => Kind::Int64,
            Dtype::U8 => Kind::Uint8,
            other => return Err(refuse(format!("`{name}` has kind {other:?}"))),
        };
        let size: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
        let tensor = Tensor::f_from_data_size(view.data(), &size, kind)?;
        tensors.push((name.to_owned(), tensor));
    }
    // The file's order isn't the one that they were given in.
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// A hidden folder beside the checkpoint's.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// Refuses to replace anything but a checkpoint and an empty folder.
fn check_target(path: &Path) -> Result<()> {
    let refuse = |problem: String| {
        Err(file_error(path, problem, "choose a new folder: a checkpoint only ever replaces a checkpoint"))
    };
    if path.file_name().is_none() {
        return refuse("doesn't end in a name".to_owned());
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return refuse(format!("is in the way and not a folder ({e})")),
    };
    for entry in entries {
        let entry = entry.map_err(|e| file_error(path, e.to_string(), WRITE_REMEDY))?;
        if entry.file_name() != TENSORS && entry.file_name() != MANIFEST {
            return refuse(format!("holds `{}` too", entry.file_name().to_string_lossy()));
        }
    }
    Ok(())
}

/// Writes the files to a folder beside `path`, forces them to disk, and swaps the folders.
fn replace(path: &Path, files: &[(&str, &[u8])]) -> std::io::Result<()> {
    let (partial, previous) = (sibling(path, "partial"), sibling(path, "previous"));
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    remove(&partial)?;
    fs::create_dir(&partial)?;
    for (name, data) in files {
        let mut file = File::create_new(partial.join(name))?;
        file.write_all(data)?;
        file.sync_all()?;
    }
    sync_folder(&partial)?;
    if path.exists() {
        // No folder can be renamed onto one that has files in it; `load` finds the old one if we are cut off here.
        remove(&previous)?;
        fs::rename(path, &previous)?;
        if let Err(e) = fs::rename(&partial, path) {
            fs::rename(&previous, path)?;
            return Err(e);
        }
    } else {
        fs::rename(&partial, path)?;
    }
    sync_folder(parent)?;
    remove(&previous)
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// A rename is on disk once its folder is; only Unix lets a folder be opened for that.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
