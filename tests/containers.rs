//! Tests of containers: selecting, sampling, joining and computing rewards. Trajectories must have the same
//! format, whether they were sampled forwards or backwards.

use gfn::env::{Direction, EnumerableEnv, Rows, Slots};
use gfn::examples::{Chain, Positions};
use gfn::policy::UniformPolicy;
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use tch::{Device, Kind, Tensor};

fn env() -> Chain {
    Chain::new(10)
}

/// Builds `n` trajectories on a chain of positions. Trajectory `i` moves from position 0 to position `i + 1`
/// by single steps, and has the condition `[i, -i]`.
fn steps(n: usize) -> Trajectories<Chain> {
    let mut actions = Vec::new();
    let mut offsets = vec![0];
    for i in 0..n {
        actions.extend(vec![0; i + 1]);
        actions.push(2);
        offsets.push(actions.len());
    }
    let plain = Trajectories::replay(&env(), &Slots(actions), &offsets).unwrap();
    let conditions: Vec<f32> = (0..n).flat_map(|i| [i as f32, -(i as f32)]).collect();
    plain.with_conditions(Tensor::from_slice(&conditions).view([n as i64, 2])).unwrap()
}

/// Returns a log-reward for each position: the position itself, plus 100 times the first entry of its
/// condition.
fn reward(states: &Positions, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
    let first = |i: usize| conditions.map_or(0.0, |c| 100.0 * c.double_value(&[i as i64, 0]));
    Ok(states.0.iter().enumerate().map(|(i, &x)| f64::from(x) + first(i)).collect())
}

fn rows(conditions: Option<&Tensor>) -> Vec<Vec<f64>> {
    Vec::<Vec<f64>>::try_from(conditions.unwrap().to_kind(Kind::Double)).unwrap()
}

/// Describes each trajectory by its terminal state, its actions, and the first entry of its condition.
fn describe(trajectories: &Trajectories<Chain>) -> Vec<(u32, Vec<u32>, f64)> {
    let conditions = rows(trajectories.conditions());
    let actions = |i: usize| {
        trajectories.actions().0[trajectories.offsets()[i]..trajectories.offsets()[i + 1]].to_vec()
    };
    (0..trajectories.len())
        .map(|i| (trajectories.terminal_states().0[i], actions(i), conditions[i][0]))
        .collect()
}

#[test]
fn trajectories_are_picked_by_range_list_and_filter() {
    let all = steps(5);
    let whole = describe(&all);
    let picked = |indices: &[usize]| describe(&all.select(indices.iter().copied()).unwrap());
    assert_eq!(whole[1], (2, vec![0, 0, 2], 1.0));
    assert_eq!(describe(&all.select(1..3).unwrap()), whole[1..3]);
    assert_eq!(describe(&all.select(0..5).unwrap()), whole);
    assert_eq!(
        describe(&all.select((0..5).filter(|i| i % 3 == 1)).unwrap()),
        [whole[1].clone(), whole[4].clone()]
    );
    assert_eq!(picked(&[4, 0, 4]), [whole[4].clone(), whole[0].clone(), whole[4].clone()]);
    let none = all.select(5..5).unwrap();
    assert!(none.is_empty() && none.offsets() == [0] && none.conditions().unwrap().size() == [0, 2]);
    let picked = all.select([3, 1]).unwrap();
    assert_eq!(picked.states().0, [0, 1, 2, 3, 4, 0, 1, 2]);
    assert_eq!(picked.reverse_actions().len(), 8);
    assert_eq!(picked.is_exit(), [false, false, false, false, true, false, false, true]);
    for (refused, index) in [(vec![3, 5], 5), ((4..9).collect(), 5), (vec![usize::MAX], usize::MAX)] {
        let error = all.select(refused).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { index: i, len: 5 } if i == index), "{error}");
        assert!(error.to_string().contains("give indices below 5"), "{error}");
    }
    assert!(matches!(all.select(0..).unwrap_err(), Error::OutOfRange { index: 5, .. }));
}

/// Computes Pearson's chi-square statistic of counts for a test against equal probabilities.
fn chi_square(counts: &[usize]) -> f64 {
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

#[test]
fn samples_are_uniform_with_and_without_replacement() {
    let all = steps(4);
    let mut rng = Rng::seeded(0);
    let mut pairs = [0; 16];
    let mut singles = [0; 16];
    for _ in 0..12_000 {
        let ends = |t: Trajectories<Chain>| {
            t.terminal_states().0.iter().map(|x| *x as usize - 1).collect::<Vec<_>>()
        };
        let a = ends(all.sample(2, &mut rng).unwrap());
        pairs[4 * a[0] + a[1]] += 1;
        let b = ends(all.sample_with_replacement(2, &mut rng).unwrap());
        singles[4 * b[0] + b[1]] += 1;
    }
    let different: Vec<usize> = (0..16).filter(|k| k / 4 != k % 4).map(|k| pairs[k]).collect();
    assert_eq!(different.iter().sum::<usize>(), 12_000, "none comes twice");
    // The bounds are the 99.9th percentiles of the chi-square distributions with 11 and 15 degrees of
    // freedom.
    assert!(chi_square(&different) < 31.26, "{pairs:?}");
    assert!(chi_square(&singles) < 37.70, "{singles:?}");
    let mut everything = all.sample(4, &mut rng).unwrap().terminal_states().0.clone();
    everything.sort_unstable();
    assert_eq!(everything, [1, 2, 3, 4]);
    assert!(all.sample(0, &mut rng).unwrap().is_empty());
    let error = all.sample(5, &mut rng).unwrap_err();
    assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("5 of 4"), "{error}");
    let none = all.select(0..0).unwrap();
    assert!(matches!(none.sample_with_replacement(1, &mut rng).unwrap_err(), Error::Config { .. }));
    assert!(none.sample_with_replacement(0, &mut rng).unwrap().is_empty());
}

