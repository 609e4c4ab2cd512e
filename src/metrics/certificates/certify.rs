//! A certificate from samples.

use serde::{Deserialize, Serialize};

use super::consistency::{FlowConsistency, subset_distance};
use super::interval::{Z_95, mean_at_most};
use super::log_prob::{PARTS, Parted};
use super::{Certificate, Finding, Interval, LogZBounds, Probe, ProbeSource, TvBounds, UpperBound};
use crate::env::{EnumerableEnv, Reward, Rows, check_one_instance, log_rewards};
use crate::metrics::sampled::{batches, log_weights, path_ratios};
use crate::metrics::{Estimate, LogZEstimate, eubo, importance_log_z};
use crate::policy::{Policy, UniformPolicy};
use crate::rollout::{Acceptance, LocalSearch, Sampler};
use crate::tensor::log_sum_exp;
use crate::{Error, Result, Rng};

/// The numbers of samples that a certificate is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// The policy's trajectories, and as many uniform random walks.
    pub samples: usize,
    /// Subsets for flow consistency.
    pub subsets: usize,
    /// Objects of each: a third from the policy, from random walks and from a search.
    pub size: usize,
    /// Paths back from each of these objects.
    pub paths: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { samples: 10_000, subsets: 64, size: 12, paths: 64 }
    }
}

impl Budget {
    fn check(self) -> Result<()> {
        let Self { samples, subsets, size, paths } = self;
        if samples.min(subsets) < 2 || size < 3 || paths < PARTS {
            let expected = "at least 2 samples, 2 subsets, of 3 objects, and 8 paths";
            return Err(Error::config("budget", format!("{self:?}"), expected));
        }
        Ok(())
    }
}

/// Fewer equally weighted samples say nothing: with 100 of them intervals of log Z held in 88 to 91 % of policies, with 400 in 91 to 95.
const FEW: f64 = 400.0;
/// The probability that a bound may be wrong, on each side.
const RISK: f64 = 0.025;
/// An object is neglected if it has less of its probability than this share.
const NEGLECTED: f64 = 0.1;
/// Mass, and flow consistency, below which nothing is reported.
const MATTERS: f64 = 0.01;
/// Differences of log Z and of log-probabilities that single precision makes.
const ROUNDING: f64 = 1e-4;
/// The search for objects of large rewards: proposals for each, and steps back at most.
const SEARCH: LocalSearch = LocalSearch { rounds: 8, max_back: 4, acceptance: Acceptance::MetropolisHastings };

/// Finished objects, and the log weights of the trajectories that led to them.
struct Drawn<S> {
    objects: S,
    log_weights: Vec<f64>,
}

/// Certifies a policy by samples: bounds on log Z and on the total variation to R / Z, flow consistency, and what speaks against it.
///
/// The policy's own samples can't show what it misses. Objects of uniform random walks, and of a local search that begins at such, stand
/// beside them; `target` are objects drawn from the target, if there are any (samples of an exact method): with them the upper bounds hold
/// whatever the policy is.
///
/// With `w = R(x) P_B(tau | x) / P_F(tau)`: `E_F[w] = Z`, `E_F[log w] <= log Z <= E_B[log w]` with x from the target, and
/// `TV <= E_F[max(0, 1 - w / Z)]`, as distances between trajectories are no smaller than those between objects.
///
/// ```
/// use gfn::metrics::certificates::{Budget, certify};
/// use gfn::{policy::UniformPolicy, testing::{Chain, Positions}, Rng};
/// let env = Chain::new(4);
/// let flat = |states: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![0.0; states.0.len()]) };
/// let budget = Budget { samples: 1_000, ..Budget::default() };
/// let certificate = certify(&env, &UniformPolicy, &flat, None, budget, &mut Rng::seeded(0))?;
/// // Uniform steps don't sample a flat reward.
/// assert!(!certificate.is_clean());
/// println!("{certificate}");
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for a budget that is too small, and for several instances; those of sampling and scoring.
pub fn certify<E, P, R>(
    env: &E,
    policy: &P,
    reward: &R,
    target: Option<&E::States>,
    budget: Budget,
    rng: &mut Rng,
) -> Result<Certificate>
where
    E: EnumerableEnv,
    P: Policy<E>,
    R: Reward<E::States> + ?Sized,
{
    budget.check()?;
    check_one_instance(env, "one, whose policy can be certified")?;
    let own = drawn(env, policy, reward, budget.samples, rng)?;
    let uniform = drawn(env, &UniformPolicy, reward, budget.samples, rng)?;
    let per_source = budget.subsets * budget.size.div_ceil(3);
    let rows: Vec<usize> = (0..per_source).map(|k| k % budget.samples).collect();
    let (found, _) =
        Sampler::new(env, &UniformPolicy).local_search(SEARCH, &uniform.objects.select(&rows), reward, rng)?;

    let estimate = importance_log_z(&own.log_weights)?;
    let (from, upper) = match target {
        Some(objects) => (UpperBound::Target, eubo(env, policy, reward, objects, rng)?),
        None => (UpperBound::Reweighted, reweighted(&own.log_weights, estimate.log_z)),
    };
    let known = estimate.effective_samples >= FEW;
    let seen = seen(env, reward, [&own.objects, &uniform.objects, &found])?;
    let markov = |log_weights: &[f64]| {
        log_sum_exp(log_weights.iter().copied()) - (log_weights.len() as f64).ln() + (RISK / 2.0).ln()
    };
    let log_z = LogZBounds {
        seen,
        at_least: seen.max(markov(&own.log_weights)).max(markov(&uniform.log_weights)),
        lower: Interval::normal(estimate.elbo),
        estimate: known.then(|| Interval::of_log_mean(&own.log_weights, rng)),
        upper: Interval::normal(upper),
        upper_from: from,
    };
    let mut objects = own.objects.select(&rows);
    objects.append(uniform.objects.select(&rows));
    objects.append(found);
    let looked = Looked::at(env, policy, reward, &objects, budget, rng)?;
    let consistency = looked.consistency(per_source, budget)?;
    Ok(put_together(log_z, &estimate, &own.log_weights, consistency, looked.probes))
}

