//! `GraphActionCategorical` is compared with numbers that another program computed
//! (`tests/golden/graph_categorical.json`), and with a plain computation in f64.

use gfn::distribution::{Distribution, Exploration, GraphActionCategorical};
use gfn::env::{Block, Direction, Masks, Slots};
use gfn::{Error, Rng};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

/// A test case from the JSON file, converted into the library's types.
struct Case {
    masks: Masks,
    /// The logits of an action type form a table, in which each state has some rows. `first_row[type][state]`
    /// is the index of the state's first row in the table of the action type.
    first_row: Vec<Vec<usize>>,
    logits: Vec<Vec<f64>>,
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("-inf") => f64::NEG_INFINITY,
        Some(other) => panic!("{other}"),
        None => value.as_f64().or_else(|| value.as_bool().map(|b| f64::from(u8::from(b)))).unwrap(),
    }
}

fn flat(rows: &Value) -> Vec<f64> {
    rows.as_array().unwrap().iter().flat_map(numbers).collect()
}

impl Case {
    fn new(case: &Value) -> Self {
        let n = case["n_graphs"].as_u64().unwrap() as usize;
        let types = case["types"].as_array().unwrap();
        let mut blocks = Vec::new();
        let mut legal = vec![Vec::new(); n];
        for (t, info) in types.iter().enumerate() {
            let width = info["cols"].as_u64().unwrap() as usize;
            let owners: Vec<usize> = case["graph_ids"][t]
                .as_array()
                .unwrap()
                .iter()
                .map(|g| g.as_u64().unwrap() as usize)
                .collect();
            let row_ptr = (0..=n).map(|g| owners.iter().filter(|&&o| o < g).count()).collect();
            for (row, &owner) in owners.iter().enumerate() {
                legal[owner].extend(numbers(&case["masks"][t][row]).iter().map(|&m| m != 0.0));
            }
            blocks.push(Block { name: info["name"].as_str().unwrap().to_owned(), width, row_ptr });
        }
        let mut slot_ptr = vec![0];
        for row in &legal {
            slot_ptr.push(slot_ptr.last().unwrap() + row.len());
        }
        let masks =
            Masks { direction: Direction::Forward, blocks, slot_ptr, legal: legal.concat(), has_exit: false };
        let first_row = masks.blocks.iter().map(|block| block.row_ptr.clone()).collect();
        let logits = (0..types.len()).map(|t| flat(&case["logits"][t])).collect();
        Self { masks, first_row, logits }
    }

    fn blocks(&self, logits: &[Vec<f64>], kind: Kind) -> Vec<Tensor> {
        let blocks = logits.iter().zip(&self.masks.blocks);
        blocks
            .map(|(values, block)| {
                let tensor = Tensor::from_slice(values).view([-1, block.width as i64]).to_kind(kind);
                tensor.set_requires_grad(true)
            })
            .collect()
    }

    /// Returns the index, among the slots of a state, of the slot with a given logit. `row` and `column` are
    /// the logit's place in the table of the action type `t` for the whole batch.
    fn slot(&self, state: usize, t: usize, row: usize, column: usize) -> u32 {
        let before: usize = (0..t)
            .map(|u| {
                let block = &self.masks.blocks[u];
                (block.row_ptr[state + 1] - block.row_ptr[state]) * block.width
            })
            .sum();
        (before + (row - self.first_row[t][state]) * self.masks.blocks[t].width + column) as u32
    }
}

fn host(tensor: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(tensor.to_kind(Kind::Double).contiguous().view(-1)).unwrap()
}

#[track_caller]
fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= tolerance * e.abs().max(1.0), "{what}: {g} instead of {e}");
    }
}

