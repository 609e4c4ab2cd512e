//! Tests of modes that are found in training: a million modes in a checkpoint, and saved modes whose tensors
//! were changed.

use std::ops::ControlFlow;

use crate::trainers::{Folder, bytes};
use gfn::env::{Rows, VectorEnv, VectorKey, VectorStates};
use gfn::nn::MlpConfig;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::run::{CountModes, Fit, Observer, Record};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::bit_sequence::BitSequence;
use serde_json::json;
use tch::{Device, Kind, Tensor};

type IsMode = fn(&VectorStates) -> Vec<bool>;
type BitTrainer = Trainer<VectorEnv>;

/// Builds a trainer of sequences of nine words of four bits. There are so many objects that few of them are
/// sampled twice.
fn bit_trainer(seed: u64) -> BitTrainer {
    tch::set_num_threads(1);
    let rules = BitSequence::new(4, 36).unwrap();
    let env = rules.env();
    let mut rng = Rng::seeded(seed);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![8], ..MlpConfig::default() },
        ..MlpPolicyConfig::default()
    };
    let features = KHot::new(rules.words().n_words(), rules.words().values());
    let policy = MlpPolicy::new(&env, features, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let reward =
        |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    Trainer::new(env, reward, policy, TrajectoryBalance, config, rng).unwrap()
}

fn all(words: &VectorStates) -> Vec<bool> {
    vec![true; words.len()]
}

const MILLION: usize = 1_000_000;

/// Builds an observer that has already found a million modes, as after a long run.
fn observer_with_a_million(trainer: &BitTrainer) -> CountModes<VectorKey, IsMode> {
    let mut modes = CountModes::new(all as IsMode);
    let keys: Vec<[usize; 9]> =
        (0..MILLION).map(|k| std::array::from_fn(|d| (k >> (4 * d) & 15) + 1)).collect();
    let tensors = [
        ("keys", Tensor::from_slice(&serde_json::to_vec(&keys).unwrap())),
        ("steps", Tensor::from_slice(&[0i64])),
        ("reward_calls", Tensor::from_slice(&[MILLION as i64])),
        ("modes", Tensor::from_slice(&[MILLION as i64])),
    ];
    let kept = tensors.map(|(name, tensor)| (name.to_owned(), tensor));
    Observer::<VectorEnv>::load_tensors(&mut modes, &kept).unwrap();
    modes.start(trainer, Some(&json!({ "found": MILLION }))).unwrap();
    modes
}

#[test]
fn a_million_modes_go_into_a_checkpoint_and_out_again() {
    let folder = Folder::new("million");
    let [whole, half, resumed] = ["whole", "half", "resumed"].map(|name| folder.join(name));
    let mut trainer = bit_trainer(0);
    let mut modes = observer_with_a_million(&trainer);
    let mut save = |_: &BitTrainer, record: &mut Record| {
        if record.step == 2 {
            record.save_checkpoint(&half);
        }
        Ok(ControlFlow::Continue(()))
    };
    let fit = Fit::new(4).observe(&mut modes).observe(&mut save);
    fit.checkpoint(&whole, None).unwrap().run(&mut trainer).unwrap();
    assert!(modes.tracker().n_modes() > MILLION);

    let mut trainer = bit_trainer(1);
    trainer.resume(&half).unwrap();
    let mut again = CountModes::new(all as IsMode);
    Fit::new(4).observe(&mut again).checkpoint(&resumed, None).unwrap().run(&mut trainer).unwrap();
    assert!(
        again.tracker() == modes.tracker(),
        "{} and {}",
        again.tracker().n_modes(),
        modes.tracker().n_modes()
    );
    assert!(bytes(&resumed) == bytes(&whole), "the files differ");
}

#[test]
fn modes_that_are_not_those_that_were_saved_are_refused() {
    let trainer = bit_trainer(0);
    let mut modes = CountModes::new(all as IsMode);
    let kept = |keys: &str, steps: &[i64], counts: &[i64]| {
        let columns = [steps, steps, counts].map(Tensor::from_slice);
        let tensors = [Tensor::from_slice(keys.as_bytes())].into_iter().chain(columns);
        ["keys", "steps", "reward_calls", "modes"]
            .map(String::from)
            .into_iter()
            .zip(tensors)
            .collect::<Vec<_>>()
    };
    let mut load = |tensors: &[(String, Tensor)]| {
        let loaded = Observer::<VectorEnv>::load_tensors(&mut modes, tensors);
        (
            loaded.map_err(|error| error.to_string()),
            modes.start(&trainer, Some(&json!({ "found": 2 }))).is_ok(),
        )
    };
    assert_eq!(load(&kept("[[1],[2]]", &[3, 4], &[1, 2])), (Ok(()), true));
    assert_eq!(load(&kept("[[1]]", &[3], &[1])), (Ok(()), false), "the manifest says two");
    for (wrong, keys, steps, counts) in [
        ("keys", "[[1],[2]", vec![3], vec![2]),
        ("keys", "[\"a\"]", vec![3], vec![1]),
        ("steps", "[[1]]", vec![-3], vec![1]),
        ("modes", "[[1],[2]]", vec![3], vec![1]),
        ("modes", "[[1],[2]]", vec![3, 4], vec![2, 2]),
        ("modes", "[[1],[2]]", vec![3], vec![1, 2]),
    ] {
        let message = load(&kept(keys, &steps, &counts)).0.unwrap_err();
        assert!(message.contains(&format!("`{wrong}`")), "{message}");
    }
    assert!(load(&kept("[]", &[], &[])[1..]).0.unwrap_err().contains("`keys`"));
}
