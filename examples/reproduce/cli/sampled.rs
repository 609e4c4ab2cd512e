//! What samples say of a policy where states can't be listed.

use std::ops::Range;

use gfn::Result;
use gfn::env::{EnumerableEnv, Rows, log_rewards};
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
    let evaluator = trainer.evaluator();
    let estimate = evaluator.estimate_log_z(trainer.policy(), reward, n, rng)?;
    let states = evaluator.sample(trainer.policy(), n, rng)?;
    let mut keys = env.keys(&states);
    keys.sort_unstable();
    keys.dedup();
    let of = |range: Range<usize>| log_rewards(reward, &states.select(&range.collect::<Vec<_>>()), None);
    let log_rewards = evaluator.figures(n, of)?;
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
