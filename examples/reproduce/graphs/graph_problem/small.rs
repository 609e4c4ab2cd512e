//! Small graphs: p(x | G) of each held-out graph exactly, and log Z(G) from the state flow.

use gfn::env::{Env, Reward, Rows, StateGraph};
use gfn::graph::GraphStates;
use gfn::metrics::{Correlation, Distances};
use gfn::objective::Quantity;
use gfn::policy::Policy;
use gfn::{Error, Result};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward};
use serde_json::json;
use tch::Tensor;

use super::any_beta::AnyBeta;
use super::{ProblemEnv, ProblemTrainer};
use crate::flags::ObjectiveName;
use crate::plot::Panel;
use crate::run::{Report, Run};

/// States of one graph: all cuts of 14 nodes.
const LIMIT: usize = 1 << 14;
/// During training every so many-th of the held-out graphs is looked at, those of up to so many states.
const LOOKS: (usize, usize) = (5, 1 << 12);

/// Graphs that the policy isn't trained on.
pub(super) struct HeldOut {
    env: ProblemEnv,
    reward: Box<dyn Reward<GraphStates>>,
    /// The condition that the policy is asked under, if it takes any.
    condition: Option<Tensor>,
    any_beta: Option<AnyBeta>,
    sizes: Vec<(usize, usize)>,
}

impl HeldOut {
    pub(super) fn new(
        problem: Problem,
        graphs: &Instances,
        reward: SizeReward,
        any_beta: Option<AnyBeta>,
    ) -> Result<Self> {
        let (condition, reward): (_, Box<dyn Reward<GraphStates>>) = match &any_beta {
            Some(any) => (Some(any.condition(reward.beta())?), Box::new(any.reward()?)),
            None => (None, Box::new(reward)),
        };
        let sizes = graphs.graphs().iter().map(|graph| (graph.n_nodes(), graph.n_edges())).collect();
        Ok(Self { env: GraphProblem::for_size(problem, graphs)?.into_env(), reward, condition, any_beta, sizes })
    }

    /// The distances of the policy from the target on one graph, and log Z as it is.
    fn measure(&self, space: &StateGraph<ProblemEnv>, policy: &dyn Policy<ProblemEnv>) -> Result<(Distances, f64)> {
        let condition = self.condition.as_ref();
        let target = space.target_distribution(self.reward.as_ref(), condition)?;
        let learned = space.terminating_distribution(&self.env, policy, condition)?;
        Ok((Distances::between(&learned.probs, &target.probs)?, target.log_z))
    }

    /// log F of the initial state of each graph, if the policy estimates it.
    fn log_z(&self, policy: &dyn Policy<ProblemEnv>, objective: ObjectiveName) -> Result<Option<Vec<f64>>> {
        let start = self.env.initial(&(0..self.env.n_instances()).collect::<Vec<_>>());
        let conditions = self.condition.as_ref().map(|one| one.expand([start.len() as i64, -1], false));
        let conditions = conditions.as_ref();
        let evaluation = tch::no_grad(|| policy.evaluate(&self.env, &start, conditions, Quantity::LogFlow.into()))?;
        let Some(flow) = evaluation.values.get(Quantity::LogFlow) else { return Ok(None) };
        let mut flow = Vec::<f64>::try_from(flow.to_kind(tch::Kind::Double))?;
        if matches!(objective, ObjectiveName::FlDb | ObjectiveName::FlSubtb) {
            // The estimate is of what comes on top of the state's own reward.
            let own = self.reward.partial_log_reward(&start, conditions)?.unwrap_or_default();
            flow.iter_mut().zip(own).for_each(|(flow, own)| *flow += own);
        }
        Ok(Some(flow))
    }
}

fn mean(measured: &[(Distances, f64)], of: fn(&Distances) -> f64) -> f64 {
    measured.iter().map(|(distances, _)| of(distances)).sum::<f64>() / measured.len() as f64
}

pub(super) fn run(run: &Run<'_>, trainer: ProblemTrainer, mut held_out: HeldOut, mut report: Report) -> Result<()> {
    let mut spaces = Vec::new();
    for instance in (0..held_out.env.n_instances()).step_by(LOOKS.0) {
        match StateGraph::build_of(&held_out.env, instance, LOOKS.1) {
            Err(Error::TooManyStates { .. }) => {}
            space => spaces.push(space?),
        }
    }
    let look = |trainer: &ProblemTrainer| {
        let measured: Vec<_> =
            spaces.iter().map(|space| held_out.measure(space, trainer.policy())).collect::<Result<_>>()?;
        Ok((!measured.is_empty()).then(|| mean(&measured, |d| d.jsd)))
    };
    let Some((trainer, trained)) = run.train(trainer, look, Vec::new())? else { return Ok(()) };

    let (mut measured, mut rows) = (Vec::new(), Vec::new());
    let log_z = held_out.log_z(trainer.policy(), run.common.objective)?;
    for (instance, (nodes, edges)) in (0..).zip(&held_out.sizes) {
        let space = StateGraph::build_of(&held_out.env, instance, LIMIT)?;
        let (distances, log_z_true) = held_out.measure(&space, trainer.policy())?;
        rows.push(json!({ "nodes": nodes, "edges": edges, "states": space.len(), "tv": distances.tv,
            "log_z": log_z.as_ref().map(|all| all[instance as usize]), "log_z_true": log_z_true }));
        measured.push((distances, log_z_true));
    }
    report.exact_mean([mean(&measured, |d| d.l1), mean(&measured, |d| d.tv), mean(&measured, |d| d.jsd)]);
    let truth: Vec<f64> = measured.iter().map(|(_, log_z)| *log_z).collect();
    let pearson = match &log_z {
        Some(log_z) if truth.len() > 1 => Correlation::between(log_z, &truth)?.pearson,
        _ => None,
    };
    report.set("log_z_pearson", pearson);
    report.set("tv_largest", measured.iter().map(|(distances, _)| distances.tv).fold(0.0, f64::max));
    report.set("held_out", rows);
    report.panels.extend(log_z.map(|log_z| {
        Panel::scatter("log Z of held-out graphs", truth.into_iter().zip(log_z))
            .labels("log Z of all solutions", "log of the flow of the initial state")
    }));
    if let Some(any) = held_out.any_beta.take() {
        let mut of_betas = Vec::new();
        for beta in any.measured {
            held_out.condition = Some(any.condition(beta)?);
            let spaces = (0..held_out.env.n_instances()).map(|one| StateGraph::build_of(&held_out.env, one, LIMIT));
            let measured: Vec<_> =
                spaces.map(|space| held_out.measure(&space?, trainer.policy())).collect::<Result<_>>()?;
            of_betas.push(json!({ "beta": beta, "tv": mean(&measured, |d| d.tv) }));
        }
        report.set("betas", of_betas);
    }
    run.print(&trained, report)
}
