//! Tests of the policy of EB-GFN: the next coordinate is uniform, and two logits per coordinate give its
//! value. The trained policy must sample spins from the target.

use gfn::Rng;
use gfn::distribution::Distribution;
use gfn::env::{Slots, VectorStates};
use gfn::nn::MlpConfig;
use gfn::objective::TrajectoryBalance;
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::policy::Policy;
use gfn_gym::discrete_ebm::{DiscreteEbm, EbmBackward, EbmPolicy};
use tch::{Device, Kind};

use crate::vectors_training::train_spins;

fn policy(n: usize, backward: EbmBackward, kind: Kind) -> EbmPolicy {
    let config = MlpConfig { hidden: vec![64], ..MlpConfig::default() };
    let ebm = DiscreteEbm::new(n).unwrap();
    EbmPolicy::new(&ebm, &config, backward, Device::Cpu, kind, &mut Rng::seeded(1)).unwrap()
}

#[test]
fn coordinates_are_drawn_alike_and_values_by_their_logits() {
    let env = DiscreteEbm::new(3).unwrap().env();
    let policy = policy(3, EbmBackward::Learned, Kind::Double);
    // The last layer gets weights of 0 and these nine biases, so its outputs equal the biases in every state.
    // The first six are the logits of two values for each coordinate. The last three are the logits of P_B.
    let biases = [0.3, -1.0, 0.0, 0.8, 0.5, 2.0, 0.1, 0.2, 0.7];
    tch::no_grad(|| {
        let list: Vec<_> = policy.parameters().unwrap().iter().collect();
        let last = |name: &str| list.iter().find(|p| p.name == name).unwrap().tensor.shallow_clone();
        let _ = last("torso.1.weight").zero_();
        last("torso.1.bias").copy_(&tch::Tensor::from_slice(&biases));
    });
    // In this state only coordinate 1 is set; its value is 1.
    let states = VectorStates::from_rows([[0u16, 2, 0]; 4]);
    let both = Quantity::LogPf | Quantity::LogPb;
    let evaluation = policy.evaluate(&env, &states, None, both).unwrap();
    let log_p = evaluation.pf.unwrap().log_prob(&[0, 1, 2, 3], &Slots(vec![0, 2, 3, 5])).unwrap();
    for (k, (own, other)) in [(0.3f64, 0.8f64), (0.0, 2.0), (0.8, 0.3), (2.0, 0.0)].into_iter().enumerate() {
        let expected = own.exp() / (own.exp() + other.exp()) / 2.0;
        assert!((log_p.double_value(&[k as i64]).exp() - expected).abs() < 1e-12);
    }
    // P_B must be a softmax over the logits of the coordinates that are set, which are 0 and 2.
    let states = VectorStates::from_rows([[1u16, 0, 2]]);
    let pb = policy.evaluate(&env, &states, None, Quantities::PB).unwrap().pb.unwrap();
    let expected = 0.1f64.exp() / (0.1f64.exp() + 0.7f64.exp());
    let p = pb.log_prob(&[0], &Slots(vec![0])).unwrap().double_value(&[0]).exp();
    assert!((p - expected).abs() < 1e-12);
}

/// Trains on 4 spins with all couplings 1, with a uniform and with a learned P_B, and checks the exact L1
/// distance from the target.
#[test]
fn the_policy_learns_spins() {
    tch::set_num_threads(1);
    for backward in [EbmBackward::Uniform, EbmBackward::Learned] {
        // With a learned P_B training needs more steps to converge.
        let steps = if backward == EbmBackward::Uniform { 1_000 } else { 3_000 };
        let adam = AdamConfig { lr: 3e-3, ..AdamConfig::default() };
        let l1 = train_spins(policy(4, backward, Kind::Float), TrajectoryBalance, adam, steps);
        assert!(l1 <= 0.05, "{backward:?}: L1 {l1}");
    }
}