fn drawn<E, P, R>(env: &E, policy: &P, reward: &R, n: usize, rng: &mut Rng) -> Result<Drawn<E::States>>
where
    E: EnumerableEnv,
    P: Policy<E>,
    R: Reward<E::States> + ?Sized,
{
    let sampler = Sampler::new(env, policy);
    let mut out = Drawn { objects: env.initial(&[]), log_weights: Vec::with_capacity(n) };
    for (range, mut rng) in batches(n, rng) {
        let trajectories = sampler.forward(range.len(), &mut rng)?;
        out.log_weights.extend(log_weights(env, policy, reward, &trajectories)?);
        out.objects.append(trajectories.terminal_states().clone());
    }
    Ok(out)
}

/// The mean of log w over the target's trajectories, by the policy's with weights w. Its error is that of a ratio (delta method).
fn reweighted(log_weights: &[f64], log_z: f64) -> Estimate {
    let shares: Vec<f64> = log_weights.iter().map(|log_w| (log_w - log_z).exp()).collect();
    let n = shares.len() as f64;
    let mean = shares.iter().zip(log_weights).map(|(share, log_w)| share * log_w).sum::<f64>() / n;
    let squares: f64 = shares.iter().zip(log_weights).map(|(share, log_w)| (share * (log_w - mean)).powi(2)).sum();
    Estimate { mean, standard_error: squares.sqrt() / n }
}

/// The log of the sum of the rewards of different objects.
fn seen<E, R>(env: &E, reward: &R, batches: [&E::States; 3]) -> Result<f64>
where
    E: EnumerableEnv,
    R: Reward<E::States> + ?Sized,
{
    let mut all = env.initial(&[]);
    for states in batches {
        let states = states.select(&env.objects(states)?.first);
        all.append(states);
    }
    let different = all.select(&env.objects(&all)?.first);
    Ok(log_sum_exp(log_rewards(reward, &different, None)?))
}

/// Objects that the policy's probability was estimated of.
struct Looked {
    probes: Vec<Probe>,
    estimates: Parted,
    /// The probe that each row is.
    of: Vec<usize>,
}

impl Looked {
    /// A third of the objects from each source.
    fn at<E, P, R>(env: &E, policy: &P, reward: &R, objects: &E::States, budget: Budget, rng: &mut Rng) -> Result<Self>
    where
        E: EnumerableEnv,
        P: Policy<E>,
        R: Reward<E::States> + ?Sized,
    {
        let grouping = env.objects(objects)?;
        let different = objects.select(&grouping.first);
        let estimates = Parted::of(&path_ratios(env, policy, &different, budget.paths, rng)?, rng);
        let log_rewards = log_rewards(reward, &different, None)?;
        let source = |row: usize| match 3 * row / objects.len() {
            0 => ProbeSource::Policy,
            1 => ProbeSource::Uniform,
            _ => ProbeSource::Search,
        };
        let probes = grouping.first.iter().zip(&estimates.log_probs).zip(log_rewards);
        let probes = probes.map(|((&row, &log_prob), log_reward)| Probe { log_prob, log_reward, source: source(row) });
        Ok(Self { probes: probes.collect(), estimates, of: grouping.of })
    }

