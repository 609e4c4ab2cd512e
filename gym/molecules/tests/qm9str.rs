//! QM9str keeps its contract, and its states and log Z are as many and as large as it claims.

use gfn::Rng;
use gfn::env::{StateGraph, VectorEnv};
use gfn::testing::check_env;
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward};

#[test]
fn strings_of_blocks() {
    check_env(&VectorEnv::new(Qm9Str), 50, &mut Rng::seeded(0)).unwrap();
    let graph = StateGraph::build(&VectorEnv::new(Qm9Str), 200_000).unwrap();
    assert_eq!(graph.len(), (0..=5).map(|len| 11usize.pow(len)).sum::<usize>());
    assert_eq!(graph.ends().len(), Qm9Str::N_TERMINAL);
    let reward = Qm9StrReward::standard();
    let target = graph.target_distribution(&reward, None).unwrap();
    assert!((target.log_z - reward.log_z()).abs() < 1e-9);
}
