//! A network of your own: layers of `tch::nn` on features of your choice, trained on directed rings.

mod cli;

use clap::Parser;
use cli::{Common, Defaults, Exact, Outcome, SAMPLES, main_of, sampled, train};
use gfn::graph::{GraphBatch, GraphKind};
use gfn::metrics::modes_found;
use gfn::nn::{GraphNetwork, NetworkOutput};
use gfn::nn::{Group, Parameters};
use gfn::plot::{GraphSheet, Layout};
use gfn::policy::GraphPolicy;
use gfn::quantity::{Quantities, Quantity};
use gfn::replay::ReplayBuffer;
use gfn::train::Trainer;
use gfn::{Result, Rng};
use gfn_gym::ring::{Ring, RingReward};
use serde_json::json;
use tch::nn::{self, Module};
use tch::{Device, Kind, Tensor};

/// Train a network of your own to build directed rings
#[derive(Parser, Debug)]
struct Args {
    /// Nodes of each graph
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact: 5 directed nodes.
const EXACT_LIMIT: usize = 1 << 20;

/// Rounds of messages, then one head for pairs of nodes and one for the exit.
///
/// What it owes is a block of logits per action type, in the action set's order: `AddEdge` has a row per ordered pair of nodes,
/// the exit a row per graph. It gives no logits of P_B, which makes P_B uniform.
#[derive(Debug)]
struct MyNetwork {
    n_nodes: i64,
    embed: nn::Linear,
    rounds: Vec<[nn::Linear; 3]>,
    pair: nn::Sequential,
    exit: nn::Sequential,
    log_z: Tensor,
    parameters: Parameters,
}

impl MyNetwork {
    fn new(n_nodes: i64, width: i64, n_rounds: usize, device: Device, seed: u64) -> Result<Self> {
        // tch draws initial values from its own generator.
        tch::manual_seed(seed as i64);
        let store = nn::VarStore::new(device);
        let root = store.root();
        let linear =
            |path: nn::Path<'_>, inputs, outputs| nn::linear(path, inputs, outputs, nn::LinearConfig::default());
        let head = |path: nn::Path<'_>, inputs| {
            let hidden = nn::seq().add(linear(&path / 0, inputs, width)).add_fn(Tensor::relu);
            hidden.add(linear(&path / 1, width, 1))
        };
        // Features: which node it is, its in-degree and its out-degree, each one-hot.
        let embed = linear(&root / "embed", 3 * n_nodes, width);
        let rounds = (0..n_rounds)
            .map(|k| ["own", "in", "out"].map(|name| linear(&root / "round" / k / name, width, width)))
            .collect();
        let pair = head(&root / "pair", 3 * width + 1);
        let exit = head(&root / "exit", width);
        let mut parameters = Parameters::new(device, Kind::Float);
        parameters.extend_from_var_store("mine", &store)?;
        let mut rng = Rng::seeded(seed);
        let log_z = parameters.scope(&mut rng).group(Group::LogZ).constant("log_z", &[1], 0.0);
        Ok(Self { n_nodes, embed, rounds, pair, exit, log_z, parameters })
    }

    /// `[graphs, n, n]`, 1 where there is an edge from the row's node to the column's.
    fn adjacency(&self, batch: &GraphBatch<'_>) -> Tensor {
        let (b, n) = (batch.len() as i64, self.n_nodes);
        let (from, to) = (batch.edge_index.get(0), batch.edge_index.get(1));
        // Nodes are numbered through the batch, and each graph has n of them.
        let entries = &from * n + to.remainder(n);
        let ones = Tensor::ones_like(&entries).to_kind(Kind::Float);
        Tensor::zeros([b * n * n], (Kind::Float, batch.device())).index_add(0, &entries, &ones).view([b, n, n])
    }
}