fn check(kind: Kind, tolerance: f64) {
    let file: Value = serde_json::from_str(include_str!("golden/graph_categorical.json")).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let golden = Case::new(case);
        let inputs = golden.blocks(&golden.logits, kind);
        let dist = || GraphActionCategorical::new(golden.masks.clone(), &inputs).unwrap();
        close(name, &host(&dist().logsumexp()), &numbers(&case["logsumexp"]), tolerance);
        close(name, &host(&dist().entropy()), &numbers(&case["entropy"]), tolerance);
        let n_legal: Vec<f64> = dist().n_actions().iter().map(|&n| n as f64).collect();
        close(name, &n_legal, &numbers(&case["n_legal"]), 0.0);
        let argmax: Vec<u32> = case["argmax"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .enumerate()
            .map(|(g, at)| golden.slot(g, at[0] as usize, at[1] as usize, at[2] as usize))
            .collect();
        assert_eq!(dist().argmax().unwrap(), Slots(argmax), "{name}");

        if let Some(actions) = case.get("actions").and_then(Value::as_array) {
            let mut rows = Vec::new();
            let mut slots = Vec::new();
            for action in actions.iter().map(numbers) {
                rows.push(action[0] as usize);
                slots.push(golden.slot(
                    rows[rows.len() - 1],
                    action[1] as usize,
                    action[2] as usize,
                    action[3] as usize,
                ));
            }
            let log_probs = dist().log_prob(&rows, &Slots(slots)).unwrap();
            close(name, &host(&log_probs), &numbers(&case["action_log_probs"]), tolerance);
            let weights = Tensor::from_slice(&numbers(&case["action_weights"])).to_kind(kind);
            let scalar = (log_probs * weights).sum(kind);
            close(name, &host(&scalar), &[number(&case["scalar"])], tolerance);
            gradient(name, &scalar, &inputs, &case["grad_scalar"], tolerance);
        }
        gradient(name, &dist().entropy().sum(kind), &inputs, &case["grad_entropy_sum"], tolerance);
        gradient(name, &dist().logsumexp().sum(kind), &inputs, &case["grad_logsumexp_sum"], tolerance);
        if let Some(other) = case.get("logits_other") {
            let other: Vec<Vec<f64>> = (0..golden.logits.len()).map(|t| flat(&other[t])).collect();
            let other =
                GraphActionCategorical::new(golden.masks.clone(), &golden.blocks(&other, kind)).unwrap();
            let kl = dist().kl(&other).unwrap();
            close(name, &host(&kl), &numbers(&case["kl"]), tolerance);
            gradient(name, &kl.sum(kind), &inputs, &case["grad_kl_sum"], tolerance);
        }
    }
}

fn gradient(name: &str, scalar: &Tensor, inputs: &[Tensor], expected: &Value, tolerance: f64) {
    if expected.is_null() {
        return;
    }
    for input in inputs {
        let mut grad = input.grad();
        if grad.defined() {
            let _ = grad.zero_();
        }
    }
    scalar.backward();
    for (t, input) in inputs.iter().enumerate() {
        let grad = input.grad();
        let got = if grad.defined() { host(&grad) } else { vec![0.0; input.numel()] };
        close(name, &got, &flat(&expected[t]), tolerance);
    }
}

#[test]
fn equals_golden_numbers_in_f64() {
    check(Kind::Double, 1e-9);
}

#[test]
fn equals_golden_numbers_in_f32() {
    check(Kind::Float, 1e-5);
}

/// Tests graphs of very different sizes whose logits have a magnitude of 1e4, and a state with a single
/// legal slot. The log-probabilities must equal a plain computation in f64.
#[test]
fn equals_an_oracle_on_hard_inputs() {
    let mut rng = Rng::seeded(3);
    let sizes = [1usize, 400, 2, 37];
    let row_ptr: Vec<usize> = (0..=4).map(|i| sizes[..i].iter().sum()).collect();
    let total = row_ptr[4];
    let mut legal: Vec<bool> = (0..total).map(|_| rng.uniform() < 0.5).collect();
    legal[0] = true; // This is the only legal slot of the first state.
    legal[1] = true;
    (legal[401], legal[402], legal[403]) = (false, true, true);
    let values: Vec<f64> = (0..total).map(|_| 1e4 * (2.0 * rng.uniform() - 1.0)).collect();
    let masks = Masks {
        direction: Direction::Forward,
        blocks: vec![Block { name: "node".into(), width: 1, row_ptr: row_ptr.clone() }],
        slot_ptr: row_ptr.clone(),
        legal: legal.clone(),
        has_exit: false,
    };
    let dist = GraphActionCategorical::new(masks, &[Tensor::from_slice(&values).view([-1, 1])]).unwrap();
    let log_probs = dist.host_log_probs().unwrap();
    let mut at = 0;
    for w in row_ptr.windows(2) {
        let mine: Vec<f64> = (w[0]..w[1]).filter(|&k| legal[k]).map(|k| values[k]).collect();
        let max = mine.iter().copied().fold(f64::MIN, f64::max);
        let total = max + mine.iter().map(|v| (v - max).exp()).sum::<f64>().ln();
        for v in mine {
            assert!((log_probs[at] - (v - total)).abs() < 1e-9 * v.abs().max(1.0));
            at += 1;
        }
    }
    assert_eq!(at, log_probs.len());
    let tensor = host(&dist.log_probs());
    close("tensor and host agree", &tensor, log_probs, 1e-12);
}

