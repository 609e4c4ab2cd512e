//! Certification of policies from their samples.

use gfn::env::{EnumerableEnv, Reward, Rows, log_rewards};
use gfn::metrics::{importance_log_z, path_log_ratios, target_log_weights};
use gfn::objective::{Quantities, score};
use gfn::policy::{Policy, UniformPolicy};
use gfn::rollout::{Acceptance, LocalSearch, Sampler};
use gfn::{Error, Result, Rng, tch};
use serde::{Deserialize, Serialize};

use crate::found_objects::{FoundObjects, RISK};
use crate::log_prob::{PARTS, SplitEstimates};
use crate::{
    Certificate, FlowConsistency, Interval, Limit, LogZBounds, Probe, ProbeSource, TvBounds,
    log_mean_at_least, subset_distance,
};

/// The amount of sampling for a certificate: how many trajectories, subsets and objects are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// The number of trajectories of the policy. The number of uniform random trajectories is the same.
    pub samples: usize,
    /// The number of random subsets of objects on which flow consistency is estimated.
    pub subsets: usize,
    /// The number of objects in each subset. One third of the objects comes from the policy, one third from
    /// random trajectories, and one third from a local search.
    pub size: usize,
    /// The number of backward trajectories from each object of a subset.
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
            let expected = "at least 2 samples, at least 2 subsets of at least 3 objects, and at least 8 \
                paths";
            return Err(Error::config("budget", format!("{self:?}"), expected));
        }
        Ok(())
    }
}

/// The number of effective samples below which log Z isn't estimated. In tests, intervals of log Z held for
/// 88 to 91 % of policies with 100 effective samples, and for 91 to 95 % with 400.
const MIN_EFFECTIVE_SAMPLES: f64 = 400.0;
/// The smallest divergence, in nats, between the trajectories of P_F and of P_B at which estimates are left
/// out. Trajectories of one of the two policies then don't show how the other policy behaves.
const MAX_NATS: f64 = 2.0;
/// The largest bias of an object's log-probability with which the object enters flow consistency. Objects
/// with a larger bias are left out.
const MAX_BIAS: f64 = 0.1;
/// The tolerance in comparisons of log Z. The tolerance allows for rounding errors of single precision.
const TOLERANCE: f64 = 1e-4;
/// The settings of the local search for objects of large reward.
const SEARCH: LocalSearch =
    LocalSearch { rounds: 8, max_back: 4, acceptance: Acceptance::MetropolisHastings };

/// The number of trajectories that are sampled and scored in one batch.
const BATCH: usize = 1024;

/// Terminal objects, and the log importance weight of a trajectory to each object.
struct WeightedSamples<S> {
    objects: S,
    log_weights: Vec<f64>,
}

