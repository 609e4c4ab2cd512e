//! Tests of points of hyper-grids: keys, moves, names of rewards, and zones of the rewards. A zone is a range
//! of a coordinate's distance from the middle of the grid, in which the coordinate has the same effect on the
//! reward. There is an inner zone, an outer zone, and a band within the outer zone.

use gfn::Rng;
use gfn::env::{Direction, DiscreteEnv, Env, Reward, Rows, Slots, VectorStates};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn_gym::hypergrid::{GridReward, HyperGrid, OriginalReward, Preset, RewardKind};

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (ndim, height, setting) in [
        (0, 8, "ndim"),
        (2, 1, "height"),
        (2, 65_537, "height"),
        (22, 8, "the size of the grid"),
        (64, 2, "the size of the grid"),
        (usize::MAX, 2, "the size of the grid"),
    ] {
        let message = HyperGrid::new(ndim, height).unwrap_err().to_string();
        assert!(message.starts_with(setting), "{message}");
    }
    assert_eq!(HyperGrid::new(63, 2).unwrap().n_states(), 1 << 63);
}

#[test]
fn indices_and_points_are_inverse() {
    let grid = HyperGrid::new(3, 5).unwrap();
    let states = grid.states_of(0..grid.n_states()).unwrap();
    assert!(states.rows().map(|point| grid.index(point)).eq(0..125));
    assert_eq!(states.row(7), [0, 1, 2]);
    assert!(grid.states_of([125]).unwrap_err().to_string().contains("125"));
    let tall = HyperGrid::new(1, 65_536).unwrap();
    assert_eq!(tall.states_of([65_535]).unwrap().row(0), [65_535]);
}

/// Checks that every legal move followed by its reverse restores the state, and that every illegal slot is
/// refused.
#[test]
fn a_step_and_its_reverse_are_the_identity() {
    let grid = HyperGrid::new(2, 4).unwrap();
    let env = grid.env();
    let states = grid.states_of(0..16).unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        let masks = env.masks(direction, &states);
        for row in 0..16 {
            for slot in 0..4u32 {
                let before = states.select(&[row]);
                let mut state = before.clone();
                let result = env.step(direction, &mut state, &Slots(vec![slot]));
                if masks.row(row).get(slot as usize) != Some(&true) {
                    let message = result.unwrap_err().to_string();
                    assert!(
                        message.contains("not legal") && message.contains(&format!("{direction}")),
                        "{message}"
                    );
                    continue;
                }
                let step = result.unwrap();
                assert_eq!(step.exit[0], direction == Direction::Forward && slot == 2);
                if !step.exit[0] {
                    assert_ne!(state, before);
                    env.step(direction.opposite(), &mut state, &step.reverse).unwrap();
                }
                assert_eq!(state, before);
            }
        }
    }
    assert_eq!(env.masks(Direction::Backward, &env.initial(&[0])).n_legal(0), 0);
}

#[test]
fn walks_go_both_ways() {
    let env = HyperGrid::new(3, 4).unwrap().env();
    let sampler = Sampler::new(&env, &UniformPolicy);
    let walked = sampler.forward(50, &mut Rng::seeded(0)).unwrap();
    let back = sampler.backward(walked.terminal_states(), &mut Rng::seeded(1)).unwrap();
    assert_eq!(back.terminal_states(), walked.terminal_states());
    for (i, ends) in back.offsets().windows(2).enumerate() {
        // The length of a trajectory must be the sum of the coordinates, plus 1 for the exit.
        let length: usize = back.terminal_states().row(i).iter().map(|&x| usize::from(x)).sum();
        assert_eq!(ends[1] - ends[0], length + 1);
    }
}

#[test]
fn a_wrong_number_of_actions_is_refused() {
    let env = HyperGrid::new(2, 4).unwrap().env();
    let error = env.step(Direction::Forward, &mut env.initial(&[0; 2]), &Slots(vec![0])).unwrap_err();
    assert!(error.to_string().contains("one action per state"));
}

