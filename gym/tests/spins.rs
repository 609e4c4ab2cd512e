//! Tests of Ising models: log Z computed with transfer matrices must equal sums over all states.

use gfn::env::{Reward, VectorStates};
use gfn::tensor::log_sum_exp;
use gfn::{Error, Rng};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use lattice::{bonds, log_z};

// This module is private in gfn-gym, so the test program compiles its file itself.
#[path = "../src/discrete_ebm/lattice.rs"]
mod lattice;

fn all_states(n: usize) -> VectorStates {
    let vectors: Vec<Vec<bool>> =
        (0..1usize << n).map(|x| (0..n).map(|i| x >> i & 1 == 1).collect()).collect();
    DiscreteEbm::new(n).unwrap().states_of(&vectors).unwrap()
}

fn sum(values: &[f64]) -> f64 {
    log_sum_exp(values.iter().copied())
}

/// Tests couplings without any symmetry: rewards must equal the definition, and log Z must equal a sum over
/// all states.
#[test]
fn general_couplings() {
    let n = 11;
    let alpha = -0.3;
    let mut rng = Rng::seeded(1);
    let j: Vec<f64> = (0..n * n).map(|_| rng.normal()).collect();
    let reward = IsingReward::new(n, &j, alpha).unwrap();
    let states = all_states(n);
    let expected: Vec<f64> = states
        .rows()
        .map(|row| {
            let s = |i: usize| 2.0 * f64::from(row[i] - 1) - 1.0;
            alpha * (0..n * n).map(|k| j[k] * s(k / n) * s(k % n)).sum::<f64>()
        })
        .collect();
    let got = reward.log_reward(&states, None).unwrap();
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-10));
    assert!((reward.log_z().unwrap() - sum(&expected)).abs() < 1e-10);
    // The partial reward is the sum of the terms in which all spins are set. If a single spin is set, this is
    // only its term with itself. If no spin is set, there is no term.
    let mut one = vec![0; n];
    one[4] = 1;
    let partial = VectorStates::from_flat(n, [vec![0; n], one].concat()).unwrap();
    let values = reward.partial_log_reward(&partial, None).unwrap().unwrap();
    assert!(values[0] == 0.0 && (values[1] - alpha * j[4 * n + 4]).abs() < 1e-12);
    assert!(reward.log_reward(&partial, None).is_err());
    assert_eq!(reward.partial_log_reward(&states, None).unwrap().unwrap(), got);
}

/// Checks that the transfer matrix gives the same log Z as enumeration, for couplings of either sign. Also
/// checks that a lattice equals the model built from its matrix of couplings.
#[test]
fn lattices() {
    for (side, coupling, alpha) in [(3, 0.44, 1.0), (3, -0.7, 0.5), (4, 0.2, 1.0), (4, -0.44, 2.0)] {
        let reward = IsingReward::lattice(side, coupling, alpha).unwrap();
        let values = reward.log_reward(&all_states(side * side), None).unwrap();
        assert!((reward.log_z().unwrap() - sum(&values)).abs() < 1e-10, "{side} {coupling}");
    }
    let two = IsingReward::lattice(2, 0.44, 1.0).unwrap();
    assert_eq!(two.log_reward(&all_states(4), None).unwrap()[0], 8.0 * 0.44);
    assert!((two.log_z().unwrap() - sum(&two.log_reward(&all_states(4), None).unwrap())).abs() < 1e-12);
    // With a coupling of 0 all 2^36 states have the same reward, 1.
    let free = IsingReward::lattice(6, 0.0, 1.0).unwrap();
    assert!((free.log_z().unwrap() - 36.0 * 2f64.ln()).abs() < 1e-10);
    // With a strong coupling, nearly all of Z comes from the two states in which all spins are equal. There
    // are two pairs of neighbours per spin.
    let strong = IsingReward::lattice(7, 10.0, 1.0).unwrap();
    assert!((strong.log_z().unwrap() - (2f64.ln() + 2.0 * 10.0 * 2.0 * 49.0)).abs() < 1e-9);
    assert_eq!(IsingReward::lattice(10, 0.4, 1.0).unwrap().log_z(), None);
}

#[test]
fn senseless_couplings_are_refused() {
    assert!(matches!(IsingReward::new(2, &[1.0; 3], 1.0), Err(Error::Shape { .. })));
    assert!(matches!(IsingReward::new(2, &[1.0, f64::NAN, 0.0, 0.0], 1.0), Err(Error::NonFinite { .. })));
    assert!(
        IsingReward::new(0, &[], 1.0).is_err()
            && IsingReward::with_equal_couplings(2, f64::INFINITY).is_err()
    );
    assert!(IsingReward::lattice(1, 0.4, 1.0).is_err() && IsingReward::lattice(3, f64::NAN, 1.0).is_err());
    assert!(DiscreteEbm::new(0).is_err() && DiscreteEbm::new(2).unwrap().states_of(&[[true]]).is_err());
    assert_eq!(
        (DiscreteEbm::new(40).unwrap().n_states(), DiscreteEbm::new(41).unwrap().n_states()),
        (Some(3u64.pow(40)), None)
    );
}

#[test]
fn every_spin_has_its_neighbours() {
    assert_eq!(bonds(2), [(0, 1), (0, 2), (1, 3), (2, 3)]);
    for side in [3, 4, 5] {
        let bonds = bonds(side);
        assert_eq!(bonds.len(), 2 * side * side);
        for spin in 0..side * side {
            assert_eq!(bonds.iter().filter(|(a, b)| *a == spin || *b == spin).count(), 4);
        }
    }
}

#[test]
fn strong_couplings_leave_the_states_of_most_bonds() {
    // With a strong positive coupling, nearly all of Z comes from the two states in which all spins are
    // equal. With a strong negative coupling on a lattice of even side, it comes from the two states in which
    // all neighbours differ.
    for (side, strength) in [(3, 60.0), (4, 60.0), (4, -60.0), (8, -400.0)] {
        let all_bonds = 2.0 * (side * side) as f64 * f64::abs(strength);
        let got = log_z(side, strength);
        assert!((got - all_bonds - 2f64.ln()).abs() < 1e-9 * all_bonds, "{side} {strength}: {got}");
    }
    // On a lattice of odd side, neighbours can't all differ: each row and each column has at least one pair
    // of equal neighbours. The result is compared with a sum over all states.
    for strength in [-40.0, -90.0, -400.0, -4000.0] {
        let listed = (0..512u32).map(|state| {
            let spin = |at: usize| 2.0 * f64::from(state >> at & 1) - 1.0;
            strength * bonds(3).iter().map(|&(a, b)| spin(a) * spin(b)).sum::<f64>()
        });
        let expected = log_sum_exp(listed.collect::<Vec<_>>());
        let got = log_z(3, strength);
        assert!((got - expected).abs() < 1e-12 * expected.abs(), "{strength}: {got} {expected}");
    }
}
