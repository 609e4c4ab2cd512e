//! Tests that compare rewards of the hyper-grid with torchgfn's formulas (see `golden/README.md`).

use gfn::env::{Reward, Rows};
use gfn_gym::hypergrid::{
    BitwiseXor, ConditionalMultiscale, CoprimeTier, GridReward, HyperGrid, LcmTarget, MultiplicativeCoprime,
    MultiscaleTier, OriginalReward, ParityCheck, ParityTier, RewardKind,
};
use serde_json::Value;

const GOLDEN: &str = include_str!("golden/hypergrid_rewards.json");

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap()
}

fn list(values: &Value) -> impl Iterator<Item = &Value> {
    values.as_array().into_iter().flatten()
}

fn integers(values: &Value) -> Vec<u64> {
    list(values).map(|v| v.as_u64().unwrap()).collect()
}

fn places(values: &Value) -> Vec<usize> {
    integers(values).into_iter().map(|v| v as usize).collect()
}

/// Returns a JSON value as a whole number; `None` if the value is null or missing.
fn perhaps(value: &Value) -> Option<u64> {
    value.as_u64()
}

fn pair(value: &Value) -> (usize, usize) {
    (value[0].as_u64().unwrap() as usize, value[1].as_u64().unwrap() as usize)
}

/// Builds the reward of a case of the golden file from the parameters that torchgfn used. Some parameters
/// were passed to torchgfn (`kwargs`), and others were computed or drawn by torchgfn itself (`resolved`).
fn reward(case: &Value, grid: &HyperGrid) -> GridReward {
    let kwargs = &case["kwargs"];
    let resolved = &case["resolved"];
    let setting = |key: &str, default: f64| kwargs[key].as_f64().unwrap_or(default);
    let r0 = setting("R0", 0.0);
    let weights: Vec<f64> = list(&resolved["tier_weights"]).map(|w| w.as_f64().unwrap()).collect();
    match case["reward"].as_str().unwrap().parse::<RewardKind>().unwrap() {
        RewardKind::Original => OriginalReward::new(grid, r0, setting("R1", 0.0), setting("R2", 0.0))
            .unwrap()
            .grid_reward()
            .clone(),
        RewardKind::Deceptive => {
            GridReward::deceptive(grid, r0, setting("R1", 0.0), setting("R2", 0.0)).unwrap()
        }
        RewardKind::Cosine => {
            GridReward::cosine(grid, r0, setting("R1", 0.0), setting("mode_gamma", 0.8)).unwrap()
        }
        RewardKind::Sparse => GridReward::sparse(grid),
        RewardKind::BitwiseXor => {
            let tier = |t: usize| {
                let (low, high) = pair(&resolved["bits_per_tier_clipped"][t]);
                let check = |(row, side): (&Value, &Value)| ParityCheck {
                    bits: integers(row).iter().enumerate().map(|(i, bit)| bit << i).sum(),
                    odd: if side.as_u64().unwrap() == 1 { u32::MAX } else { 0 },
                };
                let checks = list(&resolved["A"][t]).zip(list(&resolved["c"][t])).map(check).collect();
                ParityTier { weight: weights[t], bits: (low as u32, high as u32), checks: vec![checks] }
            };
            let tiers = (0..weights.len()).map(tier).collect();
            let xor =
                BitwiseXor { r0, dims: places(&resolved["dims_constrained"]), tiers, selector: Vec::new() };
            xor.build(grid).unwrap()
        }
        RewardKind::MultiplicativeCoprime => {
            let tier = |t: usize| CoprimeTier {
                weight: weights[t],
                cap: resolved["exponent_caps_effective"][t].as_u64().unwrap() as u32,
                lcm: perhaps(&resolved["target_lcms_effective"][t]).map_or(LcmTarget::Any, LcmTarget::Of),
            };
            let coprime = MultiplicativeCoprime {
                r0,
                dims: places(&resolved["active_dims"]),
                primes: integers(&resolved["primes_effective"]).iter().map(|&p| p as u32).collect(),
                tiers: (0..weights.len()).map(tier).collect(),
                pairs: list(&resolved["coprime_pairs"]).map(pair).collect(),
                pairs_from: resolved["coprime_start_tier"].as_u64().unwrap() as usize,
                rules: Vec::new(),
            };
            coprime.build(grid).unwrap()
        }
        RewardKind::ConditionalMultiscale => {
            let small = |value: &Value| value.as_u64().unwrap() as u32;
            let tier = |t: usize| MultiscaleTier {
                weight: weights[t],
                shift: small(&resolved["filter_shift"][t]),
                cross_mod: perhaps(&resolved["cross_dim_mods"][t]).map(|m| m as u32),
            };
            let multiscale = ConditionalMultiscale {
                r0,
                dims: places(&resolved["active_dims"]),
                base: small(&resolved["base"]),
                filter_width: small(&resolved["filter_width"]),
                tiers: (0..weights.len()).map(tier).collect(),
                coefficients: vec![
                    list(&resolved["shift_coeffs"]).map(|of| list(of).map(small).collect()).collect(),
                ],
            };
            let reward = multiscale.build(grid).unwrap();
            assert_eq!(reward.tiered().unwrap().mode_tiers as u64, resolved["mode_tier"].as_u64().unwrap());
            reward
        }
        kind => panic!("no golden numbers for {kind}"),
    }
}

