//! Learns the structure of a Bayesian network. A policy samples graphs of four variables in proportion to
//! their posterior probability given 100 observations. The distribution of the policy is compared with the
//! exact posterior.
//!
//! Run `cargo run --release --example bayesian_structure`. The task `reproduce bayesian-structure` has flags
//! for the size, score, network and objective.

use gfn::prelude::*;
use gfn_dags::{
    AdjacencyFeatures, BayesianStructure, Bge, BgeConfig, CachedScores, DagReward, ExactPosterior, GraphLaw,
    Marginals, Sem, SemConfig, StructureConfig, StructurePrior,
};
use gfn_plot::{Cell, Table};

const NODES: usize = 4;
const STEPS: usize = 500;

fn main() -> gfn::Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    // The data are simulated from a random linear Gaussian network. For discrete data use `DiscreteData` and
    // `Bde`, and for data in files use `ContinuousData::read`.
    let truth = GraphLaw::ErdosRenyi { edges: 4.0 }.draw(NODES, &mut rng)?;
    let data = Sem::draw(truth.clone(), SemConfig::Linear, 0.5, &mut rng)?.sample(100, &mut rng)?;

    // The reward of a graph is its posterior probability divided by that of the graph without edges.
    let env = BayesianStructure::new(StructureConfig::new(NODES))?.into_env();
    let scores = CachedScores::ahead(Bge::new(&data, BgeConfig::default())?, None)?;
    let reward = DagReward::new(scores, StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])?;
    // All 543 graphs are listed, so that the exact posterior and the policy's exact probabilities can be
    // computed.
    let all = StateGraph::build(&env, 1_000)?;
    let posterior = ExactPosterior::from_states(all.states(), &reward)?;

    let mlp = MlpConfig { hidden: vec![128, 128], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, backward: BackwardPolicy::Uniform, ..MlpPolicyConfig::default() };
    let features = AdjacencyFeatures::new(NODES);
    let policy = MlpPolicy::new(&env, features, config, runtime.device(), Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 64,
        epsilon: Some(Schedule::Linear { from: 0.5, to: 0.0, steps: STEPS / 2 }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        adam: AdamConfig { lr: 3e-3, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let replay = ReplayConfig { capacity: 10_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut trainer = Trainer::new(env, reward, policy, ModifiedDetailedBalance::default(), config, rng)?
        .with_replay(ReplayBuffer::new(replay)?);
    Fit::new(STEPS).run(&mut trainer)?;

    let learned = all.terminating_distribution(trainer.env(), trainer.policy(), None)?.probs;
    let distance = Distances::between(&learned, posterior.probs())?;
    let learned = Marginals::from_graphs(all.states(), Some(&learned))?.edge;
    let exact = posterior.marginals()?.edge;
    let mut table = Table::new(["edge", "learned", "exact", "in the network"]);
    for (a, b) in (0..NODES * NODES).map(|k| (k / NODES, k % NODES)).filter(|(a, b)| a != b) {
        let there = if truth.has_edge(a as u32, b as u32) { Cell::from("yes") } else { Cell::Missing };
        let [learned, exact] = [&learned, &exact].map(|edges| format!("{:.3}", edges.get(a, b)).into());
        table.push([format!("x{a} -> x{b}").into(), learned, exact, there]);
    }
    println!(
        "{table}\nOver all {} graphs the distributions differ by a total variation of {:.3}.",
        all.len(),
        distance.tv
    );
    Ok(())
}
