//! Tests that compare bit sequences, Ising models, sets and binary trees with the golden file.
//!
//! The numbers of actions in the golden file are torchgfn's. In some environments torchgfn forces an exit
//! action at the end, which this library doesn't have. In these environments torchgfn's number of actions is
//! larger by one.

use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, Env, Reward, Rows, VectorStates};
use gfn::policy::UniformPolicy;
use gfn_gym::bit_sequence::{BitSequence, HammingReward, NonAutoregressiveBitSequence, Words};
use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
use gfn_gym::perfect_tree::{PerNode, PerfectBinaryTree};
use gfn_gym::set_addition::{SetAddition, WeightReward};
use serde_json::Value;

const GOLDEN: &str = include_str!("golden/bitsequence_ising_ebm.json");

fn cases(kind: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases: Vec<Value> =
        golden["cases"].as_array().unwrap().iter().filter(|c| c["kind"] == kind).cloned().collect();
    assert!(!cases.is_empty(), "{kind}");
    cases
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap()
}

fn size(case: &Value, key: &str) -> usize {
    case[key].as_u64().unwrap() as usize
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn rows(values: &Value) -> Vec<Vec<f64>> {
    values.as_array().unwrap().iter().map(numbers).collect()
}

fn bits(values: &Value) -> Vec<Vec<bool>> {
    rows(values).iter().map(|row| row.iter().map(|&x| x > 0.0).collect()).collect()
}

/// Reads states of the golden file and adds `shift` to each entry, because torchgfn and this library number
/// the values of some entries differently.
fn states(values: &Value, shift: u16) -> VectorStates {
    let rows = rows(values);
    VectorStates::from_flat(rows[0].len(), rows.concat().iter().map(|&x| x as u16 + shift).collect()).unwrap()
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?}, not {expected:?}");
}

/// Returns the number of forward slots of an environment.
fn n_slots<E: DiscreteEnv>(env: &E) -> usize {
    env.masks(Direction::Forward, &env.initial(&[0])).row(0).len()
}

fn words(case: &Value) -> Words {
    Words::new(size(case, "word_size"), size(case, "seq_size")).unwrap()
}

#[test]
fn bit_sequences() {
    for case in cases("bitsequence") {
        let words = words(&case);
        let env = BitSequence::new(words.word_size(), words.seq_size()).unwrap().env();
        assert_eq!(n_slots(&env) + 1, size(&case, "n_actions"));
        let reward =
            HammingReward::with_temperature(&words, &bits(&case["modes"]), number(&case, "temperature"))
                .unwrap();
        let log_rewards = reward.log_reward(&states(&case["states"], 1), None).unwrap();
        assert_close(&log_rewards, &numbers(&case["log_rewards"]));
        if case["log_Z"].is_number() {
            assert_close(&[reward.log_z().unwrap()], &[number(&case, "log_Z")]);
            assert_eq!(words.n_terminal(), case["n_terminating_states"].as_u64());
        } else {
            let one = &bits(&case["modes"])[..1];
            let one = HammingReward::with_temperature(&words, one, number(&case, "temperature")).unwrap();
            assert_close(&[one.log_z().unwrap()], &[number(&case, "log_Z_single_mode_closed_form")]);
        }
    }
}

#[test]
fn non_autoregressive_bit_sequences() {
    for case in cases("nonautoregressive_bitsequence") {
        let words = words(&case);
        let reward =
            HammingReward::with_exponent(&words, &bits(&case["modes"]), number(&case, "reward_exponent"))
                .unwrap();
        let states = states(&case["states"], 1);
        assert_close(&reward.log_reward(&states, None).unwrap(), &numbers(&case["log_rewards"]));
        assert_close(&[reward.log_z().unwrap()], &[number(&case, "log_Z")]);
        let env = NonAutoregressiveBitSequence::new(words.word_size(), words.seq_size()).unwrap().env();
        let graph = StateGraph::build(&env, 1000).unwrap();
        assert_eq!(graph.ends().len(), states.len());
        assert!(
            graph.indices(&env, &states).iter().all(|index| index.is_some_and(|index| graph.can_end(index)))
        );
    }
}

#[test]
fn discrete_ebms() {
    for case in cases("discrete_ebm") {
        let ebm = DiscreteEbm::new(size(&case, "n")).unwrap();
        let env = ebm.env();
        let reward = IsingReward::new(ebm.n(), &rows(&case["J"]).concat(), number(&case, "alpha")).unwrap();
        let states = states(&case["states"], 1);
        assert_close(&reward.energy(&states).unwrap(), &numbers(&case["energy"]));
        assert_close(&reward.log_reward(&states, None).unwrap(), &numbers(&case["log_rewards"]));
        assert_close(&[reward.log_z().unwrap()], &[number(&case, "log_Z")]);

        let graph = StateGraph::build(&env, 1000).unwrap();
        assert_eq!(
            (graph.len(), graph.ends().len()),
            (size(&case, "n_states"), size(&case, "n_terminating"))
        );
        assert_eq!(n_slots(&env) + 1, size(&case, "n_actions"));
        let target = graph.target_distribution(&reward, None).unwrap();
        let probs: Vec<f64> =
            graph.indices(&env, &states).iter().map(|index| target.probs[index.unwrap()]).collect();
        assert_close(&probs, &numbers(&case["true_distribution"]));
        let spin = |row: &[u16], i: usize| f64::from(row[i]) * 2.0 - 3.0;
        let magnetization: Vec<f64> =
            (0..ebm.n()).map(|i| states.rows().zip(&probs).map(|(row, p)| p * spin(row, i)).sum()).collect();
        assert_close(&magnetization, &numbers(&case["magnetization"]));
    }
}

