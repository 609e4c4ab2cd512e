//! Small graphs: p(x | G) of each held-out graph exactly, and log Z(G) from the state flow.

use std::time::Instant;

use gfn::Result;
use gfn::env::{Env, Reward, StateGraph};
use gfn::graph::GraphState;
use gfn::metrics::{Correlation, Distances};
use gfn::nn::GraphNet;
use gfn::objective::Quantity;
use gfn::policy::{GraphPolicy, Policy};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward};
use gfn_plot::Panel;
use serde_json::{Value, json};

use super::{Args, HELD_OUT_NODES, ProblemEnv, ProblemTrainer};
use crate::cli::{Defaults, Distance, ObjectiveName, Report, members, train_with_actors, value_words};

/// States of one graph: all cuts of 14 nodes.
const LIMIT: usize = 1 << 14;
/// During training every so many-th of the held-out graphs is looked at, those of up to so many states.
const LOOKS: (usize, usize) = (5, 1 << 12);

/// So many of the graphs that were trained on are measured, too, those of at least as many nodes as held-out ones have.
const SEEN: usize = 10;
const LEAST_SEEN: usize = HELD_OUT_NODES[0];

/// What is known of some held-out graphs.
struct HeldOut {
    env: ProblemEnv,
    reward: SizeReward,
}

/// Of one graph: how far the policy is from the target, and log Z as it is.
struct Measured {
    distances: Distances,
    log_z_true: f64,
}

impl HeldOut {
    fn measure(&self, space: &StateGraph<ProblemEnv>, policy: &GraphPolicy<GraphNet>) -> Result<Measured> {
        let target = space.target_distribution(&self.reward, None)?;
        let learned = space.terminating_distribution(&self.env, policy, None)?;
        Ok(Measured { distances: Distances::between(&learned.probs, &target.probs)?, log_z_true: target.log_z })
    }

    /// log F of the initial state of each graph, if the policy estimates it.
    fn log_z(&self, policy: &GraphPolicy<GraphNet>, objective: ObjectiveName) -> Result<Option<Vec<f64>>> {
        let start = self.env.initial(&(0..self.env.n_instances()).collect::<Vec<_>>());
        let evaluation = tch::no_grad(|| policy.evaluate(&self.env, &start, None, Quantity::LogFlow.into()))?;
        let Some(flow) = evaluation.values.get(Quantity::LogFlow) else { return Ok(None) };
        let mut flow = Vec::<f64>::try_from(flow.to_kind(tch::Kind::Double))?;
        if matches!(objective, ObjectiveName::FlDb | ObjectiveName::FlSubtb) {
            // The estimate is of what comes on top of the state's own reward.
            let own = self.reward.log_reward(&start, None)?;
            flow.iter_mut().zip(own).for_each(|(flow, own)| *flow += own);
        }
        Ok(Some(flow))
    }
}

pub(super) fn run(
    args: &Args,
    trainer: ProblemTrainer,
    defaults: &Defaults,
    (problem, reward, [train, graphs]): (Problem, SizeReward, [&Instances; 2]),
    mut extra: Vec<(&'static str, Value)>,
) -> Result<()> {
    let common = &args.common;
    let held_out = HeldOut { env: GraphProblem::new(problem, graphs)?, reward };
    let mut spaces = Vec::new();
    for instance in (0..held_out.env.n_instances()).step_by(LOOKS.0) {
        match StateGraph::build_of(&held_out.env, instance, LOOKS.1) {
            Err(gfn::Error::TooManyStates { .. }) => {}
            space => spaces.push(space?),
        }
    }
    let (started, mut looking, mut curve) = (Instant::now(), 0.0, Vec::new());
    let look = |trainer: &ProblemTrainer| {
        let before = Instant::now();
        let measured =
            spaces.iter().map(|space| held_out.measure(space, trainer.policy())).collect::<Result<Vec<_>>>()?;
        let mean = |of: fn(&Distances) -> f64| {
            measured.iter().map(|m| of(&m.distances)).sum::<f64>() / measured.len().max(1) as f64
        };
        curve.push((trainer.steps_done(), before.duration_since(started).as_secs_f64() - looking, mean(|d| d.tv)));
        looking += before.elapsed().as_secs_f64();
        Ok((!measured.is_empty()).then(|| mean(|d| d.jsd)))
    };
    let Some((trainer, trained)) = train_with_actors(trainer, common, ("graph_problem", defaults), look, Vec::new())?
    else {
        return Ok(());
    };
    if !members::is_first() {
        return Ok(());
    }

    let (mut measured, mut rows) = (Vec::new(), Vec::new());
    let log_z = held_out.log_z(trainer.policy(), common.objective)?;
    for (instance, graph) in (0..).zip(graphs.graphs()) {
        let space = StateGraph::build_of(&held_out.env, instance, LIMIT)?;
        let of_graph = held_out.measure(&space, trainer.policy())?;
        rows.push(json!({ "nodes": graph.n_nodes(), "edges": graph.n_edges(), "states": space.len(),
            "tv": of_graph.distances.tv, "log_z": log_z.as_ref().map(|all| all[instance as usize]),
            "log_z_true": of_graph.log_z_true }));
        measured.push(of_graph);
    }
    // What is learned of graphs that were trained on tells how much worse it is for being held out.
    let seen: Vec<GraphState> =
        train.graphs().iter().filter(|graph| graph.n_nodes() >= LEAST_SEEN).take(SEEN).cloned().collect();
    if !seen.is_empty() {
        let seen = HeldOut { env: GraphProblem::new(problem, &Instances::new(seen)?)?, reward };
        let tv = |instance| {
            let space = StateGraph::build_of(&seen.env, instance, LIMIT)?;
            seen.measure(&space, trainer.policy()).map(|measured| measured.distances.tv)
        };
        let tvs = (0..seen.env.n_instances()).map(tv).collect::<Result<Vec<f64>>>()?;
        extra.push(("tv_seen", json!(tvs.iter().sum::<f64>() / tvs.len() as f64)));
    }
    let mean =
        |of: fn(&Distances) -> f64| measured.iter().map(|m| of(&m.distances)).sum::<f64>() / measured.len() as f64;
    let distance = Distance {
        l1: Some(mean(|d| d.l1)),
        tv: Some(mean(|d| d.tv)),
        jsd: Some(mean(|d| d.jsd)),
        exact: true,
        why_not_exact: None,
    };
    let truth: Vec<f64> = measured.iter().map(|m| m.log_z_true).collect();
    let pearson = match &log_z {
        Some(log_z) if truth.len() > 1 => Correlation::between(log_z, &truth)?.pearson,
        _ => None,
    };
    let worst = measured.iter().map(|m| m.distances.tv).fold(0.0, f64::max);
    extra.extend([("log_z_pearson", json!(pearson)), ("tv_largest", json!(worst))]);
    if !curve.is_empty() {
        let looks = curve.iter().map(|(step, s, tv)| json!({ "step": step, "seconds": s, "tv": tv }));
        extra.push(("tv_curve", looks.collect()));
    }
    extra.push(("held_out", json!(rows)));
    let panels = log_z.map(|log_z| {
        Panel::scatter("log Z of held-out graphs", truth.into_iter().zip(log_z))
            .labels("log Z of all solutions", "log of the flow of the initial state")
    });
    let title = format!("{} of graphs, beta {}", value_words(&args.problem), reward.beta());
    Report { title, distance, extra, panels: panels.into_iter().collect(), ..Report::default() }.print(common, &trained)
}
