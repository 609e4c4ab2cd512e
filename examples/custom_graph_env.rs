//! Defines a custom environment of directed acyclic graphs, by a rule that forbids some actions of `AddEdge`.

use gfn::contract::{Budget, check_graph_env};
use gfn::env::StateGraph;
use gfn::graph::PerGraph;
use gfn::graph::{ActionSet, AddEdge, BackwardRule, GraphEnv, GraphRules, GraphState, MoveMask, Semantics};
use gfn::metrics::Distances;
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::run::Fit;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng, tch};

/// The rules of directed acyclic graphs on labelled nodes, which are built edge by edge. The rules forbid
/// every edge that would close a cycle.
struct Acyclic;

impl GraphRules for Acyclic {
    fn restrict(&self, graph: &GraphState, moves: &mut MoveMask<'_>) {
        moves.retain(|add| !has_path(graph, add.b as usize, add.a as usize));
    }
}

/// Returns `true` if a directed path leads from node `from` to node `to`. The recursion ends because graphs
/// have no cycles.
fn has_path(graph: &GraphState, from: usize, to: usize) -> bool {
    graph.adjacency().neighbours(from).any(|next| next == to || has_path(graph, next, to))
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let env = GraphEnv::new(Acyclic, actions, GraphState::directed(4))?
        // Any edge of an acyclic graph can be the edge that was added last. Therefore `ByType` can be used:
        // the backward actions of `AddEdge`, which remove any edge. They are faster than the backward actions
        // that the library derives from the rules.
        .with_backward(BackwardRule::ByType);
    // Checks that steps, masks and backward actions of the environment agree.
    check_graph_env(&env, Budget::thorough(), &mut rng)?;
    // log R is 2 for each edge of the path 0 -> 1 -> 2 -> 3, and -1 for any other edge.
    let reward =
        PerGraph(|graph: &GraphState| graph.edges().map(|(a, b)| if b == a + 1 { 2.0 } else { -1.0 }).sum());
    let space = StateGraph::build(&env, 1_000)?;
    let target = space.target_distribution(&reward, None)?;

    let network = GraphNetConfig {
        conv: ConvKind::Directed,
        identity: true,
        embedding: 64,
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig::default();
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
    for steps in [0, 250, 500, 750, 1_000] {
        Fit::new(steps).run(&mut trainer)?;
        let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
        let tv = Distances::between(&learned.probs, &target.probs)?.tv;
        println!("{steps:5} steps: total variation {tv:.4} over {} acyclic graphs", space.len());
    }
    Ok(())
}
