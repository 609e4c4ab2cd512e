//! The parts of a trainer besides environment, reward, policy and objective: a replay buffer, a data set,
//! other sources, a teacher, searches, an average of parameters, intrinsic rewards, and new conditions in
//! hindsight.

mod functions;
mod settings;
mod sources;

pub(crate) use functions::PyPriority;
pub(crate) use settings::Parts;

use std::sync::Arc;

use gfn::env::Env;
use gfn::replay::{Diversity, ReplayBuffer};
use gfn::train::{AverageFor, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::condition::{ConditionedReward, FocusInHindsight};
use gfn_extras::explore::{
    Intrinsic, IntrinsicConfig, Novelty, RandomDistillation, Search, Teacher, Thompson,
};
use gfn_gym::diffusion::Target;
use pyo3::prelude::*;
use tch::{Device, Kind};

use crate::env::Failures;
use crate::kinds::{PyEnv, Space};
use crate::policy::AnyPolicy;
use crate::references::References;
use crate::settings::{Settings, over_defaults};
use crate::tensors::PyTensor;
use functions::{StateFunction, draw_seed};
use settings::{FreshSettings, HindsightSettings, NoveltySettings, ReplaySettings, SearchSettings};
use sources::{FreshFunction, data_buffer};

/// A measure of the novelty of an environment's states.
type AnyNovelty<E> = Box<dyn Novelty<<E as Env>::States>>;

/// The objects that are needed, in addition to settings, to build policies and parts of a trainer.
pub(crate) struct BuildContext<'a, E: PyEnv> {
    pub(crate) space: &'a Space<E>,
    /// The target of a diffusion environment, if the reward is the logarithm of a density. A policy can use
    /// the gradient of this log-density.
    pub(crate) target: Option<Arc<dyn Target>>,
    pub(crate) conditioned: Option<ConditionedReward<E::States>>,
    pub(crate) references: &'a References,
    pub(crate) failures: &'a Failures,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    /// The length of a condition's vector; 0 if there are no conditions.
    pub(crate) width: usize,
}

impl<E: PyEnv> BuildContext<'_, E> {
    fn state_function(&self, function: Py<PyAny>) -> StateFunction<E::States> {
        StateFunction { function: self.references.add(function), border: self.space.border.clone() }
    }
}

impl Parts {
    /// Returns the measure of novelty from which intrinsic rewards are computed, and the settings of these
    /// rewards; `None` if the trainer has no intrinsic rewards.
    pub(crate) fn novelty<E: PyEnv>(
        &mut self,
        context: &BuildContext<'_, E>,
        rng: &mut Rng,
    ) -> Result<Option<(AnyNovelty<E>, IntrinsicConfig)>> {
        let Some((Settings(config), novelty)) = self.intrinsic.take() else { return Ok(None) };
        let novelty: AnyNovelty<E> = match novelty {
            NoveltySettings::Python(function) => Box::new(context.state_function(function)),
            NoveltySettings::Distillation { config: Settings(config) } => {
                let Some(features) = context.space.border.features() else {
                    let expected = "a function of states, because the states of this environment aren't \
                        vectors of one width";
                    return Err(Error::config("novelty", "RandomDistillation", expected));
                };
                let config = over_defaults("RandomDistillation", &config)?;
                Box::new(RandomDistillation::new(features, config, context.device, context.kind, rng)?)
            }
        };
        Ok(Some((novelty, config)))
    }