impl GraphNetwork for MyNetwork {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        if !wants.has(Quantity::LogPf) {
            return Ok(NetworkOutput::default());
        }
        let (b, n) = (batch.len() as i64, self.n_nodes);
        let edges = self.adjacency(batch);
        let one_hot = |values: Tensor| values.to_kind(Kind::Int64).one_hot(n).to_kind(Kind::Float);
        let degree = |along: i64| one_hot(edges.sum_dim_intlist(along, false, Kind::Float));
        let labels = one_hot(batch.node_labels.view([b, n]));
        let mut h = self.embed.forward(&Tensor::cat(&[labels, degree(1), degree(2)], 2));
        for [own, incoming, outgoing] in &self.rounds {
            let messages = edges.transpose(1, 2).matmul(&incoming.forward(&h)) + edges.matmul(&outgoing.forward(&h));
            h = &h + (own.forward(&h) + messages).relu();
        }
        let width = h.size()[2];
        let from = h.unsqueeze(2).expand([b, n, n, width], false);
        let to = h.unsqueeze(1).expand([b, n, n, width], false);
        let back = edges.transpose(1, 2).unsqueeze(3);
        let pairs = Tensor::cat(&[&from, &to, &(&from * &to), &back], 3);
        let add_edge = self.pair.forward(&pairs).view([b * n * n, 1]);
        let exit = self.exit.forward(&h.mean_dim(1, false, Kind::Float));
        Ok(NetworkOutput { pf: Some(vec![add_edge, exit]), ..NetworkOutput::default() })
    }

    fn log_z(&self, _: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Some(self.log_z.expand([n as i64], false))
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let common = &args.common;
    let runtime = common.runtime()?;
    cli::refuse("--backward", common.backward.is_some(), "no such flag: this network's P_B is uniform")?;
    let env = Ring::new(args.nodes, GraphKind::Directed)?;
    let reward = RingReward::default();
    let defaults = Defaults {
        steps: 1_500,
        batch: 128,
        replay: 10_000,
        prefill: if args.nodes <= 4 { 0 } else { 200_000 },
        epsilon: 0.1,
        lr: 1e-3,
        log_z_lr: 1e-1,
        lr_end: 0.0,
        ..Defaults::default()
    };
    let (width, rounds) = (common.embedding.unwrap_or(96), common.layers.unwrap_or(2));
    let network = MyNetwork::new(args.nodes as i64, width, rounds, runtime.device(), common.seed)?;
    let config = common.trainer(&defaults);
    let (steps, batch) = (common.steps(&defaults), config.batch);
    let (log_z_true, n_rings) = (reward.log_z(&env), env.n_rings() as usize);
    let exact = Exact::up_to(EXACT_LIMIT, common, &env, &reward)?;
    let rng = Rng::seeded(common.seed);
    let mut trainer =
        Trainer::boxed(env, Box::new(reward), GraphPolicy(network), common.objective.build()?, config, rng)?
            .described_by(&json!({ "example": "custom_network", "nodes": args.nodes }))?;
    let replay = common.replay(&defaults)?;
    if let Some((config, _)) = replay {
        trainer = trainer.with_replay(ReplayBuffer::distinct(config)?);
    }
    let prefill = replay.map_or(0, |(_, prefill)| prefill);
    let look = |trainer: &Trainer<_, _>| Exact::look(exact.as_ref(), trainer);
    let trained = train(&mut trainer, common, "custom_network", steps, prefill, look)?;

    let mut extra = vec![("modes_total", json!(n_rings))];
    let (mut distance, mut panel) = (cli::Distance::not_listed(common, EXACT_LIMIT), None);
    if let Some(exact) = &exact {
        let (learned, probs) = exact.learned(trainer.env(), trainer.policy())?;
        distance = learned;
        let graphs = exact.graph.states().graphs();
        let is_ring: Vec<bool> = graphs.iter().map(|graph| trainer.env().is_ring(graph)).collect();
        let valid: f64 = probs.iter().zip(&is_ring).filter(|(_, ring)| **ring).map(|(p, _)| p).sum();
        extra.push(("modes_found", json!(modes_found(&probs, &is_ring, n_rings)?)));
        extra.push(("valid_share", json!(valid)));
        panel = Some(exact.panel("graphs", &probs));
        exact.draw(common, GraphSheet::new("most probable graphs").layout(Layout::Circle), &probs, 8)?;
    } else {
        extra.extend([("modes_found", json!(null)), ("valid_share", json!(null))]);
        if !common.is_frozen() {
            extra.extend(sampled(&trainer, SAMPLES)?);
        }
    }
    trained.draw(common, "rings by a network of one's own", Some(log_z_true), panel)?;
    let (params, log_z_true) = (trainer.n_parameters(), Some(log_z_true));
    let example = "custom_network";
    Outcome { example, common, steps, batch, params, trained: &trained, log_z_true, distance, extra }.print();
    Ok(())
}
