//! Rings: graphs on labelled nodes, sampled in proportion to a reward of 100 for one cycle through all of them.

use clap::{Parser, ValueEnum};
use gfn::graph::{GraphEnv, GraphKind, GraphState};
use gfn::metrics::{modes_found, pruned_distribution, sample_objects};
use gfn::nn::{BackwardPolicy, ConvKind, EdgeMlp, EdgeMlpConfig, GraphNet, GraphNetConfig, GraphNetwork, MlpConfig};
use gfn::policy::GraphPolicy;
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Error, Result, Rng};
use gfn_gym::ring::{Ring, RingReward};
use gfn_plot::{GraphSheet, Layout, Panel};
use serde::Serialize;
use serde_json::json;

use crate::cli::{
    Common, Defaults, Distance, Exact, Report, SAMPLES as EVALUATED, Saved, draw_sheet, sampled, train_with_actors,
};

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
/// States up to which the distribution is exact.
const EXACT_LIMIT: f64 = (1 << 20) as f64;
/// Mass below which the pruned evaluation drops a state, and how many it may look at.
const PRUNE: (f64, usize) = (1e-7, 2_000_000);
/// The same for a first look: a policy that spreads beyond these spreads beyond the others, and saying so takes seconds instead of minutes.
const FIRST_LOOK: (f64, usize) = (1e-6, 200_000);

type RingTrainer<N> = Trainer<GraphEnv<Ring>, GraphPolicy<N>>;

/// Recipes by size: rings are rare among random graphs, so from five directed nodes on the buffer starts with random walks.
fn defaults(env: &GraphEnv<Ring>) -> Defaults {
    let (steps, prefill) = match (env.kind(), env.n_nodes()) {
        (_, ..=4) => (1_000, 0),
        (GraphKind::Undirected, 5) => (1_000, 20_000),
        (GraphKind::Directed, 5) => (900, 200_000),
        (GraphKind::Undirected, 6) => (1_500, 200_000),
        (GraphKind::Directed, 6) => (1_800, 1_000_000),
        (GraphKind::Undirected, 7) => (2_000, 2_000_000),
        // No number of random walks finds a ring here: the buffer fills with what training finds.
        _ => (2_000, 0),
    };
    let recipe = Defaults { steps, batch: 128, replay: 10_000, prefill, lr: 1e-3, lr_end: 1.0, ..Defaults::default() };
    // Where the buffer doesn't start with random walks, random actions keep the policy from ending on the first ring that it finds.
    if prefill == 0 { Defaults { epsilon: 0.2, ..recipe } } else { recipe }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    let kind = if args.undirected { GraphKind::Undirected } else { GraphKind::Directed };
    let env = Ring::new(args.nodes, kind)?;
    let mut rng = Rng::seeded(common.seed);
    let config = GraphNetConfig {
        conv: if args.undirected { ConvKind::Gin } else { ConvKind::Directed },
        layers: common.layers.unwrap_or(if args.undirected || args.nodes > 4 { 2 } else { 1 }),
        embedding: common.embedding.unwrap_or(128),
        identity: true,
        global: false,
        backward: common.backward.map_or(BackwardPolicy::Uniform, Into::into),
        estimators: common.objective.estimators(),
        // The exit starts about as likely as all edges together, whatever the number of nodes.
        initial_exit_bias: ((args.nodes * args.nodes) as f64).ln(),
        ..GraphNetConfig::default()
    };
    if args.policy == PolicyName::EdgeMlp {
        let hidden = vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)];
        let config = EdgeMlpConfig {
            mlp: MlpConfig { hidden, ..MlpConfig::default() },
            backward: config.backward,
            estimators: config.estimators.clone(),
        };
        let saved = json!({ "example": "ring_edge_mlp", "nodes": args.nodes, "kind": kind, "network": config });
        let net = EdgeMlp::new(&env, config, runtime.device(), tch::Kind::Float, &mut rng)?;
        return run_with(args, env, (net, &saved), rng);
    }
    let saved = Saved::Ring { nodes: args.nodes, kind, network: config.clone() };
    let net = GraphNet::new(&env, config, runtime.device(), tch::Kind::Float, &mut rng)?;
    run_with(args, env, (net, &saved), rng)
}

