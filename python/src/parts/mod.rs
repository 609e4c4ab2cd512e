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
pub(crate) use settings::{Parts, PyTensor};

use std::sync::Arc;

use gfn::env::{Env, Rows};
use gfn::train::{AverageFor, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{ConditionedReward, FocusInHindsight};
use gfn_extras::explore::{Intrinsic, IntrinsicConfig, Novelty, RandomDistillation, Search, Teacher, Thompson};
use gfn_gym::diffusion::Target;
use pyo3::prelude::*;
use tch::{Device, Kind};

use crate::border::Border;
use crate::env::Failures;
use crate::errors::python_error;
use crate::kinds::{PyEnv, Space};
use crate::policy::AnyPolicy;
use crate::references::{Object, References};
use crate::reward::numbers;
use fresh::PyFreshSource;
use hindsight::PyHindsight;
use search::PySearch;
use settings::{
    AverageSettings, FreshSettings, HindsightSettings, IntrinsicSettings, NoveltySettings, SearchSettings,
    SourceSettings, distillation,
};
use source::PySource;

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

/// A novelty of an environment's states.
type AnyNovelty<E> = Box<dyn Novelty<<E as Env>::States>>;

/// Objects that parts are built with, besides their settings.
pub(crate) struct PartContext<'a, E: PyEnv> {
    pub(crate) space: &'a Space<E>,
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) conditioned: Option<ConditionedReward<E::States>>,
    pub(crate) teacher: Option<AnyPolicy<E>>,
    pub(crate) novelty: Option<(AnyNovelty<E>, IntrinsicConfig)>,
    pub(crate) references: &'a References,
    /// The width of conditions; 0 without.
    pub(crate) width: usize,
}

impl Parts {
    /// The function that a buffer draws by, if that is one of Python.
    pub(crate) fn priority(&mut self, references: &References, failures: &Failures) -> Option<PyPriority> {
        let function = references.add(self.priority.take()?);
        Some(PyPriority { function, failures: failures.clone() })
    }

    /// The novelty that intrinsic rewards are given for, with their coefficients.
    pub(crate) fn novelty<E: PyEnv>(
        &mut self,
        space: &Space<E>,
        references: &References,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Option<(AnyNovelty<E>, IntrinsicConfig)>> {
        let Some(IntrinsicSettings { edges, terminal, novelty }) = self.intrinsic.take() else { return Ok(None) };
        let novelty: AnyNovelty<E> = match novelty {
            NoveltySettings::Python(function) => python_novelty(references.add(function), space.border.clone()),
            NoveltySettings::Distillation { hidden, outputs, lr } => {
                let Some(features) = space.border.features() else {
                    let expected = "a novelty that is a function of states, where these aren't vectors of one width";
                    return Err(Error::config("novelty", "RandomDistillation", expected));
                };
                let config = distillation(hidden, outputs, lr);
                Box::new(RandomDistillation::new(features, config, device, kind, rng)?)
            }
        };
        Ok(Some((novelty, IntrinsicConfig { edges: edges.0, terminal: terminal.0 })))
    }

    /// Adds the parts to a trainer that has its conditions and its buffer.
    pub(crate) fn attach<E: PyEnv>(
        self,
        mut trainer: Trainer<E>,
        context: PartContext<'_, E>,
        rng: &mut Rng,
    ) -> Result<Trainer<E>> {
        let (border, references) = (&context.space.border, context.references);
        match (self.hindsight, context.conditioned) {
            (None, _) => {}
            (Some(HindsightSettings::Python { function, share }), _) => {
                let function = references.add(function);
                trainer = trainer.with_hindsight(PyHindsight { function, border: border.clone() }, share)?;
            }
            (Some(HindsightSettings::Focus { share }), Some(conditioned)) => {
                trainer = trainer.with_hindsight(FocusInHindsight(conditioned), share)?;
            }
            (Some(HindsightSettings::Focus { .. }), None) => {
                let expected = "a function of objects; `FocusInHindsight` is for a `Conditioning`";
                return Err(Error::config("hindsight", "FocusInHindsight", expected));
            }
        }
        match self.search {
            None => {}
            Some(SearchSettings::Python { function, every, objects }) => {
                let search = PySearch { function: references.add(function), border: border.clone() };
                trainer = trainer.with_refill(Search::new(search, every, objects)?)?;
            }
            Some(SearchSettings::Langevin(settings)) => {
                let search = E::langevin(trainer.env(), context.target, settings.config())?;
                trainer = trainer.with_refill(Search::new(search, settings.every, settings.objects)?)?;
            }
        }
        if let Some(SourceSettings { function, share }) = self.source {
            let source = PySource { function: references.add(function), border: border.clone() };
            trainer = trainer.with_source(share, source)?;
        }
        if let Some(FreshSettings::Python { function }) = &self.fresh {
            let function = references.add(Python::attach(|py| function.clone_ref(py)));
            let seed = rng.clone().below(1 << 53) as u64;
            let source = PyFreshSource { function, border: border.clone(), width: context.width, seed };
            trainer = trainer.with_fresh(source)?;
        }
        if let Some((objects, conditions)) = self.data {
            let conditions = conditions.map(|PyTensor(conditions)| conditions);
            let buffer = data::buffer(&trainer, &objects, conditions, border, rng)?;
            trainer = trainer.with_data(buffer);
        }
        if let (Some(policy), Some(settings)) = (context.teacher, self.teacher) {
            let share = settings.share;
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::config("the teacher's share", share, "0 < share <= 1"));
            }
            let teacher = Teacher::new(trainer.env(), policy, settings.config())?;
            trainer = trainer.with_source(share, teacher)?;
        }
        if let Some(AverageSettings { decay, sampling }) = self.average {
            let purpose = if sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
            trainer = trainer.with_average(decay, purpose)?;
        }
        if let Some(every) = self.target_network {
            trainer = trainer.with_target_network(every)?;
        }
        if let Some((novelty, config)) = context.novelty {
            trainer = trainer.with_companion(Intrinsic::new(novelty, config)?)?;
        }
        if let Some(FreshSettings::Thompson { share }) = self.fresh {
            let thompson = Thompson::new(trainer.policy(), share)?;
            trainer = trainer.with_fresh(thompson)?;
        }
        Ok(trainer)
    }
}