#[test]
fn containers_are_joined_with_their_conditions_or_left_as_they_were() {
    let all = steps(5);
    let mut some = all.select(0..2).unwrap();
    some.extend([all.select([2]).unwrap(), all.select(0..0).unwrap(), all.select(3..5).unwrap()]).unwrap();
    assert_eq!(describe(&some), describe(&all));
    let plain = Sampler::new(&env(), &UniformPolicy).forward(2, &mut Rng::seeded(0)).unwrap();
    let error = some.append(plain.clone()).unwrap_err();
    assert!(
        matches!(error, Error::Missing { .. }) && error.to_string().contains("conditions on both"),
        "{error}"
    );
    let wide = plain.clone().with_conditions(Tensor::zeros([2, 3], (Kind::Float, Device::Cpu))).unwrap();
    assert!(matches!(some.append(wide).unwrap_err(), Error::Shape { .. }));
    assert_eq!(describe(&some), describe(&all), "a refused batch leaves no trace");
    for shape in [vec![3, 1], vec![2], vec![2, 1, 1]] {
        let conditions = Tensor::zeros(&shape[..], (Kind::Float, Device::Cpu));
        assert!(
            matches!(plain.clone().with_conditions(conditions).unwrap_err(), Error::Shape { .. }),
            "{shape:?}"
        );
    }
    // An empty container must accept any trajectories, with or without conditions.
    let mut empty = plain.select(0..0).unwrap();
    empty.append(all.clone()).unwrap();
    assert_eq!(describe(&empty), describe(&all));
    // Compact trajectories (`Walks`) must be selected and joined like whole trajectories.
    let walks = all.walks(&env()).unwrap();
    let mut joined = walks.select(0..2).unwrap();
    joined.append(walks.select(2..5).unwrap()).unwrap();
    assert_eq!((&joined.actions, &joined.offsets), (&walks.actions, &walks.offsets));
    assert_eq!(
        describe(&joined.replay(&env()).unwrap()),
        describe(&all),
        "conditions come back with the replay"
    );
    assert!(matches!(joined.append(plain.walks(&env()).unwrap()).unwrap_err(), Error::Missing { .. }));
}