#[test]
fn rewards_modes_and_log_z_equal_the_golden_file() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases: Vec<&Value> = list(&golden["cases"]).collect();
    assert_eq!(cases.len(), 26);
    for case in cases {
        let name = format!("{} {} {} {}", case["reward"], case["label"], case["ndim"], case["height"]);
        let grid = HyperGrid::new(number(case, "ndim") as usize, number(case, "height") as usize).unwrap();
        let reward = reward(case, &grid);
        let states = grid.states_of(0..grid.n_states()).unwrap();
        let values: Vec<f64> = list(&case["reward_values"]).map(|v| v.as_f64().unwrap()).collect();
        let expected: Vec<f64> = if case["rewards"].is_null() {
            places(&case["reward_index"]).iter().map(|&i| values[i]).collect()
        } else {
            list(&case["rewards"]).map(|v| v.as_f64().unwrap()).collect()
        };
        let got = reward.reward(&states);
        assert_eq!(got.len(), expected.len(), "{name}");
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{name}");
        let log_rewards = reward.log_reward(&states, None).unwrap();
        assert!(log_rewards.iter().zip(&got).all(|(log, r)| (log - r.ln()).abs() < 1e-12), "{name}");
        assert_eq!(reward.partial_log_reward(&states, None).unwrap(), Some(log_rewards));

        let totals = reward.totals(grid.n_states()).unwrap();
        assert!((totals.log_z - number(case, "log_partition")).abs() < 1e-9, "{name}");
        assert!((reward.log_z().unwrap() - totals.log_z).abs() < 1e-9, "{name}");

        let modes: Vec<u64> =
            reward.is_mode(&states).iter().zip(0u64..).filter(|(m, _)| **m).map(|(_, i)| i).collect();
        assert_eq!(modes, integers(&case["mode_indices"]), "{name}");
        assert_eq!(modes.len() as u64, case["n_mode_states"].as_u64().unwrap(), "{name}");
        assert_eq!(
            (reward.n_modes(), totals.n_modes),
            (Some(modes.len() as u64), modes.len() as u64),
            "{name}"
        );
        assert_eq!(reward.check_modes().is_ok(), !modes.is_empty(), "{name}");
        assert!((reward.mode_threshold() - number(case, "mode_threshold")).abs() < 1e-9, "{name}");

        for spot in list(&case["spot_states"]) {
            let key = spot[1].as_u64().unwrap();
            let state = grid.states_of([key]).unwrap();
            let row: Vec<u64> = state.row(0).iter().map(|&x| u64::from(x)).collect();
            assert_eq!(row, integers(&spot[0]));
            assert_eq!(grid.index(state.row(0)), key);
            assert!((reward.reward(&state)[0] - spot[2].as_f64().unwrap()).abs() < 1e-9, "{name}");
        }
        assert_eq!(states.group().first.len() as u64, grid.n_states());
    }
}
