//! Tests of acyclic graphs as adjacency matrices: the tensor forms of the environment and of the reward agree
//! with the forms for the host.

use gfn::contract::check_tensors;
use gfn::env::{Direction, DiscreteEnv, Env, Reward, StateGraph, TensorEnv, TensorForm, TensorReward};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::metrics::Distances;
use gfn::nn::MlpConfig;
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{Features, MlpPolicy, MlpPolicyConfig, StateFeatures};
use gfn::rollout::RolloutPlace;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_dags::*;
use tch::{Device, Kind, Tensor};

/// Simulates a linear model of `n` variables. Returns observations, a third of them with an intervention on
/// variable 0.
fn simulated(n: usize, rows: usize) -> ContinuousData {
    let mut rng = Rng::seeded(n as u64);
    let dag = GraphLaw::ErdosRenyi { edges: n as f64 }.draw(n, &mut rng).unwrap();
    let sem = Sem::draw(dag, SemConfig::LinearAwayFromZero { low: 0.5, high: 1.5 }, 1.0, &mut rng).unwrap();
    let data = sem.sample(rows, &mut rng).unwrap();
    let targets = (0..rows).map(|row| if row < rows / 3 { NodeSet::EMPTY.with(0) } else { NodeSet::EMPTY });
    data.with_interventions(targets.collect()).unwrap()
}

fn scores(n: usize) -> Vec<Box<dyn LocalScore>> {
    let data = simulated(n, 60);
    let classes = data.discretised(3).unwrap();
    vec![
        Box::new(Bge::new(&data, BgeConfig::default()).unwrap()),
        Box::new(LinearGaussianBic::new(&data).unwrap()),
        Box::new(CachedScores::ahead(Bde::new(classes, BdeConfig::default()).unwrap(), Some(2)).unwrap()),
    ]
}

const PRIORS: [StructurePrior; 4] = [
    StructurePrior::Uniform,
    StructurePrior::ErdosRenyi { edges_per_node: 0.5 },
    StructurePrior::EdgePenalty { beta: 0.3 },
    StructurePrior::Fair,
];

/// Returns an environment without rules, and environments with each rule and with all of them.
fn configs(nodes: usize) -> [StructureConfig; 5] {
    let free = StructureConfig::new(nodes);
    let forbidden = vec![(0, 2), (1, 0)];
    let required = vec![(2, 1), (0, 1)];
    [
        free.clone(),
        StructureConfig { max_parents: Some(1), ..free.clone() },
        StructureConfig { forbidden: forbidden.clone(), ..free.clone() },
        StructureConfig { required: required.clone(), ..free },
        StructureConfig { nodes, max_parents: Some(2), forbidden, required },
    ]
}

fn env(config: StructureConfig) -> GraphEnv {
    BayesianStructure::new(config).unwrap().into_env()
}

/// Walks 10,560 times: each rule with each score and prior, on 3 to 6 nodes.
#[test]
fn both_forms_agree() {
    for n in 3..=6 {
        for (k, score) in scores(n).into_iter().enumerate() {
            for prior in PRIORS {
                let reward = DagReward::new(&score, prior).unwrap();
                let reward = reward.relative_to(&acyclic(n, &[(0, 1)]).unwrap()).unwrap();
                assert!(reward.on_tensors().is_some());
                for (seed, config) in (k as u64..).zip(configs(n)) {
                    check_tensors(&env(config), &reward, 44, &mut Rng::seeded(seed)).unwrap();
                }
            }
        }
    }
}

#[test]
fn graphs_of_other_sizes_agree() {
    let zero = |states: &GraphStates, _: Option<&Tensor>| Ok(vec![0.0; states.graphs().len()]);
    tch::set_num_threads(1);
    for (n, walks) in [(1, 10), (2, 30), (9, 10), (12, 3)] {
        check_tensors(&env(StructureConfig::new(n)), &zero, walks, &mut Rng::seeded(0)).unwrap();
    }
    for (n, has_form) in [(32, true), (33, false)] {
        assert_eq!(env(StructureConfig::new(n)).tensor_form().is_some(), has_form);
    }
    let wide = DagReward::new(Width(13), StructurePrior::Uniform).unwrap();
    assert!(wide.on_tensors().is_none(), "the table of 13 nodes is too large");
}

/// A score that is the negative number of parents.
struct Width(usize);

impl LocalScore for Width {
    fn n_nodes(&self) -> usize {
        self.0
    }
    fn local_score(&self, _: usize, parents: &NodeSet) -> f64 {
        -(parents.len() as f64)
    }
}