fn run_with<N: GraphNetwork + Send + 'static>(
    args: &Args,
    env: GraphEnv<Ring>,
    (net, saved): (N, &impl Serialize),
    rng: Rng,
) -> Result<()> {
    let common = &args.common;
    let reward = RingReward::new(100.0, args.reward_floor)?;
    let defaults = defaults(&env);
    let trainer_config = common.trainer(&defaults);
    let objective = common.objective.build()?;
    let env_again = Ring::new(args.nodes, env.kind())?;
    let trainer = Trainer::new(env, reward, GraphPolicy(net), objective, trainer_config, rng)?.described_by(saved)?;
    let trainer = common.replayed(trainer, &defaults, ReplayBuffer::distinct)?;
    let env = env_again;
    let exact =
        (env.n_states() <= EXACT_LIMIT && common.is_compared()).then(|| Listed::new(&env, reward)).transpose()?;
    let look = |trainer: &RingTrainer<N>| Exact::look(exact.as_ref().map(|listed| &listed.exact), trainer);
    let Some((trainer, trained)) = train_with_actors(trainer, common, ("ring", &defaults), look, Vec::new())? else {
        return Ok(());
    };

    let samples = sample_objects(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
    let rings: Vec<Option<usize>> = samples.graphs().iter().map(|g| env.ring_index(g)).collect();
    let valid = rings.iter().flatten().count() as f64 / SAMPLES as f64;
    let mut distinct: Vec<usize> = rings.iter().flatten().copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let log_z_true = reward.log_z(&env);
    let mut extra = vec![
        ("modes_found", json!(distinct.len())),
        ("modes_total", json!(env.n_rings())),
        ("valid_share", json!(valid)),
        ("samples", json!(SAMPLES)),
    ];
    let mut distance = Distance::not_listed(common, EXACT_LIMIT as usize);
    let mut panels = Vec::new();
    if let Some(Listed { exact, is_ring }) = &exact {
        let (learned, probs) = exact.learned(&trainer)?;
        distance = learned;
        extra[0].1 = json!(modes_found(&probs, is_ring, env.n_rings() as usize)?);
        let of_rings = exact.target.probs.iter().zip(&probs).zip(is_ring).filter(|(_, ring)| **ring);
        panels.push(Panel::learned_against_target("rings", of_rings.map(|((&t, &p), _)| (t, p))));
        draw_rings(common, &env, exact, &probs, log_z_true)?;
    } else if !common.is_frozen() {
        match bound(&env, &trainer, reward)? {
            Some((jsd, dropped)) => {
                distance.jsd = Some(jsd);
                extra.extend([("jsd_is_upper_bound", json!(true)), ("dropped_mass", json!(dropped))]);
            }
            None => {
                let looked_at = "the policy spreads over more than can be followed";
                distance = Distance::unknown(format!("of {:.1e} states {looked_at}", env.n_states()));
                extra.extend(sampled(&trainer, EVALUATED)?);
            }
        }
        draw_samples(common, samples.graphs())?;
    }
    let directed = if args.undirected { "undirected" } else { "directed" };
    let title = format!("ring, {} nodes, {directed}", args.nodes);
    Report { title, log_z_true: Some(log_z_true), distance, extra, panels }.print(common, &trained)
}

/// The whole state space, and what the reward asks of it.
struct Listed {
    exact: Exact<GraphEnv<Ring>>,
    is_ring: Vec<bool>,
}

impl Listed {
    fn new(env: &GraphEnv<Ring>, reward: RingReward) -> Result<Self> {
        let exact = Exact::new(EXACT_LIMIT as usize, env, &reward)?;
        let is_ring = exact.graph.states().graphs().iter().map(|g| env.is_ring(g)).collect();
        Ok(Self { exact, is_ring })
    }
}

/// An upper bound on the JSD and the mass that it takes as lost; `None` where the policy doesn't concentrate enough for that.
fn bound<N: GraphNetwork>(
    env: &GraphEnv<Ring>,
    trainer: &RingTrainer<N>,
    reward: RingReward,
) -> Result<Option<(f64, f64)>> {
    let look = |(tau, most)| pruned_distribution(trainer.env(), trainer.policy(), tau, most);
    let pruned = match look(FIRST_LOOK).map(drop).and_then(|()| look(PRUNE)) {
        Err(Error::TooManyStates { .. }) => return Ok(None),
        pruned => pruned?,
    };
    let (log_z, log_rewards) = (reward.log_z(env), gfn::env::log_rewards(&reward, &pruned.states, None)?);
    // What the policy can't be seen to do below the threshold is charged in full.
    let target: Vec<f64> = log_rewards.iter().map(|r| (r - log_z).exp()).collect();
    Ok(Some((pruned.jsd_bound(&target)?, pruned.dropped)))
}

/// The most probable graphs with their probability and reward.
fn draw_rings(
    common: &Common,
    env: &GraphEnv<Ring>,
    exact: &Exact<GraphEnv<Ring>>,
    probs: &[f64],
    log_z: f64,
) -> Result<()> {
    let mut order: Vec<usize> = (0..probs.len()).collect();
    order.sort_by(|&a, &b| probs[b].total_cmp(&probs[a]));
    let shown = (env.n_rings() as usize + 2).clamp(8, 24);
    let mut sheet = GraphSheet::new("most probable graphs").layout(Layout::Circle);
    for &state in order.iter().take(shown) {
        let (p, t) = (probs[state], exact.target.probs[state]);
        let caption = [format!("p = {p:.4} (target {t:.4})"), format!("log R = {:.2}", t.ln() + log_z)];
        sheet = sheet.cell(exact.graph.states().graphs()[state].clone(), caption);
    }
    draw_sheet(common, &sheet)
}

/// The first graphs of the final sample, where probabilities aren't known.
fn draw_samples(common: &Common, graphs: &[GraphState]) -> Result<()> {
    let mut sheet = GraphSheet::new("samples").layout(Layout::Circle);
    for (k, graph) in graphs.iter().take(24).enumerate() {
        sheet = sheet.cell(graph.clone(), [format!("sample {k}"), format!("{} edges", graph.n_edges())]);
    }
    draw_sheet(common, &sheet)
}
