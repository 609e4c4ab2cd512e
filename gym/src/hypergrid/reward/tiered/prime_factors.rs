use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Tiers, power};
use crate::hypergrid::HyperGrid;

/// Steps up to which points are counted by dynamic programming: about a second.
const WORK: usize = 1 << 24;

/// What is known of a product of allowed primes.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    /// The exponent of each allowed prime.
    pub(super) exponents: Vec<u32>,
    /// The primes that divide it, as bits.
    primes: u32,
}

impl Factors {
    /// The factors of a number of at least 1; `None` if it has another prime factor, or is 0.
    pub(super) fn of(number: u64, primes: &[u32]) -> Option<Self> {
        let mut rest = number;
        let mut exponent = |&p: &u32| {
            let mut exponent = 0;
            while rest > 0 && rest.is_multiple_of(u64::from(p)) {
                rest /= u64::from(p);
                exponent += 1;
            }
            exponent
        };
        let exponents: Vec<u32> = primes.iter().map(&mut exponent).collect();
        let primes = bits(exponents.iter().map(|&e| e > 0));
        (rest == 1).then_some(Self { exponents, primes })
    }

    fn highest(&self) -> u32 {
        self.exponents.iter().copied().max().unwrap_or(0)
    }
}

fn bits(flags: impl Iterator<Item = bool>) -> u32 {
    flags.enumerate().fold(0, |set, (i, flag)| set | u32::from(flag) << i)
}

/// A tier, with numbers as exponents of the allowed primes.
#[derive(Clone, Debug)]
pub(super) struct Tier {
    pub(super) cap: u32,
    pub(super) lcm: Option<Vec<u32>>,
}

/// The tiers of [`MultiplicativeCoprime`](super::MultiplicativeCoprime), ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct FactorTiers {
    pub(super) grid: HyperGrid,
    pub(super) dims: Vec<usize>,
    pub(super) pairs: Vec<(usize, usize)>,
    pub(super) pairs_from: usize,
    pub(super) tiers: Vec<Tier>,
    /// The least common multiple that the last tier asks for of each rule.
    pub(super) rules: Vec<Option<Vec<u32>>>,
    /// The factors of each coordinate's number, x + 1.
    pub(super) factors: Vec<Option<Factors>>,
}

/// The part of a coordinate's number that counts depend on: its primes (if pairs are to be coprime), the primes that it has in the
/// power of the target (if there is one), and itself modulo the number of rules.
type Kind = (u32, u32, u64);

impl FactorTiers {
    /// The points of the constrained dimensions whose coordinates lie in `allowed`, whose pairs are coprime if `paired`, and whose
    /// least common multiple is the target, by the sum of the numbers modulo the number of rules.
    fn count(&self, allowed: impl Fn(usize) -> bool, paired: bool, target: Option<&[u32]>) -> Option<Vec<u64>> {
        let (n_dims, n_rules) = (self.dims.len(), self.rules.len() as u64);
        let mut kinds = HashMap::<Kind, u64>::new();
        for x in (0..self.factors.len()).filter(|&x| allowed(x)) {
            let factors = self.factors[x].as_ref();
            let primes = factors.filter(|_| paired).map_or(0, |factors| factors.primes);
            let reached = match (target, factors) {
                (None, _) => 0,
                (Some(target), Some(f)) if f.exponents.iter().zip(target).all(|(e, t)| e <= t) => {
                    bits(f.exponents.iter().zip(target).map(|(e, t)| e == t))
                }
                _ => continue,
            };
            *kinds.entry((primes, reached, (x as u64 + 1) % n_rules)).or_default() += 1;
        }
        let pairs = if paired { self.pairs.as_slice() } else { &[] };
        let partners =
            |d: usize| pairs.iter().filter_map(move |&(a, b)| if a == d { Some(b) } else { (b == d).then_some(a) });
        // A state holds the primes of those dimensions that have partners still to come.
        let mut open: Vec<usize> = Vec::new();
        let mut states = HashMap::from([((Vec::<u32>::new(), 0u32, 0u64), 1u64)]);
        let mut work = 0;
        for d in 0..n_dims {
            let met: Vec<usize> = (0..open.len()).filter(|&i| partners(d).any(|b| b == open[i])).collect();
            let kept: Vec<usize> = (0..open.len()).filter(|&i| partners(open[i]).any(|b| b > d)).collect();
            let opens = partners(d).any(|b| b > d);
            work += states.len() * kinds.len();
            if work > WORK {
                return None;
            }
            let mut next = HashMap::new();
            for ((primes, reached, sum), count) in &states {
                let forbidden = met.iter().fold(0, |set, &i| set | primes[i]);
                for (&(mine, reaches, number), many) in kinds.iter().filter(|((mine, ..), _)| mine & forbidden == 0) {
                    let mut primes: Vec<u32> = kept.iter().map(|&i| primes[i]).collect();
                    primes.extend(opens.then_some(mine));
                    *next.entry((primes, reached | reaches, (sum + number) % n_rules)).or_default() += count * many;
                }
            }
            states = next;
            open = kept.iter().map(|&i| open[i]).chain(opens.then_some(d)).collect();
        }
        let all = target.map_or(0, |target| bits(target.iter().map(|_| true)));
        let mut counts = vec![0; self.rules.len()];
        states
            .iter()
            .filter(|((_, reached, _), _)| *reached == all)
            .for_each(|((.., sum), n)| counts[*sum as usize] += n);
        Some(counts)
    }
}

