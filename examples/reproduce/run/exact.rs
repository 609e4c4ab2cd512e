//! The exact distribution of a policy beside its target, where all states can be listed.

use gfn::env::{EnumerableEnv, Reward, StateGraph};
use gfn::graph::{GraphEnv, GraphState};
use gfn::metrics::{Distances, Target, modes_covered};
use gfn::run::Observer;
use gfn::train::TrainEnv;
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_judge::Certificate;
use serde_json::json;

use super::sampled::certified;
use super::{Report, Run, Trained, sampled};
use crate::flags::Common;
use crate::plot::{GraphDrawing, Panel, PictureSheet};

/// Dots of the panel of learned against target probabilities.
const DOTS: usize = 4_000;

/// All states of an environment, and what a reward asks of them.
pub(crate) struct Exact<E: EnumerableEnv> {
    pub(crate) graph: StateGraph<E>,
    pub(crate) target: Target,
    /// The probability that the policy ends in each state; empty while it is trained.
    pub(crate) probs: Vec<f64>,
}

/// All states; `None` where there are more than `limit`.
pub(crate) fn listed<E: EnumerableEnv>(limit: usize, env: &E) -> Result<Option<StateGraph<E>>> {
    match StateGraph::build(env, limit) {
        Err(Error::TooManyStates { .. }) => Ok(None),
        graph => graph.map(Some),
    }
}

impl<E: EnumerableEnv> Exact<E> {
    /// Lists the states; `None` where there are more than `limit`.
    pub(crate) fn up_to(limit: usize, env: &E, reward: &dyn Reward<E::States>) -> Result<Option<Self>> {
        let Some(graph) = listed(limit, env)? else { return Ok(None) };
        let target = graph.target_distribution(reward, None)?;
        Ok(Some(Self { graph, target, probs: Vec::new() }))
    }

    /// The probability that the policy ends in each state.
    pub(crate) fn learned(&self, trainer: &Trainer<E>) -> Result<Vec<f64>>
    where
        E: TrainEnv,
    {
        Ok(self.graph.terminating_distribution(trainer.env(), trainer.policy(), None)?.probs)
    }

    pub(crate) fn distances(&self, probs: &[f64]) -> Result<Distances> {
        Distances::between(probs, &self.target.probs)
    }

    /// Modes, the objects of the largest reward: how many the policy samples a tenth as often as it should or more, and how many there
    /// are.
    fn modes(&self) -> Result<(usize, usize)> {
        let log_rewards = &self.target.log_rewards;
        let most = log_rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_mode: Vec<bool> = log_rewards.iter().map(|r| *r > most - 1e-9).collect();
        let n = is_mode.iter().filter(|mode| **mode).count();
        Ok((modes_covered(&self.probs, &self.target.probs, &is_mode)?, n))
    }

    /// A dot per object, evenly chosen where there are many.
    pub(crate) fn panel(&self, name: &str) -> Panel {
        let ends = self.graph.ends();
        let dots = ends.iter().step_by(ends.len().div_ceil(DOTS).max(1));
        Panel::learned_against_target(name, dots.map(|&state| (self.target.probs[state], self.probs[state])))
    }

    /// The objects of the largest probability.
    pub(crate) fn most_probable(&self, n: usize) -> Vec<usize> {
        let mut order = self.graph.ends();
        order.sort_by(|&a, &b| self.probs[b].total_cmp(&self.probs[a]));
        order.truncate(n);
        order
    }
}

/// A trained policy, and what is known of it; a task adds to the report, and prints it.
pub(crate) struct Learned<'a, E: EnumerableEnv> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) trainer: Trainer<E>,
    pub(crate) trained: Trained,
    pub(crate) exact: Option<Exact<E>>,
    pub(crate) report: Report,
}

