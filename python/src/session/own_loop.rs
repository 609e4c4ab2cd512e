//! What a trainer does by hand: scores of states, trajectories, and a step in parts.

use std::any::Any;

use gfn::distribution::{Distribution, Exploration};
use gfn::env::Rows;
use gfn::objective::{Quantities, Quantity, score};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::TrainEnv;
use gfn::train::{Batch, BatchScores, Trainer};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Thompson, thompson_scores};
use pyo3::prelude::*;
use tch::Tensor;

use super::engine::{Made, Trained, later};
use crate::errors::passed_on;
use crate::evaluation::Shown;
use crate::layers::{Held, HeldPaths, Scored, other_states};
use crate::policy::AnyPolicy;
use crate::watch::Watch;

/// log P of each possible action of a batch of states in one direction, with gradients.
pub(super) struct Actions {
    /// Where the actions of each state begin, `[n + 1]`.
    pub(super) ptr: Vec<usize>,
    /// Their slots.
    pub(super) slots: Tensor,
    pub(super) log_probs: Tensor,
}

/// What a policy says of a batch of states.
pub(super) struct Evaluated {
    pub(super) forward: Option<Actions>,
    pub(super) backward: Option<Actions>,
    pub(super) log_flow: Option<Tensor>,
    pub(super) log_z: Option<Tensor>,
}

/// Where trajectories are drawn from.
pub(super) enum From<'a> {
    /// So many from the initial state, or from those of these instances.
    Start { n: usize, instances: Option<&'a [u32]> },
    /// Backwards from these objects.
    Objects(&'a Py<PyAny>),
}

/// How they are drawn.
pub(super) struct Drawing<'a> {
    pub(super) from: From<'a>,
    pub(super) conditions: Option<&'a Tensor>,
    pub(super) exploration: Exploration,
    /// A stream of their own, or the policy's.
    pub(super) seed: Option<u64>,
}

/// Objects of a replay buffer, log R of each, and their conditions.
pub(super) struct Stored {
    pub(super) objects: Shown,
    pub(super) log_rewards: Vec<f64>,
    pub(super) conditions: Option<Tensor>,
}

/// A trainer of some states and some policy, by hand.
pub(super) trait ByHand {
    /// The policy's word on states; `log_flow` where it is wanted.
    fn evaluate(&mut self, states: &Py<PyAny>, conditions: Option<&Tensor>, flow: bool) -> Result<Evaluated>;
    /// Trajectories, and what the policy says of each transition.
    fn draw_paths(&mut self, drawing: Drawing<'_>) -> Result<Box<dyn HeldPaths>>;
    /// The batch of the next step.
    fn draw_batch(&mut self) -> Result<Box<dyn HeldPaths>>;
    /// Its scores, with gradients.
    fn score(&mut self, batch: &mut dyn HeldPaths) -> Result<BatchScores>;
    fn loss_of(&mut self, scores: &BatchScores) -> Result<Tensor>;
    /// Ends a step that was made outside.
    fn end_step(&mut self, batch: &dyn HeldPaths, scores: &BatchScores, loss: f64) -> (Vec<Made>, Option<Error>);
    /// The contents of the replay buffer; None without one.
    fn stored(&self) -> Option<Stored>;
    /// Offers trajectories to the buffer; how many stayed.
    fn remember(&mut self, paths: &dyn HeldPaths) -> Result<usize>;
    /// The same trajectories with what the reward says of their objects.
    fn rewarded(&mut self, paths: &dyn HeldPaths) -> Result<Box<dyn HeldPaths>>;
    /// The factor on learning rates at the next step.
    fn lr_factor(&self) -> f64;
    /// `true` each if the objective learns from state flows, and from numbers of paths.
    fn heads(&self) -> (bool, bool);
    /// The policy, for another trainer.
    fn into_policy(self: Box<Self>) -> Box<dyn Any + Send>;
}

fn own<E: TrainEnv + 'static>(paths: &dyn HeldPaths) -> Result<&Held<E>> {
    paths.as_any().downcast_ref().ok_or_else(other_states)
}