/// Certifies a policy by its samples. Returns bounds on log Z, bounds on the total variation between the
/// policy and the target R / Z, an estimate of flow consistency, and findings against the policy.
///
/// The policy's own samples can't show which objects it misses. Therefore, uniform random trajectories are
/// used as well, and a local search that starts from their ends. `target` holds objects that an exact method
/// has drawn independently from the target. Upper bounds need such objects, and are false for objects that
/// were chosen in another way, for example for distinct objects.
///
/// The bounds are based on the importance weight `w = R(x) P_B(tau | x) / P_F(tau)` of a trajectory. The
/// bounds on Z follow from `E_F[w] <= Z`, and from `E_B[1 / w] <= 1 / Z` with x from the target. The upper
/// bound on TV follows from `TV <= E_F[max(0, 1 - w / Z)]`. The last inequality holds because a distance
/// between distributions of trajectories is at least the distance between the distributions of their objects.
/// The means are bounded by betting, which is valid for heavy tails and for any number of samples. The lower
/// bound on TV counts how often the policy samples objects of certain sets. It doesn't depend on which
/// trajectories the policy prefers for an object.
///
/// ```
/// use gfn::{
///     Rng,
///     examples::{Chain, Positions},
///     policy::UniformPolicy,
/// };
/// use gfn_judge::{Budget, certify};
/// let env = Chain::new(4);
/// let flat = |states: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     Ok(vec![0.0; states.0.len()])
/// };
/// let budget = Budget { samples: 1_000, ..Budget::default() };
/// let certificate = certify(&env, &UniformPolicy, &flat, None, budget, &mut Rng::seeded(0))?;
/// // Uniform steps don't sample a flat reward.
/// assert!(!certificate.is_clean());
/// println!("{certificate}");
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] for a budget that is too small, and for an environment with several instances; errors of
/// sampling and scoring.
pub fn certify<E>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    target: Option<&E::States>,
    budget: Budget,
    rng: &mut Rng,
) -> Result<Certificate>
where
    E: EnumerableEnv,
{
    budget.check()?;
    if env.n_instances() > 1 {
        let expected = "one instance, because a certificate is for one distribution";
        return Err(Error::config("the number of instances of the environment", env.n_instances(), expected));
    }
    let own = draw_samples(env, policy, reward, budget.samples, rng)?;
    let uniform = draw_samples(env, &UniformPolicy, reward, budget.samples, rng)?;
    let per_source = budget.subsets * budget.size.div_ceil(3);
    let rows: Vec<usize> = (0..per_source).map(|k| k % budget.samples).collect();
    let (searched, _) = Sampler::new(env, &UniformPolicy).local_search(
        SEARCH,
        &uniform.objects.select(&rows),
        reward,
        rng,
    )?;
    let found = FoundObjects::new(env, reward, [&own.objects, &uniform.objects, &searched])?;

    let importance = importance_log_z(&own.log_weights)?;
    let target_weights =
        target.map(|objects| target_log_weights(env, policy, reward, objects, rng)).transpose()?;
    let inverse =
        target_weights.map(|log_weights| log_weights.iter().map(|log_w| -log_w).collect::<Vec<_>>());
    let mean_at_least = |log_weights: &[f64]| log_mean_at_least(log_weights, RISK / 2.0);
    let at_least =
        found.log_reward().max(mean_at_least(&own.log_weights)).max(mean_at_least(&uniform.log_weights));
    let at_most = inverse.map(|logs| -log_mean_at_least(&logs, RISK)).filter(|bound| bound.is_finite());
    // If the upper bound is below the lower bound, one of them is false, either by chance or because the
    // objects in `target` weren't drawn from the target. In this case the lower bound is used for both.
    let at_most = at_most.map(|bound| bound.max(at_least));
    let mut log_z = LogZBounds {
        from_found_objects: found.log_reward(),
        at_least,
        at_most,
        elbo: Interval::from_estimate(importance.elbo),
        estimate: Some(Interval::from_log_draws(&own.log_weights, rng)),
    };
    let mut objects = own.objects.select(&rows);
    objects.append(uniform.objects.select(&rows));
    objects.append(searched);
    let probes = ProbeSet::new(env, policy, reward, &objects, budget, rng)?;

    let effective_samples = importance.effective_samples;
    let nats = probes.divergence(&own.log_weights, per_source);
    let limits = limits(&log_z, effective_samples, nats, probes.uncertain());
    if limits.iter().any(|limit| !matches!(limit, Limit::UncertainProbes { .. })) {
        log_z.estimate = None;
    }
    let is_consistency_known = nats < MAX_NATS && 2 * probes.uncertain() <= probes.probes.len();
    let consistency = if is_consistency_known { Some(probes.consistency(per_source, budget)?) } else { None };

    let (at_least, findings) = found.tv_at_least(&own.log_weights, (log_z.at_least, at_most));
    // This upper bound on the total variation is 1 minus a lower bound on the mean of min(w / Z, 1).
    let tv_at_most = |log_z: f64| {
        let shares: Vec<f64> = own.log_weights.iter().map(|log_w| (log_w - log_z).min(0.0)).collect();
        1.0 - log_mean_at_least(&shares, RISK).exp()
    };
    let if_log_z_at_most = log_z.estimate.map(|estimate| estimate.high.max(log_z.at_least));
    let tv = TvBounds {
        at_least,
        at_most: at_most.map_or(1.0, tv_at_most),
        at_most_by_importance: if_log_z_at_most.map(tv_at_most),
        if_log_z_at_most,
    };
    let samples = budget.samples;
    Ok(Certificate {
        samples,
        effective_samples,
        log_z,
        tv,
        consistency,
        findings,
        limits,
        probes: probes.probes,
    })
}

/// Returns the reasons why estimates are left out of a certificate.
fn limits(log_z: &LogZBounds, effective: f64, nats: f64, uncertain: usize) -> Vec<Limit> {
    let mut out = Vec::new();
    if effective < MIN_EFFECTIVE_SAMPLES {
        out.push(Limit::FewEffectiveSamples { effective });
    }
    let contradicts = |estimate: &Interval| {
        estimate.high + TOLERANCE < log_z.at_least
            || log_z.at_most.is_some_and(|most| estimate.low - TOLERANCE > most)
    };
    if let Some(estimate) = log_z.estimate.filter(contradicts) {
        out.push(Limit::LogZContradicted { estimated: estimate.estimate });
    }
    if nats >= MAX_NATS {
        out.push(Limit::PathsDisagree { nats });
    }
    if uncertain > 0 {
        out.push(Limit::UncertainProbes { objects: uncertain });
    }
    out
}

fn draw_samples<E: EnumerableEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    reward: &dyn Reward<E::States>,
    n: usize,
    rng: &mut Rng,
) -> Result<WeightedSamples<E::States>> {
    let sampler = Sampler::new(env, policy);
    let mut out = WeightedSamples { objects: env.initial(&[]), log_weights: Vec::with_capacity(n) };
    for start in (0..n).step_by(BATCH) {
        let trajectories = sampler.forward(BATCH.min(n - start), &mut rng.split())?;
        let scores = tch::no_grad(|| score(env, reward, policy, &trajectories, Quantities::NONE))?;
        out.log_weights.extend(scores.log_weights(1.0));
        out.objects.append(trajectories.terminal_states().clone());
    }
    Ok(out)
}