    /// Adds the parts to a trainer. The trainer must already have its conditions.
    pub(crate) fn attach<E: PyEnv>(
        self,
        mut trainer: Trainer<E>,
        context: &BuildContext<'_, E>,
        teacher: Option<AnyPolicy<E>>,
        novelty: Option<(AnyNovelty<E>, IntrinsicConfig)>,
        rng: &mut Rng,
    ) -> Result<Trainer<E>> {
        if let Some(Settings(replay)) = self.replay {
            trainer = trainer.with_replay(replay_buffer(replay, self.priority, context)?);
        }
        if let Some(hindsight) = self.hindsight {
            trainer = attach_hindsight(trainer, hindsight, context)?;
        }
        match self.search {
            None => {}
            Some(SearchSettings::Python { function, every, objects }) => {
                trainer =
                    trainer.with_refill(Search::new(context.state_function(function), every, objects)?)?;
            }
            Some(SearchSettings::Langevin { every, objects, chains: Settings(chains) }) => {
                let search = E::langevin(trainer.env(), context.target.clone(), chains)?;
                trainer = trainer.with_refill(Search::new(search, every, objects)?)?;
            }
        }
        if let Some(source) = self.source {
            trainer = trainer.with_source(source.share, context.state_function(source.function))?;
        }
        if let Some(chains) = self.chains {
            let Some(discrete) = E::discrete() else {
                let expected = "no ChainSource, because chains need an environment whose moves can be listed";
                return Err(Error::config("sources", "ChainSource for points", expected));
            };
            trainer = (discrete.with_chains)(trainer, chains.share, chains.config.0)?;
        }
        match self.fresh {
            None => {}
            Some(FreshSettings::Python { function }) => {
                let seed = draw_seed(&mut rng.clone());
                let StateFunction { function, border } = context.state_function(function);
                trainer =
                    trainer.with_fresh(FreshFunction { function, border, width: context.width, seed })?;
            }
            Some(FreshSettings::Thompson { share }) => {
                let thompson = Thompson::new(trainer.policy(), share)?;
                trainer = trainer.with_fresh(thompson)?;
            }
        }
        if let Some((objects, conditions)) = self.data {
            let conditions = conditions.as_ref().map(|PyTensor(conditions)| conditions);
            let buffer = data_buffer(&trainer, &objects, conditions, &context.space.border, rng)?;
            trainer = trainer.with_data(buffer);
        }
        if let (Some(policy), Some(settings)) = (teacher, self.teacher) {
            let share = settings.share;
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::config("Teacher.share", share, "a number above 0 and at most 1"));
            }
            let teacher = Teacher::new(trainer.env(), policy, over_defaults("Teacher", &settings.config.0)?)?;
            trainer = trainer.with_source(share, teacher)?;
        }
        if let Some(average) = self.average {
            let purpose = if average.sampling { AverageFor::Sampling } else { AverageFor::Evaluation };
            trainer = trainer.with_average(average.decay, purpose)?;
        }
        if let Some(every) = self.target_network {
            trainer = trainer.with_target_network(every)?;
        }
        if let Some((novelty, config)) = novelty {
            trainer = trainer.with_companion(Intrinsic::new(novelty, config)?)?;
        }
        Ok(trainer)
    }
}

fn attach_hindsight<E: PyEnv>(
    trainer: Trainer<E>,
    hindsight: HindsightSettings,
    context: &BuildContext<'_, E>,
) -> Result<Trainer<E>> {
    match (hindsight, &context.conditioned) {
        (HindsightSettings::Python { function, share }, _) => {
            trainer.with_hindsight(context.state_function(function), share)
        }
        (HindsightSettings::Focus { share }, Some(conditioned)) => {
            trainer.with_hindsight(FocusInHindsight(conditioned.clone()), share)
        }
        (HindsightSettings::Focus { .. }, None) => {
            let expected =
                "Hindsight(function), because `FocusInHindsight` needs the conditions of a `Conditioning`";
            Err(Error::config("hindsight", "FocusInHindsight", expected))
        }
    }
}

/// Builds a replay buffer. `priority` is the Python function that returns the log of the weight with which an
/// object is drawn.
fn replay_buffer<E: PyEnv>(
    settings: ReplaySettings,
    priority: Option<Py<PyAny>>,
    context: &BuildContext<'_, E>,
) -> Result<ReplayBuffer<E>> {
    let ReplaySettings { distinct, diverse, objects_alone, config } = settings;
    let failures = context.failures.clone();
    let priority =
        priority.map(|function| PyPriority { function: context.references.add(function), failures });
    let mut buffer = match (distinct, E::discrete(), priority) {
        (true, Some(discrete), priority) => (discrete.distinct)(config, priority)?,
        (true, None, _) => {
            let expected = "False, because states are points, of which no two are equal";
            return Err(Error::config("distinct", true, expected));
        }
        (false, _, Some(priority)) => ReplayBuffer::by_priority(config, priority)?,
        (false, _, None) => ReplayBuffer::new(config)?,
    };
    if let Some((cutoff, p)) = diverse {
        let Some(features) = context.space.border.features() else {
            let expected = "None, because the states of this environment aren't vectors of one width";
            return Err(Error::config("diverse", cutoff, expected));
        };
        buffer = buffer.diverse(Diversity::new(cutoff, p, features)?);
    }
    Ok(if objects_alone { buffer.terminal_only() } else { buffer })
}
