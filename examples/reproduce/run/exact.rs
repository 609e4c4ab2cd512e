//! Measurements of a policy. If all states can be listed, its exact distribution is compared with the target.
//! Otherwise results are estimated from samples.

use gfn::metrics::{Target, estimate_log_z, modes_covered};
use gfn_judge::{Budget, certify};

use crate::prelude::*;

/// The largest number of dots in the panel that compares learned with target probabilities.
const DOTS: usize = 4_000;

/// All states of an environment, the target that a reward defines on them, and the policy's exact
/// distribution.
pub(crate) struct Exact<E: EnumerableEnv> {
    pub(crate) graph: StateGraph<E>,
    pub(crate) target: Target,
    /// The probability that the policy ends in each state. The list is empty until training has ended.
    pub(crate) probs: Vec<f64>,
}

/// Lists all states of an environment. Returns `None` if there are more than `limit` states. If several
/// threads or processes train together, returns `None` for all of them but the first, which alone measures
/// the policy.
pub(crate) fn list_states<E: EnumerableEnv>(limit: usize, env: &E) -> Result<Option<StateGraph<E>>> {
    if !members::is_first() {
        return Ok(None);
    }
    match StateGraph::build(env, limit) {
        Err(Error::TooManyStates { .. }) => Ok(None),
        graph => graph.map(Some),
    }
}

impl<E: EnumerableEnv> Exact<E> {
    /// Lists all states and computes the target's distribution over them. Returns `None` if there are more
    /// than `limit` states. If several threads or processes train together, returns `None` for all of them
    /// but the first, which alone measures the policy.
    pub(crate) fn up_to(limit: usize, env: &E, reward: &dyn Reward<E::States>) -> Result<Option<Self>> {
        let Some(graph) = list_states(limit, env)? else { return Ok(None) };
        let target = graph.target_distribution(reward, None)?;
        Ok(Some(Self { graph, target, probs: Vec::new() }))
    }

    /// Returns the distances between a distribution over the states and the target.
    pub(crate) fn distances(&self, probs: &[f64]) -> Result<Distances> {
        Distances::between(probs, &self.target.probs)
    }

    /// Returns the number of modes that the policy samples with at least a tenth of their target probability,
    /// and the number of all modes. A mode is an object of the largest reward.
    fn modes(&self) -> Result<(usize, usize)> {
        let log_rewards = &self.target.log_rewards;
        let most = log_rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_mode: Vec<bool> = log_rewards.iter().map(|r| *r > most - 1e-9).collect();
        let n = is_mode.iter().filter(|mode| **mode).count();
        Ok((modes_covered(&self.probs, &self.target.probs, &is_mode)?, n))
    }

    /// Returns the entries of `values` for the states in which trajectories can end. `values` has an entry
    /// for each state.
    pub(crate) fn end_values(&self, values: &[f64]) -> Vec<f64> {
        self.graph.ends().iter().map(|&state| values[state]).collect()
    }

    /// Returns a panel that compares learned with target probabilities. The panel has a dot for each object,
    /// or for an evenly spaced selection of objects if there are many.
    pub(crate) fn panel(&self, name: &str) -> Panel {
        let ends = self.graph.ends();
        let dots = ends.iter().step_by(ends.len().div_ceil(DOTS).max(1));
        Panel::learned_against_target(name, dots.map(|&state| (self.target.probs[state], self.probs[state])))
    }

    /// Returns the indices of the `n` objects that the policy samples most often.
    pub(crate) fn most_probable(&self, n: usize) -> Vec<usize> {
        let mut order = self.graph.ends();
        order.sort_by(|&a, &b| self.probs[b].total_cmp(&self.probs[a]));
        order.truncate(n);
        order
    }
}

impl<E: EnumerableEnv + TrainEnv> Exact<E> {
    /// Returns the probability that the trainer's policy ends in each state.
    pub(crate) fn learned(&self, trainer: &Trainer<E>) -> Result<Vec<f64>> {
        Ok(self.graph.terminating_distribution(trainer.env(), trainer.policy(), None)?.probs)
    }
}

/// Returns the exact distances between a policy and the target under a condition. Also returns the target.
pub(crate) fn compare<E: EnumerableEnv>(
    space: &StateGraph<E>,
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    condition: Option<&Tensor>,
) -> Result<(Distances, Target)> {
    let target = space.target_distribution(reward, condition)?;
    let learned = space.terminating_distribution(env, policy, condition)?;
    Ok((Distances::between(&learned.probs, &target.probs)?, target))
}

/// Returns the policy's log Z under a condition; `None` if the policy doesn't estimate log Z.
pub(crate) fn log_z<E: TrainEnv>(trainer: &Trainer<E>, condition: &Tensor) -> Option<f64> {
    trainer.policy().log_z(Some(condition), 1).map(|log_z| log_z.double_value(&[0]))
}

