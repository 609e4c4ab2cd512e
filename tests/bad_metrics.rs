//! Tests of metrics. Invalid input must give typed errors, and extreme but valid input must give numbers.

use gfn::env::{Reals, StateGraph};
use gfn::graph::GraphStates;
use gfn::metrics::{Distances, ExactPolicy, NoiseFloor, importance_log_z, modes_covered, modes_found};
use gfn::policy::UniformPolicy;
use gfn::{Error, Result, Rng};
use gfn_extras::transport::{maximum_mean_discrepancy, wasserstein2};
use gfn_gym::colored_graphs::ColoredGraphs;

#[test]
fn distances_are_between_distributions() {
    let even = [0.5, 0.5];
    for bad in [[f64::NAN, 0.5], [f64::INFINITY, 0.5], [-0.1, 1.1], [3.0, 0.5], [0.2, 0.2]] {
        for (policy, target) in [(&bad, &even), (&even, &bad)] {
            let error = Distances::between(policy, target).unwrap_err();
            assert!(matches!(error, Error::Config { .. }), "{error:?}");
            assert!(error.to_string().contains("sum to 1"), "{error}");
        }
    }
    assert!(matches!(Distances::between(&[], &[]), Err(Error::Config { .. })));
    assert!(matches!(Distances::between(&[1.0], &even), Err(Error::Shape { .. })));
    // Probabilities that are rounded to four digits must be accepted.
    assert!(Distances::between(&[0.3333; 3], &[1.0 / 3.0; 3]).unwrap().tv < 1e-3);
}

#[test]
fn noise_floors_are_of_distributions() {
    let simulate = |target: &[f64]| NoiseFloor::simulate(target, 10, 2, &mut Rng::seeded(0));
    for bad in [&[][..], &[f64::NAN, 0.5], &[-0.5, 1.5], &[2.0, 3.0]] {
        assert!(matches!(simulate(bad), Err(Error::Config { .. })), "{bad:?}");
    }
    assert!(simulate(&[0.25, 0.75]).is_ok());
}

#[test]
fn modes_are_counted_in_lists_of_one_length() {
    let shape = |error| matches!(error, Error::Shape { .. });
    assert!(shape(modes_covered(&[0.5, 0.5], &[1.0], &[true, true]).unwrap_err()));
    assert!(shape(modes_covered(&[0.5, 0.5], &[0.5, 0.5], &[true]).unwrap_err()));
    assert!(shape(modes_found(&[0.5, 0.5], &[true], 1).unwrap_err()));
    assert_eq!(modes_found(&[0.5, 0.5], &[true, true], 2).unwrap(), 2);
}

#[test]
fn weights_that_are_no_numbers_estimate_nothing() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(importance_log_z(&[0.0, bad]), Err(Error::NonFinite { row: 1, .. })));
    }
    assert!(importance_log_z(&[1000.0, -1000.0]).unwrap().log_z.is_finite());
}

/// Tests points with very large or very small coordinates. Squares of these coordinates overflow or
/// underflow, but distances must not.
#[test]
fn transport_between_points_of_any_size() {
    let near = Reals::from_rows([[0.0, 1.0], [1.0, 5.0], [2.0, -3.0]]);
    let far = Reals::from_rows([[4.0, 1.0], [1.5, 2.5], [2.0, -2.0]]);
    let w2 = wasserstein2(&near, &far).unwrap();
    let mmd = maximum_mean_discrepancy(&near, &far).unwrap();
    for exponent in [-700, 600, 1000] {
        let unit = 2f64.powi(exponent);
        let scaled = |points: &Reals| {
            Reals::from_flat(points.width(), points.values().iter().map(|x| x * unit).collect())
        };
        let a = scaled(&near).unwrap();
        let b = scaled(&far).unwrap();
        assert_eq!(wasserstein2(&a, &b).unwrap(), w2 * unit);
        assert_eq!(maximum_mean_discrepancy(&a, &b).unwrap(), mmd);
    }
    let a = Reals::from_rows([[0.0], [1.0]]);
    let b = Reals::from_rows([[1e200], [2e200]]);
    assert!((wasserstein2(&a, &b).unwrap() / (2.5f64.sqrt() * 1e200) - 1.0).abs() < 1e-12);
    let a = Reals::from_rows([[f64::MAX / 2.0]]);
    let b = Reals::from_rows([[-f64::MAX / 4.0]]);
    assert!((wasserstein2(&a, &b).unwrap() / f64::MAX - 0.75).abs() < 1e-12);
    let origin = Reals::filled(2, 3, 0.0);
    assert_eq!(wasserstein2(&origin, &origin).unwrap(), 0.0);
}

/// Tests probabilities that underflow. Such probabilities must count as equal in the check for dependence
/// on labels.
#[test]
fn underflowed_probabilities_are_equivariant() {
    let env = ColoredGraphs::new(3).unwrap().into_env();
    let graph = StateGraph::build(&env, 10_000).unwrap();
    for scale in [1.0, 100.0, 372.0, 400.0, 2000.0] {
        let reward = move |states: &GraphStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
            Ok(states.graphs().iter().map(|graph| -scale * graph.n_edges() as f64).collect())
        };
        let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, &reward).unwrap();
        let target = graph.target_distribution(&reward, None).unwrap();
        let sampled = graph.terminating_distribution(&env, &exact, None).unwrap();
        assert!(Distances::between(&sampled.probs, &target.probs).unwrap().tv < 1e-9, "{scale}");
    }
}
