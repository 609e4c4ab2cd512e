//! Comparison of the frequencies with which the policy samples objects with the rewards of these objects.

use gfn::Result;
use gfn::env::{EnumerableEnv, Reward, Rows, log_rewards};
use gfn::tensor::log_sum_exp;

use crate::{Finding, probability_at_least};

/// The probability that a bound on log Z is false. A bound on the probability of a set of objects is false
/// with half of this probability.
pub(crate) const RISK: f64 = 0.01;
/// The smallest total variation, and the smallest mass of neglected objects, that is reported.
const MIN_REPORTED: f64 = 0.01;
/// The share of its target probability below which an object's sampling probability makes it neglected.
const NEGLECTED_SHARE: f64 = 0.1;

/// The distinct objects found by the policy, by random trajectories and by the search.
pub(crate) struct FoundObjects {
    /// The log-reward of each object.
    log_rewards: Vec<f64>,
    /// The numbers of occurrences of each object in the first and in the second half of the policy's samples.
    counts: Vec<[usize; 2]>,
    /// `true` for objects that were found in the first half of the policy's samples, by random trajectories
    /// or by the search. Sets of such candidates are chosen without the second half of the samples, so they
    /// are independent of it.
    is_candidate: Vec<bool>,
    /// The numbers of samples in the first and in the second half.
    halves: [usize; 2],
}

/// A set of candidate objects.
#[derive(Default)]
struct Group {
    objects: usize,
    /// The sum of the rewards in the set, in units of `exp(log_scale)`.
    reward: f64,
    /// The number of samples in the second half whose objects are in the set.
    count: usize,
}

impl FoundObjects {
    /// Collects the distinct objects of three batches: the policy's samples, random objects and objects of
    /// the search.
    pub(crate) fn new<E: EnumerableEnv>(
        env: &E,
        reward: &dyn Reward<E::States>,
        batches: [&E::States; 3],
    ) -> Result<Self> {
        let mut all = env.initial(&[]);
        batches.iter().for_each(|batch| all.append((*batch).clone()));
        let grouping = env.objects(&all)?;
        let n = batches[0].len();
        let halves = [n / 2, n - n / 2];
        let mut counts = vec![[0; 2]; grouping.first.len()];
        let mut is_candidate = vec![false; grouping.first.len()];
        for (row, &object) in grouping.of.iter().enumerate() {
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

    /// Returns the log of the sum of the rewards of all objects.
    pub(crate) fn log_reward(&self) -> f64 {
        log_sum_exp(self.log_rewards.iter().copied())
    }

    /// Returns a lower bound on the total variation to the target, and findings about the policy. The bound
    /// is the smallest one over all Z between the bounds on Z. `log_weights` are the log-weights of the
    /// policy's samples.
    ///
    /// The first half of the samples chooses a set A of objects that seem to be sampled too rarely, and a set
    /// B of other objects. The second half counts samples in A and B. If p(A) is at most a, and p(B) at least
    /// b, total variation is at least `R(A) / Z - a` and at least `b - R(B) / Z`. As Z grows, the first
    /// expression falls and the second one rises, so the larger of the two has a minimum over Z. Two such
    /// pairs of sets are tried, and the larger bound is used. It is false with a probability of at most 4
    /// RISK: RISK / 2 for each of the two a and the two b, and RISK for each of the two bounds on Z.
    pub(crate) fn tv_at_least(&self, log_weights: &[f64], log_z: (f64, Option<f64>)) -> (f64, Vec<Finding>) {
        let candidates =
            self.log_rewards.iter().zip(&self.is_candidate).filter(|(_, is_candidate)| **is_candidate);
        let found = log_sum_exp(candidates.map(|(log_reward, _)| *log_reward));
        let first = &log_weights[..self.halves[0]];
        let log_scale = found.max(log_sum_exp(first.iter().copied()) - (first.len() as f64).ln());
        let group = |chosen: fn(f64, f64) -> bool| self.group(log_scale, chosen);
        let scaled = |log_z: f64| (log_z - log_scale).exp();
        let tv_of = |rare: &Group, frequent: &Group| {
            let (most, least) = (self.at_most(rare), self.at_least(frequent));
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
        // An exact policy samples two sets in proportion to their rewards.
        let mass = neglected.reward / (neglected.reward + rest.reward);
        let expected = self.at_least(&rest) * neglected.reward / rest.reward;
        if mass >= MIN_REPORTED && self.at_most(&neglected) < NEGLECTED_SHARE * expected {
            findings.push(Finding::Neglected { objects: neglected.objects, mass });
        }
        (tv, findings)
    }

    /// Collects the candidates that `chosen` selects. Its arguments are the object's share of the first half
    /// of the samples, and the share that is proportional to the object's reward.
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

    /// Returns a lower bound on the probability that the policy samples an object of the group.
    fn at_least(&self, group: &Group) -> f64 {
        let n = self.halves[1];
        probability_at_least(group.count as f64 / n as f64, n, RISK / 2.0)
    }

    /// Returns an upper bound on the probability that the policy samples an object of the group.
    fn at_most(&self, group: &Group) -> f64 {
        let n = self.halves[1];
        1.0 - probability_at_least((n - group.count) as f64 / n as f64, n, RISK / 2.0)
    }
}
