//! A judgement of anybody's samples, where the target is known.

use gfn::metrics::{Cumulative, Distances};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};

use crate::{FlowConsistency, Interval, probability_at_least, subset_distance};

/// The findings of samples about the sampler that they come from, beside a target that is known exactly.
///
/// Distances are those of the samples' shares. They are never 0: `tv_floor` and `jsd_floor` are what a perfect sampler's as many samples
/// have. The intervals are of the sampler's own distances, and hold for any sampler with a probability of at least 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The number of samples.
    pub samples: usize,
    /// The number of different objects among them.
    pub distinct: usize,
    /// The number of objects that there are.
    pub objects: usize,
    /// The total variation.
    pub tv: Interval,
    /// That of a perfect sampler: the mean, and the range of 95 %.
    pub tv_floor: Interval,
    /// The Jensen-Shannon divergence, in nats.
    pub jsd: Interval,
    /// That of a perfect sampler.
    pub jsd_floor: Interval,
    /// Flow consistency on subsets, half of which are drawn from the target and half from the samples.
    pub consistency: FlowConsistency,
    /// Modes, the objects of the largest probability, that are sampled a tenth as often as they should be, or more.
    pub modes_found: usize,
    /// The number of modes.
    pub modes: usize,
    /// The target's mass on objects that were never sampled.
    pub missing_mass: f64,
    /// The heaviest objects that were never sampled.
    pub missing: Vec<Missing>,
    /// `true` if total variation is what a perfect sampler may have, no object is missing that it would not miss, and none came that it
    /// never draws.
    pub like_perfect: bool,
}

/// An object that was never sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// Its place among the probabilities of the target.
    pub object: usize,
    /// Its probability.
    pub probability: f64,
    /// The probability that a perfect sampler misses it, too.
    pub by_chance: f64,
}

/// Rounds of a perfect sampler.
const ROUNDS: usize = 200;
/// Objects that are listed as missing.
const LISTED: usize = 20;
/// Subsets for flow consistency, and objects of each.
const SUBSETS: usize = 256;
const SIZE: usize = 16;
/// The probability that an interval may be wrong, on each side.
const RISK: f64 = 0.025;
/// A mode is found from this share of its probability on.
const FOUND: f64 = 0.1;

