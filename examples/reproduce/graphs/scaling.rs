//! What a state costs, by its nodes, its edges, the batch and the classes; growth of random trees to many nodes; long trajectories on one large graph.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, DiscreteEnv, Env, Rows};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Attributes, Free, GraphEnv, GraphKind, GraphRules, GraphSchema, GraphState,
    GraphStates, MoveMask, Node, Semantics, SetNodeAttr,
};
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::Quantities;
use gfn::policy::{GraphPolicy, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::{RbModel, erdos_renyi};
use gfn_plot::{Cell, Table};
use gfn_plot::{Curve, Figure, Panel, Scale};
use serde_json::{Value, json};
use tch::{Device, Kind};

use crate::cli::{at_least_one, forget_peak_memory, peak_memory_mib, try_file};

/// Time what a state costs as graphs, batches and classes grow, grow random trees, and mark nodes of one large graph
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Nodes of the random trees
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    tree_nodes: usize,
    /// How many trees are grown
    #[arg(long, default_value_t = 100, value_parser = at_least_one)]
    trees: usize,
    /// Steps of 16 trajectories that mark nodes of an input graph of 1,200
    #[arg(long, default_value_t = 1_000, value_parser = at_least_one)]
    marks: usize,
    /// Times that each part is timed, of which the median counts
    #[arg(long, default_value_t = 7, value_parser = at_least_one)]
    rounds: usize,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// Seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A figure, as SVG or PNG
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one line of JSON in place of the tables
    #[arg(long)]
    json: bool,
}

/// What a state goes through at each step of a trajectory.
const PARTS: [&str; 4] = ["list nodes and edges", "masks", "masks and network", "step"];
/// Seconds that a part is repeated for, at least, each time that it is timed.
const LEAST: f64 = 0.02;

/// What grows.
#[derive(Clone, Copy)]
enum Axis {
    /// Nodes of graphs of mean degree 4; a step marks one more.
    Nodes,
    /// The same, where a step adds an edge.
    Pairs,
    /// Edges among 64 nodes.
    Edges,
    /// Graphs of 16 nodes in a batch.
    Batch,
    /// Classes of the node that is added to graphs of 16.
    Classes,
}

