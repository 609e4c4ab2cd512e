//! The attributes of the classes of Python that parts are made of.

use gfn::replay::ReplayConfig;
use gfn_extras::explore::IntrinsicConfig;
use gfn_gym::diffusion::MalaConfig;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::policy::PolicySettings;
use crate::settings::Settings;
use crate::tensors::PyTensor;

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
    /// Intrinsic rewards, and the novelty that they are given for.
    pub(super) intrinsic: Option<(Settings<IntrinsicConfig>, NoveltySettings)>,
    /// The steps between copies.
    pub(super) target_network: Option<usize>,
    pub(super) replay: Option<Settings<ReplaySettings>>,
    /// The function that a buffer draws by.
    pub(super) priority: Option<Py<PyAny>>,
}

/// The settings of a buffer.
#[derive(Deserialize)]
pub(super) struct ReplaySettings {
    /// `true` if each object is in it once.
    pub(super) distinct: bool,
    /// The least distance between two objects once it is full, and p of its norm.
    pub(super) diverse: Option<(f64, f64)>,
    /// `true` if objects are kept without the ways to them.
    pub(super) objects_alone: bool,
    #[serde(flatten)]
    pub(super) config: ReplayConfig,
}

#[derive(FromPyObject)]
pub(crate) struct TeacherSettings {
    pub(crate) policy: PolicySettings,
    pub(super) share: f64,
    /// The values that aren't the defaults of its configuration.
    #[pyo3(attribute("_config"))]
    pub(super) config: Settings<Map<String, Value>>,
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
    Python {
        function: Py<PyAny>,
        every: usize,
        objects: usize,
    },
    Langevin {
        every: usize,
        objects: usize,
        #[pyo3(attribute("_chains"))]
        chains: Settings<MalaConfig>,
    },
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
pub(super) enum NoveltySettings {
    Distillation {
        #[pyo3(attribute("_config"))]
        config: Settings<Map<String, Value>>,
    },
    /// A function of states.
    #[pyo3(transparent)]
    Python(Py<PyAny>),
}
