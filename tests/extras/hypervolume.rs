//! Hypervolumes are compared with results of other methods.

use gfn::env::{Reals, Rows};
use gfn::{Error, Rng};
use gfn_extras::pareto::hypervolume;

/// Computes the volume of the union of boxes, one between the origin and each point, by inclusion and
/// exclusion over all subsets of the points.
fn volume_by_subsets(points: &Reals) -> f64 {
    let n = points.len();
    let volume = |subset: u32| {
        let chosen = || (0..n).filter(|i| subset >> i & 1 == 1);
        let side = |k: usize| chosen().map(|i| points.row(i)[k]).fold(f64::INFINITY, f64::min);
        let sign = if subset.count_ones() % 2 == 1 { 1.0 } else { -1.0 };
        sign * (0..points.width()).map(side).product::<f64>()
    };
    (1..1u32 << n).map(volume).sum()
}

fn random(width: usize, n: usize, rng: &mut Rng) -> Reals {
    Reals::from_flat(width, (0..n * width).map(|_| rng.uniform()).collect()).unwrap()
}

#[test]
fn equals_inclusion_and_exclusion() {
    let mut rng = Rng::seeded(0);
    for width in 1..=5 {
        for n in 1..=9 {
            for _ in 0..10 {
                let points = random(width, n, &mut rng);
                let mine = hypervolume(&points, &vec![0.0; width]).unwrap();
                let exact = volume_by_subsets(&points);
                assert!((mine - exact).abs() < 1e-12, "{width} {n}: {mine}, {exact}");
            }
        }
    }
}

#[test]
fn equals_a_count_of_lattice_cells_and_random_points() {
    let mut rng = Rng::seeded(1);
    // The points have integer coordinates, some of them equal. The volume must be the number of dominated
    // unit cells.
    for width in 2..=4 {
        let points = Reals::from_flat(width, (0..30 * width).map(|_| rng.below(7) as f64).collect()).unwrap();
        let cells = (0..6usize.pow(width as u32)).filter(|cell| {
            let corner: Vec<f64> = (0..width).map(|k| (cell / 6usize.pow(k as u32) % 6 + 1) as f64).collect();
            points.rows().any(|row| row.iter().zip(&corner).all(|(x, y)| x >= y))
        });
        assert_eq!(hypervolume(&points, &vec![0.0; width]).unwrap(), cells.count() as f64);
    }
    // The points are on a sphere, so they don't dominate each other.
    for width in 2..=4 {
        let mut points = random(width, 120, &mut rng);
        for row in points.values_mut().chunks_exact_mut(width) {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            for x in row.iter_mut() {
                *x /= norm;
            }
        }
        let draws = 20_000;
        let hits = (0..draws).filter(|_| {
            let at: Vec<f64> = (0..width).map(|_| rng.uniform()).collect();
            points.rows().any(|row| row.iter().zip(&at).all(|(x, y)| x >= y))
        });
        let share = hits.count() as f64 / f64::from(draws);
        let exact = hypervolume(&points, &vec![0.0; width]).unwrap();
        let sd = (exact * (1.0 - exact) / f64::from(draws)).sqrt();
        assert!((share - exact).abs() < 4.0 * sd, "{width}: {share}, {exact} +- {sd}");
    }
}

#[test]
fn known_values_and_bad_input() {
    // The volume is that of three boxes of size 3 x 1 x 1 that have the unit cube in common.
    let cross = Reals::from_rows([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]]);
    assert_eq!(hypervolume(&cross, &[0.0; 3]).unwrap(), 7.0);
    assert_eq!(hypervolume(&cross, &[-1.0; 3]).unwrap(), 3.0 * 16.0 - 3.0 * 8.0 + 8.0);
    assert_eq!(hypervolume(&cross, &[1.0; 3]).unwrap(), 0.0);
    assert_eq!(hypervolume(&Reals::filled(3, 0, 0.0), &[0.0; 3]).unwrap(), 0.0);
    assert!(matches!(hypervolume(&cross, &[0.0; 2]), Err(Error::Shape { .. })));
    assert!(matches!(hypervolume(&cross, &[0.0, f64::NAN, 0.0]), Err(Error::NonFinite { row: 1, .. })));
    let bad = Reals::from_rows([[1.0, f64::INFINITY]]);
    assert!(matches!(hypervolume(&bad, &[0.0; 2]), Err(Error::NonFinite { row: 0, .. })));
}
