//! Tests of Markov chains: distributions of samples against enumeration, replica exchange, scored changes,
//! and errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gfn::env::{EnumerableEnv, Reward, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::metrics::{Distances, NoiseFloor};
use gfn::nn::MlpConfig;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_dags::{
    BayesianStructure, Bge, BgeConfig, CachedScores, ContinuousData, DagReward, StructureConfig,
    StructurePrior,
};
use gfn_extras::chains::{ChainConfig, Chains, Proposal};
use gfn_gym::bit_sequence::{BitSequence, NonAutoregressiveBitSequence};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

/// The number of independent chains whose last objects are compared with the target.
const CHAINS: usize = 4_000;

pub(crate) fn grid() -> (VectorEnv, OriginalReward) {
    let grid = HyperGrid::new(2, 5).unwrap();
    (grid.env(), OriginalReward::standard(&grid).unwrap())
}

/// Returns structures of `N` nodes, with the scores of a few rows of data.
pub(crate) fn structures<const N: usize>() -> (GraphEnv, DagReward<CachedScores<Bge>>) {
    let mut rng = Rng::seeded(3);
    let mut rows = [[0.0; N]; 6];
    for row in &mut rows {
        row[0] = rng.normal();
        for k in 1..N {
            row[k] = 0.7 * row[0] + rng.normal();
        }
    }
    let bge = Bge::new(&ContinuousData::from_rows(&rows).unwrap(), BgeConfig::default()).unwrap();
    let reward = DagReward::new(CachedScores::ahead(bge, None).unwrap(), StructurePrior::Uniform).unwrap();
    (BayesianStructure::new(StructureConfig::new(N)).unwrap().into_env(), reward)
}

/// Runs independent ladders from samples of the uniform policy. Returns the total variation of each power's
/// objects from the target of this power, and the noise floor of as many independent samples.
fn compare<E: EnumerableEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    config: ChainConfig,
    rounds: usize,
    policy: Option<&Sampler<'_, E>>,
) -> Vec<(f64, NoiseFloor)> {
    let mut rng = Rng::seeded(0);
    let graph = StateGraph::build(env, 1 << 14).unwrap();
    let powers = config.powers.clone();
    let n = CHAINS * powers.len();
    let start = Sampler::new(env, &UniformPolicy).walks(n, &mut rng).unwrap().terminal;
    let mut chains = Chains::new(env, config, start, None).unwrap();
    for _ in 0..rounds {
        chains.round(env, reward, policy, &mut rng).unwrap();
    }
    let ends = graph.ends();
    let log_rewards = reward.log_reward(&graph.states().select(&ends), None).unwrap();
    let mut out = Vec::new();
    for (k, power) in powers.iter().enumerate() {
        let tempered: Vec<f64> = log_rewards.iter().map(|value| power * value).collect();
        let target = graph.target_of(&tempered).unwrap().probs;
        let rows: Vec<usize> = (0..CHAINS).map(|ladder| ladder * powers.len() + k).collect();
        let visits = graph.empirical(env, &chains.objects().select(&rows)).unwrap();
        let tv = Distances::between(&visits, &target).unwrap().tv;
        out.push((tv, NoiseFloor::simulate(&target, CHAINS, 50, &mut rng).unwrap()));
    }
    out
}

fn assert_target(results: Vec<(f64, NoiseFloor)>, what: &str) {
    for (tv, floor) in results {
        assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{what}: {tv} {floor:?}");
    }
}

fn proposing(proposals: &[(f64, Proposal)]) -> ChainConfig {
    ChainConfig { proposals: proposals.to_vec(), ..ChainConfig::default() }
}

