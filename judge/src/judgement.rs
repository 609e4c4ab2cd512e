//! Comparison of samples from any program with a target that is known exactly.

use gfn::metrics::{Cumulative, Distances};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};

use crate::{FlowConsistency, Interval, probability_at_least, subset_distance};

/// The quality of a sampler, judged by its samples against a target that is known exactly.
///
/// A distance is computed between the shares of objects among the samples and the target. Even a perfect
/// sampler has a distance above 0 for finitely many samples. `tv_floor` and `jsd_floor` are the distances for
/// equally many samples of a perfect sampler. The intervals of `tv` and `jsd` are about the distance between
/// the sampler's true distribution and the target. Each holds for any sampler with a probability of at least
/// 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The number of samples that were judged.
    pub samples: usize,
    /// The number of distinct objects among the samples.
    pub distinct: usize,
    /// The number of objects whose target probability is above 0.
    pub objects: usize,
    /// The total variation between the samples and the target.
    pub tv: Interval,
    /// The total variation between the target and equally many samples of a perfect sampler. The estimate is
    /// the mean over simulations, and the interval holds 95 % of the simulations.
    pub tv_floor: Interval,
    /// The Jensen-Shannon divergence between the samples and the target, in nats.
    pub jsd: Interval,
    /// The Jensen-Shannon divergence between the target and equally many samples of a perfect sampler.
    /// Estimate and interval have the same meaning as in `tv_floor`.
    pub jsd_floor: Interval,
    /// The flow consistency on random subsets of objects. One half of the objects of a subset is drawn from
    /// the target, and the other half from the samples.
    pub consistency: FlowConsistency,
    /// The number of modes that are sampled with at least a tenth of their target probability. Modes are the
    /// objects with the largest target probability.
    pub modes_found: usize,
    /// The number of modes of the target.
    pub modes: usize,
    /// The total target probability of the objects that were never sampled.
    pub missing_mass: f64,
    /// The objects that were never sampled, at most 20, with the largest target probability first.
    pub missing: Vec<Missing>,
    /// `true` if the samples could be those of a perfect sampler. This requires that the total variation is
    /// within `tv_floor`, that no object is missing that a perfect sampler would almost surely find, and that
    /// no sampled object has target probability 0.
    pub like_perfect: bool,
}

/// An object of the target that was never sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// The index of the object in the target.
    pub object: usize,
    /// The target probability of the object.
    pub probability: f64,
    /// The probability that equally many samples of a perfect sampler miss the object, too.
    pub by_chance: f64,
}

/// The number of simulations of a perfect sampler.
const PERFECT_ROUNDS: usize = 200;
/// The largest number of never sampled objects that are listed.
const MAX_LISTED: usize = 20;
/// The number of random subsets on which flow consistency is computed.
const N_SUBSETS: usize = 256;
/// The number of objects that are drawn for each of the random subsets of flow consistency.
const SUBSET_SIZE: usize = 16;
/// The probability that the lower end of an interval is wrong, and also the probability that the upper end is
/// wrong.
const RISK: f64 = 0.025;
/// A mode counts as found if it is sampled with at least this share of its target probability.
const MODE_SHARE: f64 = 0.1;

impl Judgement {
    /// Judges samples, which are given as indices of objects in the target.
    ///
    /// ```
    /// use gfn::Rng;
    /// use gfn_judge::Judgement;
    /// let target = [0.4, 0.4, 0.2];
    /// let samples: Vec<usize> = (0..1_000).map(|k| [0, 2, 2][k % 3]).collect();
    /// let judged = Judgement::new(&target, &samples, &mut Rng::seeded(0))?;
    /// // Shares 1/3, 0, 2/3.
    /// assert!(judged.tv.contains(7.0 / 15.0) && !judged.like_perfect);
    /// assert!(judged.missing[0].object == 1 && judged.modes_found == 1 && judged.modes == 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two samples and for a target that isn't a distribution;
    /// [`Error::OutOfRange`] for an index outside of the target.
    pub fn new(target: &[f64], samples: &[usize], rng: &mut Rng) -> Result<Self> {
        if samples.len() < 2 {
            return Err(Error::config("samples", samples.len(), "at least two samples"));
        }
        if let Some(&object) = samples.iter().find(|object| **object >= target.len()) {
            return Err(Error::out_of_range(object, target.len()));
        }
        let order = shuffle(samples, rng);
        let shares = compute_shares(&order, target.len());
        let (tv, jsd) = intervals(target, &shares, &order)?;
        let perfect = Cumulative::new(target);
        let mut floors = Vec::with_capacity(PERFECT_ROUNDS);
        for _ in 0..PERFECT_ROUNDS {
            let drawn: Vec<usize> = order.iter().map(|_| perfect.draw(rng)).collect();
            floors.push(Distances::between(&compute_shares(&drawn, target.len()), target)?);
        }
        let tv_floor = mean_and_range(floors.iter().map(|distances| distances.tv).collect());
        let jsd_floor = mean_and_range(floors.iter().map(|distances| distances.jsd).collect());
        let most = target.iter().copied().fold(0.0, f64::max);
        let modes: Vec<usize> =
            (0..target.len()).filter(|&object| target[object] > most * (1.0 - 1e-9)).collect();
        let mut missing: Vec<Missing> = (0..target.len())
            .filter(|&object| shares[object] == 0.0 && target[object] > 0.0)
            .map(|object| {
                let probability = target[object];
                Missing {
                    object,
                    probability,
                    by_chance: (order.len() as f64 * (-probability).ln_1p()).exp(),
                }
            })
            .collect();
        missing.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        // `chance` is an upper bound on the probability that a perfect sampler misses any of the objects that
        // are at least as probable as the most probable missing object.
        let chance = missing.first().map_or(1.0, |first| {
            let as_heavy = target.iter().filter(|p| **p >= first.probability).count();
            as_heavy as f64 * first.by_chance
        });
        Ok(Self {
            samples: samples.len(),
            distinct: shares.iter().filter(|share| **share > 0.0).count(),
            objects: target.iter().filter(|p| **p > 0.0).count(),
            consistency: consistency(target, &shares, &order, &perfect, rng)?,
            modes_found: modes.iter().filter(|&&object| shares[object] > MODE_SHARE * target[object]).count(),
            modes: modes.len(),
            missing_mass: missing.iter().fold(0.0, |sum, object| sum + object.probability),
            missing: missing.iter().take(MAX_LISTED).copied().collect(),
            like_perfect: tv.estimate <= tv_floor.high
                && chance >= RISK
                && order.iter().all(|&object| target[object] > 0.0),
            tv,
            tv_floor,
            jsd,
            jsd_floor,
        })
    }
}

