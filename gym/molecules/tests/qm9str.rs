//! Tests of QM9str, whose objects are strings of building blocks: the checks that every environment must
//! pass, the number of its states, and its log Z.

use gfn::Rng;
use gfn::contract::{Budget, check_env, check_tensors};
use gfn::env::{Reward, StateGraph};
use gfn_molecules::Molecule;
use gfn_molecules::qm9str::{BLOCKS, Qm9Str, Qm9StrReward, molecule};

#[test]
fn strings_of_blocks() {
    check_env(&Qm9Str.env(), Budget::thorough().with_walks(50), &mut Rng::seeded(0)).unwrap();
    let graph = StateGraph::build(&Qm9Str.env(), 200_000).unwrap();
    assert_eq!(graph.len(), (0..=5).map(|len| 11usize.pow(len)).sum::<usize>());
    assert_eq!(graph.ends().len(), Qm9Str::N_TERMINAL);
    let reward = Qm9StrReward::standard();
    let target = graph.target_distribution(&reward, None).unwrap();
    assert!((target.log_z - reward.log_z()).abs() < 1e-9);
    assert!(reward.on_tensors().is_some());
    check_tensors(&Qm9Str.env(), &reward, 2_000, &mut Rng::seeded(1)).unwrap();
}

#[test]
fn blocks_are_those_of_the_data() {
    let data: serde_json::Value = serde_json::from_str(include_str!("../data/qm9str_blocks.json")).unwrap();
    let listed = data["blocks"].as_array().unwrap();
    assert_eq!(listed.len(), BLOCKS.len());
    for (block, listed) in BLOCKS.iter().zip(listed) {
        assert_eq!(listed["smiles"], block.smiles);
        assert_eq!(listed["stems"], serde_json::json!([block.left, block.right]));
    }
}

#[test]
fn strings_are_molecules_read_from_either_end() {
    // A building block that is a ring must be joined to its two neighbours at opposite atoms of the ring.
    let found = molecule(&[1, 7, 2]).unwrap();
    assert_eq!(found.key(), Molecule::from_smiles("Oc1ccc(N)cc1").unwrap().key());
    // The neighbours of the building block fluoromethane both bind to its carbon, so its fluorine must be a
    // branch.
    assert_eq!(
        molecule(&[10, 3, 10]).unwrap().smiles(),
        Molecule::from_smiles("CCCC(F)CCC").unwrap().smiles()
    );
    assert_eq!(molecule(&[0; 5]).unwrap().formula(), "C5H12");
    for senseless in [&[][..], &[0; 6], &[11]] {
        assert!(molecule(senseless).is_err());
    }
}

#[test]
fn the_table_is_read_as_it_is_meant() {
    let table = include_bytes!("../data/qm9str_rewards.f32").as_chunks::<4>().0;
    let scores: Vec<f64> = table.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
    assert!((scores.iter().copied().fold(f64::INFINITY, f64::min) + 2.771_496_057_510_376).abs() < 1e-12);
    let reward = Qm9StrReward::standard();
    assert_eq!((scores.len(), reward.log_rewards().len()), (Qm9Str::N_TERMINAL, Qm9Str::N_TERMINAL));
    let most = reward.log_rewards().iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!((most - 100f64.ln()).abs() < 1e-12);
    // Scores below 0.001 are raised to 0.001 before the logarithm is taken.
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let expected = scores.iter().map(|score| 5.0 * (score.max(1e-3).ln() - best.ln()) + 100f64.ln());
    assert!(expected.zip(reward.log_rewards()).all(|(expected, found)| (expected - found).abs() < 1e-12));
    assert!((reward.log_z() - 11.926_701_974_595_447).abs() < 1e-9);
    // The index of a string is a number in base 11, whose digits are the indices of its building blocks.
    // Building block 1 at the third position from the end, after blocks 0, gives 121.
    let states = Qm9Str.states_of(&[[0u16, 0, 1, 0, 0], [0, 0, 0, 0, 10]]).unwrap();
    let found = reward.log_reward(&states, None).unwrap();
    assert_eq!(found, [reward.log_rewards()[121], reward.log_rewards()[10]]);
    assert!(reward.log_reward(&Qm9Str.states_of(&[[1u16, 2]]).unwrap(), None).is_err());
    assert!(Qm9StrReward::with_exponent(f64::NAN).is_err() && Qm9StrReward::with_exponent(1.0).is_ok());
}
