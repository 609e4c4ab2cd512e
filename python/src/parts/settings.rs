//! Settings of a trainer's parts, which are read from the attributes of Python objects.

use gfn::replay::ReplayConfig;
use gfn_extras::chains::ChainSourceConfig;
use gfn_extras::explore::IntrinsicConfig;
use gfn_gym::diffusion::MalaConfig;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::policy::PolicySettings;
use crate::settings::Settings;
use crate::tensors::PyTensor;

/// The settings of a trainer's parts, which are the attributes of the Python object `gfn_rs._parts.Parts`.
#[derive(FromPyObject)]
pub(crate) struct Parts {
    /// The settings of the objective's prior, and the values of the prior's parameters by name.
    pub(crate) prior: Option<(PolicySettings, Vec<(String, PyTensor)>)>,
    pub(crate) teacher: Option<TeacherSettings>,
    /// The objects of a data set, and the conditions of these objects if there are any.
    pub(super) data: Option<(Py<PyAny>, Option<PyTensor>)>,
    pub(super) source: Option<SourceSettings>,
    pub(super) fresh: Option<FreshSettings>,
    pub(super) search: Option<SearchSettings>,
    pub(super) chains: Option<ChainSettings>,
    pub(super) hindsight: Option<HindsightSettings>,
    pub(super) average: Option<AverageSettings>,
    /// The settings of intrinsic rewards, and the settings of the novelty that they are computed from.
    pub(super) intrinsic: Option<(Settings<IntrinsicConfig>, NoveltySettings)>,
    /// The number of training steps between two copies of the policy's parameters to the target network.
    pub(super) target_network: Option<usize>,
    pub(super) replay: Option<Settings<ReplaySettings>>,
    /// The Python function that returns the log of the weight with which an object is drawn from the replay
    /// buffer.
    pub(super) priority: Option<Py<PyAny>>,
}

/// The settings of a replay buffer.
#[derive(Deserialize)]
pub(super) struct ReplaySettings {
    /// `true` if each object is in the buffer at most once.
    pub(super) distinct: bool,
    /// The smallest distance that two objects of a full buffer may have, and the exponent p of the norm that
    /// measures the distance.
    pub(super) diverse: Option<(f64, f64)>,
    /// `true` if objects are stored without their trajectories.
    pub(super) objects_alone: bool,
    #[serde(flatten)]
    pub(super) config: ReplayConfig,
}

#[derive(FromPyObject)]
pub(crate) struct TeacherSettings {
    pub(crate) policy: PolicySettings,
    pub(super) share: f64,
    /// The settings of the teacher that differ from the defaults.
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
pub(super) struct ChainSettings {
    pub(super) share: f64,
    #[pyo3(attribute("_config"))]
    pub(super) config: Settings<ChainSourceConfig>,
}

#[derive(FromPyObject)]
pub(super) enum HindsightSettings {
    Python { function: Py<PyAny>, share: f64 },
    Focus { share: f64 },
}

#[derive(FromPyObject)]
pub(super) struct AverageSettings {
    pub(super) decay: f64,
    /// `true` if new trajectories are sampled with the running average of the policy's parameters.
    pub(super) sampling: bool,
}

#[derive(FromPyObject)]
pub(super) enum NoveltySettings {
    Distillation {
        #[pyo3(attribute("_config"))]
        config: Settings<Map<String, Value>>,
    },
    /// A Python function that returns the novelty of each state.
    #[pyo3(transparent)]
    Python(Py<PyAny>),
}
