//! Largest independent sets of graphs of your own: `cargo run --release --example graph_problem -- graphs.clq` (edge lists as networkx
//! and SNAP write them, DIMACS, graph6).
//!
//! Without a file it takes Petersen's graph.

use std::error::Error;
use std::fs;

use gfn::graph::{GraphFormat, Node};
use gfn::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use gfn::objective::{DetailedBalance, StateFlow};
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng, tch};
use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward, greedy, maximum_independent_set};
use gfn_plot::Table;
use gfn_plot::{GraphSheet, Layout};

const PROBLEM: Problem = Problem::IndependentSet;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (runtime, mut rng) = (Runtime::new(1, DeviceKind::Cpu)?, Rng::seeded(0));
    let graphs = match std::env::args_os().nth(1) {
        Some(path) => Instances::read(path)?,
        None => Instances::new(GraphFormat::Graph6.read(b"IheA@GUAo")?)?,
    };
    // The states are the graphs with a mark on each node; the policy sees no numbers of nodes, only marks and edges.
    let (env, reward) = (GraphProblem::for_size(PROBLEM, &graphs)?, SizeReward::new(PROBLEM, 3.0)?);
    let estimators = EstimatorsConfig::with_flow(true);
    let network = GraphNetConfig { identity: false, layers: 3, embedding: 64, estimators, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let objective = DetailedBalance { flow: StateFlow::ForwardLooking };
    let config = TrainerConfig { batch: 32, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), objective, config, rng)?;
    Fit::new(200).run(&mut trainer)?;

    let (env, rng) = (trainer.env(), &mut trainer.evaluation_rng());
    let sampler = Sampler::new(env, trainer.policy());
    let mut table = Table::new(["graph", "nodes", "best of 20 samples", "greedy", "optimum"]);
    let mut sheet = GraphSheet::new("independent sets").layout(Layout::Force).legend(["out", "in"], [""; 0]);
    for (k, graph) in (0..).zip(graphs.graphs()) {
        let samples = sampler.forward_of(&[k; 20], rng)?;
        let found: Vec<Vec<u32>> = samples.terminal_states().graphs().iter().map(|state| env.solution(state)).collect();
        // The checker reads the file's graph: what it counts owes nothing to the environment.
        let sizes = found.iter().map(|nodes| PROBLEM.check(graph, nodes)).collect::<Result<Vec<_>>>()?;
        let Some((size, best)) = sizes.into_iter().zip(&found).max() else { continue };
        let by_rule = PROBLEM.check(graph, &greedy(PROBLEM, graph)?)?;
        let optimum =
            maximum_independent_set(graph, 1_000_000).map_or("not found".to_owned(), |set| set.len().to_string());
        table.push(
            [k.to_string(), graph.n_nodes().to_string(), size.to_string(), by_rule.to_string(), optimum]
                .map(Into::into),
        );
        let mut drawn = graph.clone();
        best.iter().try_for_each(|&a| drawn.set_node(a, Node::of_class(1)))?;
        sheet = sheet.cell(drawn, [format!("graph {k}"), format!("{size} nodes: {best:?}")]);
    }
    fs::create_dir_all("out")?;
    sheet.write("out/graph_problem.svg")?;
    println!("{table}\nDrawn in out/graph_problem.svg.");
    Ok(())
}