impl<E> Trained<E>
where
    E: TrainEnv + Clone + 'static,
    E::States: 'static,
{
    /// Refuses a loop that differentiates by itself if only the trainer can.
    fn check_by_hand(&self) -> Result<()> {
        if self.trainer.context().config.chunk.is_some() {
            let remedy = "train by `fit`, or without `chunk`";
            return Err(Error::missing(
                "batches that are scored in chunks",
                "a trainer that differentiates by itself",
                remedy,
            ));
        }
        Ok(())
    }

    /// Refuses trajectories of an environment of the same kind and other settings.
    fn check_env(&self, held: &Held<E>) -> Result<()> {
        if held.env().fingerprint()? == self.trainer.env().fingerprint()? { Ok(()) } else { Err(other_states()) }
    }
}

/// log P_F and log P_B of each transition, without gradients; nobody's reward is asked.
fn scored<E: TrainEnv>(trainer: &Trainer<E>, paths: &Trajectories<E>) -> Result<Scored> {
    let unrewarded = paths.clone().with_log_rewards(vec![0.0; paths.len()])?;
    let nobody = |states: &E::States, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    let scores = tch::no_grad(|| score(trainer.env(), &nobody, trainer.policy(), &unrewarded, Quantities::NONE))?;
    Ok(Scored { log_pf: scores.log_pf, log_pb: scores.log_pb })
}

/// The possible actions of each state, and their log-probabilities.
fn listed<E: TrainEnv, D: Distribution<Actions = E::Actions>>(env: &E, dist: &D, n: usize) -> Result<Actions> {
    let (mut ptr, mut rows, mut actions) = (vec![0], Vec::new(), env.no_actions());
    for row in 0..n {
        match dist.support(&[row]) {
            Ok((_, of_row)) => {
                rows.resize(rows.len() + of_row.len(), row);
                actions.append(of_row);
            }
            // An initial state has no way back, a finished one without exits no way on.
            Err(Error::NoLegalAction { .. }) => {}
            Err(Error::Missing { .. }) => {
                let expected = "one whose moves can be listed; of points, `Sampler` draws and `Trainer.score` scores";
                return Err(Error::config(
                    "the environment of a policy that is called with states",
                    "one of points",
                    expected,
                ));
            }
            Err(other) => return Err(other),
        }
        ptr.push(rows.len());
    }
    let log_probs = dist.log_prob(&rows, &actions)?;
    Ok(Actions { ptr, slots: env.write_actions(&actions), log_probs })
}