/// Scores all graphs of four nodes by the table, and by the definition of score and prior.
#[test]
fn table_entries_sum_to_the_score_of_each_graph() {
    let env = env(StructureConfig::new(4));
    let graph = StateGraph::build(&env, 1_000).unwrap();
    let graphs = graph.states();
    assert_eq!(graphs.graphs().len(), 543);
    let states = env.tensor_form().unwrap().to_tensor(graphs, Device::Cpu);
    for score in scores(4) {
        let reward = DagReward::new(&score, StructurePrior::EdgePenalty { beta: 0.3 }).unwrap();
        let got = Vec::<f64>::try_from(reward.on_tensors().unwrap().log_rewards(&states).unwrap()).unwrap();
        for (graph, got) in graphs.graphs().iter().zip(got) {
            let expected = score.graph_score(graph).unwrap() + graph.n_edges() as f64 * 0.3f64.ln();
            assert!((got - expected).abs() < 1e-9, "{got} instead of {expected} of {graph}");
        }
        let wrong = reward.on_tensors().unwrap().log_rewards(&states.narrow(1, 0, 9)).unwrap_err();
        assert!(matches!(wrong, Error::Shape { .. }), "{wrong}");
    }
}

/// A reward whose tensor form takes the scores of nodes 0 and 1 from each other's part of the table.
struct Swapped<'a>(DagReward<&'a dyn LocalScore>);

impl Reward<GraphStates> for Swapped<'_> {
    fn log_reward(&self, states: &GraphStates, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        self.0.log_reward(states, conditions)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(self)
    }
}

impl TensorReward for Swapped<'_> {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let n = self.0.score().n_nodes() as i64;
        let order: Vec<i64> = [1, 0].into_iter().chain(2..n).collect();
        let order = Tensor::from_slice(&order);
        let swapped = states.view([-1, n, n]).index_select(2, &order).index_select(1, &order);
        self.0.log_rewards(&swapped.reshape([-1, n * n]))
    }
}

#[test]
fn a_table_of_swapped_nodes_is_refused() {
    let env = env(StructureConfig::new(4));
    for score in scores(4) {
        let reward = Swapped(DagReward::new(score.as_ref(), StructurePrior::Uniform).unwrap());
        let error = check_tensors(&env, &reward, 20, &mut Rng::seeded(0)).unwrap_err().to_string();
        assert!(error.contains("the log-reward of the tensor form"), "{error}");
    }
}

/// The tensors of an environment, with legal edges according to paths of at most four edges.
struct ShortPaths(GraphEnv);

impl ShortPaths {
    fn inner(&self) -> &dyn TensorEnv {
        self.0.tensor_form().unwrap().env()
    }
}

impl TensorEnv for ShortPaths {
    fn width(&self) -> usize {
        self.inner().width()
    }
    fn n_values(&self) -> usize {
        2
    }
    fn n_moves(&self, direction: Direction) -> usize {
        self.inner().n_moves(direction)
    }
    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        if direction == Direction::Backward {
            return self.inner().legal(direction, states);
        }
        let n = self.width().isqrt() as i64;
        let edges = states.view([-1, n, n]).to_kind(Kind::Float);
        let two = &edges + Tensor::eye(n, (Kind::Float, Device::Cpu));
        let two = two.bmm(&two);
        (two.bmm(&two).transpose(1, 2) + edges).eq(0).reshape([-1, n * n])
    }
    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        self.inner().step(direction, states, moves)
    }
    fn reverse(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        self.inner().reverse(direction, states, moves)
    }
    fn initial(&self, n: i64, device: Device) -> Tensor {
        self.inner().initial(n, device)
    }
}

/// Tests that a closure with one product too few is refused for a path through six nodes, and that it is
/// enough for a path through five.
#[test]
fn paths_that_are_not_found_are_refused() {
    fn to_tensor(env: &dyn TensorEnv, states: &GraphStates) -> Tensor {
        let features = AdjacencyFeatures::new(env.width().isqrt()).encode(states);
        let Features::Dense(values) = features else { panic!("adjacency features are dense") };
        Tensor::from_slice(&values).to_kind(Kind::Int64).view([-1, env.width() as i64])
    }
    fn from_tensor(states: &Tensor) -> GraphStates {
        let n = (states.size()[1] as usize).isqrt();
        let rows = Vec::<Vec<i64>>::try_from(states).unwrap();
        let graph = |row: Vec<i64>| {
            let slots = row.into_iter().enumerate().filter(|(_, entry)| *entry == 1);
            let pairs: Vec<_> = slots.map(|(slot, _)| ((slot / n) as u32, (slot % n) as u32)).collect();
            acyclic(n, &pairs).unwrap()
        };
        rows.into_iter().map(graph).collect::<Vec<_>>().into()
    }
    let zero = |states: &GraphStates, _: Option<&Tensor>| Ok(vec![0.0; states.graphs().len()]);
    for n in [5, 6] {
        let required = (1..n).map(|b| (b - 1, b)).collect();
        let path = env(StructureConfig { required, ..StructureConfig::new(n as usize) });
        check_tensors(&path, &zero, 10, &mut Rng::seeded(0)).unwrap();
        let form = TensorForm::new(ShortPaths(path.clone()), to_tensor, from_tensor);
        let checked = check_tensors(&path.with_tensors(form).unwrap(), &zero, 10, &mut Rng::seeded(0));
        match n {
            5 => checked.unwrap(),
            _ => assert!(checked.unwrap_err().to_string().contains("the legal forward slots")),
        }
    }
}

