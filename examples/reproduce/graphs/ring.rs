//! Rings: graphs on labelled nodes, sampled in proportion to a reward of 100 for one cycle through all of them.

use std::collections::BTreeSet;

use clap::{Parser, ValueEnum};
use gfn::graph::{GraphEnv, GraphKind};
use gfn::metrics::{modes_found, pruned_distribution};
use gfn::nn::{BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, GraphNetwork};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_gym::ring::{Ring, RingReward};
use serde::Serialize;
use serde_json::json;

use super::sample::Saved;
use crate::flags::Common;
use crate::plot::{GraphDrawing, Layout, Panel};
use crate::run::{Recipe, Run, sample, sampled};

/// Train a policy to build rings
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Nodes of each graph
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Edges have a direction (the default)
    #[arg(long, conflicts_with = "undirected")]
    directed: bool,
    /// Edges have no direction
    #[arg(long)]
    undirected: bool,
    /// The network
    #[arg(long, value_enum, default_value = "gnn")]
    policy: PolicyName,
    /// Reward of graphs that aren't rings
    #[arg(long, default_value_t = 1e-6)]
    reward_floor: f64,
    #[command(flatten)]
    common: Common,
}

/// The network.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum PolicyName {
    /// Messages along edges
    Gnn,
    /// A perceptron on the adjacency matrix, the plain baseline: --embedding wide, --layers deep; `sample` doesn't read its checkpoints
    EdgeMlp,
}

/// Final samples from which rings are counted.
const SAMPLES: usize = 10_000;
/// Mass below which the pruned evaluation drops a state, and how many it may look at.
const PRUNE: (f64, usize) = (1e-7, 2_000_000);
/// The same for a first look: a policy that spreads beyond these spreads beyond the others, and saying so takes seconds instead of minutes.
const FIRST_LOOK: (f64, usize) = (1e-6, 200_000);

/// Returns the recipe of a size. Rings are rare among random graphs, so from four directed nodes on the buffer starts
/// with random walks. Otherwise the policy may end on the first ring that it finds, and find the others too late.
fn recipe(kind: GraphKind, nodes: usize) -> Recipe {
    let (steps, prefill) = match (kind, nodes) {
        // One walk in 1,072 ends in a ring, so that one of the six rings is missing in one run of 1,900.
        (GraphKind::Directed, 4) => (1_000, 60_000),
        (_, ..=4) => (1_000, 0),
        (GraphKind::Undirected, 5) => (1_000, 20_000),
        (GraphKind::Directed, 5) => (900, 200_000),
        (GraphKind::Undirected, 6) => (1_500, 200_000),
        (GraphKind::Directed, 6) => (1_800, 1_000_000),
        (GraphKind::Undirected, 7) => (2_000, 2_000_000),
        // No number of random walks finds a ring here: the buffer fills with what training finds.
        _ => (2_000, 0),
    };
    // Without random walks, random actions keep the policy from ending on the first ring that it finds.
    let epsilon = if prefill == 0 { 0.2 } else { 0.1 };
    // Small learning rates at the end average out the noise of single batches.
    let lr_end = if nodes <= 4 { 0.1 } else { 1.0 };
    let of_training =
        Recipe { steps, batch: 128, replay: 10_000, prefill, epsilon, lr: 1e-3, lr_end, ..Recipe::default() };
    Recipe { exact_up_to: 1 << 20, samples: 0, ..of_training }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (common, nodes) = (&args.common, args.nodes);
    let (kind, kind_name) =
        if args.undirected { (GraphKind::Undirected, "undirected") } else { (GraphKind::Directed, "directed") };
    let run = Run::begin(common, "ring", format!("ring, {nodes} nodes, {kind_name}"), recipe(kind, nodes))?;
    let (ring, mut rng, (device, float)) = (Ring::new(nodes, kind)?, run.rng(), run.tensors());
    let (backward, estimators) = (common.backward(BackwardPolicy::Uniform), common.objective.estimators());
    if args.policy == PolicyName::EdgeMlp {
        let network = EdgeMlpConfig { mlp: common.mlp(256, 2), backward, estimators };
        let saved = json!({ "example": "ring_edge_mlp", "nodes": nodes, "kind": kind, "network": network });
        let net = EdgeMlp::new(ring.env(), network, device, float, &mut rng)?;
        return learn(args, &run, &ring, net, &saved, rng);
    }
    let network = GraphNetConfig {
        conv: if args.undirected { ConvKind::Gin } else { ConvKind::Directed },
        layers: common.layers.unwrap_or(if args.undirected || nodes > 4 { 2 } else { 1 }),
        embedding: common.embedding.unwrap_or(128),
        identity: true,
        global: false,
        backward,
        estimators,
        // The exit starts about as likely as all edges together, whatever the number of nodes.
        initial_exit_bias: ((nodes * nodes) as f64).ln(),
        ..GraphNetConfig::default()
    };
    let saved = Saved::Ring { nodes, kind, network: network.clone() };
    let net = GraphNet::new(ring.env(), network, device, float, &mut rng)?;
    learn(args, &run, &ring, net, &saved, rng)
}