impl Judgement {
    /// Judges samples, given as places among the probabilities of the target.
    ///
    /// ```
    /// use gfn::Rng;
    /// use gfn_judge::Judgement;
    /// let target = [0.4, 0.4, 0.2];
    /// let samples: Vec<usize> = (0..1_000).map(|k| [0, 2, 2][k % 3]).collect();
    /// let judged = Judgement::new(&target, &samples, &mut Rng::seeded(0))?;
    /// // Learned 1/3, 0, 2/3.
    /// assert!(judged.tv.contains(7.0 / 15.0) && !judged.like_perfect);
    /// assert!(judged.missing[0].object == 1 && judged.modes_found == 1 && judged.modes == 2);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two samples and for a target that is no distribution; [`Error::OutOfRange`] for a place that it
    /// hasn't.
    pub fn new(target: &[f64], samples: &[usize], rng: &mut Rng) -> Result<Self> {
        if samples.len() < 2 {
            return Err(Error::config("samples", samples.len(), "at least two"));
        }
        if let Some(&object) = samples.iter().find(|object| **object >= target.len()) {
            return Err(Error::out_of_range(object, target.len()));
        }
        let order = shuffled(samples, rng);
        let shares = shares_of(&order, target.len());
        let (tv, jsd) = intervals(target, &shares, &order)?;
        let perfect = Cumulative::new(target);
        let mut floors = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let drawn: Vec<usize> = order.iter().map(|_| perfect.draw(rng)).collect();
            floors.push(Distances::between(&shares_of(&drawn, target.len()), target)?);
        }
        let tv_floor = range(floors.iter().map(|distances| distances.tv).collect());
        let jsd_floor = range(floors.iter().map(|distances| distances.jsd).collect());
        let most = target.iter().copied().fold(0.0, f64::max);
        let modes: Vec<usize> = (0..target.len()).filter(|&object| target[object] > most * (1.0 - 1e-9)).collect();
        let mut missing: Vec<Missing> = (0..target.len())
            .filter(|&object| shares[object] == 0.0 && target[object] > 0.0)
            .map(|object| {
                let probability = target[object];
                Missing { object, probability, by_chance: (order.len() as f64 * (-probability).ln_1p()).exp() }
            })
            .collect();
        missing.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        // The chance that a perfect sampler misses the heaviest of them, or another one as heavy.
        let chance = missing.first().map_or(1.0, |first| {
            let as_heavy = target.iter().filter(|p| **p >= first.probability).count();
            as_heavy as f64 * first.by_chance
        });
        Ok(Self {
            samples: samples.len(),
            distinct: shares.iter().filter(|share| **share > 0.0).count(),
            objects: target.iter().filter(|p| **p > 0.0).count(),
            consistency: consistency(target, &shares, &order, &perfect, rng)?,
            modes_found: modes.iter().filter(|&&object| shares[object] > FOUND * target[object]).count(),
            modes: modes.len(),
            missing_mass: missing.iter().fold(0.0, |sum, object| sum + object.probability),
            missing: missing.iter().take(LISTED).copied().collect(),
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

fn shuffled(samples: &[usize], rng: &mut Rng) -> Vec<usize> {
    let mut order = samples.to_vec();
    (1..order.len()).rev().for_each(|k| order.swap(k, rng.below(k + 1)));
    order
}

fn shares_of(samples: &[usize], objects: usize) -> Vec<f64> {
    let mut counts = vec![0.0; objects];
    samples.iter().for_each(|&object| counts[object] += 1.0);
    let n = samples.len().max(1) as f64;
    counts.iter_mut().for_each(|count| *count /= n);
    counts
}

/// Distances with intervals that hold for any sampler.
///
/// From above: the shares' distance is convex in the shares, so its mean is no less than the sampler's own, and one sample moves it by no
/// more than 1 / n (total variation) or ln(2 n) / n (JSD): McDiarmid's inequality. JSD is at most ln 2 times total variation. From below: any set of objects has a difference of mass
/// that no distance is less than. One half of the samples chooses the set, the other counts how often it is met.
fn intervals(target: &[f64], shares: &[f64], order: &[usize]) -> Result<(Interval, Interval)> {
    let Distances { tv, jsd, .. } = Distances::between(shares, target)?;
    let n = order.len() as f64;
    let above = (-RISK.ln() / (2.0 * n)).sqrt();
    let (chosen, counted) = order.split_at(order.len() / 2);
    let first = shares_of(chosen, target.len());
    // The set of objects that came more often than by chance, by as many standard deviations as promise the largest bound.
    let over = |object: usize, least: f64| {
        let (p, share) = (target[object], first[object]);
        share > p + least * (p * (1.0 - p) / chosen.len() as f64).sqrt()
    };
    let mass = |of: &[f64], least: f64| -> f64 {
        (0..target.len()).filter(|&object| over(object, least)).map(|object| of[object]).sum()
    };
    let promised = |least: f64| probability_at_least(mass(&first, least), counted.len(), RISK) - mass(target, least);
    let least = (0..=4).map(f64::from).max_by(|&a, &b| promised(a).total_cmp(&promised(b))).unwrap_or_default();
    // Rounding must not make it more than 1.
    let wanted = mass(target, least).min(1.0);
    let share = counted.iter().filter(|&&object| over(object, least)).count() as f64 / counted.len() as f64;
    let learned = probability_at_least(share, counted.len(), RISK).max(wanted);
    let of_two = Distances::between(&[learned, 1.0 - learned], &[wanted, 1.0 - wanted])?.jsd;
    let tv = Interval { estimate: tv, low: learned - wanted, high: (tv + above).min(1.0) };
    let high = (jsd + (2.0 * n).ln() * above).min(tv.high * std::f64::consts::LN_2);
    Ok((tv, Interval { estimate: jsd, low: of_two.clamp(0.0, jsd.max(0.0)), high }))
}

/// The mean, and between which values 95 % of the others lie.
fn range(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Interval { estimate: values.iter().sum::<f64>() / values.len() as f64, low: at(RISK), high: at(1.0 - RISK) }
}

/// Flow consistency of the samples' shares; its floor is that of as many perfect samples, on the same subsets.
fn consistency(
    target: &[f64],
    shares: &[f64],
    order: &[usize],
    perfect: &Cumulative,
    rng: &mut Rng,
) -> Result<FlowConsistency> {
    let drawn: Vec<usize> = order.iter().map(|_| perfect.draw(rng)).collect();
    let ideal = shares_of(&drawn, target.len());
    let (mut distances, mut floor) = (Vec::with_capacity(SUBSETS), 0.0);
    for _ in 0..SUBSETS {
        let draw = |k: usize| if k.is_multiple_of(2) { perfect.draw(rng) } else { order[rng.below(order.len())] };
        let mut subset: Vec<usize> = (0..SIZE).map(draw).collect();
        subset.sort_unstable();
        subset.dedup();
        let logs = |of: &[f64]| subset.iter().map(|&object| of[object].ln()).collect::<Vec<f64>>();
        distances.push(subset_distance(&logs(shares), &logs(target))?);
        floor += subset_distance(&logs(&ideal), &logs(target))?;
    }
    FlowConsistency::from_distances(&distances, floor / SUBSETS as f64, 0.0)
}
