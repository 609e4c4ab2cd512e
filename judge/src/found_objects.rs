//! A comparison of two quantities: how often a policy samples objects, and the rewards of these objects.

use gfn::Result;
use gfn::env::{EnumerableEnv, Reward, Rows, log_rewards};
use gfn::tensor::log_sum_exp;

use crate::{Finding, probability_at_least};

/// The largest probability that a bound on log Z is false. A bound on the probability of a set of objects is
/// false with at most half of this probability.
pub(crate) const RISK: f64 = 0.01;
/// The smallest total variation that is reported as a finding. This number is also the smallest share of the
/// total reward for which neglected objects are reported. The total is over all objects that are compared
/// (candidates).
const MIN_REPORTED: f64 = 0.01;
/// An object counts as neglected if it is sampled with less than this share of its target probability.
const NEGLECTED_SHARE: f64 = 0.1;

/// The distinct objects found by the policy, by random trajectories and by local search.
pub(crate) struct FoundObjects {
    /// The log-reward of each object.
    log_rewards: Vec<f64>,
    /// The number of times that each object occurs in the first and in the second half of the policy's
    /// samples.
    counts: Vec<[usize; 2]>,
    /// `true` for a candidate, which is an object found in the first half of the policy's samples, by random
    /// trajectories or by local search. Only candidates enter sets of objects. Such sets don't depend on the
    /// second half of the samples, which can therefore test them.
    is_candidate: Vec<bool>,
    /// The sizes of the first and of the second half of the policy's samples.
    halves: [usize; 2],
}

/// A set of candidates: objects found by the first half of the policy's samples, by random trajectories or by
/// local search.
#[derive(Default)]
struct Group {
    objects: usize,
    /// The total reward of the objects in the set, divided by the number `exp(log_scale)` that
    /// [`group`](FoundObjects::group) gets.
    reward: f64,
    /// The number of samples in the second half of the policy's samples that are objects of the set.
    count: usize,
}

impl FoundObjects {
    /// Collects the distinct objects of three batches: samples of the policy, ends of random trajectories,
    /// and results of local search.
    pub(crate) fn new<E: EnumerableEnv>(
        env: &E,
        reward: &dyn Reward<E::States>,
        batches: [&E::States; 3],
    ) -> Result<Self> {
        let mut all = env.initial(&[]);
        for batch in &batches {
            all.append((*batch).clone());
        }
        let grouping = env.objects(&all)?;
        let n = batches[0].len();
        let halves = [n / 2, n - n / 2];
        let mut counts = vec![[0; 2]; grouping.first.len()];
        let mut is_candidate = vec![false; grouping.first.len()];
        for (row, &object) in grouping.group_of.iter().enumerate() {
            let half = usize::from(row >= halves[0]);
            if row < n {
                counts[object][half] += 1;
            }
            is_candidate[object] |= half == 0 || row >= n;
        }
        Ok(Self {
            log_rewards: log_rewards(reward, &all.select(&grouping.first), None)?,
            counts,
            is_candidate,
            halves,
        })
    }

    /// Returns the log of the total reward of all found objects.
    pub(crate) fn log_reward(&self) -> f64 {
        log_sum_exp(self.log_rewards.iter().copied())
    }

    /// Returns a lower bound on the total variation between policy and target, and findings about the policy.
    /// `log_weights` are the log importance weights of the policy's samples. `log_z` holds the bounds on log
    /// Z.
    ///
    /// The first half of the samples chooses a set A of objects that seem to be sampled too rarely, and a set
    /// B of objects that seem to be sampled too often. The second half counts samples in A and B, which
    /// bounds the probabilities of the sets: p(A) is at most a, and p(B) is at least b. Total variation is
    /// then at least `R(A) / Z - a` and at least `b - R(B) / Z`. As Z grows, the first expression falls and
    /// the second one rises. The larger of the two therefore has a minimum over all Z between the bounds on
    /// Z, and this minimum is a bound for any Z.
    ///
    /// Two pairs of sets A and B are tried, and the larger bound is returned. It is false with a probability
    /// of at most 4 RISK: RISK / 2 for each of the two a and the two b, and RISK for each of the two bounds
    /// on Z.
    pub(crate) fn tv_at_least(&self, log_weights: &[f64], log_z: (f64, Option<f64>)) -> (f64, Vec<Finding>) {
        let candidates =
            self.log_rewards.iter().zip(&self.is_candidate).filter(|(_, is_candidate)| **is_candidate);
        let found = log_sum_exp(candidates.map(|(log_reward, _)| *log_reward));
        let first = &log_weights[..self.halves[0]];
        let log_scale = found.max(log_sum_exp(first.iter().copied()) - (first.len() as f64).ln());
        let group = |chosen: fn(f64, f64) -> bool| self.group(log_scale, chosen);
        let scaled = |log_z: f64| (log_z - log_scale).exp();
        let tv_of = |rare: &Group, frequent: &Group| {
            let most = self.at_most(rare);
            let least = self.at_least(frequent);
            let z = ((rare.reward + frequent.reward) / (most + least)).max(scaled(log_z.0));
            let z = z.min(log_z.1.map_or(f64::INFINITY, scaled));
            (rare.reward / z - most).max(least - frequent.reward / z).clamp(0.0, 1.0)
        };
        let rare = group(|share, expected| share < expected);
        let frequent = group(|share, expected| share > expected);
        let neglected = group(|share, expected| share < NEGLECTED_SHARE * expected);
        let rest = group(|share, expected| share >= NEGLECTED_SHARE * expected);
        let tv = tv_of(&rare, &frequent).max(tv_of(&neglected, &rest));
        let mut findings = Vec::new();
        if tv >= MIN_REPORTED {
            findings.push(Finding::TotalVariation { at_least: tv });
        }
        // The policy samples the other objects (`rest`) at least with the probability `self.at_least(&rest)`.
        // A policy that samples both sets in proportion to their rewards would then sample neglected objects
        // at least with the probability `expected`.
        let mass = neglected.reward / (neglected.reward + rest.reward);
        let expected = self.at_least(&rest) * neglected.reward / rest.reward;
        if mass >= MIN_REPORTED && self.at_most(&neglected) < NEGLECTED_SHARE * expected {
            findings.push(Finding::Neglected { objects: neglected.objects, mass });
        }
        (tv, findings)
    }

    /// Returns the set of candidates for which `chosen` returns `true`. The arguments of `chosen` are the
    /// object's share of the first half of the samples, and its expected share, which is its reward divided
    /// by `exp(log_scale)`.
    fn group(&self, log_scale: f64, chosen: fn(f64, f64) -> bool) -> Group {
        let mut out = Group::default();
        for (object, counts) in
            self.counts.iter().enumerate().filter(|(object, _)| self.is_candidate[*object])
        {
            let share = counts[0] as f64 / self.halves[0] as f64;
            let expected = (self.log_rewards[object] - log_scale).exp();
            if chosen(share, expected) {
                out.objects += 1;
                out.reward += expected;
                out.count += counts[1];
            }
        }
        out
    }

    /// Returns a lower bound on the probability that the policy samples an object of the set.
    fn at_least(&self, group: &Group) -> f64 {
        let n = self.halves[1];
        probability_at_least(group.count as f64 / n as f64, n, RISK / 2.0)
    }

    /// Returns an upper bound on the probability that the policy samples an object of the set.
    fn at_most(&self, group: &Group) -> f64 {
        let n = self.halves[1];
        1.0 - probability_at_least((n - group.count) as f64 / n as f64, n, RISK / 2.0)
    }
}