fn learn<N: GraphNetwork + Send + 'static>(
    args: &Args,
    run: &Run<'_>,
    ring: &Ring,
    net: N,
    saved: &impl Serialize,
    rng: Rng,
) -> Result<()> {
    let reward = RingReward::new(100.0, args.reward_floor)?;
    let (log_z_true, n_rings) = (reward.log_z(ring), ring.n_rings());
    let (objective, config) = (run.objective()?, run.config.clone());
    let trainer =
        Trainer::new(ring.env().clone(), reward, GraphPolicy(net), objective, config, rng)?.described_by(saved)?;
    let trainer = run.replayed(trainer, ReplayBuffer::distinct)?;
    let Some(mut learned) = run.learn(trainer, "graphs", Vec::new())? else { return Ok(()) };

    let trainer = &learned.trainer;
    let samples = sample(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
    let rings: Vec<usize> = samples.graphs().iter().filter_map(|graph| ring.ring_index(graph)).collect();
    let report = &mut learned.report;
    report.set("valid_share", rings.len() as f64 / SAMPLES as f64);
    report.set("samples", SAMPLES);
    report.set("log_z_true", log_z_true);
    report.set("modes_found", rings.iter().collect::<BTreeSet<_>>().len());
    report.set("modes_total", n_rings);
    if let Some(exact) = &learned.exact {
        let is_ring: Vec<bool> = exact.graph.states().graphs().iter().map(|graph| ring.is_ring(graph)).collect();
        report.set("modes_found", modes_found(&exact.probs, &is_ring, n_rings as usize)?);
        let of_rings = exact.target.probs.iter().zip(&exact.probs).zip(&is_ring).filter(|(_, ring)| **ring);
        report.panels = vec![Panel::learned_against_target("rings", of_rings.map(|((&t, &p), _)| (t, p)))];
    } else if !run.common.is_frozen() {
        match bound(trainer, ring, reward)? {
            Some((jsd, dropped)) => {
                report.set("jsd", jsd);
                report.extend([("jsd_is_upper_bound", json!(true)), ("dropped_mass", json!(dropped))]);
            }
            None => {
                let n = ring.n_states();
                report.set(
                    "why_not_exact",
                    format!("of {n:.1e} states the policy spreads over more than can be followed"),
                );
                report.extend(sampled(trainer, 2_000)?);
            }
        }
    }
    let drawing = GraphDrawing { layout: Layout::Circle, ..GraphDrawing::default() };
    learned.draw(&drawing, samples.graphs(), (n_rings as usize + 2).clamp(8, 24))?;
    learned.print()
}

/// An upper bound on the JSD and the mass that it takes as lost; `None` where the policy doesn't concentrate enough for that.
fn bound(trainer: &Trainer<GraphEnv>, ring: &Ring, reward: RingReward) -> Result<Option<(f64, f64)>> {
    let env = trainer.env();
    let look = |(tau, most)| pruned_distribution(env, trainer.policy(), tau, most);
    let pruned = match look(FIRST_LOOK).map(drop).and_then(|()| look(PRUNE)) {
        Err(Error::TooManyStates { .. }) => return Ok(None),
        pruned => pruned?,
    };
    let (log_z, log_rewards) = (reward.log_z(ring), gfn::env::log_rewards(&reward, &pruned.states, None)?);
    // What the policy can't be seen to do below the threshold is charged in full.
    let target: Vec<f64> = log_rewards.iter().map(|r| (r - log_z).exp()).collect();
    Ok(Some((pruned.jsd_bound(&target)?, pruned.dropped)))
}
