//! Indicators of sets of objective vectors are compared with results of manual calculations.

use gfn::Error;
use gfn::env::{Reals, Rows};
use gfn_extras::pareto::{focus_accuracy, inverted_generational_distance, r2_indicator, simplex_grid};

#[test]
fn distances_from_a_front_by_hand() {
    let front = Reals::from_rows([[0.0, 4.0], [3.0, 0.0], [2.0, 2.0]]);
    assert_eq!(inverted_generational_distance(&front, &front).unwrap(), 0.0);
    // The three points of the front have distances 4, 3 and sqrt 8 from the origin. An additional objective
    // vector can't increase the mean of these distances, because each point of the front counts the distance
    // to its nearest vector.
    let origin = Reals::from_rows([[0.0, 0.0]]);
    let far = inverted_generational_distance(&origin, &front).unwrap();
    assert!((far - (7.0 + 8f64.sqrt()) / 3.0).abs() < 1e-12);
    let more = Reals::from_rows([[0.0, 0.0], [0.0, 4.0]]);
    assert!(
        (inverted_generational_distance(&more, &front).unwrap() - (3.0 + 8f64.sqrt()) / 3.0).abs() < 1e-12
    );
    assert!(matches!(
        inverted_generational_distance(&Reals::filled(2, 0, 0.0), &front),
        Err(Error::Config { .. })
    ));
    assert!(matches!(
        inverted_generational_distance(&front, &Reals::filled(2, 0, 0.0)),
        Err(Error::Config { .. })
    ));
    assert!(matches!(
        inverted_generational_distance(&front, &Reals::filled(3, 1, 0.0)),
        Err(Error::Shape { .. })
    ));
}

#[test]
fn r2_by_hand() {
    let weights = Reals::from_rows([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]);
    let utopia = [1.0, 2.0];
    // The distances of the two points from the utopian point are (0.5, 1) and (0, 2), one number per
    // objective. A weight vector multiplies these numbers, and the largest product is the weighted distance
    // of a point. For the three weight vectors, the smallest weighted distances of the points are 0, 0.5 and
    // 1.
    let points = Reals::from_rows([[0.5, 1.0], [1.0, 0.0]]);
    assert!((r2_indicator(&points, &weights, &utopia).unwrap() - (0.0 + 0.5 + 1.0) / 3.0).abs() < 1e-15);
    // A point that another point dominates must change nothing. A point that dominates another point must
    // lower the indicator.
    let more = Reals::from_rows([[0.5, 1.0], [1.0, 0.0], [0.4, 0.9]]);
    assert_eq!(r2_indicator(&more, &weights, &utopia).unwrap(), 0.5);
    let better = Reals::from_rows([[0.5, 1.5], [1.0, 0.0]]);
    assert!(r2_indicator(&better, &weights, &utopia).unwrap() < 0.5);
    let negative = Reals::from_rows([[1.0, -0.1]]);
    assert!(matches!(r2_indicator(&points, &negative, &utopia), Err(Error::Config { .. })));
    assert!(matches!(r2_indicator(&points, &weights, &[1.0]), Err(Error::Shape { .. })));
}

#[test]
fn grids_hold_every_weight_once() {
    for (n, steps, count) in [(1, 4, 1), (2, 5, 6), (3, 4, 15), (4, 3, 20)] {
        let grid = simplex_grid(n, steps).unwrap();
        assert_eq!((grid.len(), grid.width()), (count, n));
        assert!(grid.rows().all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        let rows: Vec<&[f64]> = grid.rows().collect();
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
    }
    assert!(simplex_grid(0, 3).is_err() && simplex_grid(3, 0).is_err() && simplex_grid(40, 40).is_err());
    assert!(simplex_grid(1_000_000, 1).is_err() && simplex_grid(2, usize::MAX).is_err());
}

#[test]
fn cones_know_no_length() {
    let objectives = Reals::from_rows([[1e-200, 1e-200], [1e200, 1e200], [1.0, 0.9], [0.0, 1.0], [0.0, 0.0]]);
    // The vector (1, 0.9) has a cosine of 1.9 / sqrt(2 * 1.81) = 0.99862 with the direction.
    assert_eq!(focus_accuracy(&objectives, &[3.0, 3.0], 0.9986).unwrap(), 0.6);
    assert_eq!(focus_accuracy(&objectives, &[3.0, 3.0], 0.9987).unwrap(), 0.4);
    assert_eq!(focus_accuracy(&objectives, &[3.0, 3.0], -1.0).unwrap(), 0.8);
    for (direction, cosine) in [(vec![0.0, 0.0], 0.9), (vec![1.0, 1.0], 1.5), (vec![1.0, 1.0], f64::NAN)] {
        assert!(matches!(focus_accuracy(&objectives, &direction, cosine), Err(Error::Config { .. })));
    }
    assert!(matches!(focus_accuracy(&objectives, &[1.0], 0.9), Err(Error::Shape { .. })));
    assert!(focus_accuracy(&Reals::filled(2, 0, 0.0), &[1.0, 1.0], 0.9).is_err());
}