#[test]
fn chains_sample_the_target() {
    let (env, reward) = grid();
    assert_target(compare(&env, &reward, ChainConfig::default(), 300, None), "grid");
    let (env, reward) = structures::<3>();
    let changes = ChainConfig { score_changes: true, ..ChainConfig::default() };
    assert_target(compare(&env, &reward, changes, 60, None), "structures");
    let env = ColoredGraphs::new(3).unwrap().into_env();
    assert_target(compare(&env, &ColoredGraphReward::Count, ChainConfig::default(), 80, None), "coloured");
    // All objects of these environments have the same depth, so no single move leads from object to object.
    let bits = NonAutoregressiveBitSequence::new(1, 5).unwrap().env();
    let weights = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        let bits =
            |row: &[u16]| row.iter().enumerate().map(|(k, &bit)| f64::from(bit) * k as f64 * 0.4).sum();
        Ok(states.rows().map(bits).collect())
    };
    assert_target(compare(&bits, &weights, ChainConfig::default(), 60, None), "bits");
    let spins = DiscreteEbm::new(5).unwrap().env();
    let energy = IsingReward::with_equal_couplings(5, 0.3).unwrap();
    let tempered = ChainConfig { powers: vec![1.0, 0.5, 0.0], ..ChainConfig::default() };
    assert_target(compare(&spins, &energy, tempered, 60, None), "spins");
}

#[test]
fn default_proposals_suit_the_environment() {
    let start = |env: &VectorEnv| {
        let walks = Sampler::new(env, &UniformPolicy).walks(4, &mut Rng::seeded(0)).unwrap();
        Chains::new(env, ChainConfig::default(), walks.terminal, None).unwrap().config().proposals.clone()
    };
    assert_eq!(start(&grid().0), [(1.0, Proposal::OneMove)]);
    let bits = NonAutoregressiveBitSequence::new(1, 4).unwrap().env();
    assert_eq!(start(&bits), [(1.0, Proposal::BackAndForth { max_back: 4 })]);
}

/// Tests sequences of six words that only grow at their end: the first word changes only by proposals that
/// go back to the empty sequence.
#[test]
fn proposals_reach_every_object() {
    let env = BitSequence::new(1, 6).unwrap().env();
    let reward = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        let bits =
            |row: &[u16]| row.iter().zip([1.5, -1.0]).map(|(&bit, slope)| f64::from(bit) * slope).sum();
        Ok(states.rows().map(bits).collect())
    };
    assert_target(compare(&env, &reward, ChainConfig::default(), 60, None), "six words");
    let start = Sampler::new(&env, &UniformPolicy).walks(4, &mut Rng::seeded(0)).unwrap().terminal;
    let new = |proposals: &[(f64, Proposal)]| Chains::new(&env, proposing(proposals), start.clone(), None);
    let defaults = new(&[]).unwrap().config().proposals.clone();
    let [few, all] = [4, 6].map(|max_back| (1.0, Proposal::BackAndForth { max_back }));
    assert_eq!(defaults, [few, all]);
    assert!(new(&[all]).is_ok());
    let rarely = (0.0, Proposal::Policy { max_back: 6 });
    for proposals in [vec![few], vec![few, rarely], vec![(1.0, Proposal::OneMove)]] {
        let error = new(&proposals).map(drop).unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("6 moves"), "{error}");
    }
}

/// Tests proposals of an untrained network, whose P_F and P_B aren't uniform, alone and together with the
/// other proposals.
#[test]
fn policies_propose_exactly() {
    let (env, reward) = grid();
    let mut rng = Rng::seeded(5);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
        ..MlpPolicyConfig::default()
    };
    let policy =
        MlpPolicy::new(&env, KHot::from_env(&env), config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let sampler = Sampler::new(&env, &policy);
    let policy_only = proposing(&[(1.0, Proposal::Policy { max_back: 8 })]);
    assert_target(compare(&env, &reward, policy_only, 150, Some(&sampler)), "policy");
    let mixed = proposing(&[
        (0.3, Proposal::Policy { max_back: 8 }),
        (0.4, Proposal::OneMove),
        (0.3, Proposal::BackAndForth { max_back: 3 }),
    ]);
    let mixed = ChainConfig { powers: vec![1.0, 0.4], exchange_every: 3, ..mixed };
    assert_target(compare(&env, &reward, mixed, 150, Some(&sampler)), "mixed");
}