#[test]
fn ising_lattices() {
    for case in cases("ising_lattice") {
        let side = size(&case, "L");
        let alpha = number(&case, "alpha");
        let lattice = IsingReward::lattice(side, number(&case, "J_value"), alpha).unwrap();
        let dense = IsingReward::new(side * side, &rows(&case["adjacency_J"]).concat(), alpha).unwrap();
        let ebm = DiscreteEbm::new(lattice.n()).unwrap();
        let env = ebm.env();
        let samples = ebm.states_of(&bits(&case["sample_spins"])).unwrap();
        let graph = StateGraph::build(&env, 20_000).unwrap();
        for reward in [&lattice, &dense] {
            assert_close(&reward.log_reward(&samples, None).unwrap(), &numbers(&case["sample_log_rewards"]));
            assert_close(&[reward.log_z().unwrap()], &[number(&case, "log_Z")]);
            let values = reward.log_reward(&graph.states().select(&graph.ends()), None).unwrap();
            let largest = number(&case, "max_log_reward");
            assert!(values.iter().all(|&value| value < largest + 1e-9));
            let ground = values.iter().filter(|value| (*value - largest).abs() < 1e-9).count();
            assert_eq!(ground, size(&case, "n_ground_states"));
        }
    }
}

#[test]
fn set_additions() {
    for case in cases("set_addition") {
        let fixed_length = case["fixed_length"].as_bool().unwrap();
        let rules = SetAddition::new(size(&case, "n_items"), size(&case, "max_items"), fixed_length).unwrap();
        let env = rules.env();
        let reward = WeightReward::new(&rules, 0.1, &numbers(&case["weights"])).unwrap();
        let log_rewards = reward.log_reward(&states(&case["terminating_states"], 0), None).unwrap();
        assert_close(&log_rewards.iter().map(|r| r.exp()).collect::<Vec<_>>(), &numbers(&case["rewards"]));
        assert_close(&[reward.log_z()], &[number(&case, "log_Z")]);
        assert_eq!(
            (rules.n_states(), rules.n_terminal()),
            (case["n_states"].as_u64(), case["n_terminating"].as_u64())
        );

        let graph = StateGraph::build(&env, 1000).unwrap();
        let all = states(&case["all_states"], 0);
        assert_eq!(graph.len(), all.len());
        let masks = env.masks(Direction::Forward, &all);
        for (row, expected) in rows(&case["forward_masks"]).iter().enumerate() {
            let expected: Vec<bool> = expected.iter().map(|&x| x > 0.0).collect();
            // If all finished sets have the same size, this library's environment has no exit action, but
            // torchgfn's environment has one. A trajectory must be able to end in a set if and only if
            // torchgfn's exit is legal.
            let (adds, exit) = expected.split_at(rules.n_items());
            assert_eq!(&masks.row(row)[..rules.n_items()], adds);
            let ends = graph.can_end(graph.indices(&env, &all.select(&[row]))[0].unwrap());
            assert_eq!((ends, masks.row(row).len()), (exit[0], rules.n_items() + usize::from(!fixed_length)));
        }
    }
}

#[test]
fn perfect_binary_trees() {
    for case in cases("perfect_binary_tree") {
        let rules = PerfectBinaryTree::new(size(&case, "depth")).unwrap();
        let env = rules.env();
        assert_eq!(rules.n_states(), case["n_states"].as_u64().unwrap());
        let leaves: Vec<u64> = numbers(&case["leaves"]).iter().map(|&leaf| leaf as u64).collect();
        assert_eq!(rules.leaves().collect::<Vec<u64>>(), leaves);
        let log_rewards = PerNode::SQRT.log_reward(&rules.states_of(leaves).unwrap(), None).unwrap();
        assert_close(&log_rewards.iter().map(|r| r.exp()).collect::<Vec<_>>(), &numbers(&case["rewards"]));
        assert_close(&[PerNode::SQRT.log_z(&rules).unwrap()], &[number(&case, "log_Z")]);

        let graph = StateGraph::build(&env, 100).unwrap();
        let flows = graph.exact_flows(&env, &UniformPolicy, &PerNode::SQRT, None).unwrap();
        let flow = |node: u64| {
            let state = graph.indices(&env, &rules.states_of([node]).unwrap())[0].unwrap();
            flows.log_flow[state].exp()
        };
        let inner = rows(&case["transitions"]).into_iter().zip(numbers(&case["optimal_left_probability"]));
        for (transition, expected) in inner {
            let [node, left, right] = [0, 1, 2].map(|i| transition[i] as u64);
            let mut children = rules.states_of([node, node]).unwrap();
            env.step(Direction::Forward, &mut children, &gfn::env::Slots(vec![0, 1])).unwrap();
            let nodes: Vec<u64> = children.rows().map(PerfectBinaryTree::node).collect();
            assert_eq!(nodes, [left, right]);
            assert_close(&[flow(left) / flow(node)], &[expected]);
        }
    }
}
