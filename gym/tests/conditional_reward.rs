//! Tests of the grid's `ConditionalReward`, which goes from a flat reward to `OriginalReward` as its
//! condition goes from 0 to 1, and of refused conditions.

use gfn::Rng;
use gfn::env::StateGraph;
use gfn::env::{Reward, VectorStates};
use gfn_gym::hypergrid::{ConditionalReward, HyperGrid, OriginalReward};
use tch::{Kind, Tensor};

fn grid(ndim: usize, height: usize) -> HyperGrid {
    HyperGrid::new(ndim, height).unwrap()
}

#[test]
fn the_conditional_reward_goes_from_flat_to_original() {
    let grid = grid(2, 8);
    let original = OriginalReward::standard(&grid).unwrap();
    let reward = ConditionalReward::new(original.clone());
    let states = grid.states_of(0..grid.n_states()).unwrap();
    let graph = StateGraph::build(&grid.env(), 64).unwrap();
    for c in [0.0, 0.3, 1.0] {
        let z: f64 = reward.reward(&states, c).unwrap().iter().sum();
        let log_z = reward.log_z(c).unwrap();
        assert!((log_z - z.ln()).abs() < 1e-12);
        let target = graph.target_distribution(&reward, Some(&Tensor::from_slice(&[c]))).unwrap();
        assert!((target.log_z - log_z).abs() < 1e-12);
        let mine = reward.log_target(graph.states(), c).unwrap();
        assert!(mine.iter().zip(&target.probs).all(|(log, prob)| (log.exp() - prob).abs() < 1e-14));
    }
    assert_eq!(reward.reward(&states, 1.0).unwrap(), original.reward(&states));
    assert!((reward.log_z(1.0).unwrap() - original.log_z()).abs() < 1e-12);

    let conditions = reward.sample_conditions(64, &mut Rng::seeded(1));
    assert_eq!(conditions.size(), [64, 1]);
    let values = Vec::<f64>::try_from(conditions.view(-1)).unwrap();
    let log_rewards = reward.log_reward(&states, Some(&conditions)).unwrap();
    for (row, (log, c)) in log_rewards.iter().zip(values).enumerate() {
        let alone = reward.reward(&grid.states_of([row as u64]).unwrap(), c).unwrap()[0];
        assert!((log.exp() - alone).abs() < 1e-12);
    }
    assert_eq!(reward.partial_log_reward(&states, Some(&conditions)).unwrap(), Some(log_rewards));
}

#[test]
fn bad_conditions_are_typed_errors() {
    let reward = ConditionalReward::new(OriginalReward::standard(&grid(2, 8)).unwrap());
    let states = VectorStates::from_rows([[1, 1], [2, 2]]);
    let message_for =
        |conditions: Option<&Tensor>| reward.log_reward(&states, conditions).unwrap_err().to_string();
    assert!(message_for(None).contains("a tensor [n, 1]"));
    assert!(
        message_for(Some(&Tensor::zeros([2], (Kind::Double, tch::Device::Cpu))))
            .contains("has shape [2], expected [2, 1]")
    );
    for (bad, shown) in [(-0.1, "-0.1"), (1.5, "1.5"), (f64::NAN, "NaN")] {
        let message = message_for(Some(&Tensor::from_slice(&[0.5, bad]).unsqueeze(1)));
        assert!(message.contains(&format!("a condition is {shown} in row 1")), "{message}");
        assert!(reward.log_z(bad).is_err() && reward.reward(&states, bad).is_err());
        assert!(reward.log_target(&states, bad).is_err());
    }
    let single = Tensor::from_slice(&[0.0f32, 1.0]).unsqueeze(1);
    assert!((reward.log_reward(&states, Some(&single)).unwrap()[0] - 2.6f64.ln()).abs() < 1e-12);
}
