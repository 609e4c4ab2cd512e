//! Tests that the densities of continuous policies integrate to 1, and that samples follow these densities.

use gfn::Rng;
use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Reals, Rows};
use gfn_gym::boxes::{BetaMixtures, BoxDist, BoxEnv, Coupling, GridHistogram};
use gfn_gym::line::{Line, LineDist, NormalMixtures};
use tch::{Kind, Tensor};

/// Returns the distribution of actions in a state for random network outputs. The concentrations of its Beta
/// distributions are bounded so that the densities are smooth enough for numerical integration.
fn dist(env: BoxEnv, direction: Direction, state: &[f64], coupling: Coupling) -> BoxDist {
    let mixtures = BetaMixtures { coupling, components: 3, min_concentration: 2.0, max_concentration: 20.0 };
    let rng = &mut Rng::seeded(9);
    let outputs: Vec<f64> = (0..mixtures.width(env.ndim())).map(|_| rng.normal()).collect();
    let states = Reals::from_flat(env.ndim(), state.to_vec()).unwrap();
    BoxDist::new(env, direction, states, mixtures, Tensor::from_slice(&outputs).unsqueeze(0)).unwrap()
}

/// Returns the total probability of a state's actions: the integral of the density over points by the
/// midpoint rule, plus the probability of `atom`, which is the exit or the backward step to the initial
/// state.
fn total(dist: &BoxDist, points: &Reals, volumes: &[f64], atom: Option<&Reals>) -> f64 {
    let density = dist.log_prob(&vec![0; points.len()], points).unwrap().exp();
    let integral = (density * Tensor::from_slice(volumes)).sum(Kind::Double).double_value(&[]);
    integral + atom.map_or(0.0, |atom| dist.log_prob(&[0], atom).unwrap().exp().double_value(&[0]))
}

/// Returns the midpoints of n equal parts of an interval.
fn midpoints(low: f64, high: f64, n: usize) -> Vec<f64> {
    (0..n).map(|k| low + (high - low) * (k as f64 + 0.5) / n as f64).collect()
}

#[test]
fn cartesian_densities_are_normalised() {
    let env = BoxEnv::cartesian(2, 0.1).unwrap();
    let n = 300;
    for coupling in [Coupling::Joint, Coupling::PerAxis] {
        // Each case is a direction, a state, the rectangle of points that a step can lead to, and the action
        // `atom` (the exit or the step to the initial state).
        let [x, y] = [0.45, 0.7];
        let cases = [
            (Direction::Forward, [0.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], None),
            (Direction::Forward, [x, y], [[x + 0.1, 1.0], [y + 0.1, 1.0]], Some([x, y, 1.0])),
            (Direction::Backward, [x, y], [[0.0, x - 0.1], [0.0, y - 0.1]], Some([0.0, 0.0, 0.0])),
        ];
        for (direction, state, [along_x, along_y], atom) in cases {
            let dist = dist(env, direction, &state, coupling);
            let xs = midpoints(along_x[0], along_x[1], n);
            let ys = midpoints(along_y[0], along_y[1], n);
            let points = Reals::from_rows(xs.iter().flat_map(|&x| ys.iter().map(move |&y| [x, y, 0.0])));
            let cell = (along_x[1] - along_x[0]) * (along_y[1] - along_y[0]) / (n * n) as f64;
            let atom = atom.map(|atom| Reals::from_rows([atom]));
            let total = total(&dist, &points, &vec![cell; n * n], atom.as_ref());
            assert!((total - 1.0).abs() < 1e-4, "{direction} from {state:?}: {total}");
        }
        // If no other action is permitted, the exit or the step to the initial state must have probability 1.
        for (direction, state, atom) in [
            (Direction::Forward, [0.95, 0.5], [0.95, 0.5, 1.0]),
            (Direction::Backward, [0.05, 0.5], [0.0, 0.0, 0.0]),
        ] {
            let dist = dist(env, direction, &state, coupling);
            let log_prob = dist.log_prob(&[0], &Reals::from_rows([atom])).unwrap().double_value(&[0]);
            assert!(log_prob.abs() < 1e-12, "{log_prob}");
        }
    }
}

