//! Tests of edge cases of continuous environments: points near a side of the box, rounding, and settings and
//! inputs that must be refused.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Env, Reals, Rows};
use gfn::objective::score;
use gfn::objective::{Quantities, Quantity};
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn::{Error, Rng};
use gfn_gym::boxes::{BetaMixtures, BoxDist, BoxEnv, BoxPolicyConfig, BoxReward, BoxUniform};
use gfn_gym::line::{Line, LineDist, LinePolicy, LinePolicyConfig};
use tch::{Device, Kind, Tensor};

/// Checks backward trajectories from points near a side of the box. The arcs of points that their steps can
/// reach are very short. The trajectories must reach the initial state through the quarter disk to which the
/// first forward step leads, and every step must have a density.
#[test]
fn ways_back_beside_a_side_can_be_scored() {
    for delta in [0.001, 0.1, 0.25, 0.9] {
        let env = BoxEnv::polar(delta).unwrap();
        let mut ends = vec![[0.9 * delta, 1e-3 * delta], [1.0, 0.7]];
        if delta > 0.01 {
            for tiny in [1e-4, 1e-9, 3.8e-10, 1e-13, 1e-18] {
                ends.extend([[0.95, tiny], [tiny, 0.95], [1.0 - tiny, 0.95], [0.95, 1.0 - tiny]]);
            }
        } else {
            ends = vec![[0.9 * delta, 1e-3 * delta], [3.0 * delta, 1e-13], [1e-13, 3.0 * delta]];
        }
        let ends = Reals::from_rows(ends);
        let walks = Sampler::new(&env, &env.uniform()).backward(&ends, &mut Rng::seeded(0)).unwrap();
        let scores = score(&env, &BoxReward::default(), &env.uniform(), &walks, Quantities::NONE).unwrap();
        assert_eq!(scores.log_pf.isfinite().all().int64_value(&[]), 1, "delta {delta}");
        assert_eq!(scores.log_pb.isfinite().all().int64_value(&[]), 1, "delta {delta}");
        let mut states = ends.clone();
        while !states.is_empty() {
            let back = env.way_back(&states).unwrap();
            let undone = env.step(Direction::Backward, &mut states, &back).unwrap().done;
            states = states.select(&(0..states.len()).filter(|&row| !undone[row]).collect::<Vec<_>>());
        }
    }
}

/// Tests that backward steps reach the initial state, although their angles are so close to an end of their
/// range that they lie next to an axis. Formerly such a step led to a point 1e-10 from a side of the box.
#[test]
fn a_learned_way_back_ends_in_the_disk_only() {
    let env = BoxEnv::polar(0.25).unwrap();
    let mixtures = BetaMixtures { components: 1, ..BoxPolicyConfig::default().mixtures };
    // The network's outputs are the logit of the exit, the logit of the mixture's only component, two raw
    // alphas and two raw betas. With these outputs the angle of a step is drawn from Beta(1000, 0.6), so that
    // it lies next to an axis.
    let outputs = |n: usize| Tensor::from_slice(&[0.0, 0.0, 40.0, 40.0, -40.0, -40.0]).repeat([n as i64, 1]);
    let mut rng = Rng::seeded(1);
    let mut states = Reals::from_rows([[0.7, 0.1]; 2000]);
    while !states.is_empty() {
        let dist =
            BoxDist::new(env, Direction::Backward, states.clone(), mixtures, outputs(states.len())).unwrap();
        let rows: Vec<usize> = (0..states.len()).collect();
        let actions = dist.sample(&rows, &Exploration::on_policy(), &mut rng).unwrap();
        let step = env.step(Direction::Backward, &mut states, &actions).unwrap();
        env.check(Direction::Forward, &states, &step.reverse).unwrap();
        let forward =
            BoxDist::new(env, Direction::Forward, states.clone(), mixtures, outputs(states.len())).unwrap();
        for scored in [dist.log_prob(&rows, &actions), forward.log_prob(&rows, &step.reverse)] {
            assert_eq!(scored.unwrap().isfinite().all().int64_value(&[]), 1);
        }
        states = states.select(&rows.into_iter().filter(|&row| !step.done[row]).collect::<Vec<_>>());
    }
}