/// Tests that the frequencies of samples match the probabilities of the documented exploration formula.
/// Illegal slots must never be sampled.
#[test]
fn samples_follow_the_behaviour() {
    let masks = Masks::dense(Direction::Forward, 4, vec![true, false, true, true], true).unwrap();
    let logits = [0.3f64, 50.0, -0.7, 1.1];
    let dist = GraphActionCategorical::new(masks, &[Tensor::from_slice(&logits).view([1, 4])]).unwrap();
    let exploration =
        Exploration::epsilon(0.2).unwrap().with_temperature(2.0).unwrap().with_exit_bias(-0.4).unwrap();
    let tempered: Vec<f64> = [0.3, -0.7, 1.1 - 0.4].iter().map(|l: &f64| (l / 2.0).exp()).collect();
    let total: f64 = tempered.iter().sum();
    let expected: Vec<f64> = tempered.iter().map(|w| 0.8 * w / total + 0.2 / 3.0).collect();
    let n = 200_000;
    let slots = dist.sample(&vec![0; n], &exploration, &mut Rng::seeded(0)).unwrap();
    for (slot, p) in [0u32, 2, 3].iter().zip(expected) {
        let share = slots.0.iter().filter(|s| *s == slot).count() as f64 / n as f64;
        let deviation = (p * (1.0 - p) / n as f64).sqrt();
        assert!((share - p).abs() < 4.0 * deviation, "slot {slot}: {share} instead of {p}");
    }
    assert!(!slots.0.contains(&1));
}

/// Tests that wrong shapes, states without slots and invalid logits give typed errors.
#[test]
fn bad_input_is_an_error() {
    let masks = || Masks::dense(Direction::Forward, 2, vec![true, true, false, false], true).unwrap();
    let blocks = [Tensor::zeros([2, 3], (Kind::Float, Device::Cpu))];
    let error = GraphActionCategorical::new(masks(), &blocks).unwrap_err().to_string();
    assert!(error.contains("[2, 3]") && error.contains("[2, 2]"), "{error}");
    assert!(GraphActionCategorical::new(masks(), &[]).is_err());
    let uniform = GraphActionCategorical::uniform(masks());
    let none = Exploration::on_policy();
    assert!(uniform.sample(&[0], &none, &mut Rng::seeded(0)).is_ok());
    let error = uniform.sample(&[1], &none, &mut Rng::seeded(0)).unwrap_err();
    assert!(matches!(error, gfn::Error::NoLegalAction { row: 1, .. }));
    let nan = Tensor::from_slice(&[0.0f32, f32::NAN, 0.0, 0.0]).view([2, 2]);
    let dist = GraphActionCategorical::new(masks(), &[nan]).unwrap();
    assert!(matches!(
        dist.sample(&[0], &none, &mut Rng::seeded(0)),
        Err(gfn::Error::NonFinite { row: 0, .. })
    ));
}

#[test]
fn rows_behind_the_last_state_are_refused() {
    let masks = || Masks::dense(Direction::Forward, 2, vec![true, true, true, true], true).unwrap();
    let zeros = Tensor::zeros([2, 2], (Kind::Float, Device::Cpu));
    for dist in
        [GraphActionCategorical::uniform(masks()), GraphActionCategorical::new(masks(), &[zeros]).unwrap()]
    {
        let out_of_range = |error| matches!(error, Error::OutOfRange { index: 2, len: 2 });
        assert!(out_of_range(
            dist.sample(&[0, 2], &Exploration::on_policy(), &mut Rng::seeded(0)).unwrap_err()
        ));
        assert!(out_of_range(dist.log_prob(&[0, 2], &Slots(vec![0, 0])).unwrap_err()));
        assert!(out_of_range(dist.log_weights(&[2], &Slots(vec![0])).unwrap_err()));
        assert!(out_of_range(dist.support(&[2]).unwrap_err()));
    }
}