#[test]
fn log_rewards_are_computed_and_depend_on_conditions() {
    let all = steps(3);
    assert_eq!(all.log_rewards(&reward).unwrap(), [1.0, 102.0, 203.0]);
    assert_eq!(all.select([2, 0]).unwrap().log_rewards(&reward).unwrap(), [203.0, 1.0]);
    let transitions = all.transitions();
    let transitions = transitions.select([8, 0, 4]).unwrap();
    assert_eq!((transitions.states().0, transitions.next_states().0), (vec![3, 0, 2], vec![3, 1, 2]));
    assert_eq!(
        (transitions.is_last(), transitions.is_exit()),
        (vec![true, false, true], vec![true, false, true])
    );
    assert_eq!(rows(transitions.conditions().as_ref()), [[2.0, -2.0], [0.0, 0.0], [1.0, -1.0]]);
    assert_eq!(transitions.log_rewards(&reward).unwrap(), [Some(203.0), None, Some(102.0)]);
    let states = all.visited_states();
    let owners: Vec<f64> = rows(states.conditions().as_ref()).into_iter().map(|row| row[0]).collect();
    assert_eq!(owners, [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    assert_eq!(states.states().0, [0, 1, 0, 1, 2, 0, 1, 2, 3]);
    let expected = [None, Some(1.0), None, None, Some(102.0), None, None, None, Some(203.0)];
    assert_eq!(states.log_rewards(&reward).unwrap(), expected);
    assert_eq!(states.finished(), expected.map(|log_reward: Option<f64>| log_reward.is_some()));
    assert_eq!(states.select([1, 4, 8]).unwrap().states().0, [1, 2, 3]);
    // Recorded log-rewards must stay with their trajectories. If trajectories without log-rewards are
    // appended, all log-rewards are dropped.
    let known = all.clone().with_log_rewards(vec![-1.0, -2.0, -3.0]).unwrap();
    assert_eq!(known.select(1..3).unwrap().recorded_log_rewards(), Some(&[-2.0, -3.0][..]));
    let mut both = known.clone();
    both.append(known.select([0]).unwrap()).unwrap();
    assert_eq!(both.recorded_log_rewards(), Some(&[-1.0, -2.0, -3.0, -1.0][..]));
    both.append(all.clone()).unwrap();
    assert_eq!(both.recorded_log_rewards(), None);
    assert!(matches!(all.clone().with_log_rewards(vec![0.0; 2]).unwrap_err(), Error::Shape { .. }));
    assert!(matches!(
        all.clone().with_log_rewards(vec![0.0, f64::NAN, 0.0]).unwrap_err(),
        Error::NonFinite { row: 1, .. }
    ));
}

#[test]
fn tensors_move_to_a_device_and_nothing_else_changes() {
    let all = steps(3);
    let moved = all.clone().to_device(Device::Cpu).unwrap();
    assert_eq!(describe(&moved), describe(&all));
    assert_eq!(moved.transitions().conditions().unwrap().size(), [9, 2]);
    assert_eq!(moved.visited_states().conditions().unwrap().size(), [9, 2]);
    assert_eq!(
        moved.walks(&env()).unwrap().to_device(Device::Cpu).unwrap().conditions().unwrap().size(),
        [3, 2]
    );
    if tch::Cuda::is_available() {
        let device = Device::Cuda(0);
        let there = all.clone().to_device(device).unwrap();
        assert_eq!(there.conditions().unwrap().device(), device);
        let mut back = all.clone();
        back.append(there).unwrap();
        assert_eq!(
            back.conditions().unwrap().device(),
            Device::Cpu,
            "what is added moves to where it is added"
        );
    } else {
        assert!(matches!(all.clone().to_device(Device::Cuda(0)).unwrap_err(), Error::Torch(_)));
    }
}

/// Checks that each action leads to the trajectory's next state or to its terminal state, and that the
/// reverse action leads back. The trajectories may have been sampled in either direction.
fn check_form<E: EnumerableEnv>(env: &E, trajectories: &Trajectories<E>) {
    let all = trajectories.transitions();
    let states = all.states();
    let actions = all.actions();
    let next_states = all.next_states();
    let reverse_actions = all.reverse_actions();
    let is_last = all.is_last();
    let is_exit = all.is_exit();
    let starts: Vec<usize> = trajectories.offsets()[..trajectories.len()].to_vec();
    assert!(env.is_initial(&states.select(&starts)).iter().all(|initial| *initial));
    let masks = env.masks(Direction::Forward, &states);
    assert!(
        (0..states.len()).all(|row| masks.row(row)[actions.0[row] as usize]),
        "forward actions are legal"
    );
    let mut after = states.clone();
    let step = env.step(Direction::Forward, &mut after, &actions).unwrap();
    assert_eq!(env.keys(&after), env.keys(&next_states));
    assert_eq!((&step.exit, &step.done), (&is_exit, &is_last));
    let inner: Vec<usize> = (0..states.len()).filter(|&row| !is_exit[row]).collect();
    let mut before = next_states.select(&inner);
    let masks = env.masks(Direction::Backward, &before);
    let undo = reverse_actions.select(&inner);
    assert!((0..inner.len()).all(|k| masks.row(k)[undo.0[k] as usize]), "reverse actions are legal");
    env.step(Direction::Backward, &mut before, &undo).unwrap();
    assert_eq!(env.keys(&before), env.keys(&states.select(&inner)));
}

#[test]
fn backward_trajectories_come_in_the_forward_form() {
    let env = env();
    let mut rng = Rng::seeded(3);
    let forward = Sampler::new(&env, &UniformPolicy).forward(50, &mut rng).unwrap();
    let back = Sampler::new(&env, &UniformPolicy).backward(forward.terminal_states(), &mut rng).unwrap();
    check_form(&env, &forward);
    check_form(&env, &back);
    assert_eq!(back.terminal_states(), forward.terminal_states());
    assert_ne!(back.actions(), forward.actions(), "another way to the same ends");
    // Replaying the actions forwards must give the same states.
    let replayed = Trajectories::replay(&env, back.actions(), back.offsets()).unwrap();
    assert_eq!(replayed.states(), back.states());
    let inner: Vec<usize> = (0..back.n_transitions()).filter(|&row| !back.is_exit()[row]).collect();
    assert_eq!(replayed.reverse_actions().select(&inner), back.reverse_actions().select(&inner));
    assert_eq!((replayed.is_exit(), replayed.terminal_states()), (back.is_exit(), back.terminal_states()));
    let mut both = forward;
    both.append(back).unwrap();
    check_form(&env, &both);

    let env = ColoredGraphs::new(5).unwrap().into_env();
    let forward = Sampler::new(&env, &UniformPolicy).forward(50, &mut rng).unwrap();
    let back = Sampler::new(&env, &UniformPolicy).backward(forward.terminal_states(), &mut rng).unwrap();
    check_form(&env, &back);
    assert_eq!(back.terminal_states(), forward.terminal_states());
}