const AXES: [(Axis, &str, &[usize]); 5] = [
    (Axis::Nodes, "nodes", &[8, 16, 32, 64, 128, 256, 512, 1_024]),
    (Axis::Pairs, "nodes, where edges are added", &[8, 16, 32, 64, 128, 256]),
    (Axis::Edges, "edges of 64 nodes", &[32, 64, 128, 256, 512, 1_024, 1_536]),
    (Axis::Batch, "graphs in a batch", &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
    (Axis::Classes, "classes of a new node", &[1, 2, 4, 8, 16, 32, 64, 128, 256]),
];

/// Microseconds a state, part by part.
type Times = [f64; PARTS.len()];

impl Axis {
    fn timed(self, size: usize, args: &Args, rng: &mut Rng) -> Result<Times> {
        let (n, edges, batch) = match self {
            Self::Nodes | Self::Pairs => (size, 2 * size, 16),
            Self::Edges => (64, size, 16),
            Self::Batch => (16, 32, size),
            Self::Classes => (16, 32, 16),
        };
        let probability = edges as f64 / (n * (n - 1) / 2) as f64;
        let marked = |_| marked_graph(n, probability.min(1.0), rng);
        let states: GraphStates = (0..batch).map(marked).collect::<Result<Vec<_>>>()?.into();
        let kind = GraphKind::Undirected;
        let (classes, max_nodes) = if let Self::Classes = self { (size as u16, n + 1) } else { (1, n) };
        let actions = ActionSet::new(Semantics::Labelled);
        let actions = match self {
            Self::Nodes | Self::Edges | Self::Batch => actions.with(SetNodeAttr::new(&[2])?),
            Self::Pairs => actions.with(AddEdge::new(1)),
            Self::Classes => actions.with(AddNode::attached(classes, 1, max_nodes)),
        };
        let schema = GraphSchema {
            node_classes: classes.into(),
            node_attributes: vec![2],
            ..GraphSchema::plain(kind, max_nodes)
        };
        let env =
            GraphEnv::new(Free, actions, GraphState::with_nodes(kind, n)).and_then(|env| env.with_schema(schema))?;
        let config = GraphNetConfig {
            conv: ConvKind::Gin,
            layers: 2,
            embedding: 64,
            identity: false,
            ..GraphNetConfig::default()
        };
        let policy = GraphPolicy(GraphNet::new(&env, config, Device::Cpu, Kind::Float, rng)?);
        times(&env, &states, &policy, args.rounds, rng)
    }
}

/// A random graph whose nodes have random marks.
fn marked_graph(n: usize, probability: f64, rng: &mut Rng) -> Result<GraphState> {
    let mut graph = erdos_renyi(n, probability, rng)?;
    for a in 0..n as u32 {
        graph.set_node(a, Node { class: 0, attributes: Attributes::new(&[rng.below(2) as u8])? })?;
    }
    Ok(graph)
}

fn times<R: GraphRules>(
    env: &GraphEnv<R>,
    states: &GraphStates,
    policy: &GraphPolicy<GraphNet>,
    rounds: usize,
    rng: &mut Rng,
) -> Result<Times> {
    let evaluate = || tch::no_grad(|| policy.evaluate(env, states, None, Quantities::PF));
    let missing = || Error::missing("a step", "probabilities of actions", "use a policy with P_F");
    let rows: Vec<usize> = (0..states.len()).collect();
    let actions = evaluate()?.pf.ok_or_else(missing)?.sample(&rows, &Exploration::none(), rng)?;
    let per_state = 1e6 / states.len() as f64;
    let copying = median(rounds, || keep(states.clone()))?;
    let listing = median(rounds, || keep(states.clone().arrays().edges.len()))? - copying;
    let stepping = median(rounds, || env.step(Direction::Forward, &mut states.clone(), &actions).map(drop))? - copying;
    let masks = median(rounds, || keep(env.masks(Direction::Forward, states)))?;
    // Less than nothing is what a busy machine makes of a difference.
    Ok([listing.max(0.0), masks, median(rounds, || evaluate().map(drop))?, stepping.max(0.0)].map(|s| s * per_state))
}

/// Nothing more is done with what was timed.
fn keep<T>(made: T) -> Result<()> {
    black_box(made);
    Ok(())
}

/// The median time of a job, each time repeated until it can be told.
fn median(rounds: usize, mut job: impl FnMut() -> Result<()>) -> Result<f64> {
    job()?;
    let mut seconds = Vec::new();
    for _ in 0..rounds {
        let (started, mut times) = (Instant::now(), 0);
        while times == 0 || started.elapsed().as_secs_f64() < LEAST {
            job()?;
            times += 1;
        }
        seconds.push(started.elapsed().as_secs_f64() / f64::from(times));
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[rounds / 2])
}

/// Trees that grow by attachment until they have all of their nodes.
struct Trees(usize);

impl GraphRules for Trees {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.n_nodes() == self.0
    }
}

/// Grows trees, each new node at one drawn uniformly, and says how long it took and how deep nodes are.
fn grow(args: &Args, rng: &mut Rng) -> Result<Value> {
    let (n, kind) = (args.tree_nodes, GraphKind::Undirected);
    let actions = ActionSet::new(Semantics::Labelled).with(AddNode::attached(1, 1, n));
    let env = GraphEnv::new(Trees(n), actions, GraphState::with_nodes(kind, 1))?;
    let started = Instant::now();
    let walks = Sampler::new(&env, &UniformPolicy).max_steps(n).walks(args.trees, rng)?;
    let seconds = started.elapsed().as_secs_f64();
    let mut depths = 0.0;
    for tree in walks.terminal.graphs() {
        if (tree.n_nodes(), tree.n_edges()) != (n, n - 1) {
            return Err(Error::contract("a tree has an edge fewer than nodes", tree.to_string()));
        }
        let mut depth = vec![0.0; n];
        for (a, b) in tree.edges() {
            // The larger label came later, and all edges of the smaller one's way to the root are before.
            depth[b as usize] = depth[a as usize] + 1.0;
        }
        depths += depth.iter().sum::<f64>() / n as f64 / args.trees as f64;
    }
    // Of random recursive trees: the expected depth of a node, by Smythe and Mahmoud 1995.
    let expected = (1..=n).map(|k| 1.0 / k as f64).sum::<f64>() - 1.0;
    Ok(json!({ "trees": args.trees, "nodes": n, "seconds": seconds, "peak_memory_mib": peak_memory_mib(),
        "mean_depth": depths, "mean_depth_expected": expected }))
}