/// Tests sampling at the lowest temperatures. Only the most likely actions may be sampled. If several
/// actions are most likely, each of them must occur, not only the first.
#[test]
fn the_lowest_temperatures_take_the_likeliest_action() {
    for (logits, likeliest) in [([0.5f32, 3.0, -2.0], vec![1u32]), ([-4.0, -1.0, -1.0], vec![1, 2])] {
        for temperature in [1e-3, 1e-300, 1e-307, f64::MIN_POSITIVE / 8.0] {
            let masks = Masks::dense(Direction::Forward, 3, vec![true; 3], true).unwrap();
            let dist =
                GraphActionCategorical::new(masks, &[Tensor::from_slice(&logits).view([1, 3])]).unwrap();
            let cold = Exploration::on_policy().with_temperature(temperature).unwrap();
            let Slots(mut drawn) = dist.sample(&[0; 200], &cold, &mut Rng::seeded(0)).unwrap();
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn, likeliest, "{temperature}");
        }
    }
}

/// Tests divergences between a uniform distribution, which is in single precision on the host, and a
/// distribution on another device.
#[test]
fn divergences_from_uniform_distributions_lie_with_the_other_one() {
    let device = Device::cuda_if_available();
    let masks = || Masks::dense(Direction::Forward, 3, vec![true, true, false], true).unwrap();
    let logits = Tensor::from_slice(&[0.0f64, 3f64.ln(), 0.0]).view([1, 3]).to_device(device);
    let skewed = GraphActionCategorical::new(masks(), &[logits]).unwrap();
    let uniform = GraphActionCategorical::uniform(masks());
    let expected = [0.25 * 0.5f64.ln() + 0.75 * 1.5f64.ln(), 0.5 * 2f64.ln() + 0.5 * (2.0 / 3.0f64).ln()];
    let got = [skewed.kl(&uniform).unwrap(), uniform.kl(&skewed).unwrap()];
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!(got.device(), device);
        assert!((got.double_value(&[0]) - expected).abs() < 1e-7);
    }
}

/// Tests that logits on the host give the same samples, log-probabilities and errors as the same logits in
/// a tensor.
#[test]
fn logits_may_lie_on_the_host() {
    let masks =
        || Masks::dense(Direction::Forward, 3, vec![true, false, true, true, true, true], true).unwrap();
    let logits = [0.5f32, 9.0, -1.0, 0.0, 2.0, 0.25];
    let host = GraphActionCategorical::on_host(masks(), logits.to_vec()).unwrap();
    let tensor = GraphActionCategorical::new(masks(), &[Tensor::from_slice(&logits).view([2, 3])]).unwrap();
    let rows = [0, 1, 1, 0, 1, 1];
    let explored = Exploration::epsilon(0.1).unwrap();
    for exploration in [Exploration::on_policy(), explored] {
        let draw =
            |dist: &GraphActionCategorical| dist.sample(&rows, &exploration, &mut Rng::seeded(1)).unwrap();
        assert_eq!(draw(&host), draw(&tensor));
    }
    assert_eq!(host.host_log_probs().unwrap(), tensor.host_log_probs().unwrap());
    let drawn = Slots(vec![2, 0]);
    let [a, b] = [&host, &tensor].map(|dist| dist.log_prob(&[0, 1], &drawn).unwrap());
    assert!(a.equal(&b));
    assert!(
        GraphActionCategorical::on_host(masks(), vec![0.0; 4])
            .unwrap_err()
            .to_string()
            .contains("number for each slot")
    );
    let nan = GraphActionCategorical::on_host(masks(), vec![0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0]).unwrap();
    let error = nan.sample(&rows, &Exploration::on_policy(), &mut Rng::seeded(1)).unwrap_err();
    assert!(matches!(error, Error::NonFinite { row: 1, .. }), "{error}");
}