/// Tests that replica exchange keeps the product of the chains' distributions: the objects of two neighbours
/// must be independent, also directly after exchanges.
#[test]
fn replica_exchange_keeps_the_product() {
    let grid = HyperGrid::new(1, 4).unwrap();
    let env = grid.env();
    let values = [0.0, -1.5, -2.0, 0.7];
    let reward = move |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| values[usize::from(row[0])]).collect())
    };
    let powers = [1.0, 0.2];
    let n = 20_000;
    let config = ChainConfig { powers: powers.to_vec(), ..ChainConfig::default() };
    let mut rng = Rng::seeded(1);
    let start = Sampler::new(&env, &UniformPolicy).walks(2 * n, &mut rng).unwrap().terminal;
    let mut chains = Chains::new(&env, config, start, None).unwrap();
    for _ in 0..60 {
        chains.round(&env, &reward, None, &mut rng).unwrap();
    }
    // The only two neighbours of each ladder may exchange objects in every round.
    let before = chains.counts().exchanged;
    chains.round(&env, &reward, None, &mut rng).unwrap();
    let last = chains.counts().exchanged - before;
    assert!(before > 30 * n as u64 && last > n as u64 / 2, "{before} {last}");
    let mut joint = [0.0; 16];
    let points: Vec<usize> = chains.objects().rows().map(|row| usize::from(row[0])).collect();
    for pair in points.chunks(2) {
        joint[4 * pair[0] + pair[1]] += 1.0 / n as f64;
    }
    let product = |powers: [f64; 2]| -> Vec<f64> {
        let [first, second] = powers.map(|power| {
            let weights = values.map(|value: f64| (power * value).exp());
            weights.map(|weight| weight / weights.iter().sum::<f64>())
        });
        first.iter().flat_map(|one| second.iter().map(move |other| one * other)).collect()
    };
    let target = product(powers);
    let tv = Distances::between(&joint, &target).unwrap().tv;
    let floor = NoiseFloor::simulate(&target, n, 50, &mut rng).unwrap();
    assert!(tv < floor.tv + 5.0 * floor.tv_sd, "{tv} {floor:?}");
    // Exchanges without the acceptance rule would mix both distributions. The test must notice this.
    let mixed: Vec<f64> =
        target.iter().zip(product([0.2, 1.0])).map(|(one, other)| 0.5 * (one + other)).collect();
    assert!(Distances::between(&joint, &mixed).unwrap().tv > floor.tv + 20.0 * floor.tv_sd);
}

/// A reward that counts the objects and the changes that it scores.
struct Counted<R> {
    reward: R,
    calls: Arc<[AtomicUsize; 2]>,
}

impl<R: Reward<GraphStates>> Reward<GraphStates> for Counted<R> {
    fn log_reward(&self, states: &GraphStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.calls[0].fetch_add(states.len(), Relaxed);
        self.reward.log_reward(states, conditions)
    }
    fn log_reward_change(
        &self,
        before: &GraphStates,
        after: &GraphStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        let is_child =
            before.graphs().iter().zip(after.graphs()).all(|(one, other)| one.n_edges() < other.n_edges());
        assert!(is_child, "changes are scored from a state to its child");
        self.calls[1].fetch_add(before.len(), Relaxed);
        self.reward.log_reward_change(before, after, conditions)
    }
}