#[test]
fn a_point_of_an_axis_has_no_way_back() {
    let env = BoxEnv::polar(0.25).unwrap();
    for point in [[0.5, 0.0], [0.0, 0.3]] {
        let states = Reals::from_rows([point]);
        assert!(matches!(
            env.way_back(&states),
            Err(Error::NoLegalAction { row: 0, direction: Direction::Backward })
        ));
        let source = Reals::from_rows([[0.0; 3]]);
        let refused = env.step(Direction::Backward, &mut states.clone(), &source).unwrap_err();
        assert!(
            matches!(refused, Error::IllegalStep { .. })
                && refused.to_string().contains("no step leads to this state")
        );
        let sampled = Sampler::new(&env, &BoxUniform).backward(&states, &mut Rng::seeded(0));
        assert!(matches!(sampled, Err(Error::NoLegalAction { .. })));
    }
    // Forward steps to a point with a coordinate of 0 must be refused, too, if the point lies outside the
    // disk that the first step can reach. Inside this disk such a point has a backward step, so it is
    // accepted.
    let forward =
        env.check(Direction::Forward, &Reals::from_rows([[0.2, 0.0]]), &Reals::from_rows([[0.45, 0.0, 0.0]]));
    assert!(matches!(forward, Err(Error::IllegalStep { .. })));
    assert!(env.way_back(&Reals::from_rows([[0.2, 0.0]])).is_ok());
}

/// Tests forward steps from 1 - delta, up to rounding, and backward steps from delta, with delta the smallest
/// step. Either a step is possible and its density is finite, or only the exit (backwards: the step to the
/// initial state) is permitted.
#[test]
fn no_room_is_no_step() {
    for k in 1..1000 {
        let delta = f64::from(k) / 1000.0;
        let env = BoxEnv::cartesian(1, delta).unwrap();
        let state = Reals::from_rows([[(1000 - k) as f64 / 1000.0]]);
        for direction in [Direction::Forward, Direction::Backward] {
            let state = if direction == Direction::Forward { &state } else { &Reals::from_rows([[delta]]) };
            let dist = BoxDist::uniform(env, direction, state.clone());
            let rows = [0; 8];
            let actions = dist.sample(&rows, &Exploration::on_policy(), &mut Rng::seeded(k as u64)).unwrap();
            let scored = dist.log_prob(&rows, &actions).unwrap();
            assert_eq!(scored.isfinite().all().int64_value(&[]), 1, "{delta} {direction}");
        }
    }
}

#[test]
fn noise_widens_gaussian_steps_and_is_refused_by_betas() {
    let noise = Exploration::on_policy().with_noise(2.0).unwrap();
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let boxed = BoxDist::uniform(env, Direction::Forward, env.initial(&[0]));
    let refused = boxed.sample(&[0], &noise, &mut Rng::seeded(0));
    assert!(matches!(refused, Err(Error::Config { setting: "noise", .. })));

    let line = Line::new(3).unwrap();
    let mixtures = LinePolicyConfig::default().mixtures;
    // Both components of the mixture have mean 0 and the smallest standard deviation, 0.1.
    let outputs = Tensor::from_slice(&[0.0, 0.0, 0.0, 0.0, -40.0, -40.0]).unsqueeze(0);
    let dist = LineDist::new(line, Direction::Forward, line.initial(&[0]), mixtures, outputs).unwrap();
    let deviation = |exploration: &Exploration| {
        let steps = dist.sample(&[0; 20_000], exploration, &mut Rng::seeded(0)).unwrap();
        (steps.values().iter().map(|x| x * x).sum::<f64>() / 20_000.0).sqrt()
    };
    assert!((deviation(&Exploration::on_policy()) / mixtures.min_std - 1.0).abs() < 0.02);
    assert!((deviation(&noise) / mixtures.min_std.hypot(2.0) - 1.0).abs() < 0.02);
}