impl Tiers for FactorTiers {
    fn n_tiers(&self) -> usize {
        self.tiers.len()
    }

    fn passed(&self, point: &[u16]) -> u32 {
        let of = self.dims.iter().map(|&dim| self.factors[usize::from(point[dim])].as_ref());
        let Some(of) = of.collect::<Option<Vec<&Factors>>>() else { return 0 };
        let coprime = self.pairs.iter().all(|&(a, b)| of[a].primes & of[b].primes == 0);
        let highest = of.iter().map(|factors| factors.highest()).max().unwrap_or(0);
        let is_lcm = |target: &Vec<u32>| {
            let exponent = |p: usize| of.iter().map(|factors| factors.exponents[p]).max().unwrap_or(0);
            target.iter().enumerate().all(|(p, &e)| exponent(p) == e)
        };
        let head = self.rules[self.rule(point)].as_ref().is_none_or(is_lcm);
        bits(self.tiers.iter().enumerate().map(|(t, tier)| {
            highest <= tier.cap
                && (coprime || t < self.pairs_from)
                && tier.lcm.as_ref().is_none_or(is_lcm)
                && (head || t + 1 < self.tiers.len())
        }))
    }

    fn n_rules(&self) -> usize {
        self.rules.len()
    }

    fn rule(&self, point: &[u16]) -> usize {
        self.dims.iter().map(|&dim| usize::from(point[dim]) + 1).sum::<usize>() % self.rules.len()
    }

    fn counts(&self, tiers: u32) -> Option<Vec<u64>> {
        let asked = || self.tiers.iter().enumerate().filter(|(t, _)| tiers >> t & 1 == 1);
        let cap = asked().map(|(_, tier)| tier.cap).min();
        let paired = asked().any(|(t, _)| t >= self.pairs_from);
        let allowed = |x: usize| cap.is_none_or(|cap| self.factors[x].as_ref().is_some_and(|f| f.highest() <= cap));
        let n_rules = self.rules.len();
        let mut targets: Vec<&Vec<u32>> = asked().filter_map(|(_, tier)| tier.lcm.as_ref()).collect();
        targets.dedup();
        let with_rules = asked().any(|(t, _)| t + 1 == self.tiers.len()) && self.rules.iter().any(Option::is_some);
        let counts = if targets.len() > 1 {
            vec![0; n_rules]
        } else if with_rules {
            let mut by_target = HashMap::<Option<&Vec<u32>>, Vec<u64>>::new();
            let mut counts = vec![0; n_rules];
            for (rule, of_rule) in self.rules.iter().enumerate() {
                let target = match (targets.first(), of_rule) {
                    (Some(tier), Some(own)) if *tier != own => continue,
                    (tier, own) => own.as_ref().or(tier.copied()),
                };
                let of_target = match by_target.entry(target) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => place.insert(self.count(allowed, paired, target.map(Vec::as_slice))?),
                };
                counts[rule] = of_target[rule];
            }
            counts
        } else {
            self.count(allowed, paired, targets.first().map(|target| target.as_slice()))?
        };
        let free = power(self.grid.height() as u64, self.grid.ndim() - self.dims.len());
        Some(counts.into_iter().map(|count| count * free).collect())
    }
}
