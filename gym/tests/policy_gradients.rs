//! Tests of the critics and divergences of policy gradients: hand-computed numbers, exact flows, finite
//! differences, and short training runs with exact distances.

use std::sync::{Arc, Mutex};

use gfn::env::{Direction, EnumerableEnv, Reward, VectorEnv, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::{
    Advantage, Critic, KlEstimator, Objective, PolicyGradient, ProximalPolicy, Quantities, Quantity,
    Regression, RegressionLoss, Scores, TrajectoryBalance, Values, Weighting,
};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::rollout::Container;
use gfn::train::{Batch, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

use crate::objectives::{Check, DefinedQuantities, exact_scores, on_every_environment, walks};
use crate::vectors_training::distances;

const SUB_EB: Critic = Critic::EvaluationBalance(Weighting::GeometricWithin { lambda: 0.9 });
const GAE: Advantage = Advantage::Gae { lambda: 0.7 };

fn numbers(values: &[f64]) -> Tensor {
    Tensor::from_slice(values)
}

fn with_critic(critic: Critic, value_weight: f64) -> PolicyGradient {
    PolicyGradient { advantage: GAE, critic, value_weight }
}

fn value(objective: &dyn Objective, scores: &Scores) -> f64 {
    objective.loss(scores, &Regression::Squared).unwrap().double_value(&[])
}

/// Returns the scores of a trajectory of two transitions, with log F 0.5 and -0.25 in its two states.
fn two_transitions(log_pf: &Tensor, log_flow: &Tensor) -> Scores {
    let (log_pf, log_pb) = (log_pf.shallow_clone(), numbers(&[-0.5, 0.0]));
    let mut scores = Scores::new(vec![0, 2], log_pf, log_pb, numbers(&[2.0]));
    scores.set(Quantity::LogFlow, log_flow.shallow_clone()).unwrap();
    scores
}

#[test]
fn losses_of_critics_equal_hand_computed_ones() {
    let scores = two_transitions(&numbers(&[-1.0, -2.0]), &numbers(&[0.5, -0.25]));
    // Residuals of the first transition, of the second one and of both: log F + sum log P_F - sum log P_B -
    // log F'.
    let residuals = [0.5 - 1.0 + 0.5 + 0.25, -0.25 - 2.0 - 2.0, 0.5 - 3.0 + 0.5 - 2.0];
    // The temporal differences are -0.25 and 4.25, and the advantages -0.25 + 0.7 * 4.25 and 4.25.
    let advantages: [f64; 2] = [-0.25 + 0.7 * 4.25, 4.25];
    let returns: [f64; 2] = [4.5 - 0.5, 4.0 + 0.25];
    let mean_square = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
    for (critic, expected) in [
        (Critic::EvaluationBalance(Weighting::EqualWithin), mean_square(&residuals)),
        (Critic::LambdaReturns, mean_square(&advantages)),
        (Critic::Returns, mean_square(&returns)),
    ] {
        let got = value(&with_critic(critic, 1.0), &scores) - value(&with_critic(critic, 0.0), &scores);
        assert!((got - expected).abs() < 1e-12, "{critic:?}: {got} instead of {expected}");
    }
}

/// Checks that the loss of each critic trains log F with the gradient of finite differences, and leaves P_F
/// alone.
#[test]
fn critics_train_the_flow_only() {
    for critic in [SUB_EB, Critic::EvaluationBalance(Weighting::Db)] {
        let (log_pf, log_flow) = ([-1.0, -2.0], [0.5, -0.25]);
        let gradients = |value_weight: f64| -> [Vec<f64>; 2] {
            let leaves = [log_pf, log_flow].map(|values| numbers(&values).set_requires_grad(true));
            let scores = two_transitions(&leaves[0], &leaves[1]);
            with_critic(critic, value_weight).loss(&scores, &Regression::Squared).unwrap().backward();
            leaves.map(
                |leaf| if leaf.grad().defined() { Vec::try_from(leaf.grad()).unwrap() } else { vec![0.0; 2] },
            )
        };
        let [without, with] = [0.0, 1.0].map(gradients);
        assert_eq!(without[0], with[0], "{critic:?}: the critic must not train P_F");
        for k in 0..2 {
            let moved = |step: f64| {
                let mut flows = log_flow;
                flows[k] += step;
                let scores = two_transitions(&numbers(&log_pf), &numbers(&flows));
                // The term of the policy depends on log F through the advantages, which are constants.
                value(&with_critic(critic, 1.0), &scores) - value(&with_critic(critic, 0.0), &scores)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - with[1][k]).abs() < 1e-6, "{critic:?} {k}: {slope} {:?}", with[1]);
        }
    }
}

#[test]
fn settings_of_critics_are_checked() {
    let total = PolicyGradient { critic: SUB_EB, ..PolicyGradient::new(Advantage::Total).unwrap() };
    assert!(total.check().unwrap_err().to_string().contains("critic"));
    let lambda = Critic::EvaluationBalance(Weighting::Geometric { lambda: 2.0 });
    assert!(with_critic(lambda, 0.5).check().unwrap_err().to_string().contains("lambda is 2"));
}

/// A check that the loss of the evaluation balance is zero for exact flows, and positive for another reward.
struct EvaluationBalances;

impl Check for EvaluationBalances {
    fn run<E, R>(&self, env: &E, reward: &R, _: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        let mut scores = exact_scores(env, reward, 64, Quantity::LogFlow);
        let loss = |scores: &Scores| {
            value(&with_critic(SUB_EB, 1.0), scores) - value(&with_critic(SUB_EB, 0.0), scores)
        };
        assert!(loss(&scores).abs() < 1e-8);
        scores.log_reward = &scores.log_reward + 0.5;
        assert!(loss(&scores) > 1e-3);
    }
}

#[test]
fn evaluation_balances_vanish_under_exact_flows() {
    on_every_environment(EvaluationBalances);
}

/// A check of the log-probabilities of all actions: in each state they sum to 1 and give the entropy.
struct AllActions;

impl Check for AllActions {
    fn run<E, R>(&self, env: &E, reward: &R, _: DefinedQuantities)
    where
        E: EnumerableEnv<States = VectorStates>,
        R: Reward<VectorStates> + Sync,
    {
        let scores = exact_scores(env, reward, 16, Quantity::AllLogPf | Quantity::Entropy);
        let [all, entropies] = [Quantity::AllLogPf, Quantity::Entropy]
            .map(|quantity| Vec::<f64>::try_from(scores.get(quantity).unwrap()).unwrap());
        let masks = env.masks(Direction::Forward, walks(env, 16).states());
        let mut start = 0;
        for (state, expected) in entropies.iter().enumerate() {
            let end = start + masks.n_legal(state);
            let probs: Vec<f64> = all[start..end].iter().map(|log_p| log_p.exp()).collect();
            let entropy: f64 = -probs.iter().map(|p| p * p.ln()).sum::<f64>();
            assert!((probs.iter().sum::<f64>() - 1.0).abs() < 1e-6, "state {state}: {probs:?}");
            assert!((entropy - expected).abs() < 1e-4, "state {state}: {entropy} instead of {expected}");
            start = end;
        }
        assert_eq!((start, entropies.len()), (all.len(), scores.log_pf.numel()));
    }
}

#[test]
fn all_actions_have_the_probabilities_of_the_policy() {
    on_every_environment(AllActions);
}

const OLD: [f64; 3] = [0.2, 0.5, 0.3];
const NEW: [f64; 3] = [0.4, 0.35, 0.25];

/// Returns the scores of a trajectory of one action out of three. `log_pf` are the log-probabilities of all
/// three; those of the policy that sampled the trajectory are [`OLD`]. log F is 0.
fn one_action(log_pf: &Tensor, action: usize, log_reward: f64) -> Scores {
    let old = numbers(&OLD).log();
    let only = |all: &Tensor| all.narrow(0, action as i64, 1);
    let zero = numbers(&[0.0]);
    let mut scores = Scores::new(vec![0, 1], only(log_pf), zero.shallow_clone(), numbers(&[log_reward]));
    scores.set(Quantity::LogFlow, zero.shallow_clone()).unwrap();
    scores.set(Quantity::AllLogPf, log_pf.shallow_clone()).unwrap();
    let values = Values::default().with(Quantity::LogPf, only(&old)).with(Quantity::LogFlow, zero);
    scores.old = Some(values.with(Quantity::AllLogPf, old));
    scores
}

/// Returns the term of the divergence in the loss of a trajectory of one action out of three.
fn divergence_term(divergence: KlEstimator, action: usize) -> f64 {
    let scores = one_action(&numbers(&NEW).log(), action, 0.0);
    let loss = |kl| value(&ProximalPolicy { kl, divergence, ..ProximalPolicy::default() }, &scores);
    loss(1.0) - loss(0.0)
}

/// Checks the exact divergence against its definition, and that its estimate from single actions has the same
/// mean.
#[test]
fn divergences_equal_their_definition() {
    let expected: f64 = NEW.iter().zip(OLD).map(|(p, q)| p * (p / q).ln()).sum();
    let mut mean = 0.0;
    for (action, q) in (0..).zip(OLD) {
        assert!((divergence_term(KlEstimator::Exact, action) - expected).abs() < 1e-12);
        let estimate = divergence_term(KlEstimator::Sampled, action);
        assert!(estimate > 0.0);
        mean += q * estimate;
    }
    assert!((mean - expected).abs() < 1e-12, "{mean} instead of {expected}");
}

/// Checks that the minimum of the loss without clipping is the soft policy improvement: with the exact
/// divergence it is the policy in proportion to `P_F,old exp(advantage)`. Without the divergence it is
/// another policy.
#[test]
fn the_entropic_loss_is_minimal_at_the_soft_improvement() {
    let advantages = [0.6, -0.4, 0.1];
    let weights: Vec<f64> = OLD.iter().zip(advantages).map(|(p, a): (&f64, f64)| p * a.exp()).collect();
    let gradient = |kl: f64| {
        let logits = numbers(&weights).log().set_requires_grad(true);
        let all = logits.log_softmax(0, Kind::Double);
        let mut loss = Tensor::from(0.0);
        for action in 0..3 {
            // The return is log R - log P_F,old, so this log R makes it the advantage.
            let scores = one_action(&all, action, advantages[action] + OLD[action].ln());
            let objective = ProximalPolicy { kl, clip: f64::INFINITY, ..ProximalPolicy::entropic() };
            loss += objective.loss(&scores, &Regression::Squared).unwrap() * OLD[action];
        }
        loss.backward();
        logits.grad().abs().max().double_value(&[])
    };
    assert!(gradient(1.0) < 1e-12, "{}", gradient(1.0));
    assert!(gradient(0.0) > 1e-2);
}

/// Builds a trainer on a grid of 5 x 5.
fn build(
    objective: impl Into<Box<dyn Objective>>,
    config: TrainerConfig,
    seed: u64,
) -> Result<Trainer<VectorEnv>> {
    tch::set_num_threads(1);
    let grid = HyperGrid::new(2, 5).unwrap();
    let env = grid.env();
    let network = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![64, 64], ..MlpConfig::default() },
        backward: BackwardPolicy::Uniform,
        estimators: EstimatorsConfig::with_flow(true),
        ..MlpPolicyConfig::default()
    };
    let mut rng = Rng::seeded(seed);
    let policy = MlpPolicy::new(&env, KHot::new(2, 5), network, Device::Cpu, Kind::Float, &mut rng)?;
    Trainer::new(env, OriginalReward::standard(&grid)?, policy, objective, config, rng)
}