#[test]
fn shapes_are_checked() {
    let shape =
        |result: gfn::Result<Tensor>| assert!(matches!(result, Err(Error::Shape { .. })), "{result:?}");
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let line = Line::new(3).unwrap();
    let options = (Kind::Double, Device::Cpu);
    let mixtures = BoxPolicyConfig::default().mixtures;
    let outputs = Tensor::zeros([1, mixtures.width(2) as i64], options);
    let narrow = Reals::from_rows([[0.5]]);
    assert!(matches!(
        BoxDist::new(env, Direction::Forward, narrow.clone(), mixtures, outputs),
        Err(Error::Shape { .. })
    ));
    shape(
        BoxDist::uniform(env, Direction::Forward, narrow.clone())
            .log_prob(&[0], &Reals::from_rows([[0.5; 3]])),
    );
    let good = BoxDist::uniform(env, Direction::Forward, env.initial(&[0; 2]));
    shape(good.log_prob(&[0, 1], &Reals::from_rows([[0.5, 0.5, 0.0]])));
    shape(good.log_prob(&[0], &Reals::from_rows([[0.5, 0.5]])));
    assert!(matches!(
        good.sample(&[2], &Exploration::on_policy(), &mut Rng::seeded(0)),
        Err(Error::OutOfRange { index: 2, len: 2 })
    ));

    let normal = LinePolicyConfig::default();
    let outputs = Tensor::zeros([1, 6], options);
    assert!(matches!(
        LineDist::new(line, Direction::Forward, narrow.clone(), normal.mixtures, outputs),
        Err(Error::Shape { .. })
    ));
    let good = LineDist::uniform(line, Direction::Forward, line.initial(&[0; 2]));
    shape(good.log_prob(&[0, 1], &narrow));
    shape(good.log_prob(&[0], &Reals::from_rows([[0.5, 0.5]])));
    let policy = LinePolicy::new(&line, normal, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap();
    assert!(matches!(policy.evaluate(&line, &narrow, None, Quantities::PF), Err(Error::Shape { .. })));
}

/// Checks that an illegal step in a replay is reported with the index of its trajectory among all
/// trajectories, not among those that are unfinished.
#[test]
fn a_replay_names_the_trajectory() {
    let env = BoxEnv::cartesian(1, 0.25).unwrap();
    let actions = Reals::from_rows([
        [0.5, 0.0],
        [0.5, 1.0],
        [0.1, 0.0],
        [0.4, 0.0],
        [0.4, 1.0],
        [0.2, 0.0],
        [0.3, 0.0],
        [0.3, 1.0],
    ]);
    let error = Trajectories::replay(&env, &actions, &[0, 2, 5, 8]).unwrap_err();
    assert!(matches!(error, Error::IllegalStep { row: 2, .. }), "{error}");
    let short = Reals::from_rows([[0.5, 0.0], [0.5, 1.0], [0.1, 0.0], [0.4, 0.0], [0.2, 0.0], [0.2, 1.0]]);
    assert!(Trajectories::replay(&env, &short, &[0, 2, 4, 6]).is_err());

    let line = Line::new(2).unwrap();
    let error = Trajectories::replay(&line, &Reals::from_rows([[0.5], [1.0], [0.5], [f64::NAN]]), &[0, 2, 4]);
    assert!(matches!(error, Err(Error::IllegalStep { row: 1, .. })));
}

/// Checks that an objective that needs an exit in every state is refused with an error, because the initial
/// state has no exit.
#[test]
fn exits_of_the_source_are_missing() {
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let walks = Sampler::new(&env, &env.uniform()).forward(3, &mut Rng::seeded(0)).unwrap();
    let needs = Quantities::from(Quantity::LogExit);
    let error = score(&env, &BoxReward::default(), &env.uniform(), &walks, needs).unwrap_err();
    assert!(
        matches!(error, Error::Missing { missing: "every state to be terminating, by an exit action", .. }),
        "{error}"
    );
}

/// Checks that log-densities in single precision are as exact as the network's outputs, even if
/// concentrations are large.
#[test]
fn normalisers_of_large_concentrations_are_exact() {
    let env = BoxEnv::cartesian(1, 0.25).unwrap();
    let mixtures = BetaMixtures { components: 1, ..BoxPolicyConfig::default().mixtures };
    let states = Reals::from_rows([[0.0]; 40]);
    let raws: Vec<f64> =
        (0..40).flat_map(|k| [0.0, 0.0, 3.0 + 0.125 * f64::from(k), 3.0 + 0.125 * f64::from(k)]).collect();
    let rows: Vec<usize> = (0..40).collect();
    let at = |kind: Kind| {
        let outputs = Tensor::from_slice(&raws).to_kind(kind).view([-1, 4]);
        let dist = BoxDist::new(env, Direction::Forward, states.clone(), mixtures, outputs).unwrap();
        dist.log_prob(&rows, &Reals::from_rows([[0.51, 0.0]; 40])).unwrap().to_kind(Kind::Double)
    };
    let difference = (at(Kind::Float) - at(Kind::Double)).abs().max().double_value(&[]);
    assert!(difference < 5e-6, "{difference}");
}