/// Tests batches with a single action type and one row of logits per state (`Masks::dense`). Their
/// log-probabilities are computed by other libtorch operations than those of general batches, in which the
/// slots of a state are a segment of a flat list. Values and gradients must be the same. A state without
/// legal slots must give no values, whether the logits are scaled or not.
#[test]
fn dense_blocks_are_segments() {
    let legal = [[true, false, true], [false; 3], [true; 3], [false, true, false]].concat();
    let masks = Masks::dense(Direction::Backward, 3, legal, false).unwrap();
    let values: Vec<f64> = (0..12).map(|i| f64::from(i * i % 7) - 2.0).collect();
    let rows = [0, 2, 2, 3, 0];
    let slots = Slots(vec![2, 0, 2, 1, 0]);
    let weights = Tensor::from_slice(&[1.0, -2.0, 0.5, 3.0, 0.25]);
    let run = |dense: bool, factors: [f64; 4]| {
        let logits = Tensor::from_slice(&values).view([4, 3]).set_requires_grad(true);
        let scale = Tensor::from_slice(&factors).set_requires_grad(true);
        let dist = GraphActionCategorical::new(masks.clone(), std::slice::from_ref(&logits)).unwrap();
        let dist = if factors == [1.0; 4] { dist } else { dist.scaled(&scale).unwrap() };
        let log_prob = match dense {
            true => dist.log_prob(&rows, &slots).unwrap(),
            false => {
                let entry = |row: usize, slot: u32| {
                    let start = dist.legal_offsets()[row];
                    let slots = dist.legal_slots();
                    (start..).find(|&k| slots[k] == slot).unwrap() as i64
                };
                let entries: Vec<i64> =
                    rows.iter().zip(&slots.0).map(|(&row, &slot)| entry(row, slot)).collect();
                dist.log_probs().index_select(0, &Tensor::from_slice(&entries))
            }
        };
        (&log_prob * &weights).sum(Kind::Double).backward();
        let of_scale = if scale.grad().defined() { scale.grad() } else { scale.zeros_like() };
        [log_prob.detach(), logits.grad(), of_scale]
    };
    for factors in [[1.0; 4], [0.3, 0.7, 2.0, 1.5]] {
        for (found, expected) in run(true, factors).iter().zip(run(false, factors)) {
            assert!((found - expected).abs().max().double_value(&[]) < 1e-12, "{found}");
        }
    }
}

#[test]
fn logits_are_scaled_state_by_state() {
    let file: Value = serde_json::from_str(include_str!("golden/graph_categorical.json")).unwrap();
    let mut reached = false;
    for case in file["cases"].as_array().unwrap() {
        let golden = Case::new(case);
        let dist = || {
            GraphActionCategorical::new(golden.masks.clone(), &golden.blocks(&golden.logits, Kind::Double))
                .unwrap()
        };
        let n = golden.masks.len();
        let factors: Vec<f64> = (0..n).map(|i| 0.3 + i as f64).collect();
        let scale = Tensor::from_slice(&factors).set_requires_grad(true);
        let plain = dist();
        let scaled = dist().scaled(&scale).unwrap();
        // The expected values are the log-softmax of the scaled logits. These values are compared with the
        // results on the host and with the results that have a gradient.
        let before = plain.host_log_probs().unwrap();
        let offsets = plain.legal_offsets();
        let mut expected = Vec::new();
        for (row, factor) in factors.iter().enumerate() {
            let logs = &before[offsets[row]..offsets[row + 1]];
            let total: f64 = logs.iter().map(|log| (factor * log).exp()).sum();
            expected.extend(logs.iter().map(|log| factor * log - total.ln()));
        }
        close("on the host", scaled.host_log_probs().unwrap(), &expected, 1e-12);
        close("with gradient", &host(&scaled.log_probs()), &expected, 1e-12);
        // Scaling twice must multiply the factors.
        let twice = dist().scaled(&scale.detach()).unwrap().scaled(&scale.detach()).unwrap();
        let squared = dist().scaled(&scale.detach().square()).unwrap();
        close("twice", twice.host_log_probs().unwrap(), squared.host_log_probs().unwrap(), 1e-12);
        scaled.log_probs().square().sum(Kind::Double).backward();
        reached |= scale.grad().abs().max().double_value(&[]) > 0.0;
        assert!(dist().scaled(&Tensor::from_slice(&vec![1.0; n + 1])).is_err());
        // Scaling must not change a uniform distribution.
        let uniform = || GraphActionCategorical::uniform(golden.masks.clone());
        let alike = uniform().scaled(&scale.detach()).unwrap();
        assert_eq!(alike.host_log_probs().unwrap(), uniform().host_log_probs().unwrap());
    } // A factor matters only if a state has several legal slots.
    assert!(reached);
}
