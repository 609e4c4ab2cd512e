//! Python modules inside policies: the tensors of a module, which a trainer trains and saves, and the calls
//! of a module.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use gfn::nn::{Embeddings, Scope};
use gfn::{Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tch::{Device, Kind, Tensor};

use crate::errors::{add_note, call_python};
use crate::references::Object;
use crate::tensors;

/// A Python module of a policy, with the parameters and buffers that it had when the trainer was built.
#[derive(Debug)]
pub(crate) struct PolicyModule {
    module: Object,
    /// The setting of the policy that is this module, such as `backward`.
    setting: String,
    /// The setting and the class of the module, by which messages name the module.
    name: String,
    tensors: Mutex<Vec<(String, Tensor)>>,
    /// A flag for each layer of the module: `true` if the layer was in training mode at the last check.
    modes: Mutex<Vec<bool>>,
    /// `true` if the module has parameters to train, and no warning was issued yet that its results have no
    /// gradient.
    learns: AtomicBool,
}

impl PolicyModule {
    /// Reads the tensors of the module that is the setting `setting` of a policy of the class `class`.
    pub(super) fn new(class: &str, setting: String, module: Object) -> PyResult<Self> {
        Python::attach(|py| {
            let bound = module.bind(py);
            let name = format!("{class}.{setting} (the module {})", bound.get_type().name()?);
            let tensors = named_tensors(bound)?;
            let learns = AtomicBool::new(tensors.iter().any(|(_, tensor)| tensor.requires_grad()));
            let modes = Mutex::new(modes(bound)?);
            Ok(Self { setting, name, tensors: Mutex::new(tensors), modes, learns, module })
        })
    }

    /// Returns the parameters and buffers that the module had when the trainer was built.
    fn tensors(&self) -> Vec<(String, Tensor)> {
        let tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect()
    }

    /// Returns an error if the module has other tensors now than when the trainer was built, because the new
    /// tensors would neither be trained nor saved.
    pub(crate) fn check(&self) -> Result<()> {
        let now = call_python("the module", |py| named_tensors(self.module.bind(py)))?;
        match describe_change(&self.tensors(), &now) {
            None => Ok(()),
            Some(change) => Err(Error::contract(
                "a module must keep the parameters and buffers that it had when the trainer was made; write \
                 values into them (`load_state_dict` without `assign=True`, `parameter.copy_(values)` under \
                 `torch.no_grad()`), or make a new trainer",
                change,
            )),
        }
    }

    /// Returns `true` if a layer was switched between training and evaluation mode since the last check.
    pub(crate) fn changed_mode(&self) -> Result<bool> {
        let now = call_python("the module", |py| modes(self.module.bind(py)))?;
        let mut modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *modes, now) != *modes)
    }
}

/// The Python modules of a policy, in the order in which their tensors join the policy's parameters.
pub(super) type Modules = Vec<Arc<PolicyModule>>;

/// Adds a module's tensors to the parameters of a policy, under their names in the module, so that a trainer
/// trains and saves these tensors. Tensors that the module shares with an earlier module in `all` are left
/// out, because they have joined already.
pub(super) fn join(all: &Modules, caller: &ModuleCaller, scope: &mut Scope<'_>) -> Result<()> {
    let earlier = all.iter().take_while(|other| !Arc::ptr_eq(other, &caller.module));
    let earlier: Vec<(String, Tensor)> = earlier.flat_map(|other| other.tensors()).collect();
    for (name, tensor) in caller.module.tensors() {
        if !earlier.iter().any(|(_, other)| tensors::is_same(&tensor, other)) {
            scope.adopt(&name, &tensor)?;
        }
    }
    Ok(())
}