fn shuffle(samples: &[usize], rng: &mut Rng) -> Vec<usize> {
    let mut order = samples.to_vec();
    for k in (1..order.len()).rev() {
        order.swap(k, rng.below(k + 1));
    }
    order
}

fn compute_shares(samples: &[usize], objects: usize) -> Vec<f64> {
    let mut counts = vec![0.0; objects];
    for &object in samples {
        counts[object] += 1.0;
    }
    let n = samples.len().max(1) as f64;
    for count in &mut counts {
        *count /= n;
    }
    counts
}

/// Computes total variation and Jensen-Shannon divergence (JSD) between `shares` and the target, with
/// intervals that hold for any sampler.
///
/// The upper ends follow from McDiarmid's inequality. A distance is convex in the shares, so the mean of the
/// measured distance is at least the distance of the sampler's true distribution from the target. One sample
/// changes the measured distance by at most 1 / n (total variation) or ln(2 n) / n (JSD). JSD is also at most
/// ln 2 times total variation.
///
/// The lower ends follow from the probability of a set of objects. The difference between its probabilities
/// under the sampler and the target is at most the total variation. One half of the samples chooses the set,
/// and the other half estimates its probability under the sampler.
fn intervals(target: &[f64], shares: &[f64], order: &[usize]) -> Result<(Interval, Interval)> {
    let Distances { tv, jsd, .. } = Distances::between(shares, target)?;
    let n = order.len() as f64;
    let above = (-RISK.ln() / (2.0 * n)).sqrt();
    let (chosen, counted) = order.split_at(order.len() / 2);
    let first = compute_shares(chosen, target.len());
    // `over` selects objects that occur in the first half of the samples more often than expected, by more
    // than `least` standard deviations. Several values of `least` are tried. The value with the largest lower
    // bound on total variation, computed from the first half, is used.
    let over = |object: usize, least: f64| {
        let p = target[object];
        let share = first[object];
        share > p + least * (p * (1.0 - p) / chosen.len() as f64).sqrt()
    };
    let mass = |of: &[f64], least: f64| -> f64 {
        (0..target.len()).filter(|&object| over(object, least)).map(|object| of[object]).sum()
    };
    let promised =
        |least: f64| probability_at_least(mass(&first, least), counted.len(), RISK) - mass(target, least);
    let least =
        (0..=4).map(f64::from).max_by(|&a, &b| promised(a).total_cmp(&promised(b))).unwrap_or_default();
    // `min` corrects rounding errors, which could make the sum larger than 1.
    let expected = mass(target, least).min(1.0);
    let share = counted.iter().filter(|&&object| over(object, least)).count() as f64 / counted.len() as f64;
    let learned = probability_at_least(share, counted.len(), RISK).max(expected);
    let of_two = Distances::between(&[learned, 1.0 - learned], &[expected, 1.0 - expected])?.jsd;
    let tv = Interval { estimate: tv, low: learned - expected, high: (tv + above).min(1.0) };
    let high = (jsd + (2.0 * n).ln() * above).min(tv.high * std::f64::consts::LN_2);
    Ok((tv, Interval { estimate: jsd, low: of_two.clamp(0.0, jsd.max(0.0)), high }))
}

/// Returns the mean of the values as the estimate, and the range that holds 95 % of them as the interval.
fn mean_and_range(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Interval {
        estimate: values.iter().sum::<f64>() / values.len() as f64,
        low: at(RISK),
        high: at(1.0 - RISK),
    }
}

/// Estimates the flow consistency of the shares of objects among the samples. The floor is the flow
/// consistency of equally many samples of a perfect sampler, on the same subsets.
fn consistency(
    target: &[f64],
    shares: &[f64],
    order: &[usize],
    perfect: &Cumulative,
    rng: &mut Rng,
) -> Result<FlowConsistency> {
    let drawn: Vec<usize> = order.iter().map(|_| perfect.draw(rng)).collect();
    let ideal = compute_shares(&drawn, target.len());
    let mut distances = Vec::with_capacity(N_SUBSETS);
    let mut floor = 0.0;
    for _ in 0..N_SUBSETS {
        let draw =
            |k: usize| if k.is_multiple_of(2) { perfect.draw(rng) } else { order[rng.below(order.len())] };
        let mut subset: Vec<usize> = (0..SUBSET_SIZE).map(draw).collect();
        subset.sort_unstable();
        subset.dedup();
        let logs = |of: &[f64]| subset.iter().map(|&object| of[object].ln()).collect::<Vec<f64>>();
        distances.push(subset_distance(&logs(shares), &logs(target))?);
        floor += subset_distance(&logs(&ideal), &logs(target))?;
    }
    FlowConsistency::from_distances(&distances, floor / N_SUBSETS as f64, 0.0)
}