impl Run<'_> {
    /// Trains the policy, measures it, and prints the report. The report has exact distances if all states
    /// can be listed, and estimates from samples otherwise. `add` adds entries to the report. `objects` is
    /// the title of the panel that compares learned with target probabilities.
    pub(crate) fn learn<E: EnumerableEnv + TrainEnv>(
        &self,
        trainer: Trainer<E>,
        objects: &str,
        observers: Vec<&mut dyn Observer<E>>,
        add: impl FnOnce(&mut Report, &Trainer<E>, Option<&Exact<E>>) -> Result<()>,
    ) -> Result<()> {
        let recipe = &self.recipe;
        let mut exact = None;
        if !self.common.is_frozen() {
            exact = Exact::up_to(recipe.exact_up_to, trainer.env(), trainer.reward())?;
        }
        let cheap = exact.as_ref().filter(|exact| exact.graph.len() <= recipe.measure_up_to);
        let measure = |trainer: &Trainer<E>| {
            let distances = cheap.map(|exact| exact.distances(&exact.learned(trainer)?)).transpose()?;
            Ok(jsd(distances.map(|distances| distances.jsd)))
        };
        let Some((trainer, mut report)) = self.train(trainer, measure, observers)? else { return Ok(()) };
        if let Some(exact) = &mut exact {
            exact.probs = exact.learned(&trainer)?;
            report.exact_mean(&[exact.distances(&exact.probs)?]);
            let (found, total) = exact.modes()?;
            report.extend(
                json!({ "log_z_true": exact.target.log_z, "modes_found": found, "modes_total": total }),
            );
            report.panels.push(exact.panel(objects));
        } else {
            report.not_listed(self);
            if recipe.samples > 0 && !self.common.is_frozen() {
                report.extend(sampled(&trainer, recipe.samples)?);
                certified(&trainer, recipe.samples, &mut report)?;
            }
        }
        add(&mut report, &trainer, exact.as_ref())?;
        self.print(report)
    }

    /// Writes a picture of the most probable graphs with their probabilities and log-rewards. If exact
    /// probabilities aren't known, the picture shows some of the samples.
    pub(crate) fn draw_graphs(
        &self,
        exact: Option<&Exact<GraphEnv>>,
        drawing: &GraphDrawing,
        samples: &[GraphState],
        shown: usize,
    ) -> Result<()> {
        let title = if exact.is_some() { "most probable graphs" } else { "samples" };
        let mut sheet = PictureSheet::new(title, drawing.side);
        if let Some(exact) = exact {
            for state in exact.most_probable(shown) {
                // Adding 0 turns -0 into 0, so that "-0.00" is never drawn.
                let log_r = exact.target.log_rewards[state] + 0.0;
                let p = format!("p = {:.4} (target {:.4})", exact.probs[state], exact.target.probs[state]);
                let graph = drawing.draw(&exact.graph.states().graphs()[state]);
                sheet = sheet.cell(graph, [p, format!("log R = {log_r:.2}")]);
            }
        } else {
            for graph in samples.iter().take(shown) {
                let caption = [format!("{} nodes", graph.n_nodes()), format!("{} edges", graph.n_edges())];
                sheet = sheet.cell(drawing.draw(graph), caption);
            }
        }
        self.common.draw("graphs", |path| sheet.write(path))
    }
}

/// Samples `n` objects from the trainer's policy, without exploration.
pub(crate) fn evaluated<E: TrainEnv>(trainer: &Trainer<E>, n: usize) -> Result<E::States> {
    sample(trainer.env(), trainer.policy(), n, &mut trainer.evaluation_rng())
}

/// Returns two heat maps with the same scale of colours. Each map is a square with `side` cells along each
/// side.
pub(crate) fn heat_maps(side: usize, maps: [(&str, Vec<f64>); 2]) -> [Panel; 2] {
    let max = maps.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    maps.map(|(title, values)| {
        Panel::heat_map(title, side, values, max).labels("x", "y").colour_label("probability")
    })
}

/// Returns estimates from `n` samples as entries of the report: log Z by importance sampling with its
/// confidence interval, the number of distinct samples, the mean log-reward and others.
pub(crate) fn sampled<E: EnumerableEnv + TrainEnv>(trainer: &Trainer<E>, n: usize) -> Result<Value> {
    let env = trainer.env();
    let policy = trainer.policy();
    let reward = trainer.reward();
    let rng = &mut trainer.evaluation_rng();
    let estimate = estimate_log_z(env, policy, reward, n, rng)?;
    let states = sample(env, policy, n, rng)?;
    let distinct: BTreeSet<_> = env.keys(&states).into_iter().collect();
    let log_rewards = log_rewards(reward, &states, None)?;
    Ok(json!({
        "log_z_importance": estimate.log_z,
        "log_z_interval": [estimate.interval.0, estimate.interval.1],
        "elbo": estimate.elbo.mean,
        "effective_samples": estimate.effective_samples,
        "evaluated_samples": n,
        "distinct_samples": distinct.len(),
        "mean_log_reward": log_rewards.iter().sum::<f64>() / n.max(1) as f64,
    }))
}

/// Reports a certificate of the policy (bounds that are computed from samples), and adds a panel with a dot
/// for each object whose probability was estimated. The target probability of a dot is the object's reward
/// divided by Z. In place of the unknown Z, the upper end of its confidence interval is used, or the lower
/// bound on Z if there is no such interval.
fn certified<E: EnumerableEnv + TrainEnv>(
    trainer: &Trainer<E>,
    samples: usize,
    report: &mut Report,
) -> Result<()> {
    let budget = Budget { samples, subsets: 32, paths: 16, ..Budget::default() };
    let rng = &mut trainer.evaluation_rng();
    let certificate = certify(trainer.env(), trainer.policy(), trainer.reward(), None, budget, rng)?;
    tell(&certificate);
    let mut figures = json!(certificate);
    figures["probes"] = json!(certificate.probes.len());
    report.set("certificate", figures);
    let log_z = certificate.tv.if_log_z_at_most.unwrap_or(certificate.log_z.at_least);
    let dots =
        certificate.probes.iter().map(|probe| (probe.log_reward - log_z, probe.log_prob.log_p.estimate));
    let dots = dots.map(|(target, learned)| (target.exp(), learned.exp()));
    report.panels.push(Panel::learned_against_target("objects looked at", dots));
    Ok(())
}
