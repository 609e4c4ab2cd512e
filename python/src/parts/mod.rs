//! The parts of a trainer besides environment, reward, policy and objective: given objects, sources, a teacher, a search, an average,
//! novelty, hindsight.

mod data;
mod fresh;
mod hindsight;
mod priority;
mod replay;
mod search;
mod settings;
mod source;

pub(crate) use priority::PyPriority;
pub(crate) use replay::ReplaySettings;

use std::sync::Arc;

use gfn::env::Rows;
use gfn::train::{AverageFor, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{ConditionedReward, FocusInHindsight};
use gfn_extras::explore::{
    DistillationConfig, Intrinsic, IntrinsicConfig, Novelty, ObjectSearch, RandomDistillation, Search, Teacher,
    TeacherConfig, Thompson,
};
use gfn_gym::diffusion::Target;
use pyo3::prelude::*;
use tch::{Device, Kind, Tensor};

use crate::border::Border;
use crate::env::Failures;
use crate::errors::python_error;
use crate::kinds::{PyEnv, Space};
use crate::policy::{AnyPolicy, PolicyArgument, PolicySettings, PriorSettings};
use crate::references::{Object, References};
use crate::reward::numbers;
use crate::settings::{over_defaults, read};
use crate::tensors;
use fresh::PyFreshSource;
use hindsight::PyHindsight;
use search::PySearch;
use settings::{IntrinsicSettings, PartSettings};
use source::PySource;

type PyPrior<'py> = (PolicyArgument<'py>, Vec<(String, Bound<'py, PyAny>)>);

/// The attributes of `gfn_rs._parts.Parts`.
#[derive(FromPyObject)]
pub(crate) struct PartArguments<'py> {
    settings: Bound<'py, PyAny>,
    /// A policy, and the values of its parameters.
    prior: Option<PyPrior<'py>>,
    teacher: Option<PolicyArgument<'py>>,
    novelty: Option<Py<PyAny>>,
    /// Objects, and a tensor of their conditions.
    data: Option<(Py<PyAny>, Option<Bound<'py, PyAny>>)>,
    search: Option<Py<PyAny>>,
    hindsight: Option<Py<PyAny>>,
    source: Option<Py<PyAny>>,
    fresh: Option<Py<PyAny>>,
    /// The function that a buffer draws by.
    priority: Option<Py<PyAny>>,
}

/// The parts that Python asks for.
pub(crate) struct Parts {
    settings: PartSettings,
    pub(crate) prior: Option<PriorSettings>,
    pub(crate) teacher: Option<PolicySettings>,
    novelty: Option<Object>,
    data: Option<(Py<PyAny>, Option<Tensor>)>,
    search: Option<Object>,
    hindsight: Option<Object>,
    source: Option<Object>,
    fresh: Option<Object>,
    priority: Option<Object>,
}

impl PartArguments<'_> {
    /// Reads the settings, and adds the objects that a trainer calls to its references.
    pub(crate) fn read(self, references: &References) -> PyResult<Parts> {
        let add = |object: Option<Py<PyAny>>| object.map(|object| references.add(object));
        let mut prior = None;
        if let Some((policy, values)) = self.prior {
            let mut parameters = Vec::new();
            for (name, value) in values {
                parameters.push((name, tensors::from_python(&value)?));
            }
            prior = Some(PriorSettings { policy: policy.read(references)?, parameters });
        }
        let mut data = None;
        if let Some((objects, conditions)) = self.data {
            data = Some((objects, tensors::optional(conditions.as_ref())?));
        }
        Ok(Parts {
            settings: read("the parts of a trainer", &self.settings)?,
            prior,
            teacher: self.teacher.map(|teacher| teacher.read(references)).transpose()?,
            novelty: add(self.novelty),
            data,
            search: add(self.search),
            hindsight: add(self.hindsight),
            source: add(self.source),
            fresh: add(self.fresh),
            priority: add(self.priority),
        })
    }
}

/// The novelty of states by a function of Python.
fn python_novelty<S: Rows + 'static>(function: Object, border: Arc<dyn Border<S>>) -> Box<dyn Novelty<S>> {
    Box::new(move |states: &S| {
        let call = |py: Python<'_>| {
            let answer = function.bind(py).call1((border.show(py, states)?,))?;
            numbers(&answer, states.len(), "the novelty", "a number of at least 0")
        };
        tch::no_grad(|| Python::attach(call)).map_err(python_error("the novelty"))
    })
}