/// Distinct objects (probes) with estimates of their probability under the policy. An object that was sampled
/// several times is a single probe.
struct ProbeSet {
    probes: Vec<Probe>,
    estimates: SplitEstimates,
    /// The index in `probes` of each sampled object.
    probe_of_row: Vec<usize>,
}

impl ProbeSet {
    /// Estimates the log-probability of each distinct object. The first third of `objects` comes from the
    /// policy, the second third from random trajectories, and the last third from local search.
    fn new<E>(
        env: &E,
        policy: &dyn Policy<E>,
        reward: &dyn Reward<E::States>,
        objects: &E::States,
        budget: Budget,
        rng: &mut Rng,
    ) -> Result<Self>
    where
        E: EnumerableEnv,
    {
        let grouping = env.objects(objects)?;
        let different = objects.select(&grouping.first);
        let estimates =
            SplitEstimates::new(&path_log_ratios(env, policy, &different, budget.paths, rng)?, rng);
        let log_rewards = log_rewards(reward, &different, None)?;
        let source = |row: usize| match 3 * row / objects.len() {
            0 => ProbeSource::Policy,
            1 => ProbeSource::Uniform,
            _ => ProbeSource::Search,
        };
        let probes = grouping.first.iter().zip(&estimates.log_probs).zip(log_rewards);
        let probes =
            probes.map(|((&row, &log_prob), log_reward)| Probe { log_prob, log_reward, source: source(row) });
        Ok(Self { probes: probes.collect(), estimates, probe_of_row: grouping.group_of })
    }

    /// Returns the number of probes (distinct objects) whose estimated log-probability has a bias above
    /// `MAX_BIAS`.
    fn uncertain(&self) -> usize {
        self.probes.iter().filter(|probe| probe.log_prob.bias > MAX_BIAS).count()
    }

    /// Returns the symmetric Kullback-Leibler divergence between the trajectories of P_F and of P_B to the
    /// same object, averaged over the policy's samples. For each sample it is the value of `log P_F / P_B` on
    /// the sampled trajectory, minus the mean of `log P_F / P_B` over backward trajectories from the object.
    fn divergence(&self, log_weights: &[f64], per_source: usize) -> f64 {
        let of_row = |row: usize| {
            let probe = self.probe_of_row[row];
            self.probes[probe].log_reward
                - log_weights[row % log_weights.len()]
                - self.estimates.mean_log_ratios[probe]
        };
        // `min` replaces NaN and infinity by the largest finite number.
        ((0..per_source).map(of_row).sum::<f64>() / per_source as f64).min(f64::MAX)
    }

    /// Estimates flow consistency on subsets of the probes, the distinct objects of the certificate. Each
    /// subset has equally many objects from the policy, from random trajectories and from local search. An
    /// object that occurs twice in a subset counts once, and probes whose log-probability is uncertain are
    /// left out. The error of a probe's estimate affects every subset that contains the probe, so such errors
    /// don't average out over subsets. Their size is estimated by the jackknife: each time, one group of
    /// backward trajectories is left out.
    fn consistency(&self, per_source: usize, budget: Budget) -> Result<FlowConsistency> {
        let share = per_source / budget.subsets;
        let mut distances = Vec::new();
        let mut noise = 0.0;
        let mut without = [0.0; PARTS];
        for k in 0..budget.subsets {
            let rows = (0..3)
                .flat_map(|source| source * per_source + k * share..source * per_source + (k + 1) * share);
            let mut subset: Vec<usize> = rows.map(|row| self.probe_of_row[row]).collect();
            subset.sort_unstable();
            subset.dedup();
            subset.retain(|&probe| self.probes[probe].log_prob.bias <= MAX_BIAS);
            let of = |values: &dyn Fn(usize) -> f64| {
                subset.iter().map(|&probe| values(probe)).collect::<Vec<f64>>()
            };
            let by = |keep: &dyn Fn(usize) -> bool| of(&|probe| self.estimates.log_p_from_parts(probe, keep));
            let log_rewards = of(&|probe| self.probes[probe].log_reward);
            distances.push(subset_distance(&by(&|_| true), &log_rewards)?);
            for (part, sum) in without.iter_mut().enumerate() {
                *sum += subset_distance(&by(&|kept| kept != part), &log_rewards)? / budget.subsets as f64;
            }
            // The noise of the estimates is measured as the distance between estimates from two halves of the
            // paths. This distance is twice the error of an estimate from all paths.
            let half = PARTS / 2;
            noise += subset_distance(&by(&|part| part < half), &by(&|part| part >= half))? / 2.0;
        }
        let n = PARTS.min(budget.paths) as f64;
        let mean = without.iter().sum::<f64>() / PARTS as f64;
        let error = ((n - 1.0) / n * without.iter().map(|value| (value - mean).powi(2)).sum::<f64>()).sqrt();
        FlowConsistency::from_distances(&distances, noise / budget.subsets as f64, error)
    }
}