fn trainer(objective: impl Into<Box<dyn Objective>>, steps: usize, seed: u64) -> Trainer<VectorEnv> {
    let config = TrainerConfig {
        batch: 16,
        epsilon: Some(Schedule::Constant(0.0)),
        adam: AdamConfig { lr: 3e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        ..TrainerConfig::default()
    };
    build(objective, config, seed).unwrap()
}

/// Trains on a grid of 5 x 5 and returns the exact total variation from the target.
fn train(objective: impl Into<Box<dyn Objective>>, steps: usize, seed: u64) -> f64 {
    let mut trainer = trainer(objective, steps, seed);
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let reward = OriginalReward::standard(&HyperGrid::new(2, 5).unwrap()).unwrap();
    distances(trainer.env(), trainer.policy(), &reward).l1 / 2.0
}

#[test]
fn critics_and_parts_train_to_the_target() {
    let entropic = ProximalPolicy::entropic();
    let objectives: [Box<dyn Objective>; 4] = [
        Box::new(with_critic(SUB_EB, 0.5)),
        Box::new(with_critic(Critic::LambdaReturns, 0.5)),
        Box::new(ProximalPolicy { n_minibatches: 2, ..entropic }),
        Box::new(ProximalPolicy { divergence: KlEstimator::Sampled, critic: SUB_EB, ..entropic }),
    ];
    for objective in objectives {
        let settings = objective.settings();
        let tv = train(objective, 500, 0);
        assert!(tv < 0.02, "{settings}: {tv}");
    }
}

/// What an objective saw at each update: the number of trajectories, and the sums of log P_F and of the old
/// log P_F.
type Updates = Arc<Mutex<Vec<(usize, f64, Option<f64>)>>>;

/// Trajectory balance with three passes over two minibatches of each batch, which records its scores.
#[derive(Debug)]
struct Recorder(Updates);

impl Objective for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn needs(&self) -> Quantities {
        TrajectoryBalance.needs()
    }
    fn epochs(&self) -> usize {
        3
    }
    fn n_minibatches(&self) -> usize {
        2
    }
    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> Result<Tensor> {
        let sum = |tensor: &Tensor| tensor.sum(Kind::Double).double_value(&[]);
        let old = scores.old.as_ref().map(|old| sum(old.get(Quantity::LogPf).unwrap()));
        self.0.lock().unwrap().push((scores.len(), sum(&scores.log_pf), old));
        TrajectoryBalance.loss(scores, regression)
    }
}

