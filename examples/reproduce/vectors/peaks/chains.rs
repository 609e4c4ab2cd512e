//! Markov chains on the grid: Metropolis-Hastings, and replica exchange of chains at several temperatures.

use gfn::Rng;

use super::target::Peaks;

/// A chain that samples in proportion to R to the power `beta`.
struct Chain {
    point: Vec<u16>,
    log_reward: f64,
    beta: f64,
}

/// Ladders of chains, all of the same powers; neighbours on a ladder exchange their points.
pub(super) struct Chains<'a> {
    peaks: &'a Peaks,
    ladders: Vec<Vec<Chain>>,
    reward_calls: u64,
    rounds: usize,
}

impl<'a> Chains<'a> {
    /// So many ladders of chains from random points. With a single power, 1, they are Metropolis-Hastings chains.
    pub(super) fn new(peaks: &'a Peaks, ladders: usize, betas: &[f64], rng: &mut Rng) -> Self {
        let grid = peaks.grid();
        let mut begun = |beta: &f64| {
            let point: Vec<u16> = (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect();
            Chain { log_reward: peaks.log_value(&point), point, beta: *beta }
        };
        let ladders: Vec<Vec<Chain>> = (0..ladders).map(|_| betas.iter().map(&mut begun).collect()).collect();
        let reward_calls = (ladders.len() * betas.len()) as u64;
        Self { peaks, ladders, reward_calls, rounds: 0 }
    }

    /// Points whose reward was computed.
    pub(super) fn reward_calls(&self) -> u64 {
        self.reward_calls
    }

    /// The points of all chains.
    pub(super) fn points(&self) -> impl Iterator<Item = &[u16]> {
        self.ladders.iter().flatten().map(|chain| chain.point.as_slice())
    }

    /// The points of the chains that sample in proportion to R itself: the first of each ladder.
    pub(super) fn samples(&self) -> impl Iterator<Item = &[u16]> {
        self.ladders.iter().filter_map(|ladder| ladder.first()).map(|chain| chain.point.as_slice())
    }

    /// A proposal for each chain, then an exchange of every other pair of neighbours.
    pub(super) fn round(&mut self, rng: &mut Rng) {
        for ladder in &mut self.ladders {
            for chain in ladder.iter_mut() {
                self.reward_calls += u64::from(chain.propose(self.peaks, rng));
            }
            for pair in ladder[self.rounds % 2..].chunks_exact_mut(2) {
                exchange(pair, rng);
            }
        }
        self.rounds += 1;
    }
}

impl Chain {
    /// A step up or down along a random axis, accepted by the Metropolis rule; `false` for one off the grid, which is never accepted and
    /// needs no reward.
    fn propose(&mut self, peaks: &Peaks, rng: &mut Rng) -> bool {
        let (axis, up) = (rng.below(self.point.len()), rng.uniform() < 0.5);
        let before = self.point[axis];
        let after = if up { before.checked_add(1) } else { before.checked_sub(1) };
        let Some(after) = after.filter(|&x| usize::from(x) < peaks.grid().height()) else { return false };
        self.point[axis] = after;
        let log_reward = peaks.log_value(&self.point);
        if rng.uniform() < (self.beta * (log_reward - self.log_reward)).exp() {
            self.log_reward = log_reward;
        } else {
            self.point[axis] = before;
        }
        true
    }
}

/// An exchange of two chains' points, accepted by the Metropolis rule.
fn exchange(pair: &mut [Chain], rng: &mut Rng) {
    let [one, other] = pair else { return };
    let gain = (one.beta - other.beta) * (other.log_reward - one.log_reward);
    if rng.uniform() < gain.exp() {
        std::mem::swap(&mut one.point, &mut other.point);
        std::mem::swap(&mut one.log_reward, &mut other.log_reward);
    }
}
