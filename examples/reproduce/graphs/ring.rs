//! Rings: graphs on labelled nodes are sampled in proportion to a reward. The reward is 100 for a single
//! cycle through all nodes, and tiny for all other graphs.

use gfn::metrics::{modes_found, pruned_distribution};
use gfn::nn::{EdgeMlp, EdgeMlpConfig};

use crate::prelude::*;

/// Train a policy to build rings, which are single cycles through all nodes
#[derive(Args)]
pub(crate) struct Rings {
    /// Number of nodes of each graph
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Build graphs of directed edges (the default)
    #[arg(long, conflicts_with = "undirected")]
    directed: bool,
    /// Build graphs of undirected edges
    #[arg(long)]
    undirected: bool,
    /// Network of the policy
    #[arg(long, value_enum, default_value = "gnn")]
    policy: Network,
    /// Reward of graphs that aren't rings
    #[arg(long, default_value_t = 1e-6)]
    reward_floor: f64,
    #[command(flatten)]
    common: Common,
}

/// The networks that `--policy` names.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Network {
    /// A graph network with messages along edges
    Gnn,
    /// A perceptron on the adjacency matrix, as a simple baseline
    EdgeMlp,
}

/// The number of final samples in which distinct rings are counted.
const SAMPLES: usize = 10_000;
/// The settings of the pruned evaluation, which computes the policy's distribution without improbable states:
/// the probability below which a state is dropped, and the largest number of visited states.
const PRUNE: (f64, usize) = (1e-7, 2_000_000);
/// The settings of a smaller pruned evaluation, which runs first and takes seconds. If it visits too many
/// states, the larger evaluation is skipped, because it would fail, too, after minutes.
const FIRST_PRUNE: (f64, usize) = (1e-6, 200_000);

impl Rings {
    fn kind(&self) -> GraphKind {
        if self.undirected { GraphKind::Undirected } else { GraphKind::Directed }
    }

    /// Returns the defaults for this number of nodes. Rings are rare among random graphs. Without rings in
    /// the replay buffer, the policy may concentrate on the first ring that it finds, and find the other
    /// rings too late. For four to six directed or five to seven undirected nodes, the buffer therefore
    /// begins with random trajectories.
    fn recipe(&self) -> Recipe {
        let (steps, prefill) = match (self.kind(), self.nodes) {
            // On average, one of 1,072 random trajectories ends in a ring. With 60,000 trajectories, one of
            // the six rings is missing from the replay buffer in only one of 1,900 runs.
            (GraphKind::Directed, 4) => (1_000, 60_000),
            (_, ..=4) => (1_000, 0),
            (GraphKind::Undirected, 5) => (1_000, 20_000),
            (GraphKind::Directed, 5) => (900, 200_000),
            (GraphKind::Undirected, 6) => (1_500, 200_000),
            (GraphKind::Directed, 6) => (1_800, 1_000_000),
            (GraphKind::Undirected, 7) => (2_000, 2_000_000),
            // With more nodes, random trajectories practically never end in a ring, so the replay buffer
            // begins empty.
            _ => (2_000, 0),
        };
        Recipe {
            steps,
            batch: 128,
            replay: 10_000,
            prefill,
            // If the replay buffer begins empty, the share of random actions is larger. Random actions keep
            // the policy from concentrating on the first ring that it finds.
            epsilon: if prefill == 0 { 0.2 } else { 0.1 },
            lr: 1e-3,
            // With at most four nodes, the learning rate falls, and the small learning rates at the end
            // average out the noise of single batches. With more nodes it stays constant.
            lr_end: if self.nodes <= 4 { 0.1 } else { 1.0 },
            exact_up_to: 1 << 20,
            samples: 0,
            ..Recipe::default()
        }
    }
}