#[test]
fn scored_changes_give_the_same_chains() {
    let (env, _) = structures::<4>();
    let run = |score_changes: bool| {
        let calls = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let reward = Counted { reward: structures::<4>().1, calls: calls.clone() };
        let mut rng = Rng::seeded(2);
        let start = Sampler::new(&env, &UniformPolicy).walks(8, &mut rng).unwrap().terminal;
        let config = ChainConfig { score_changes, ..ChainConfig::default() };
        let mut chains = Chains::new(&env, config, start, None).unwrap();
        let mut n_scored = 0;
        for _ in 0..1_200 {
            n_scored += chains.round(&env, &reward, None, &mut rng).unwrap().log_rewards.len();
        }
        let counts = chains.counts();
        assert_eq!(calls[0].load(Relaxed) as u64, counts.reward_calls);
        assert_eq!(calls[1].load(Relaxed) as u64, counts.changes);
        let full = reward.log_reward(chains.objects(), None).unwrap();
        for (known, full) in chains.log_rewards().iter().zip(full) {
            assert!((known.unwrap() - full).abs() < 1e-9);
        }
        assert_eq!(n_scored as u64, counts.proposed + 8);
        (chains.objects().clone(), counts)
    };
    let (objects, counts) = run(false);
    let (same, changes) = run(true);
    assert_eq!(objects, same);
    assert_eq!((counts.changes, counts.reward_calls), (0, counts.proposed + 8));
    // The starts, and all chains in the first round and in round 1,000.
    assert_eq!((changes.changes, changes.reward_calls), (counts.proposed, 3 * 8));
}

#[test]
fn wrong_changes_and_settings_are_errors() {
    struct Partial;
    impl Reward<VectorStates> for Partial {
        fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
            Ok(states.rows().map(|row| f64::from(row[0]) + 0.5 * f64::from(row[1])).collect())
        }
        fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
            Ok(Some(states.rows().map(|row| f64::from(row[0])).collect()))
        }
    }
    let (env, whole) = grid();
    let mut rng = Rng::seeded(0);
    let start = Sampler::new(&env, &UniformPolicy).walks(32, &mut rng).unwrap().terminal;
    let changes = ChainConfig { score_changes: true, ..ChainConfig::default() };
    let mut chains = Chains::new(&env, changes.clone(), start.clone(), None).unwrap();
    let error = chains.round(&env, &Partial, None, &mut rng).unwrap_err();
    assert!(
        matches!(error, Error::Contract { .. }) && error.to_string().contains("score_changes"),
        "{error}"
    );
    let plain = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    let mut chains = Chains::new(&env, changes, start.clone(), None).unwrap();
    assert!(matches!(chains.round(&env, &plain, None, &mut rng).unwrap_err(), Error::Missing { .. }));
    let by_policy = proposing(&[(1.0, Proposal::Policy { max_back: 1 })]);
    let mut chains = Chains::new(&env, by_policy, start.clone(), None).unwrap();
    assert!(matches!(chains.round(&env, &whole, None, &mut rng).unwrap_err(), Error::Missing { .. }));

    let new = |config: ChainConfig| Chains::new(&env, config, start.clone(), None).map(drop).unwrap_err();
    for config in [
        ChainConfig { powers: vec![], ..ChainConfig::default() },
        ChainConfig { powers: vec![1.0, -0.5], ..ChainConfig::default() },
        ChainConfig { powers: vec![1.0; 5], ..ChainConfig::default() },
        ChainConfig { exchange_every: 0, ..ChainConfig::default() },
        proposing(&[(0.0, Proposal::OneMove)]),
        proposing(&[(-1.0, Proposal::OneMove), (2.0, Proposal::OneMove)]),
        proposing(&[(1.0, Proposal::BackAndForth { max_back: 0 })]),
    ] {
        let error = new(config.clone());
        assert!(matches!(error, Error::Config { .. }), "{config:?}: {error}");
    }
    let short = Chains::new(&env, ChainConfig::default(), start, Some(vec![0.0])).map(drop).unwrap_err();
    assert!(matches!(short, Error::Shape { .. }), "{short}");
    // The empty graph isn't an object of coloured graphs.
    let colored = ColoredGraphs::new(3).unwrap().into_env();
    let empty = gfn::env::Env::initial(&colored, &[0]);
    let error = Chains::new(&colored, ChainConfig::default(), empty, None).map(drop).unwrap_err();
    assert!(matches!(error, Error::Contract { .. }), "{error}");
}
