//! Tests of local search. With the Metropolis-Hastings correction it must keep the target distribution, and
//! without the correction it must not.

use gfn::env::{EnumerableEnv, Reals, Reward, Rows, StateGraph, VectorStates};
use gfn::metrics::{Distances, NoiseFloor};
use gfn::objective::LogPartitionVariance;
use gfn::policy::UniformPolicy;
use gfn::rollout::{Acceptance, LocalSearch, Sampler};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::boxes::{BoxEnv, BoxReward, BoxUniform};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};

const CHAINS: usize = 4_000;

/// Returns two total variations from the target: that of the objects in which many searches end, and that of
/// the same number of samples of a perfect sampler.
fn search<E: EnumerableEnv>(
    env: &E,
    reward: &impl gfn::env::Reward<E::States>,
    search: LocalSearch,
) -> Result<(f64, NoiseFloor)> {
    let mut rng = Rng::seeded(0);
    let graph = StateGraph::build(env, 1 << 14)?;
    let target = graph.target_distribution(reward, None)?;
    let sampler = Sampler::new(env, &UniformPolicy);
    let start = sampler.forward(CHAINS, &mut rng)?;
    let (found, _) = sampler.local_search(search, start.terminal_states(), reward, &mut rng)?;
    let tv = Distances::between(&graph.empirical(env, &found)?, &target.probs)?.tv;
    Ok((tv, NoiseFloor::simulate(&target.probs, CHAINS, 50, &mut rng)?))
}

#[test]
fn metropolis_hastings_samples_the_target() {
    let grid = HyperGrid::new(2, 5).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    // Backward trajectories have different lengths, because some reach the origin before `max_back` steps.
    // Searches with short backward trajectories mix slowly, so they need more rounds.
    for (max_back, rounds) in [(3, 400), (6, 60)] {
        let setting = LocalSearch { rounds, max_back, acceptance: Acceptance::MetropolisHastings };
        let (tv, floor) = search(&grid.env(), &reward, setting).unwrap();
        assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{max_back}: {tv} {floor:?}");
    }
    let graphs = ColoredGraphs::new(3).unwrap().into_env();
    let setting = LocalSearch { rounds: 60, max_back: 3, acceptance: Acceptance::MetropolisHastings };
    let (tv, floor) = search(&graphs, &ColoredGraphReward::Count, setting).unwrap();
    assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{tv} {floor:?}");
}

/// Tests local search on continuous states, where densities replace probabilities. The exit and the
/// backward step to the source still have probabilities.
#[test]
fn metropolis_hastings_samples_a_density() {
    const BINS: usize = 20;
    let env = BoxEnv::cartesian(1, 0.3).unwrap();
    let reward = BoxReward::default();
    let policy = BoxUniform;
    let bins = |points: &Reals| {
        let mut shares = vec![0.0; BINS];
        for x in points.rows() {
            shares[((x[0] * BINS as f64) as usize).min(BINS - 1)] += 1.0 / points.len() as f64;
        }
        shares
    };
    // The unit interval is divided into `BINS` bins. The reward is constant within each bin, so the target of
    // a bin follows from the reward at its middle.
    let middles = Reals::from_rows((0..BINS).map(|k| [(k as f64 + 0.5) / BINS as f64]));
    let at = |log_r: &f64| (log_r - reward.log_z(1)).exp() / BINS as f64;
    let target: Vec<f64> = reward.log_reward(&middles, None).unwrap().iter().map(at).collect();
    assert!((target.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let mut rng = Rng::seeded(0);
    let floor = NoiseFloor::simulate(&target, CHAINS, 50, &mut rng).unwrap();
    let mut ends = |rounds, max_back, acceptance| {
        let search = LocalSearch { rounds, max_back, acceptance };
        let sampler = Sampler::new(&env, &policy);
        let start = sampler.forward(CHAINS, &mut rng).unwrap();
        let (found, _) = sampler.local_search(search, start.terminal_states(), &reward, &mut rng).unwrap();
        Distances::between(&bins(&found), &target).unwrap().tv
    };
    for (max_back, rounds) in [(1, 60), (3, 40)] {
        let tv = ends(rounds, max_back, Acceptance::MetropolisHastings);
        assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{max_back}: {tv} {floor:?}");
    }
    let tv = ends(40, 3, Acceptance::Greedy);
    assert!(tv > 10.0 * floor.tv, "{tv} {floor:?}");
}

/// Tests greedy acceptance as a negative control. The search must move to high rewards and miss the target
/// distribution.
#[test]
fn greedy_search_climbs() {
    let grid = HyperGrid::new(2, 5).unwrap();
    let reward = OriginalReward::standard(&grid).unwrap();
    let setting = LocalSearch { rounds: 60, max_back: 6, acceptance: Acceptance::Greedy };
    let (tv, floor) = search(&grid.env(), &reward, setting).unwrap();
    assert!(tv > 10.0 * floor.tv, "{tv} {floor:?}");
    let never = LocalSearch { max_back: 0, ..setting };
    assert!(search(&grid.env(), &reward, never).unwrap_err().to_string().contains("max_back"));
}

/// Tests that known rewards of starting objects aren't computed again. Each round then needs one reward per
/// object.
#[test]
fn known_rewards_are_not_computed_again() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let n = 16;
    let rounds = 3;
    let grid = HyperGrid::new(2, 5).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let standard = OriginalReward::standard(&grid).unwrap();
    let counted = Arc::clone(&calls);
    let reward = move |states: &VectorStates, conditions: Option<&tch::Tensor>| {
        counted.fetch_add(states.len(), Ordering::Relaxed);
        standard.log_reward(states, conditions)
    };
    let setting = LocalSearch { rounds, max_back: 3, acceptance: Acceptance::MetropolisHastings };
    let env = grid.env();
    let sampler = Sampler::new(&env, &UniformPolicy);
    let start = sampler.forward(n, &mut Rng::seeded(0)).unwrap();
    let start = start.terminal_states();
    let known = reward.log_reward(start, None).unwrap();
    calls.store(0, Ordering::Relaxed);
    let found = sampler.local_search_from(setting, start, &known, &reward, &mut Rng::seeded(1)).unwrap();
    assert_eq!(calls.swap(0, Ordering::Relaxed), n * rounds);
    assert_eq!(sampler.local_search(setting, start, &reward, &mut Rng::seeded(1)).unwrap(), found);
    assert_eq!(calls.swap(0, Ordering::Relaxed), n * (rounds + 1));
    let short = sampler.local_search_from(setting, start, &known[1..], &reward, &mut Rng::seeded(1));
    assert!(matches!(short, Err(Error::Shape { .. })), "{short:?}");

    // A trainer knows the rewards of its samples, and scores trajectories with their recorded rewards.
    let config = TrainerConfig { batch: n, local_search: Some(setting), ..TrainerConfig::default() };
    let objective = LogPartitionVariance;
    let mut trainer =
        Trainer::new(grid.env(), reward, UniformPolicy, objective, config, Rng::seeded(2)).unwrap();
    trainer.step().unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), n * (1 + rounds));
    assert_eq!(trainer.reward_calls(), (n * (1 + rounds)) as u64);
}
