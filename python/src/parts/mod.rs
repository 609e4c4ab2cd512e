//! What a trainer may have besides environment, reward, policy and objective: given objects, a teacher, a search, an average, novelty,
//! hindsight.

mod fresh;
mod given;
mod hindsight;
mod novelty;
mod priority;
mod search;
mod settings;
mod source;

pub(crate) use priority::CalledPriority;
pub(crate) use search::{AnySearch, mala};

use gfn::env::Env;
use gfn::train::TrainEnv;
use gfn::train::{AverageFor, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{ConditionedReward, FocusInHindsight};
use gfn_extras::explore::{
    DistillationConfig, Intrinsic, IntrinsicConfig, Novelty, RandomDistillation, Search, Teacher, TeacherConfig,
    Thompson,
};
use pyo3::prelude::*;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

use crate::env::Failures;
use crate::errors::raised;
use crate::kept::{Kept, Object};
use crate::objects::Border;
use crate::policy::{AnyPolicy, Network, Prior};
use crate::settings::{over_defaults, read};
use crate::tensors;
use fresh::CalledFresh;
use hindsight::CalledHindsight;
use novelty::CalledNovelty;
use search::CalledSearch;
use settings::PartSettings;
use source::CalledSource;

type PyPrior = (String, Option<Py<PyAny>>, Vec<(String, Py<PyAny>)>);

/// What `gfn_rs._parts.Parts` holds: settings as JSON, and what else Python has of them.
#[derive(FromPyObject)]
pub(crate) struct PyParts {
    settings: String,
    /// Class and settings of a policy, its module, and the values of its parameters.
    prior: Option<PyPrior>,
    teacher: Option<(String, Option<Py<PyAny>>)>,
    novelty: Option<Py<PyAny>>,
    /// Objects, and a tensor of their conditions.
    data: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
    search: Option<Py<PyAny>>,
    hindsight: Option<Py<PyAny>>,
    source: Option<Py<PyAny>>,
    fresh: Option<Py<PyAny>>,
    /// The function that a buffer draws by.
    priority: Option<Py<PyAny>>,
}

/// The same, read.
pub(crate) struct Parts {
    settings: PartSettings,
    prior: Option<Prior>,
    teacher: Option<Network>,
    novelty: Option<Object>,
    data: Option<(Py<PyAny>, Option<Tensor>)>,
    search: Option<Object>,
    hindsight: Option<Object>,
    source: Option<Object>,
    fresh: Option<Object>,
    priority: Option<Object>,
}

impl PyParts {
    /// What a trainer goes on calling is kept.
    pub(crate) fn read(self, py: Python<'_>, kept: &Kept) -> PyResult<Parts> {
        let Self { settings, prior, teacher, novelty, data, search, hindsight, source, fresh, priority } = self;
        let tensor = |tensor: &Py<PyAny>| tensors::from_python(tensor.bind(py));
        let keep = |object: Option<Py<PyAny>>| object.map(|object| kept.keep(object));
        let prior = prior.map(|(text, module, values)| {
            let values = values.into_iter().map(|(name, value)| Ok((name, tensor(&value)?)));
            PyResult::Ok(Prior { network: (text, keep(module)), parameters: values.collect::<PyResult<_>>()? })
        });
        let data =
            data.map(|(objects, conditions)| PyResult::Ok((objects, conditions.as_ref().map(tensor).transpose()?)));
        Ok(Parts {
            settings: read("the parts of a trainer", &settings)?,
            prior: prior.transpose()?,
            teacher: teacher.map(|(text, module)| (text, keep(module))),
            novelty: keep(novelty),
            data: data.transpose()?,
            search: keep(search),
            hindsight: keep(hindsight),
            source: keep(source),
            fresh: keep(fresh),
            priority: keep(priority),
        })
    }
}

impl Parts {
    /// The policies that are asked for beside the trainer's own, which are made with it.
    pub(crate) fn take_networks(&mut self) -> (Option<Prior>, Option<Network>) {
        (self.prior.take(), self.teacher.take())
    }

    /// What a buffer draws by, where that is a function of Python.
    pub(crate) fn priority(&mut self, failures: &Failures) -> Option<CalledPriority> {
        self.priority.take().map(|function| CalledPriority { function, failures: failures.clone() })
    }

    /// The settings of a search of the library's own, where one is asked for.
    pub(crate) fn mala(&self) -> Option<&Value> {
        self.settings.search.as_ref().and_then(|search| search.mala.as_ref())
    }

    /// What intrinsic rewards are given for.
    pub(crate) fn novelty<S: gfn::env::Rows + 'static>(
        &mut self,
        border: &Border<S>,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> PyResult<Option<Box<dyn Novelty<S>>>> {
        let Some(intrinsic) = &self.settings.intrinsic else { return Ok(None) };
        let Some(given) = &intrinsic.distillation else {
            let none = || raised(Error::missing("intrinsic rewards", "a novelty", "give a function of states"));
            let function = self.novelty.take().ok_or_else(none)?;
            return Ok(Some(Box::new(CalledNovelty { function, show: border.show.clone() })));
        };
        let Some(features) = border.features.clone() else {
            let expected = "a novelty that is a function of states, where these aren't vectors of one width";
            return Err(raised(Error::config("novelty", "RandomDistillation", expected)));
        };
        let config: DistillationConfig =
            over_defaults("the settings of the novelty", given, &["mlp", "adam"]).map_err(raised)?;
        let novelty = RandomDistillation::new(features, config, device, kind, rng).map_err(raised)?;
        Ok(Some(Box::new(novelty)))
    }

    /// Gives them to a trainer that has its conditions and its buffer.
    pub(crate) fn attach<E>(
        self,
        mut trainer: Trainer<E>,
        others: Others<E>,
        border: &Border<E::States>,
        width: usize,
        rng: &mut Rng,
    ) -> PyResult<Trainer<E>>
    where
        E: TrainEnv + Clone + 'static,
        E::States: 'static,
    {
        let Self { settings, data, search, hindsight, source, fresh, .. } = self;
        if let Some(share) = settings.hindsight {
            let built = match (hindsight, others.conditioned) {
                (Some(function), _) => {
                    trainer.with_hindsight(CalledHindsight { function, show: border.show.clone() }, share)
                }
                (None, Some(conditioned)) => trainer.with_hindsight(FocusInHindsight(conditioned), share),
                (None, None) => {
                    let expected = "a function of objects; `FocusInHindsight` is for a `Conditioning`";
                    Err(Error::config("hindsight", "FocusInHindsight", expected))
                }
            };
            trainer = built.map_err(raised)?;
        }
        if let Some(asked) = settings.search {
            let search = match (others.search, search) {
                (Some(search), _) => search,
                (None, Some(function)) => AnySearch::new(CalledSearch { function, border: border.clone() }),
                (None, None) => {
                    let expected = "a function of objects; `Mala` is for diffusions with a target of the library's";
                    return Err(raised(Error::config("search", "Mala", expected)));
                }
            };
            let search = Search::new(search, asked.every, asked.objects).map_err(raised)?;
            trainer = trainer.with_refill(search).map_err(raised)?;
        }
        if let (Some(share), Some(function)) = (settings.source, source) {
            let source = CalledSource { function, border: border.clone() };
            trainer = trainer.with_source(share, source).map_err(raised)?;
        }
        if let Some(function) = fresh {
            let seed = rng.clone().below(1 << 53) as u64;
            let source = CalledFresh { function, border: border.clone(), width, seed };
            trainer = trainer.with_fresh(source).map_err(raised)?;
        }
        if let Some((objects, conditions)) = data {
            let given = given::buffer(&trainer, objects, conditions, border, rng)?;
            trainer = trainer.with_data(given);
        }
        let rest = || -> Result<Trainer<E>> {
            if let (Some(teacher), Some(given)) = (others.teacher, &settings.teacher) {
                let config: TeacherConfig = over_defaults("the settings of the teacher", &given.config, &["adam"])?;
                if !(given.share > 0.0 && given.share <= 1.0) {
                    return Err(Error::config("the teacher's share", given.share, "0 < share <= 1"));
                }
                let teacher = Teacher::new(trainer.env(), teacher, config)?;
                trainer = trainer.with_source(given.share, teacher)?;
            }
            if let Some(average) = settings.average {
                let purpose = if average.sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
                trainer = trainer.with_average(average.decay, purpose)?;
            }
            if let Some(every) = settings.target_network {
                trainer = trainer.with_target_network(every)?;
            }
            if let (Some(novelty), Some(intrinsic)) = (others.novelty, settings.intrinsic) {
                let config = IntrinsicConfig { edges: intrinsic.edges, terminal: intrinsic.terminal };
                trainer = trainer.with_companion(Intrinsic::new(novelty::AnyNovelty(novelty), config)?)?;
            }
            match settings.thompson {
                Some(share) => {
                    let thompson = Thompson::new(trainer.policy(), share)?;
                    trainer.with_fresh(thompson)
                }
                None => Ok(trainer),
            }
        };
        rest().map_err(raised)
    }
}

/// Parts that are made before the trainer is.
pub(crate) struct Others<E: Env> {
    pub(crate) teacher: Option<AnyPolicy<E>>,
    pub(crate) novelty: Option<Box<dyn Novelty<E::States>>>,
    pub(crate) search: Option<AnySearch<E>>,
    pub(crate) conditioned: Option<ConditionedReward<E::States>>,
}