#[test]
fn polar_densities_are_normalised() {
    let delta = 0.25;
    let n = 2000;
    let env = BoxEnv::polar(delta).unwrap();
    for coupling in [Coupling::Joint, Coupling::PerAxis] {
        // The first step leads to any point of a quarter disk around the initial state. The density is
        // integrated over this disk in polar coordinates, with the volume element r dr dtheta.
        let disk = dist(env, Direction::Forward, &[0.0, 0.0], coupling);
        let radii = midpoints(0.0, delta, 300);
        let angles = midpoints(0.0, std::f64::consts::FRAC_PI_2, 300);
        let point = |r: f64, angle: f64| [r * angle.cos(), r * angle.sin(), 0.0];
        let points =
            Reals::from_rows(radii.iter().flat_map(|&r| angles.iter().map(move |&angle| point(r, angle))));
        let cell = delta / 300.0 * std::f64::consts::FRAC_PI_2 / 300.0;
        let volumes: Vec<f64> = radii.iter().flat_map(|r| vec![r * cell; 300]).collect();
        let got = total(&disk, &points, &volumes, None);
        assert!((got - 1.0).abs() < 1e-4, "disk: {got}");

        // A later step leads to an arc, a quarter circle around the state. For some of these states the whole
        // arc lies within the box; for the others one or two sides of the box cut it.
        for [x, y] in [[0.4, 0.5], [0.85, 0.4], [0.9, 0.79], [0.1, 0.6], [0.2, 0.21]] {
            for direction in [Direction::Forward, Direction::Backward] {
                let arc = dist(env, direction, &[x, y], coupling);
                let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
                let point =
                    |angle: &f64| [x + sign * delta * angle.cos(), y + sign * delta * angle.sin(), 0.0];
                let within = |point: &[f64; 3]| point.iter().all(|x| (0.0..=1.0).contains(x));
                let points: Vec<[f64; 3]> =
                    midpoints(0.0, std::f64::consts::FRAC_PI_2, 20 * n).iter().map(point).collect();
                let points = Reals::from_rows(points.into_iter().filter(within));
                let length = delta * std::f64::consts::FRAC_PI_2 / (20 * n) as f64;
                let exit = (direction == Direction::Forward).then(|| Reals::from_rows([[x, y, 1.0]]));
                let got = total(&arc, &points, &vec![length; points.len()], exit.as_ref());
                assert!((got - 1.0).abs() < 1e-4, "{direction} from ({x}, {y}): {got}");
            }
        }
        let near = dist(env, Direction::Backward, &[0.1, 0.2], coupling);
        assert_eq!(near.log_prob(&[0], &Reals::from_rows([[0.0; 3]])).unwrap().double_value(&[0]), 0.0);
    }
}

#[test]
fn densities_of_the_line_are_normalised() {
    let env = Line::new(3).unwrap();
    let mixtures = NormalMixtures { components: 2, min_std: 0.2, max_std: 1.0 };
    let outputs = Tensor::from_slice(&[0.3, -0.4, -1.0, 2.0, 0.1, -0.7]).unsqueeze(0);
    for direction in [Direction::Forward, Direction::Backward] {
        let states = Reals::from_rows([[0.7, 2.0]]);
        let dist = LineDist::new(env, direction, states, mixtures, outputs.shallow_clone()).unwrap();
        let points = Reals::from_flat(1, midpoints(-12.0, 12.0, 10_000)).unwrap();
        let density = dist.log_prob(&vec![0; points.len()], &points).unwrap().exp();
        let total = density.sum(Kind::Double).double_value(&[]) * 24.0 / 10_000.0;
        assert!((total - 1.0).abs() < 1e-4, "{direction}: {total}");
    }
    let first =
        LineDist::new(env, Direction::Backward, Reals::from_rows([[0.7, 1.0]]), mixtures, outputs).unwrap();
    assert_eq!(first.log_prob(&[0], &Reals::from_rows([[0.0]])).unwrap().double_value(&[0]), 0.0);
    assert!(first.log_prob(&[0], &Reals::from_rows([[0.1]])).is_err());
}

/// Checks that the frequencies of samples in the cells of the square match the density.
#[test]
fn samples_follow_their_density() {
    let env = BoxEnv::cartesian(2, 0.1).unwrap();
    let n = 40_000;
    let bins = 5;
    let fine = 40;
    for coupling in [Coupling::Joint, Coupling::PerAxis] {
        let dist = dist(env, Direction::Forward, &[0.0, 0.0], coupling);
        let drawn = dist.sample(&vec![0; n], &Exploration::on_policy(), &mut Rng::seeded(2)).unwrap();
        let mut expected = vec![0.0; bins * bins];
        let along = midpoints(0.0, 1.0, bins * fine);
        let points = Reals::from_rows(along.iter().flat_map(|&y| along.iter().map(move |&x| [x, y, 0.0])));
        let density = dist.log_prob(&vec![0; points.len()], &points).unwrap().exp();
        let density = Vec::<f64>::try_from(density).unwrap();
        for (k, p) in density.iter().enumerate() {
            let row = k / (bins * fine);
            let column = k % (bins * fine);
            expected[row / fine * bins + column / fine] += p / (bins * fine).pow(2) as f64;
        }
        let points = Reals::from_rows(drawn.rows().map(|action| [action[0], action[1]]));
        let counts = GridHistogram::new(bins, expected.clone()).unwrap().counts(&points).unwrap();
        for (count, p) in counts.iter().zip(&expected) {
            let mean = n as f64 * p;
            assert!((count - mean).abs() < 5.0 * mean.sqrt().max(1.0), "{count} of {mean}");
        }
    }
}
