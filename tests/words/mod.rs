//! Small policies and trainers on words, for tests that need few steps.

use gfn::env::{VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::nn::{EstimatorsConfig, MlpConfig};
use gfn::objective::Objective;
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::DataSource;
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

pub(crate) fn words() -> VectorEnv {
    word_env(2, 3)
}

/// Returns log R of each word, which is the number of its letters 1.
pub(crate) fn count(states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
}

pub(crate) fn policy(config: MlpPolicyConfig) -> MlpPolicy<KHot> {
    tch::set_num_threads(1);
    let config = MlpPolicyConfig { mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() }, ..config };
    MlpPolicy::new(&words(), KHot::new(3, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0)).unwrap()
}

pub(crate) fn with_flow() -> MlpPolicy<KHot> {
    policy(MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() })
}

pub(crate) fn fresh(batch: usize) -> TrainerConfig {
    TrainerConfig { batch, source: DataSource::default(), ..TrainerConfig::default() }
}

pub(crate) fn trainer(
    policy: impl Policy<VectorEnv> + Send + 'static,
    objective: Box<dyn Objective>,
    config: TrainerConfig,
) -> Result<Trainer<VectorEnv>> {
    Trainer::new(words(), count, policy, objective, config, Rng::seeded(1))
}

pub(crate) fn says(error: &Error, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{message}` lacks `{word}`");
    }
}