/// Checks the updates on minibatches: each pass sees both minibatches, and the old scores of a minibatch are
/// those from before the first update, also for the minibatch that is second.
#[test]
fn each_pass_updates_each_minibatch_once() {
    let updates = Updates::default();
    let mut trainer = trainer(Recorder(updates.clone()), 10, 0);
    trainer.step().unwrap();
    let updates = std::mem::take(&mut *updates.lock().unwrap());
    // The first entry is the whole batch, whose loss is reported.
    let (whole, minibatches) = (updates[0], &updates[1..]);
    assert_eq!(minibatches.len(), 6);
    let old: Vec<f64> = minibatches.iter().map(|minibatch| minibatch.2.unwrap()).collect();
    for (k, &(n, log_pf, _)) in minibatches.iter().enumerate() {
        assert_eq!((n, old[k]), (8, old[k % 2]));
        assert_eq!((log_pf - old[k]).abs() < 1e-9, k == 0, "update {k}");
    }
    assert!((old[0] + old[1] - whole.1).abs() < 1e-5);
    let refused = |batch| {
        let config = TrainerConfig { batch, ..TrainerConfig::default() };
        build(Recorder(Updates::default()), config, 0).err()
    };
    assert!(
        refused(1)
            .unwrap()
            .to_string()
            .contains("n_minibatches is 2 for a batch (or a replica's share) of size 1")
    );
    assert!(refused(2).is_none());
}

