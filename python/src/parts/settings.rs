//! The settings of these parts, as Python writes them.

use gfn::optim::Schedule;
use serde::Deserialize;
use serde_json::Value;

/// The settings of the parts that a trainer has.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PartSettings {
    pub(super) teacher: Option<TeacherSettings>,
    pub(super) average: Option<AverageSettings>,
    /// The share of a batch that each head learns from.
    pub(super) thompson: Option<f64>,
    /// Steps between copies.
    pub(super) target_network: Option<usize>,
    pub(super) intrinsic: Option<IntrinsicSettings>,
    pub(super) search: Option<SearchSettings>,
    /// The share of replayed objects that get other conditions.
    pub(super) hindsight: Option<f64>,
    /// The share of a batch that a function of Python gives the objects of.
    pub(super) source: Option<f64>,
}

/// A teacher's share of a batch, and its other settings.
#[derive(Deserialize)]
pub(super) struct TeacherSettings {
    pub(super) share: f64,
    #[serde(flatten)]
    pub(super) config: Value,
}

/// A moving average of the parameters.
#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub(super) struct AverageSettings {
    pub(super) decay: f64,
    /// Whether fresh trajectories are drawn by it.
    pub(super) sampling: bool,
}

/// Intrinsic rewards; without `distillation` a function of Python gives them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IntrinsicSettings {
    pub(super) edges: Schedule,
    pub(super) terminal: Schedule,
    pub(super) distillation: Option<Value>,
}

/// A search among objects; without `mala` a function of Python makes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchSettings {
    pub(super) every: usize,
    pub(super) objects: usize,
    pub(super) mala: Option<Value>,
}