    /// Each subset has as many objects of each source, each of which counts once. Subsets share objects, whose estimates are off for all of
    /// them: the error of that is the jackknife's over parts of the paths.
    fn consistency(&self, per_source: usize, budget: Budget) -> Result<FlowConsistency> {
        let share = per_source / budget.subsets;
        let (mut distances, mut noise, mut without) = (Vec::new(), 0.0, [0.0; PARTS]);
        for k in 0..budget.subsets {
            let rows = (0..3).flat_map(|source| source * per_source + k * share..source * per_source + (k + 1) * share);
            let mut subset: Vec<usize> = rows.map(|row| self.of[row]).collect();
            subset.sort_unstable();
            subset.dedup();
            let of = |values: &dyn Fn(usize) -> f64| subset.iter().map(|&probe| values(probe)).collect::<Vec<f64>>();
            let by = |keep: &dyn Fn(usize) -> bool| of(&|probe| self.estimates.by(probe, keep));
            let log_rewards = of(&|probe| self.probes[probe].log_reward);
            distances.push(subset_distance(&by(&|_| true), &log_rewards)?);
            for (part, sum) in without.iter_mut().enumerate() {
                *sum += subset_distance(&by(&|kept| kept != part), &log_rewards)? / budget.subsets as f64;
            }
            // Halves differ by twice the error of the whole.
            let half = PARTS / 2;
            noise += subset_distance(&by(&|part| part < half), &by(&|part| part >= half))? / 2.0;
        }
        let n = PARTS.min(budget.paths) as f64;
        let mean = without.iter().sum::<f64>() / PARTS as f64;
        let error = ((n - 1.0) / n * without.iter().map(|value| (value - mean).powi(2)).sum::<f64>()).sqrt();
        FlowConsistency::of(&distances, noise / budget.subsets as f64, error)
    }
}

/// The bounds on total variation, and the findings.
fn put_together(
    log_z: LogZBounds,
    estimate: &LogZEstimate,
    log_weights: &[f64],
    consistency: FlowConsistency,
    probes: Vec<Probe>,
) -> Certificate {
    let most = match log_z.upper_from {
        UpperBound::Target => Some(log_z.upper.high),
        UpperBound::Reweighted => log_z.estimate.map(|estimate| estimate.high.max(log_z.at_least)),
    };
    // Of so many intervals some are wrong: these hold all together (a normal tail, and a union bound).
    let errors = (2.0 * (probes.len() as f64 / RISK).ln()).sqrt().max(Z_95);
    let (mut over, mut under) = (0.0, 0.0);
    let (mut objects, mut mass) = (0, 0.0);
    for Probe { log_prob, log_reward, .. } in &probes {
        let (low, high) = (log_prob.at_least(errors) - ROUNDING, log_prob.at_most(errors) + ROUNDING);
        over += (low.exp() - (log_reward - log_z.at_least).exp()).max(0.0);
        if let Some(most) = most {
            let wanted = (log_reward - most).exp();
            under += (wanted - high.exp()).max(0.0);
            if high.exp() < NEGLECTED * wanted {
                objects += 1;
                mass += wanted;
            }
        }
    }
    let at_most = most.map_or(1.0, |most| {
        let short: Vec<f64> = log_weights.iter().map(|log_w| (1.0 - (log_w - most).exp()).max(0.0)).collect();
        mean_at_most(&short, RISK)
    });
    let mut findings = Vec::new();
    if estimate.effective_samples < FEW {
        findings.push(Finding::FewEffectiveSamples { effective: estimate.effective_samples });
    }
    if mass >= MATTERS {
        findings.push(Finding::Neglected { objects, mass });
    }
    if let Some(Interval { high, .. }) = log_z.estimate.filter(|estimate| estimate.high + ROUNDING < log_z.at_least) {
        findings.push(Finding::LogZContradicted { at_least: log_z.at_least, estimated: high });
    }
    if consistency.fcs.low > MATTERS {
        findings.push(Finding::Inconsistent { at_least: consistency.fcs.low });
    }
    let tv = TvBounds { at_least: over.max(under).min(1.0), at_most, if_log_z_at_most: most };
    let (samples, effective_samples) = (log_weights.len(), estimate.effective_samples);
    Certificate { samples, effective_samples, log_z, tv, consistency, findings, probes }
}
