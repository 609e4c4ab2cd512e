//! The attributes of the classes of Python that parts are made of.

use gfn::nn::MlpConfig;
use gfn::optim::{AdamConfig, Schedule};
use gfn_extras::explore::{DistillationConfig, TeacherConfig};
use gfn_gym::diffusion::MalaConfig;
use pyo3::prelude::*;
use tch::Tensor;

use crate::policy::PolicySettings;
use crate::settings::read;
use crate::tensors;

/// The attributes of `gfn_rs._parts.Parts`.
#[derive(FromPyObject)]
pub(crate) struct Parts {
    /// The prior of the objective, and the values of its parameters by name.
    pub(crate) prior: Option<(PolicySettings, Vec<(String, PyTensor)>)>,
    pub(crate) teacher: Option<TeacherSettings>,
    /// Objects, and their conditions.
    pub(super) data: Option<(Py<PyAny>, Option<PyTensor>)>,
    pub(super) source: Option<SourceSettings>,
    pub(super) fresh: Option<FreshSettings>,
    pub(super) search: Option<SearchSettings>,
    pub(super) hindsight: Option<HindsightSettings>,
    pub(super) average: Option<AverageSettings>,
    /// An objective with intrinsic rewards.
    pub(super) intrinsic: Option<IntrinsicSettings>,
    /// The steps between copies.
    pub(super) target_network: Option<usize>,
    /// The function that a buffer draws by.
    pub(super) priority: Option<Py<PyAny>>,
}

/// A tensor of torch.
pub(crate) struct PyTensor(pub(crate) Tensor);

impl<'py> FromPyObject<'_, 'py> for PyTensor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        tensors::from_python(&object).map(Self)
    }
}

/// A number, or a schedule of one.
pub(super) struct PySchedule(pub(super) Schedule);

impl<'py> FromPyObject<'_, 'py> for PySchedule {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(value) => Ok(Self(Schedule::Constant(value))),
            Err(_) => read("a schedule", &object.call_method0("_json")?).map(Self),
        }
    }
}

#[derive(FromPyObject)]
pub(crate) struct TeacherSettings {
    pub(crate) policy: PolicySettings,
    pub(super) share: f64,
    under_sampled: f64,
    alpha: f64,
    epsilon: f64,
    lr: f64,
    log_z_lr: f64,
    max_norm: Option<f64>,
}

impl TeacherSettings {
    pub(super) fn config(&self) -> TeacherConfig {
        let &Self { under_sampled, alpha, epsilon, lr, log_z_lr, max_norm, .. } = self;
        TeacherConfig {
            under_sampled,
            alpha,
            epsilon,
            adam: AdamConfig { lr, log_z_lr, max_norm, ..TeacherConfig::default().adam },
        }
    }
}

#[derive(FromPyObject)]
pub(super) struct SourceSettings {
    pub(super) function: Py<PyAny>,
    pub(super) share: f64,
}

#[derive(FromPyObject)]
pub(super) enum FreshSettings {
    Python { function: Py<PyAny> },
    Thompson { share: f64 },
}

#[derive(FromPyObject)]
pub(super) enum SearchSettings {
    Python { function: Py<PyAny>, every: usize, objects: usize },
    Langevin(LangevinSettings),
}

#[derive(FromPyObject)]
pub(super) struct LangevinSettings {
    pub(super) every: usize,
    pub(super) objects: usize,
    steps: usize,
    burn_in: usize,
    thin: usize,
    step_size: f64,
    acceptance: f64,
}

impl LangevinSettings {
    pub(super) fn config(&self) -> MalaConfig {
        let &Self { steps, burn_in, thin, step_size, acceptance, .. } = self;
        MalaConfig { steps, burn_in, thin, step_size, acceptance }
    }
}

#[derive(FromPyObject)]
pub(super) enum HindsightSettings {
    Python { function: Py<PyAny>, share: f64 },
    Focus { share: f64 },
}

#[derive(FromPyObject)]
pub(super) struct AverageSettings {
    pub(super) decay: f64,
    /// `true` if fresh trajectories are drawn by the average.
    pub(super) sampling: bool,
}

#[derive(FromPyObject)]
pub(super) struct IntrinsicSettings {
    pub(super) edges: PySchedule,
    pub(super) terminal: PySchedule,
    pub(super) novelty: NoveltySettings,
}

#[derive(FromPyObject)]
pub(super) enum NoveltySettings {
    Distillation {
        hidden: Vec<i64>,
        outputs: i64,
        lr: f64,
    },
    /// A function of states.
    #[pyo3(transparent)]
    Python(Py<PyAny>),
}

/// The settings of a network that learns the output of a random one.
pub(super) fn distillation(hidden: Vec<i64>, outputs: i64, lr: f64) -> DistillationConfig {
    let default = DistillationConfig::default();
    DistillationConfig { mlp: MlpConfig { hidden, ..default.mlp }, outputs, adam: AdamConfig { lr, ..default.adam } }
}
