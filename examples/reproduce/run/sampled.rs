//! What samples say of a policy, where states can't be listed.

use super::lines::tell;
use gfn::Result;
use gfn::env::{EnumerableEnv, log_rewards};
use gfn::metrics::{estimate_log_z, sample_objects};
use gfn::train::TrainEnv;
use gfn::train::Trainer;
use gfn_judge::{Budget, Certificate, certify};
use serde_json::{Value, json};

/// log Z by importance with its interval, and of as many samples how different they are and how large their rewards.
pub(crate) fn sampled<E>(trainer: &Trainer<E>, n: usize) -> Result<Vec<(&'static str, Value)>>
where
    E: EnumerableEnv + TrainEnv,
{
    let (env, policy, reward, rng) = (trainer.env(), trainer.policy(), trainer.reward(), &mut trainer.evaluation_rng());
    let estimate = estimate_log_z(env, policy, reward, n, rng)?;
    let states = sample_objects(env, policy, n, rng)?;
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

/// What samples can say of how good the policy is, and the figures of it.
pub(crate) fn certified<E>(trainer: &Trainer<E>, samples: usize) -> Result<(Certificate, Value)>
where
    E: EnumerableEnv + TrainEnv,
{
    let budget = Budget { samples, subsets: 32, paths: 16, ..Budget::default() };
    let rng = &mut trainer.evaluation_rng();
    let certificate = certify(trainer.env(), trainer.policy(), trainer.reward(), None, budget, rng)?;
    tell(&certificate);
    let mut figures = json!(certificate);
    figures["probes"] = json!(certificate.probes.len());
    Ok((certificate, figures))
}

/// The most memory that the process has held, where the system says so.
pub(crate) fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}