/// Describes the first tensor that is missing, replaced or new; `None` if there is no change.
fn describe_change(before: &[(String, Tensor)], now: &[(String, Tensor)]) -> Option<String> {
    for (name, tensor) in before {
        match now.iter().find(|(other, _)| other == name) {
            None => return Some(format!("`{name}` was removed")),
            Some((_, other)) if !tensors::is_same(tensor, other) => {
                return Some(format!("`{name}` was replaced by another tensor"));
            }
            Some(_) => {}
        }
    }
    let is_new = |(name, _): &&(String, Tensor)| before.iter().all(|(other, _)| other != name);
    now.iter().find(is_new).map(|(name, _)| format!("`{name}` was added"))
}

/// Returns a module's parameters and buffers by name. Buffers of whole numbers are left out, because they
/// needn't be saved: they are constants, or counters of layers such as batch normalisation. For such layers
/// in training mode a trainer raises an error anyway.
fn named_tensors(module: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Tensor)>> {
    let mut out = Vec::new();
    for list in ["named_parameters", "named_buffers"] {
        for item in module.call_method0(list)?.try_iter()? {
            let (name, tensor): (String, Bound<'_, PyAny>) = item?.extract()?;
            let tensor = tensors::from_python(&tensor)?;
            if tensor.is_floating_point() {
                out.push((name, tensor));
            }
        }
    }
    Ok(out)
}

/// The reason for the shape of embeddings, at the end of an error message.
const WIDTH: &str = ", in which the last number is the width in the settings of the policy";

/// Describes an argument of a module: the shape of a tensor, or the `repr` of a batch of graphs.
fn describe_argument(argument: &Bound<'_, PyAny>) -> String {
    match argument.getattr("shape").and_then(|shape| shape.extract::<Vec<i64>>()) {
        Ok(shape) => format!("a tensor of shape {shape:?}"),
        Err(_) => argument.to_string(),
    }
}

fn mode(layer: PyResult<Bound<'_, PyAny>>) -> PyResult<bool> {
    layer?.getattr_opt("training")?.map_or(Ok(false), |training| training.is_truthy())
}

/// Returns a flag for each layer, `true` if the layer is in training mode. The list is empty for an object
/// that isn't a `torch.nn.Module`.
fn modes(module: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    match module.getattr_opt("modules")? {
        None => Ok(Vec::new()),
        Some(modules) => modules.call0()?.try_iter()?.map(mode).collect(),
    }
}

/// A Python module that is called, with the device and the dtype that its results must have.
#[derive(Clone, Debug)]
pub(super) struct ModuleCaller {
    module: Arc<PolicyModule>,
    /// The device that the module's results must be on.
    pub(super) device: Device,
    /// The dtype that the module's results must have.
    pub(super) kind: Kind,
}

impl ModuleCaller {
    /// Returns the module of a setting; `None` if the policy has no such module.
    pub(super) fn find(all: &Modules, setting: &str, device: Device, kind: Kind) -> Option<Self> {
        let module = all.iter().find(|module| module.setting == setting)?.clone();
        Some(Self { module, device, kind })
    }

    /// Calls the module with these arguments, followed by the conditions if there are any. If the module
    /// raises an exception, a note that names the module and its arguments is added to the exception.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        mut arguments: Vec<Bound<'py, PyAny>>,
        conditions: Option<&Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A condition's vector leaves out constant parts, such as a fixed temperature. If all parts are
        // constant, the vectors have no entries, and the module gets no conditions.
        if let Some(conditions) = conditions.filter(|conditions| conditions.size().get(1) != Some(&0)) {
            arguments.push(tensors::to_python(py, conditions)?);
        }
        let arguments = PyTuple::new(py, arguments)?;
        let answer = self.module.module.bind(py).call1(&arguments);
        answer.inspect_err(|exception| {
            let arguments: Vec<String> =
                arguments.iter().map(|argument| describe_argument(&argument)).collect();
            let note = format!("raised by {}, called with {}", self.module.name, arguments.join(", "));
            add_note(py, exception, note);
        })
    }

    /// Checks that the module's result is a single tensor, the embeddings of states, of this shape, and
    /// returns this tensor.
    pub(super) fn single_tensor(&self, answer: &Bound<'_, PyAny>, shape: [i64; 2]) -> PyResult<Tensor> {
        let states = self.check(answer, "embeddings of states", &[&shape], WIDTH)?;
        self.check_learning(answer.py(), &[&states])?;
        Ok(states)
    }

    /// Checks that the module's result is a tensor `[n]` or `[n, 1]`, and returns it as `[n]`. `what`
    /// describes the result, for example "log F of states".
    pub(super) fn numbers(&self, answer: &Bound<'_, PyAny>, what: &str, n: i64) -> PyResult<Tensor> {
        let numbers = self.check(answer, what, &[&[n], &[n, 1]], "")?;
        self.check_learning(answer.py(), &[&numbers])?;
        Ok(numbers.reshape([n]))
    }

    /// Checks that the module's result is a pair of tensors of these shapes, and returns both tensors.
    pub(super) fn pair(
        &self,
        answer: &Bound<'_, PyAny>,
        of_nodes: &[i64],
        of_graphs: &[i64],
    ) -> PyResult<Embeddings> {
        let expected = || {
            format!(
                "expected a pair of tensors: embeddings of nodes of shape {of_nodes:?}, and embeddings of \
                 graphs of shape {of_graphs:?}"
            )
        };
        let name = &self.module.name;
        let pair = answer.cast::<PyTuple>().map_err(|_| {
            PyTypeError::new_err(format!("{name} gave a value that isn't a tuple: {}", expected()))
        })?;
        if pair.len() != 2 {
            return Err(PyValueError::new_err(format!("{name} gave {} values: {}", pair.len(), expected())));
        }
        let nodes = self.check(&pair.get_item(0)?, "embeddings of nodes", &[of_nodes], WIDTH)?;
        let graphs = self.check(&pair.get_item(1)?, "embeddings of graphs", &[of_graphs], WIDTH)?;
        self.check_learning(answer.py(), &[&nodes, &graphs])?;
        Ok(Embeddings { nodes, graphs })
    }

    /// Reads a tensor that the module returned, and checks its shape, device and dtype. The error for another
    /// shape than one of `shapes` ends with `reason`. Without this check, a wrong dtype would cause an error
    /// only in the middle of the backward pass.
    fn check(
        &self,
        answer: &Bound<'_, PyAny>,
        what: &str,
        shapes: &[&[i64]],
        reason: &str,
    ) -> PyResult<Tensor> {
        let name = &self.module.name;
        let tensor = tensors::from_python(answer).map_err(|error| {
            PyTypeError::new_err(format!("{name} gave no {what}: {}", error.value(answer.py())))
        })?;
        let device = self.device;
        let kind = self.kind;
        if (tensor.device(), tensor.kind()) != (device, kind) {
            return Err(PyTypeError::new_err(format!(
                "{name} gave {what} of dtype {:?} on {:?}: expected {kind:?} on {device:?}, as in the \
                 trainer",
                tensor.kind(),
                tensor.device()
            )));
        }
        if !shapes.contains(&tensor.size().as_slice()) {
            let expected: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
            let expected = expected.join(" or ");
            let got = tensor.size();
            return Err(PyValueError::new_err(format!(
                "{name} gave {what} of shape {got:?}: expected {expected}{reason}"
            )));
        }
        Ok(tensor)
    }

    /// Warns once if the module has parameters to train but its results have no gradient.
    fn check_learning(&self, py: Python<'_>, results: &[&Tensor]) -> PyResult<()> {
        let PolicyModule { module, setting, name, learns, .. } = self.module.as_ref();
        if results.iter().any(|tensor| tensor.requires_grad()) || !learns.load(Relaxed) {
            return Ok(());
        }
        if py.import("torch")?.call_method0("is_grad_enabled")?.is_truthy()? {
            learns.store(false, Relaxed);
            let arguments = (module.bind(py), setting, name);
            py.import("gfn_rs._training")?.call_method1("_warn_of_detached", arguments)?;
        }
        Ok(())
    }
}
