//! Your own data: how probable each edge of a Bayesian network is, from a CSV file with a header and a number per cell.
//!
//! `cargo run --release --example dag_from_csv -- FILE`; `reproduce dag-from-csv` takes experiments, seeds and numbers of steps, too.

use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::objective::ModifiedDetailedBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{MlpPolicy, MlpPolicyConfig};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng, tch};
use gfn_dags::{
    AdjacencyFeatures, BayesianStructure, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, EdgeMarginals,
    MAX_SUMMED_NODES, Marginals, StructureConfig, StructurePrior,
};
use gfn_plot::{Cell, Table};

const STEPS: usize = 2_000;
/// Graphs that are sampled in the end.
const GRAPHS: usize = 5_000;
/// Least probability of an edge that is listed.
const LEAST: f64 = 0.2;

fn main() -> Result<()> {
    let (runtime, mut rng) = (Runtime::new(1, DeviceKind::Cpu)?, Rng::seeded(0));
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/data/sachs_five.csv".into());
    let data = ContinuousData::read(path)?;
    let (names, n) = (data.names().to_vec(), data.n_variables());

    // Each acyclic graph is rewarded by its posterior probability, relative to that of the graph without edges.
    let env = BayesianStructure::new(StructureConfig::new(n))?;
    let scores = CachedScores::new(Bge::new(&data.standardised()?, BgeConfig::default())?);
    let reward = DagReward::new(scores, StructurePrior::Uniform)?.relative_to(&env.initial_graphs()[0])?;
    // The probabilities themselves, where they can be summed over all graphs.
    let exact = if n <= MAX_SUMMED_NODES { EdgeMarginals::sum(&env, &reward).ok() } else { None };

    let mlp = MlpConfig { hidden: vec![256, 256], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, backward: BackwardPolicy::Uniform, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, AdjacencyFeatures::new(n), config, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 64,
        // Few of many graphs have nearly all of the probability: half of the actions at random find them, and replay keeps them.
        epsilon: Some(Schedule::Linear { from: 0.5, to: 0.0, steps: STEPS / 2 }),
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        adam: AdamConfig { lr: 3e-3, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let replay = ReplayConfig { capacity: 10_000, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut trainer = Trainer::new(env, reward, policy, ModifiedDetailedBalance::default(), config, rng)?
        .with_replay(ReplayBuffer::new(replay)?);
    Fit::new(STEPS).run(&mut trainer)?;

    let sampled = Sampler::new(trainer.env(), trainer.policy()).forward(GRAPHS, &mut trainer.evaluation_rng())?;
    let learned = Marginals::of(sampled.terminal_states(), None)?.edge;
    let mut table = Table::new(["edge", "learned", "exact"]);
    for (a, b) in (0..n * n).map(|k| (k / n, k % n)).filter(|&(a, b)| learned.get(a, b) >= LEAST) {
        let exact = exact.as_ref().map_or(Cell::Missing, |exact| format!("{:.2}", exact.edge.get(a, b)).into());
        table.push([format!("{} -> {}", names[a], names[b]).into(), format!("{:.2}", learned.get(a, b)).into(), exact]);
    }
    println!("{table}\nLearned is the share of {GRAPHS} sampled graphs that have the edge.");
    if let Some(exact) = &exact {
        println!("Learned is off from exact by {:.3}, root mean square of all pairs.", learned.rmse(&exact.edge)?);
    }
    Ok(())
}
