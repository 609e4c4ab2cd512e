//! Drawing ranks in proportion to a power of the rank, without a table of all ranks.

use crate::Rng;

/// Ranks `1..=n` with weights `(shift + rank)^-exponent`.
///
/// The weights of the first ranks are summed one by one, those of the others by the Euler-Maclaurin formula. So neither
/// the sum over a million ranks nor the search for a rank takes a pass over them.
pub(super) struct RankDistribution {
    shift: f64,
    exponent: f64,
    n: usize,
    /// Divisor of `shift + rank` that makes the greatest weight 1.
    scale: f64,
    /// Running sums of the weights of the first ranks.
    head: Vec<f64>,
}

/// Number of ranks that are summed one by one. With so many, the error of the formula is below the rounding of the sums
/// for exponents up to 30; for larger exponents the remaining weights are negligible.
const HEAD: usize = 256;

impl RankDistribution {
    /// The weights of `n` ranks, at least one.
    pub(super) fn new(n: usize, shift: f64, exponent: f64) -> Self {
        let scale = shift + if exponent < 0.0 { n as f64 } else { 1.0 };
        let mut ranks = Self { shift, exponent, n, scale, head: Vec::new() };
        let mut sum = 0.0;
        for rank in 1..=n.min(HEAD) {
            sum += ranks.weight(rank as f64);
            ranks.head.push(sum);
        }
        ranks
    }

    fn weight(&self, rank: f64) -> f64 {
        ((self.shift + rank) / self.scale).powf(-self.exponent)
    }

    /// The sum of the weights of the first `ranks` ranks.
    fn below(&self, ranks: usize) -> f64 {
        let Some(head) = self.head.len().min(ranks).checked_sub(1) else { return 0.0 };
        match ranks > self.head.len() {
            false => self.head[head],
            true => self.head[head] + self.beyond(self.head.len() as f64, ranks as f64),
        }
    }

    /// The sum of the weights of the ranks above `from` up to `to`.
    fn beyond(&self, from: f64, to: f64) -> f64 {
        let (a, x, y) = (self.exponent, self.shift + from, self.shift + to);
        let (f, g) = (self.weight(from), self.weight(to));
        // The integral of ((shift + t) / scale)^-a from `from` to `to`, computed from its larger end because 1 - a may
        // be close to 0.
        let ratio = (y / x).ln();
        let power = (1.0 - a) * ratio;
        let end = if power > 0.0 { g * y } else { f * x };
        let integral = end * ratio * if power == 0.0 { 1.0 } else { -(-power.abs()).exp_m1() / power.abs() };
        // Odd derivatives of t^-a: first, third and fifth, divided by t^-a.
        let first = |t: f64| -a / t;
        let third = |t: f64| first(t) * (a + 1.0) * (a + 2.0) / (t * t);
        let fifth = |t: f64| third(t) * (a + 3.0) * (a + 4.0) / (t * t);
        let correction = |w: f64, t: f64| w * (0.5 + first(t) / 12.0 - third(t) / 720.0 + fifth(t) / 30_240.0);
        // f(from) itself isn't a term of the sum.
        integral + correction(g, y) - correction(f, x)
    }

    /// Draws a rank.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let u = rng.uniform() * self.below(self.n);
        let (mut low, mut high) = (1, self.n);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.below(middle) <= u {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The log of the probability of a rank.
    pub(super) fn log_prob(&self, rank: usize) -> f64 {
        -self.exponent * ((self.shift + rank as f64) / self.scale).ln() - self.below(self.n).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_weights_one_by_one() {
        for n in [1, 2, 255, 256, 257, 1000, 100_000] {
            for (shift, exponent) in [
                (0.0, 0.0),
                (0.0, 0.5),
                (0.0, 1.0),
                (0.0, 0.999_999_999_9),
                (0.0, 3.0),
                (0.0, 30.0),
                (0.0, 1e4),
                (0.0, -1.0),
                (0.0, -2.5),
                (0.01 * n as f64, 1.0),
                (50.0 * n as f64, 1.0),
            ] {
                let ranks = RankDistribution::new(n, shift, exponent);
                let weights: Vec<f64> = (1..=n).map(|rank| ranks.weight(rank as f64)).collect();
                let total: f64 = weights.iter().sum();
                assert!(weights.iter().all(|weight| *weight <= 1.0 + 1e-12) && total >= 1.0 - 1e-12);
                let mut sum = 0.0;
                for (k, weight) in weights.iter().enumerate() {
                    sum += weight;
                    if (k + 1) % (1 + n / 50) == 0 || k + 1 == n {
                        let got = ranks.below(k + 1);
                        assert!((got - sum).abs() < 1e-11 * total, "{n} {shift} {exponent}: {k}: {got}, {sum}");
                    }
                }
                let log_probs: f64 = (1..=n).map(|rank| ranks.log_prob(rank).exp()).sum();
                assert!((log_probs - 1.0).abs() < 1e-9, "{n} {shift} {exponent}: {log_probs}");
            }
        }
    }

    #[test]
    fn ranks_are_drawn_as_by_a_table() {
        let (ranks, mut rng) = (RankDistribution::new(3_000, 0.0, 0.7), Rng::seeded(0));
        let mut again = rng.clone();
        for _ in 0..2_000 {
            let rank = ranks.draw(&mut rng);
            let u = again.uniform() * ranks.below(3_000);
            assert!(ranks.below(rank) > u && ranks.below(rank - 1) <= u, "{rank}");
        }
    }
}
