//! Distances between sets of points are compared with a search of all pairings, and with results of manual
//! calculations.

use gfn::Rng;
use gfn::env::Reals;
use gfn_extras::transport::{cheapest_matching, maximum_mean_discrepancy, wasserstein2};

fn cheapest(cost: &[f64], n: usize, row: usize, used: &mut Vec<bool>) -> f64 {
    if row == n {
        return 0.0;
    }
    let mut best = f64::INFINITY;
    for j in 0..n {
        if !used[j] {
            used[j] = true;
            best = best.min(cost[row * n + j] + cheapest(cost, n, row + 1, used));
            used[j] = false;
        }
    }
    best
}

#[test]
fn pairings_are_the_cheapest_of_all() {
    let mut rng = Rng::seeded(3);
    for n in 1..=7 {
        for _ in 0..20 {
            // The costs are small integers, so that several pairings have equal costs.
            let cost: Vec<f64> = (0..n * n).map(|_| rng.below(6) as f64).collect();
            let pairs = cheapest_matching(&cost, n, &mut || Ok(())).unwrap();
            let mut columns = pairs.clone();
            columns.sort_unstable();
            assert_eq!(columns, (0..n).collect::<Vec<_>>());
            let got: f64 = pairs.iter().enumerate().map(|(i, &j)| cost[i * n + j]).sum();
            assert_eq!(got, cheapest(&cost, n, 0, &mut vec![false; n]));
        }
    }
}

fn normals(n: usize, shift: f64, rng: &mut Rng) -> Reals {
    Reals::from_flat(1, (0..n).map(|_| shift + rng.normal()).collect()).unwrap()
}

/// Tests points on a line. The cheapest matching pairs points in ascending order. If all points are
/// shifted, the distance must be the shift.
#[test]
fn distances_of_known_pairs() {
    let mut rng = Rng::seeded(4);
    let a = normals(200, 0.0, &mut rng);
    let b = normals(200, 0.7, &mut rng);
    let mut x = a.values().to_vec();
    let mut y = b.values().to_vec();
    x.sort_by(f64::total_cmp);
    y.sort_by(f64::total_cmp);
    let expected = (x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum::<f64>() / 200.0).sqrt();
    assert!((wasserstein2(&a, &b).unwrap() - expected).abs() < 1e-9);
    let moved = Reals::from_flat(1, a.values().iter().map(|x| x + 3.0).collect()).unwrap();
    assert!((wasserstein2(&a, &moved).unwrap() - 3.0).abs() < 1e-9);
    assert!(wasserstein2(&a, &normals(199, 0.0, &mut rng)).is_err());
    assert!(wasserstein2(&a, &Reals::filled(1, 200, f64::NAN)).is_err());
}

#[test]
fn discrepancy_is_of_the_distribution() {
    let mut rng = Rng::seeded(5);
    let a = normals(400, 0.0, &mut rng);
    let b = normals(500, 0.0, &mut rng);
    let c = normals(500, 1.0, &mut rng);
    let same = maximum_mean_discrepancy(&a, &b).unwrap();
    let other = maximum_mean_discrepancy(&a, &c).unwrap();
    assert!(same.abs() < 0.01 && other > 0.1, "{same}, {other}");
    assert!(maximum_mean_discrepancy(&a, &Reals::filled(1, 1, 0.0)).is_err());
}