/// Checks that two splits of a batch have the same trajectories, in different minibatches, and that a batch
/// with too few trajectories is refused.
#[test]
fn minibatches_are_drawn_at_random() {
    let mut trainer = trainer(Recorder(Updates::default()), 10, 0);
    let mut batch = trainer.draw().unwrap();
    tch::no_grad(|| trainer.score(&mut batch)).unwrap();
    let [first, again] = [(), ()].map(|()| trainer.split(&batch).unwrap());
    let objects = |minibatches: &[Batch<VectorEnv>]| -> Vec<Vec<Vec<u16>>> {
        let rows = |one: &Batch<VectorEnv>| {
            one.trajectories.terminal_states().rows().map(<[u16]>::to_vec).collect::<Vec<_>>()
        };
        minibatches.iter().map(rows).collect()
    };
    let [first, again] = [objects(&first), objects(&again)];
    assert_ne!(first, again);
    let sorted = |minibatches: Vec<Vec<Vec<u16>>>| {
        let mut all = minibatches.concat();
        all.sort();
        all
    };
    assert_eq!(sorted(first), sorted(again));
    let few = batch.trajectories.select(0..1).unwrap();
    let message = trainer.split(&Batch::from(few)).unwrap_err().to_string();
    assert!(message.contains("2 for a batch (or a replica's share) of size 1"), "{message}");
}

/// Repeats two effects that the paper of Ent-PPO reports, on a grid whose distances are exact. After 50
/// batches the policy is nearer to the target than by trajectory balance, for each of three seeds. If 16
/// passes are made over each batch, and ratios aren't clipped, the divergence brings it nearer than no
/// divergence.
#[test]
fn entropic_updates_need_fewer_batches() {
    let free = ProximalPolicy { epochs: 16, clip: f64::INFINITY, ..ProximalPolicy::entropic() };
    for seed in 0..3 {
        let balance = train(TrajectoryBalance, 50, seed);
        let entropic = train(ProximalPolicy::entropic(), 50, seed);
        assert!(entropic < 0.1 && balance > 0.2, "{seed}: {entropic} {balance}");
        let [with, without] = [1.0, 0.0].map(|kl| train(ProximalPolicy { kl, ..free }, 50, seed));
        assert!(with < without, "{seed}: {with} {without}");
    }
}