impl<E> ByHand for Trained<E>
where
    E: TrainEnv + Clone + 'static,
    E::States: 'static,
{
    fn evaluate(&mut self, states: &Py<PyAny>, conditions: Option<&Tensor>, flow: bool) -> Result<Evaluated> {
        let read = |py: Python<'_>| (self.border.read)(states.bind(py), "states");
        let states = Python::attach(read).map_err(passed_on("the states"))?;
        let (env, policy) = (self.trainer.env(), self.trainer.policy());
        let mut wants = Quantities::PF | Quantities::PB;
        if flow {
            wants |= Quantity::LogFlow;
        }
        let n = states.len();
        let log_z = policy.log_z(conditions, if conditions.is_some() { n } else { 1 });
        let mut seen = policy.evaluate(env, &states, conditions, wants)?;
        Ok(Evaluated {
            forward: seen.pf.map(|dist| listed(env, &dist, n)).transpose()?,
            backward: seen.pb.map(|dist| listed(env, &dist, n)).transpose()?,
            log_flow: seen.values.remove(Quantity::LogFlow),
            log_z,
        })
    }

    fn draw_paths(&mut self, drawing: Drawing<'_>) -> Result<Box<dyn HeldPaths>> {
        let Drawing { from, conditions, exploration, seed } = drawing;
        self.check(conditions)?;
        let border = self.border.clone();
        let mut own = seed.map(Rng::seeded);
        let (paths, scored) = self.quietly(|trainer, rng| {
            let rng = own.as_mut().unwrap_or(rng);
            let watch = Watch::new();
            let policy = watch.over(trainer.policy());
            let limit = trainer.context().config.max_steps;
            let sampler = Sampler::new(trainer.env(), &policy).exploration(exploration).max_steps(limit);
            let paths = match (from, conditions) {
                (From::Start { n, instances: None }, None) => sampler.forward(n, rng),
                (From::Start { n, instances: None }, Some(conditions)) => {
                    debug_assert_eq!(conditions.size()[0], n as i64, "a condition for each trajectory");
                    sampler.forward_conditional(conditions, rng)
                }
                (From::Start { instances: Some(instances), .. }, None) => sampler.forward_of(instances, rng),
                (From::Start { .. }, Some(_)) => Err(Error::config(
                    "conditions",
                    "conditions and instances",
                    "one of both: environments of several instances have none",
                )),
                (From::Objects(objects), conditions) => {
                    let read = |py: Python<'_>| (border.read)(objects.bind(py), "objects");
                    let objects = Python::attach(read).map_err(passed_on("the objects"))?;
                    crate::objects::finished(trainer.env(), &objects, &mut rng.clone())?;
                    match conditions {
                        None => sampler.backward(&objects, rng),
                        Some(conditions) => sampler.backward_conditional(&objects, conditions, rng),
                    }
                }
            }?;
            let scored = scored(trainer, &paths)?;
            Result::Ok((paths, scored))
        })?;
        Ok(Box::new(Held::new(self.trainer.env(), &self.border, paths, Some(scored))))
    }

    fn draw_batch(&mut self) -> Result<Box<dyn HeldPaths>> {
        self.check_by_hand()?;
        let batch: Batch<E> = self.trainer.draw()?;
        Ok(Box::new(Held::new(self.trainer.env(), &self.border, batch, None)))
    }

    fn score(&mut self, batch: &mut dyn HeldPaths) -> Result<BatchScores> {
        let held: &mut Held<E> = batch.as_any_mut().downcast_mut().ok_or_else(other_states)?;
        self.check_env(held)?;
        self.check_by_hand()?;
        match self.trainer.source::<Thompson>() {
            None => self.trainer.score(&mut held.batch),
            Some(_) => thompson_scores(&mut self.trainer, &held.batch),
        }
    }

    fn loss_of(&mut self, scores: &BatchScores) -> Result<Tensor> {
        self.trainer.loss(scores)
    }

    fn end_step(&mut self, batch: &dyn HeldPaths, scores: &BatchScores, loss: f64) -> (Vec<Made>, Option<Error>) {
        let mut batch = match own::<E>(batch).and_then(|held| self.check_env(held).map(|()| held.batch.clone())) {
            Ok(batch) => Some(batch),
            Err(error) => return (Vec::new(), Some(error)),
        };
        self.make_steps(1, &mut |trainer| match batch.take() {
            Some(batch) => {
                trainer.record_loss(loss);
                trainer.advance(batch, scores)
            }
            None => Err(Error::contract("a batch is one step", "a second one was asked for")),
        })
    }

    fn stored(&self) -> Option<Stored> {
        let buffer = self.trainer.replay()?;
        let (objects, conditions) = match buffer.walks() {
            Some(walks) => (walks.terminal.clone(), walks.conditions().map(Tensor::shallow_clone)),
            None => (self.trainer.env().initial(&[]), None),
        };
        Some(Stored {
            objects: later(&self.border.show, objects),
            log_rewards: buffer.log_rewards().collect(),
            conditions,
        })
    }

    fn remember(&mut self, paths: &dyn HeldPaths) -> Result<usize> {
        let held = own::<E>(paths)?;
        self.check_env(held)?;
        self.trainer.remember(&held.batch.trajectories)
    }

    fn rewarded(&mut self, paths: &dyn HeldPaths) -> Result<Box<dyn HeldPaths>> {
        let held = own::<E>(paths)?;
        self.check_env(held)?;
        HeldPaths::rewarded(held, held.batch.trajectories.log_rewards(self.trainer.reward())?)
    }

    fn lr_factor(&self) -> f64 {
        let context = self.trainer.context();
        context.config.lr_scale.at(context.step)
    }

    fn heads(&self) -> (bool, bool) {
        let needs = self.trainer.context().objective.needs();
        (needs.has(Quantity::LogFlow), needs.has(Quantity::LogPaths))
    }

    fn into_policy(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.trainer.into_policy_as::<AnyPolicy<E>>())
    }
}