/// Objects that parts are built with, besides their settings.
pub(crate) struct PartContext<'a, E: PyEnv> {
    pub(crate) space: &'a Space<E>,
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) conditioned: Option<ConditionedReward<E::States>>,
    pub(crate) teacher: Option<AnyPolicy<E>>,
    pub(crate) novelty: Option<Box<dyn Novelty<E::States>>>,
    /// The width of conditions; 0 without.
    pub(crate) width: usize,
}

impl Parts {
    /// The function that a buffer draws by, if that is one of Python.
    pub(crate) fn priority(&mut self, failures: &Failures) -> Option<PyPriority> {
        self.priority.take().map(|function| PyPriority { function, failures: failures.clone() })
    }

    /// The novelty that intrinsic rewards are given for.
    pub(crate) fn novelty<E: PyEnv>(
        &mut self,
        space: &Space<E>,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Option<Box<dyn Novelty<E::States>>>> {
        let Some(IntrinsicSettings { distillation, .. }) = &self.settings.intrinsic else { return Ok(None) };
        let Some(distillation) = distillation else {
            let none = || Error::missing("intrinsic rewards", "a novelty", "give a function of states");
            return Ok(Some(python_novelty(self.novelty.take().ok_or_else(none)?, space.border.clone())));
        };
        let Some(features) = space.border.features() else {
            let expected = "a novelty that is a function of states, where these aren't vectors of one width";
            return Err(Error::config("novelty", "RandomDistillation", expected));
        };
        let config: DistillationConfig = over_defaults("the settings of the novelty", distillation, &["mlp", "adam"])?;
        Ok(Some(Box::new(RandomDistillation::new(features, config, device, kind, rng)?)))
    }

    /// Adds the parts to a trainer that has its conditions and its buffer.
    pub(crate) fn attach<E: PyEnv>(
        self,
        mut trainer: Trainer<E>,
        context: PartContext<'_, E>,
        rng: &mut Rng,
    ) -> Result<Trainer<E>> {
        let (settings, border) = (self.settings, &context.space.border);
        if let Some(share) = settings.hindsight {
            trainer = match (self.hindsight, context.conditioned) {
                (Some(function), _) => {
                    trainer.with_hindsight(PyHindsight { function, border: border.clone() }, share)?
                }
                (None, Some(conditioned)) => trainer.with_hindsight(FocusInHindsight(conditioned), share)?,
                (None, None) => {
                    let expected = "a function of objects; `FocusInHindsight` is for a `Conditioning`";
                    return Err(Error::config("hindsight", "FocusInHindsight", expected));
                }
            };
        }
        if let Some(search) = settings.search {
            let by: Box<dyn ObjectSearch<E>> = match (search.mala, self.search) {
                (None, Some(function)) => Box::new(PySearch { function, border: border.clone() }),
                (mala, _) => E::langevin(trainer.env(), context.target, &mala.unwrap_or_default())?,
            };
            trainer = trainer.with_refill(Search::new(by, search.every, search.objects)?)?;
        }
        if let (Some(share), Some(function)) = (settings.source, self.source) {
            trainer = trainer.with_source(share, PySource { function, border: border.clone() })?;
        }
        if let Some(function) = self.fresh {
            let seed = rng.clone().below(1 << 53) as u64;
            let source = PyFreshSource { function, border: border.clone(), width: context.width, seed };
            trainer = trainer.with_fresh(source)?;
        }
        if let Some((objects, conditions)) = self.data {
            let buffer = data::buffer(&trainer, &objects, conditions, border, rng)?;
            trainer = trainer.with_data(buffer);
        }
        if let (Some(policy), Some(teacher)) = (context.teacher, &settings.teacher) {
            let config: TeacherConfig = over_defaults("the settings of the teacher", &teacher.config, &["adam"])?;
            if !(teacher.share > 0.0 && teacher.share <= 1.0) {
                return Err(Error::config("the teacher's share", teacher.share, "0 < share <= 1"));
            }
            let source = Teacher::new(trainer.env(), policy, config)?;
            trainer = trainer.with_source(teacher.share, source)?;
        }
        if let Some(average) = settings.average {
            let purpose = if average.sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
            trainer = trainer.with_average(average.decay, purpose)?;
        }
        if let Some(every) = settings.target_network {
            trainer = trainer.with_target_network(every)?;
        }
        if let (Some(novelty), Some(intrinsic)) = (context.novelty, settings.intrinsic) {
            let config = IntrinsicConfig { edges: intrinsic.edges, terminal: intrinsic.terminal };
            trainer = trainer.with_companion(Intrinsic::new(novelty, config)?)?;
        }
        if let Some(share) = settings.thompson {
            let thompson = Thompson::new(trainer.policy(), share)?;
            trainer = trainer.with_fresh(thompson)?;
        }
        Ok(trainer)
    }
}