/// Nodes of one input graph are marked, until so many are.
struct Marks(usize);

impl GraphRules for Marks {
    fn can_exit(&self, graph: &GraphState) -> bool {
        graph.nodes().filter(|node| !node.attributes.is_unset()).count() == self.0
    }
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        if self.can_exit(graph) {
            moves.retain(|_| false);
        }
    }
}

/// Trajectories on one large input graph, with all of their states.
fn mark(args: &Args, rng: &mut Rng) -> Result<Value> {
    let input =
        RbModel { cliques: 48..=48, clique_nodes: 25..=25, tightness: [0.5, 0.5], nodes: 1_200..=1_200 }.draw(rng)?;
    let actions = ActionSet::new(Semantics::Labelled).with(SetNodeAttr::new(&[1])?);
    let env = GraphEnv::new(Marks(args.marks), actions, input.clone())?;
    let started = Instant::now();
    let trajectories = Sampler::new(&env, &UniformPolicy).forward(16, rng)?;
    Ok(json!({ "nodes": input.n_nodes(), "edges": input.n_edges(), "trajectories": trajectories.len(),
        "states": trajectories.states().len(), "seconds": started.elapsed().as_secs_f64(),
        "peak_memory_mib": peak_memory_mib() }))
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.marks > 1_200 {
        return Err(Error::config("--marks", args.marks, "at most 1,200, the nodes of the input graph"));
    }
    args.out.as_deref().map_or(Ok(()), try_file)?;
    Runtime::new(args.threads, DeviceKind::Cpu)?;
    let rng = &mut Rng::seeded(args.seed);
    forget_peak_memory();
    let marked = mark(args, rng)?;
    forget_peak_memory();
    let grown = grow(args, rng)?;
    let (mut lines, mut tables) = (Vec::new(), Vec::new());
    let mut figure = Figure::new("Microseconds a state");
    for (axis, name, sizes) in AXES {
        eprintln!("{name}");
        let timed = sizes.iter().map(|&size| axis.timed(size, args, rng)).collect::<Result<Vec<_>>>()?;
        // The power of the size that the time grows by, over the last three sizes.
        let power = |part: usize| match timed.as_slice() {
            [.., before, _, last] => {
                let ratio = sizes[sizes.len() - 1] as f64 / sizes[sizes.len() - 3] as f64;
                (last[part] / before[part]).ln() / ratio.ln()
            }
            _ => f64::NAN,
        };
        let powers: [f64; PARTS.len()] = std::array::from_fn(power);
        let mut table = Table::new([name].into_iter().chain(PARTS));
        for (&size, times) in sizes.iter().zip(&timed) {
            table = table.row([size.into()].into_iter().chain(times.iter().map(|&time| Cell::from(time))));
        }
        tables.push(table.row(["power".into()].into_iter().chain(powers.iter().map(|&power| Cell::from(power)))));
        let curve = |part: usize| {
            Curve::new(PARTS[part], sizes.iter().zip(&timed).map(move |(&size, times)| (size as f64, times[part])))
        };
        let panel = Panel::new(name).labels(name, "µs a state").x_scale(Scale::Log).y_scale(Scale::Log);
        figure = figure.panel((0..PARTS.len()).map(curve).fold(panel, Panel::curve));
        lines.push(json!({ "axis": name, "sizes": sizes, "parts": PARTS, "us_per_state": timed, "powers": powers }));
    }
    if args.json {
        println!("{}", json!({ "threads": args.threads, "growth": grown, "marks": marked, "axes": lines }));
    } else {
        tables.iter().for_each(|table| println!("{table}"));
        let large = [("random trees", &grown), ("trajectories that mark nodes of one graph", &marked)];
        for (name, found) in large {
            let fields = found.as_object().into_iter().flatten();
            let fields = fields.map(|(name, value)| vec![name.replace('_', " ").into(), value.to_string().into()]);
            println!("{}", fields.fold(Table::new([name, ""]), Table::row));
        }
    }
    args.out.as_ref().map_or(Ok(()), |path| figure.write(path))
}