#[test]
fn what_is_no_state_is_refused() {
    let env = env(StructureConfig::new(3));
    let form = env.tensor_form().unwrap();
    let matrix = |edges: &[i64]| {
        let mut rows = vec![0i64; 9];
        edges.iter().for_each(|&slot| rows[slot as usize] = 1);
        Tensor::from_slice(&rows).view([1, 9])
    };
    assert_eq!(form.to_host(&matrix(&[1, 5])).unwrap(), super::graphs(3, &[&[(0, 1), (1, 2)]]));
    assert!(matches!(form.to_host(&(matrix(&[1]) * 2)), Err(Error::Config { .. })), "an entry of 2");
    assert!(matches!(form.to_host(&matrix(&[1]).narrow(1, 0, 4)), Err(Error::Shape { .. })), "two nodes");
    // A graph of other nodes isn't a state, so that nothing but the exit is legal.
    let other = super::graphs(4, &[&[(0, 1)]]);
    let row = form.to_tensor(&other, Device::Cpu);
    for direction in [Direction::Forward, Direction::Backward] {
        let legal = form.masks(direction, &row).sum(Kind::Int64).int64_value(&[]);
        assert_eq!(legal as usize, env.masks(direction, &other).n_legal(0));
    }
    assert!(form.to_host(&row).is_err());
    assert_eq!(form.to_tensor(&GraphStates::default(), Device::Cpu).size(), [0, 9]);
}

/// Trains a perceptron by trajectory balance, with all roll-outs and scores on tensors or on the host.
/// Returns the exact total variation between the policy and the posterior, before and after training.
fn train(on_tensors: bool, seed: u64) -> (f64, f64) {
    const STEPS: usize = 300;
    tch::set_num_threads(1);
    let env = env(StructureConfig::new(3));
    let graph = StateGraph::build(&env, 100).unwrap();
    let bge = Bge::new(&simulated(3, 12), BgeConfig::default()).unwrap();
    let reward = DagReward::new(bge, StructurePrior::Uniform).unwrap();
    let reward = reward.relative_to(&env.initial_graphs()[0]).unwrap();
    let posterior = ExactPosterior::from_states(graph.states(), &reward).unwrap();
    let mut rng = Rng::seeded(seed);
    let mlp = MlpConfig { hidden: vec![64], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    let features = AdjacencyFeatures::new(3);
    let policy = MlpPolicy::new(&env, features, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig {
        batch: 32,
        adam: AdamConfig { lr: 1e-2, log_z_lr: 1e-1, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.02, steps: STEPS },
        epsilon: Some(Schedule::Linear { from: 0.5, to: 0.1, steps: STEPS }),
        rollouts: if on_tensors { RolloutPlace::Device } else { RolloutPlace::Host },
        ..TrainerConfig::default()
    };
    let objective = TrajectoryBalance;
    let mut trainer =
        Trainer::new(env.clone(), reward, policy, objective, config, Rng::seeded(seed)).unwrap();
    let distance = |trainer: &Trainer<GraphEnv>| {
        let sampled = graph.terminating_distribution(&env, trainer.policy(), None).unwrap();
        Distances::between(&sampled.probs, posterior.probs()).unwrap().tv
    };
    let before = distance(&trainer);
    for _ in 0..STEPS {
        trainer.step().unwrap();
    }
    (before, distance(&trainer))
}

/// Trains with three seeds on tensors, and as often on the host.
#[test]
fn training_on_tensors_learns_as_on_the_host() {
    let [host, tensors] = [false, true].map(|on_tensors| [0, 1, 2].map(|seed| train(on_tensors, seed)));
    let mean = |runs: &[(f64, f64); 3]| runs.iter().map(|(_, after)| after).sum::<f64>() / 3.0;
    let worst = host.iter().map(|(_, after)| *after).fold(0.0, f64::max);
    let found = format!("{tensors:?} on tensors, {host:?} on the host");
    println!("{found}");
    assert!(tensors.iter().all(|(before, after)| *after < before / 5.0), "{found}");
    assert!(mean(&tensors) < 1.5 * worst, "{found}");
}