impl Run<'_> {
    /// Trains, and measures exact distances where states can be listed, or else by samples; `objects` are what is drawn. `None` for a
    /// member that doesn't measure.
    pub(crate) fn learn<E>(
        &self,
        trainer: Trainer<E>,
        objects: &str,
        observers: Vec<&mut dyn Observer<E>>,
    ) -> Result<Option<Learned<'_, E>>>
    where
        E: EnumerableEnv + TrainEnv + 'static,
    {
        let (recipe, compared) = (&self.recipe, self.common.is_compared());
        let listed = compared.then(|| Exact::up_to(recipe.exact_up_to, trainer.env(), trainer.reward()));
        let mut exact = listed.transpose()?.flatten();
        let cheap = exact.as_ref().filter(|exact| exact.graph.len() <= recipe.look_up_to);
        let look =
            |trainer: &Trainer<E>| cheap.map(|exact| Ok(exact.distances(&exact.learned(trainer)?)?.jsd)).transpose();
        let Some((trainer, trained)) = self.train(trainer, look, observers)? else { return Ok(None) };
        let mut report = Report::default();
        match &mut exact {
            Some(exact) => {
                exact.probs = exact.learned(&trainer)?;
                report.exact(&exact.distances(&exact.probs)?);
                report.set("log_z_true", exact.target.log_z);
                let (found, total) = exact.modes()?;
                report.extend([("modes_found", json!(found)), ("modes_total", json!(total))]);
                report.panels.push(exact.panel(objects));
            }
            None => {
                report.not_listed(self);
                if recipe.samples > 0 && !self.common.is_frozen() {
                    report.extend(sampled(&trainer, recipe.samples)?);
                    let (certificate, figures) = certified(&trainer, recipe.samples)?;
                    report.set("certificate", figures);
                    report.panels.push(probes(&certificate));
                }
            }
        }
        Ok(Some(Learned { run: self, trainer, trained, exact, report }))
    }
}

/// A dot for each object that a certificate looked at, by its reward over the largest Z that is known.
fn probes(certificate: &Certificate) -> Panel {
    let log_z = certificate.tv.if_log_z_at_most.unwrap_or(certificate.log_z.at_least);
    let dots = certificate.probes.iter().map(|probe| (probe.log_reward - log_z, probe.log_prob.log_p.estimate));
    Panel::learned_against_target("objects looked at", dots.map(|(target, learned)| (target.exp(), learned.exp())))
}

impl<E: EnumerableEnv> Learned<'_, E> {
    pub(crate) fn print(self) -> Result<()> {
        self.run.print(&self.trained, self.report)
    }
}

impl Learned<'_, GraphEnv> {
    /// Draws the most probable graphs with their probability and reward, or some samples.
    pub(crate) fn draw(&self, drawing: &GraphDrawing, samples: &[GraphState], shown: usize) -> Result<()> {
        let Some(exact) = &self.exact else {
            let mut sheet = PictureSheet::new("samples", drawing.side);
            for graph in samples.iter().take(shown) {
                let caption = [format!("{} nodes", graph.n_nodes()), format!("{} edges", graph.n_edges())];
                sheet = sheet.cell(drawing.draw(graph), caption);
            }
            return draw_sheet(self.run.common, sheet);
        };
        let mut sheet = PictureSheet::new("most probable graphs", drawing.side);
        for state in exact.most_probable(shown) {
            // Adding 0 makes a zero of -0.
            let (p, t, log_r) = (exact.probs[state], exact.target.probs[state], exact.target.log_rewards[state] + 0.0);
            let caption = [format!("p = {p:.4} (target {t:.4})"), format!("log R = {log_r:.2}")];
            sheet = sheet.cell(drawing.draw(&exact.graph.states().graphs()[state]), caption);
        }
        draw_sheet(self.run.common, sheet)
    }
}

/// Writes a sheet of graphs as SVG and PNG, if pictures are wanted.
pub(crate) fn draw_sheet(common: &Common, sheet: PictureSheet) -> Result<()> {
    common.draw("graphs", |path| sheet.write(path))
}
