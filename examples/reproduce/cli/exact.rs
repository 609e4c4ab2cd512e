//! The exact distribution of a policy beside its target, where all states can be listed.

use std::sync::Arc;

use gfn::distribution::GraphActionCategorical;
use gfn::env::{EnumerableEnv, Reward, StateGraph};
use gfn::graph::{GraphEnv, GraphRules};
use gfn::metrics::{Distances, Target, modes_covered};
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_plot::{GraphSheet, Panel};
use serde_json::{Value, json};

use super::{Common, Distance, members};

/// States up to which the curves over training show the exact distance, too.
const LOOK_LIMIT: usize = 1 << 12;
/// Dots of the panel of learned against target probabilities.
const DOTS: usize = 4_000;

/// All states of an environment, and what a reward asks of them.
pub(crate) struct Exact<E: EnumerableEnv> {
    pub(crate) graph: Arc<StateGraph<E>>,
    pub(crate) target: Target,
}

/// All states, listed once for all threads that train as one; `None` where there are more than `limit`, and for a member that draws for
/// another and measures nothing.
pub(crate) fn listed<E: EnumerableEnv + 'static>(limit: usize, env: &E) -> Result<Option<Arc<StateGraph<E>>>> {
    if !members::measures() {
        return Ok(None);
    }
    members::once(|| match StateGraph::build(env, limit) {
        Err(Error::TooManyStates { .. }) => Ok(None),
        graph => graph.map(|graph| Some(Arc::new(graph))),
    })
}

impl<E: EnumerableEnv + 'static> Exact<E> {
    /// Lists the states; an error where there are more than `limit`.
    pub(crate) fn new<R: Reward<E::States>>(limit: usize, env: &E, reward: &R) -> Result<Self> {
        let graph = listed(limit, env)?.ok_or(Error::TooManyStates { limit })?;
        let target = graph.target_distribution(reward, None)?;
        Ok(Self { graph, target })
    }

    /// Lists the states; `None` where there are more than `limit`, and where the policy is frozen: what is timed then isn't compared.
    pub(crate) fn up_to<R: Reward<E::States>>(
        limit: usize,
        common: &Common,
        env: &E,
        reward: &R,
    ) -> Result<Option<Self>> {
        if !common.is_compared() {
            return Ok(None);
        }
        match Self::new(limit, env, reward) {
            Err(Error::TooManyStates { .. }) => Ok(None),
            exact => exact.map(Some),
        }
    }
}

impl<E: EnumerableEnv> Exact<E> {
    /// What the policy samples, and how far that is from the target.
    pub(crate) fn learned<P>(&self, trainer: &Trainer<E, P>) -> Result<(Distance, Vec<f64>)>
    where
        E: ReplayEnv,
        P: Policy<E, Dist = GraphActionCategorical>,
    {
        let probs = self.graph.terminating_distribution(trainer.env(), trainer.policy(), None)?.probs;
        let d = Distances::between(&probs, &self.target.probs)?;
        Ok((d.into(), probs))
    }

    /// The exact JSD during training, where that is cheap.
    pub(crate) fn look<P>(exact: Option<&Self>, trainer: &Trainer<E, P>) -> Result<Option<f64>>
    where
        E: ReplayEnv,
        P: Policy<E, Dist = GraphActionCategorical>,
    {
        match exact.filter(|exact| exact.graph.len() <= LOOK_LIMIT) {
            Some(exact) => Ok(exact.learned(trainer)?.0.jsd),
            None => Ok(None),
        }
    }

    /// Modes, the objects of the largest reward: how many the policy samples a tenth as often as it should or more, and how many there
    /// are.
    pub(crate) fn modes(&self, probs: &[f64]) -> Result<[(&'static str, Value); 2]> {
        let log_rewards = &self.target.log_rewards;
        let most = log_rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_mode: Vec<bool> = log_rewards.iter().map(|r| *r > most - 1e-9).collect();
        let n = is_mode.iter().filter(|mode| **mode).count();
        let found = modes_covered(probs, &self.target.probs, &is_mode)?;
        Ok([("modes_found", json!(found)), ("modes_total", json!(n))])
    }

    /// A dot per object, evenly chosen where there are many.
    pub(crate) fn panel(&self, name: &str, probs: &[f64]) -> Panel {
        let ends = self.graph.ends();
        let dots = ends.iter().step_by(ends.len().div_ceil(DOTS).max(1));
        Panel::learned_against_target(name, dots.map(|&state| (self.target.probs[state], probs[state])))
    }
}

impl<R: GraphRules> Exact<GraphEnv<R>> {
    /// Draws the most probable graphs with their probability and reward.
    pub(crate) fn draw(&self, common: &Common, mut sheet: GraphSheet, probs: &[f64], shown: usize) -> Result<()> {
        let mut order = self.graph.ends();
        order.sort_by(|&a, &b| probs[b].total_cmp(&probs[a]));
        for &state in order.iter().take(shown) {
            // Adding 0 makes a zero of -0.
            let (p, t, log_r) = (probs[state], self.target.probs[state], self.target.log_rewards[state] + 0.0);
            let caption = [format!("p = {p:.4} (target {t:.4})"), format!("log R = {log_r:.2}")];
            sheet = sheet.cell(self.graph.states().graphs()[state].clone(), caption);
        }
        draw_sheet(common, &sheet)
    }
}

/// Writes a sheet of graphs as SVG and PNG, if pictures are wanted.
pub(crate) fn draw_sheet(common: &Common, sheet: &GraphSheet) -> Result<()> {
    common.draw("graphs", |path| sheet.write(path))
}