/// Checks that the closed forms of log Z and of the number of modes equal sums over all points. All
/// coordinates of a mode have a distance of 0.3 to 0.4 from the middle. At some heights no coordinate has
/// such a distance, so there is no mode.
#[test]
fn closed_forms_equal_enumeration() {
    for (ndim, height) in [(1, 2), (1, 11), (2, 5), (2, 6), (2, 7), (3, 8), (2, 11), (2, 16), (4, 9)] {
        let grid = HyperGrid::new(ndim, height).unwrap();
        let reward = OriginalReward::standard(&grid).unwrap();
        let states = grid.states_of(0..grid.n_states()).unwrap();
        let z: f64 = reward.reward(&states).iter().sum();
        assert!((reward.log_z() - z.ln()).abs() < 1e-12, "{ndim} {height}");
        let modes = reward.is_mode(&states).into_iter().filter(|mode| *mode).count();
        assert_eq!(modes as u64, reward.n_modes());
        assert_eq!(modes == 0, height <= 6 || height == 11, "{height}: {modes}");
    }
}

#[test]
fn senseless_weights_are_refused_and_zero_is_floored() {
    let grid = HyperGrid::new(2, 8).unwrap();
    for (r0, r1, r2) in [(-0.1, 1.0, 1.0), (0.1, -1.0, 1.0), (0.1, 1.0, f64::NAN), (f64::INFINITY, 1.0, 1.0)]
    {
        assert!(OriginalReward::new(&grid, r0, r1, r2).unwrap_err().to_string().contains("at least 0"));
    }
    let floored = OriginalReward::new(&grid, 0.0, 0.7, 5.0).unwrap();
    let log_rewards = floored.log_reward(&VectorStates::from_rows([[4, 4]]), None).unwrap();
    assert_eq!(log_rewards, [1e-12f64.ln()]);
}

/// Checks that a point outside the grid has a reward of 0, and that its log-reward is an error.
#[test]
fn points_of_another_grid_are_refused() {
    let reward = OriginalReward::standard(&HyperGrid::new(2, 8).unwrap()).unwrap();
    for (states, problem) in [
        (VectorStates::from_rows([[1, 1, 1]]), "has shape [1, 3], expected [1, 2]"),
        (VectorStates::from_rows([[1, 8]]), "[1, 8], on a grid of height 8"),
    ] {
        assert_eq!((reward.reward(&states), reward.is_mode(&states)), (vec![0.0], vec![false]));
        let message = reward.log_reward(&states, None).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
}

/// Compares the zone of each coordinate (inner zone, outer zone or band) with the definition of the zones,
/// computed in whole numbers, so that nothing is rounded. The grid has one dimension, and the zones have
/// different rewards, so the reward reveals the zone.
#[test]
fn zones_follow_the_definition() {
    for height in 2..=200u64 {
        let grid = HyperGrid::new(1, height as usize).unwrap();
        let states = grid.states_of(0..height).unwrap();
        let original = OriginalReward::new(&grid, 1.0, 2.0, 4.0).unwrap().reward(&states);
        let deceptive = GridReward::deceptive(&grid, 1.0, 2.0, 4.0).unwrap().reward(&states);
        for x in 0..height {
            // On a grid of height h, the distance from the middle is |2 x - (h - 1)| / (2 (h - 1)). As a
            // fraction with the denominator 20 (h - 1), this distance has the numerator `a`.
            let a = 10 * (2 * x).abs_diff(height - 1);
            let unit = height - 1;
            // Each entry has the distance at which the outer zone begins, in hundredths; the rewards of the
            // inner zone, of the outer zone, and of the band; and the rewards that the library computed.
            for (hundredths, values, found) in
                [(25, [1.0, 3.0, 7.0], &original), (10, [3.0, 1.0, 5.0], &deceptive)]
            {
                let expected = if a > 6 * unit && a < 8 * unit {
                    values[2]
                } else if 5 * a > hundredths * unit {
                    values[1]
                } else {
                    values[0]
                };
                assert_eq!(found[x as usize], expected, "{x} of {height}");
            }
        }
    }
}

/// Checks that the names of rewards equal those in the file format and can be parsed. The error for an
/// unknown name must list all names.
#[test]
fn names_are_read_back() {
    let unknown = "cosin".parse::<RewardKind>().unwrap_err().to_string();
    for kind in RewardKind::ALL {
        assert_eq!(kind.to_string().parse::<RewardKind>().unwrap(), kind);
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        assert!(unknown.contains(&kind.to_string()), "{unknown}");
    }
    let unknown = "K32".parse::<Preset>().unwrap_err().to_string();
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse::<Preset>().unwrap(), preset);
        assert_eq!(serde_json::to_string(&preset).unwrap(), format!("\"{preset}\""));
        assert!(unknown.contains(&preset.to_string()), "{unknown}");
    }
}
