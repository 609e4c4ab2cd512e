//! Tests of two modules for hyper-grid rewards: the hash of points, and systems of linear equations modulo 2.
//! The modules are private in gfn-gym, so this test program compiles their files itself.

#![allow(dead_code, reason = "tests call less of them than gfn-gym does")]

use gfn::Rng;
use gfn_gym::hypergrid::HyperGrid;
use linear_system::{LinearSystem, parity};
use point_hash::PointHash;
use proptest::prelude::*;

#[path = "../src/hypergrid/reward/linear_system.rs"]
mod linear_system;
#[path = "../src/hypergrid/reward/point_hash.rs"]
mod point_hash;

proptest! {
    /// Compares the rank, the consistency and the solutions of random systems of linear equations modulo 2
    /// with a search over all values of their 8 unknowns.
    #[test]
    fn elimination_agrees_with_trying_everything(
        equations in proptest::collection::vec((0u128..256, any::<bool>()), 0..10),
        free in 0u128..256,
    ) {
        let mut system = LinearSystem::new();
        for &(mask, odd) in &equations {
            system.add(mask, odd);
        }
        let solves = |bits: u128| equations.iter().all(|&(mask, odd)| parity(mask & bits) == odd);
        let solutions = (0..256).filter(|&bits| solves(bits)).count();
        prop_assert!((0..256).all(|bits| system.holds(bits) == solves(bits)));
        prop_assert_eq!(solutions, if system.is_consistent() { 256 >> system.rank() } else { 0 });
        prop_assert_eq!(system.solution(free).is_some(), solutions > 0);
        prop_assert!(system.solution(free).is_none_or(solves));
    }
}

/// Checks that the hash looks uniform: its mean, its variance and the correlation of neighbouring points are
/// within five standard errors of those of independent uniform numbers.
#[test]
fn looks_uniform_and_neighbours_are_unrelated() {
    let grid = HyperGrid::new(2, 256).unwrap();
    let hash = PointHash::random(&mut Rng::seeded(3));
    let n = f64::from(1 << 16);
    let values: Vec<f64> = (0..=255)
        .flat_map(|x| (0..=255).map(move |y| [x, y]))
        .map(|p| hash.uniform(grid.index(&p)) - 0.5)
        .collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| v * v).sum::<f64>() / n;
    let covariance = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n;
    assert!(mean.abs() < 5.0 / (12.0 * n).sqrt(), "{mean}");
    assert!((variance - 1.0 / 12.0).abs() < 5.0 / (180.0 * n).sqrt(), "{variance}");
    assert!(covariance.abs() < 5.0 / (12.0 * n.sqrt()), "{covariance}");
}
