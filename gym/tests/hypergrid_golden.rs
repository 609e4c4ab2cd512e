//! The original reward of the hyper-grid against torchgfn's, re-computed in exact arithmetic (see the file's `source`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gfn::env::{EnumerableEnv, Reward, Rows};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};
use serde_json::Value;

const GOLDEN: &str = include_str!("golden/hypergrid_original.json");

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap()
}

fn integers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

#[test]
fn rewards_modes_and_log_z_equal_the_golden_file() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let env = HyperGrid::new(number(case, "ndim") as usize, number(case, "height") as usize).unwrap();
        let weight = |key| number(&case["kwargs"], key);
        let reward = OriginalReward::new(&env, weight("R0"), weight("R1"), weight("R2")).unwrap();
        let states = env.states_of(0..env.n_states()).unwrap();
        let values: Vec<f64> = case["reward_values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let expected: Vec<f64> = integers(&case["reward_index"]).iter().map(|&i| values[i as usize]).collect();
        let got = reward.reward(&states);
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));

        let log_rewards = reward.log_reward(&states, None).unwrap();
        let z: f64 = log_rewards.iter().map(|r| r.exp()).sum();
        assert!((reward.log_z() - number(case, "log_partition")).abs() < 1e-12);
        assert!((reward.log_z() - z.ln()).abs() < 1e-12);

        let modes: Vec<u64> = reward.is_mode(&states).iter().zip(0u64..).filter(|(m, _)| **m).map(|(_, i)| i).collect();
        assert_eq!(modes, integers(&case["mode_indices"]));
        assert_eq!(reward.n_modes(), modes.len() as u64);

        for spot in case["spot_states"].as_array().unwrap() {
            let key = spot[1].as_u64().unwrap();
            let state = env.states_of([key]).unwrap();
            let row: Vec<u64> = state.row(0).iter().map(|&x| u64::from(x)).collect();
            assert_eq!(row, integers(&spot[0]));
            assert_eq!(env.keys(&state), [key]);
            assert!((reward.reward(&state)[0] - spot[2].as_f64().unwrap()).abs() < 1e-12);
        }
        assert_eq!(states.group().first.len() as u64, env.n_states());
    }
}