impl Task for Rings {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let nodes = self.nodes;
        let kind = self.kind();
        let run = Run::begin(common, self.recipe())?;
        let ring = Ring::new(nodes, kind)?;
        let env = ring.env().clone();
        let reward = RingReward::new(100.0, self.reward_floor)?;
        let task = json!({ "nodes": nodes, "kind": kind });
        let trainer = if self.policy == Network::EdgeMlp {
            let backward = common.backward(BackwardPolicy::Uniform);
            let estimators = common.estimators();
            let network = EdgeMlpConfig { mlp: common.mlp(256, 2), backward, estimators };
            run.distinct(run.build(
                env,
                reward,
                network,
                task,
                run.rng(),
                |env, network, device, kind, rng| {
                    EdgeMlp::new(env, network, device, kind, rng).map(GraphPolicy)
                },
            )?)?
        } else {
            let network = GraphNetConfig {
                conv: if self.undirected { ConvKind::Gin } else { ConvKind::Directed },
                identity: true,
                global: false,
                // With this bias an untrained policy exits about as often as it adds an edge, for any number
                // of nodes.
                initial_exit_bias: ((nodes * nodes) as f64).ln(),
                ..common.graph_net(
                    if self.undirected || nodes > 4 { 2 } else { 1 },
                    128,
                    BackwardPolicy::Uniform,
                )
            };
            run.graph_trainer(env, reward, network, task)?
        };
        run.learn(trainer, "graphs", Vec::new(), |report, trainer, exact| {
            let samples = evaluated(trainer, SAMPLES)?;
            let rings: Vec<usize> =
                samples.graphs().iter().filter_map(|graph| ring.ring_index(graph)).collect();
            let n_rings = ring.n_rings();
            report.extend(json!({ "valid_share": rings.len() as f64 / SAMPLES as f64, "samples": SAMPLES,
                "log_z_true": reward.log_z(&ring), "modes_found": rings.iter().collect::<BTreeSet<_>>().len(),
                "modes_total": n_rings }));
            if let Some(exact) = exact {
                let is_ring: Vec<bool> =
                    exact.graph.states().graphs().iter().map(|graph| ring.is_ring(graph)).collect();
                report.set("modes_found", modes_found(&exact.probs, &is_ring, n_rings as usize)?);
                let of_rings =
                    exact.target.probs.iter().zip(&exact.probs).zip(&is_ring).filter(|(_, ring)| **ring);
                report.panels =
                    vec![Panel::learned_against_target("rings", of_rings.map(|((&t, &p), _)| (t, p)))];
            } else if !common.is_frozen() {
                match bound(trainer, &ring, reward)? {
                    Some((jsd, dropped)) => report
                        .extend(json!({ "jsd": jsd, "jsd_is_upper_bound": true, "dropped_mass": dropped })),
                    None => {
                        let n = ring.n_states();
                        let why = format!("the policy reaches more of the {n:.1e} states than can be listed");
                        report.set("why_not_exact", why);
                        report.extend(sampled(trainer, 2_000)?);
                    }
                }
            }
            let drawing = GraphDrawing { layout: Layout::Circle, ..GraphDrawing::default() };
            run.draw_graphs(exact, &drawing, samples.graphs(), (n_rings as usize + 2).clamp(8, 24))
        })
    }
}

/// Returns an upper bound on the JSD between policy and target, and the total probability of the dropped
/// states. Returns `None` if the policy gives probability to too many states.
fn bound(trainer: &Trainer<GraphEnv>, ring: &Ring, reward: RingReward) -> Result<Option<(f64, f64)>> {
    let prune = |(tau, most)| pruned_distribution(trainer.env(), trainer.policy(), tau, most);
    let pruned = match prune(FIRST_PRUNE).map(drop).and_then(|()| prune(PRUNE)) {
        Err(Error::TooManyStates { .. }) => return Ok(None),
        pruned => pruned?,
    };
    let log_z = reward.log_z(ring);
    let log_rewards = log_rewards(&reward, &pruned.states, None)?;
    // The bound assumes the worst case, in which all of the dropped probability is on objects whose target
    // probability is 0.
    let target: Vec<f64> = log_rewards.iter().map(|r| (r - log_z).exp()).collect();
    Ok(Some((pruned.jsd_bound(&target)?, pruned.dropped)))
}
