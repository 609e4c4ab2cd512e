//! Tests that MLP policies learn the hyper-grid. Distances from the target are exact, so they have no
//! sampling noise.

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Env, VectorEnv, VectorStates};
use gfn::graph::GraphKind;
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::{DetailedBalance, Objective, TrajectoryBalance};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, ScaledEntries, StateFeatures};
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use tch::{Device, Kind, Tensor};

use crate::vectors_training::distances;

fn policy<F: StateFeatures<VectorStates>>(
    env: &VectorEnv,
    features: F,
    config: MlpPolicyConfig,
) -> MlpPolicy<F> {
    MlpPolicy::new(env, features, config, Device::Cpu, Kind::Float, &mut Rng::seeded(1)).unwrap()
}

/// Trains on a grid of 8 x 8 with 16 trajectories per step. Returns the exact L1 distance from the target,
/// and the error of log Z.
fn train(objective: impl Objective + 'static, config: MlpPolicyConfig, steps: usize) -> (f64, f64) {
    let grid = HyperGrid::new(2, 8).unwrap();
    let env = grid.env();
    let reward = OriginalReward::standard(&grid).unwrap();
    let policy = policy(&env, KHot::new(grid.ndim(), grid.height()), config);
    let lr = gfn::optim::Schedule::Linear { from: 1.0, to: 0.02, steps };
    let config = TrainerConfig {
        batch: 16,
        adam: AdamConfig { lr: 1e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        lr_scale: lr,
        ..TrainerConfig::default()
    };
    let mut trainer =
        Trainer::new(env.clone(), reward.clone(), policy, objective, config, Rng::seeded(2)).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let log_z = Policy::<VectorEnv>::log_z(trainer.policy(), None, 1).unwrap().double_value(&[0]);
    (distances(&env, trainer.policy(), &reward).l1, (log_z - reward.log_z()).abs())
}

/// Checks the distance from the target after training on 32,000 trajectories.
#[test]
fn trajectory_balance_reaches_the_target() {
    let (l1, log_z_error) = train(TrajectoryBalance, MlpPolicyConfig::default(), 2000);
    assert!(l1 <= 0.02 && log_z_error <= 0.02, "L1 {l1}, log Z off by {log_z_error}");
}

#[test]
fn detailed_balance_reaches_the_target() {
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    let (l1, _) = train(DetailedBalance::default(), config, 2000);
    assert!(l1 <= 0.02, "L1 {l1}");
}

/// Checks for every kind of network that P_F and P_B are distributions over the legal actions, and that a
/// state has the same distribution alone and in a batch.
#[test]
fn a_state_is_evaluated_independently() {
    let grid = HyperGrid::new(3, 6).unwrap();
    let env = grid.env();
    let states = grid.states_of([0, 7, 215, 100]).unwrap();
    let conditions = Tensor::from_slice(&[0.1f32, 0.7, -2.0, 1.0, 0.0, 0.3, 5.0, -1.0]).view([4, 2]);
    for backward in [BackwardPolicy::Uniform, BackwardPolicy::SharedTorso, BackwardPolicy::Separate] {
        for n_conditions in [0, 2] {
            let mlp = MlpConfig { hidden: vec![32], layer_norm: true, ..MlpConfig::default() };
            let defaults = MlpPolicyConfig::default();
            let of_conditions = EstimatorsConfig::conditional(n_conditions);
            let initial_log_z = (n_conditions == 0).then_some(1.0);
            let estimators = EstimatorsConfig { flow: true, initial_log_z, ..of_conditions };
            let config = MlpPolicyConfig { mlp, backward, estimators, ..defaults };
            let policy = policy(&env, ScaledEntries::new(grid.ndim(), grid.height()), config);
            let conditions = (n_conditions > 0).then(|| conditions.shallow_clone());
            let wants = Quantity::LogPf | Quantity::LogPb | Quantity::LogFlow;
            let all = policy.evaluate(&env, &states, conditions.as_ref(), wants).unwrap();
            assert_eq!(all.pf.as_ref().unwrap().masks(), &env.masks(Direction::Forward, &states));
            let flows = all.values.get(Quantity::LogFlow).unwrap();
            assert_eq!(flows.size(), [4]);
            assert!(Policy::<VectorEnv>::log_z(&policy, conditions.as_ref(), 4).unwrap().size() == [4]);
            let pf = all.pf.unwrap();
            let pb = all.pb.unwrap();
            for (row, key) in [0, 7, 215, 100].into_iter().enumerate() {
                let alone = grid.states_of([key]).unwrap();
                let condition = conditions.as_ref().map(|c| c.narrow(0, row as i64, 1));
                let one = policy.evaluate(&env, &alone, condition.as_ref(), wants).unwrap();
                for (batch, single) in [(&pf, one.pf.unwrap()), (&pb, one.pb.unwrap())] {
                    let range = batch.legal_offsets()[row]..batch.legal_offsets()[row + 1];
                    let a = &batch.host_log_probs().unwrap()[range];
                    let b = single.host_log_probs().unwrap();
                    assert!(a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-5));
                    let total: f64 = a.iter().map(|x| x.exp()).sum();
                    assert!(a.is_empty() || (total - 1.0).abs() < 1e-5);
                }
                let flow = one.values.get(Quantity::LogFlow).unwrap().double_value(&[0]);
                assert!((flow - flows.double_value(&[row as i64])).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn policies_that_do_not_fit_are_refused() {
    let grid = HyperGrid::new(2, 4).unwrap();
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::conditional(2), ..MlpPolicyConfig::default() };
    let conditional = policy(&grid.env(), KHot::new(grid.ndim(), grid.height()), config.clone());
    let states = grid.env().initial(&[0; 3]);
    let wrong = Tensor::zeros([3, 1], (Kind::Float, Device::Cpu));
    for given in [None, Some(&wrong)] {
        let error =
            conditional.evaluate(&grid.env(), &states, given, Quantities::PF).unwrap_err().to_string();
        assert!(error.contains("expected [3, 2]"), "{error}");
    }
    let new = |config| {
        MlpPolicy::new(
            &grid.env(),
            KHot::new(grid.ndim(), grid.height()),
            config,
            Device::Cpu,
            Kind::Float,
            &mut Rng::seeded(0),
        )
    };
    let negative = MlpPolicyConfig { estimators: EstimatorsConfig::conditional(-1), ..config.clone() };
    assert!(new(negative).unwrap_err().to_string().starts_with("n_conditions is -1"));
    let empty = MlpPolicyConfig { mlp: MlpConfig { hidden: vec![0], ..MlpConfig::default() }, ..config };
    assert!(new(empty).unwrap_err().to_string().contains("sizes of at least 1"));

    // A graph environment needs several groups of logits, which an MLP policy of vectors can't give.
    #[derive(Debug)]
    struct AnyFeatures;
    impl StateFeatures<gfn::graph::GraphStates> for AnyFeatures {
        fn width(&self) -> usize {
            1
        }
        fn encode(&self, _: &gfn::graph::GraphStates) -> gfn::policy::Features {
            gfn::policy::Features::Dense(vec![0.0])
        }
    }
    // In this environment the number of slots grows with the number of nodes, so an MLP policy must be
    // refused.
    let grown = gfn_gym::triangle::Triangle::new(GraphKind::Directed, 2).unwrap().into_env();
    let config = MlpPolicyConfig::default();
    let error = MlpPolicy::new(&grown, AnyFeatures, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))
        .unwrap_err();
    assert!(error.to_string().contains("use a `GraphPolicy`"), "{error}");
}
