//! What samples say of a policy where states can't be listed.

use gfn::Result;
use gfn::env::{EnumerableEnv, log_rewards};
use gfn::metrics::{estimate_log_z, sample_objects};
use gfn::policy::Policy;
use gfn::rollout::ReplayEnv;
use gfn::train::Trainer;
use serde_json::{Value, json};

/// Samples of the tasks that have no number of their own.
pub(crate) const SAMPLES: usize = 2_000;

/// log Z by importance with its interval, and of as many samples how different they are and how large their rewards.
pub(crate) fn sampled<E, P>(trainer: &Trainer<E, P>, n: usize) -> Result<Vec<(&'static str, Value)>>
where
    E: EnumerableEnv + ReplayEnv,
    P: Policy<E>,
{
    let (env, reward, rng) = (trainer.env(), trainer.reward(), &mut trainer.evaluation_rng());
    let estimate = estimate_log_z(env, trainer.policy(), reward, n, rng)?;
    let states = sample_objects(env, trainer.policy(), n, rng)?;
    let mut keys = env.keys(&states);
    keys.sort_unstable();
    keys.dedup();
    let log_rewards = log_rewards(reward, &states, None)?;
    Ok(vec![
        ("log_z_importance", json!(estimate.log_z)),
        ("log_z_interval", json!([estimate.interval.0, estimate.interval.1])),
        ("elbo", json!(estimate.elbo.mean)),
        ("effective_samples", json!(estimate.effective_samples)),
        ("evaluated_samples", json!(n)),
        ("distinct_samples", json!(keys.len())),
        ("mean_log_reward", json!(log_rewards.iter().sum::<f64>() / n.max(1) as f64)),
    ])
}
