//! Your own data: edges of a Bayesian network and how probable they are, from a CSV file with a header and a number per cell.

use gfn::nn::{BackwardPolicy, MlpConfig};
use gfn::objective::ModifiedDetailedBalance;
use gfn::policy::{MlpPolicy, MlpPolicyConfig};
use gfn::{Error, Result, Rng, dist::Schedule, env::Env, sampler::Sampler, train::Trainer, train::TrainerConfig};
use gfn_gym::bayesian_structure::*;

fn main() -> Result<()> {
    let mut flags = std::env::args().skip(1);
    let path = flags.next().unwrap_or_else(|| "examples/bayesian_structure/data/sachs_observational.csv".into());
    let steps: usize = match flags.next() {
        None => 1_000,
        Some(text) => (text.parse()).map_err(|_| Error::Config {
            setting: "the number of steps",
            got: text,
            expected: "a whole number",
        })?,
    };
    let data = ContinuousData::read(&path)?.standardised()?;
    let (names, n) = (data.names().to_vec(), data.n_variables());
    let (env, mut rng) = (BayesianStructure::new(StructureConfig::new(n))?, Rng::seeded(0));
    let scores = CachedScores::new(Bge::new(&data, BgeConfig::default())?);
    let reward = DagReward::new(scores, StructurePrior::Uniform)?.relative_to(&env.initial(1).dag(0));
    let mlp = MlpConfig { hidden: vec![256, 256], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, backward: BackwardPolicy::Uniform, ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, Adjacency::new(n), config, tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
    let epsilon = Schedule::Linear { from: 0.5, to: 0.0, steps: steps.div_ceil(2) };
    let config = TrainerConfig {
        batch: 64,
        epsilon: Some(epsilon),
        lr_scale: Schedule::Constant(1.0),
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, policy, ModifiedDetailedBalance::default(), config, rng)?;
    for _ in 0..steps {
        trainer.step()?;
    }
    let graphs = Sampler::new(trainer.env(), trainer.policy()).forward(1_000, &mut trainer.evaluation_rng())?;
    let edge = Marginals::of(graphs.terminal_states(), None)?.edge;
    for (a, b) in (0..n * n).map(|k| (k / n, k % n)).filter(|&(a, b)| edge.get(a, b) >= 0.1) {
        println!("{} -> {}: {:.2}", names[a], names[b], edge.get(a, b));
    }
    Ok(())
}
