//! Markov chains on a grid: Metropolis-Hastings, and replica exchange of chains at several temperatures.

use gfn::Rng;

/// A chain that samples in proportion to R to the power `beta`.
struct Chain {
    point: Vec<u16>,
    log_reward: f64,
    beta: f64,
}

/// Ladders of chains, all of the same powers of R; neighbours on a ladder exchange their points.
pub(crate) struct Chains<'a> {
    log_reward: &'a dyn Fn(&[u16]) -> f64,
    height: usize,
    ladders: Vec<Vec<Chain>>,
    /// The number of points whose reward was computed.
    pub(crate) reward_calls: u64,
    rounds: usize,
}

impl<'a> Chains<'a> {
    /// Starts ladders of chains at random points of a grid of `[dimensions, height]`. With a single power, 1, they are
    /// Metropolis-Hastings chains.
    pub(crate) fn new(
        grid: [usize; 2],
        ladders: usize,
        betas: &[f64],
        log_reward: &'a dyn Fn(&[u16]) -> f64,
        rng: &mut Rng,
    ) -> Self {
        let [ndim, height] = grid;
        let mut start = |beta: &f64| {
            let point: Vec<u16> = (0..ndim).map(|_| rng.below(height) as u16).collect();
            Chain { log_reward: log_reward(&point), point, beta: *beta }
        };
        let ladders: Vec<Vec<Chain>> = (0..ladders).map(|_| betas.iter().map(&mut start).collect()).collect();
        let reward_calls = (ladders.len() * betas.len()) as u64;
        Self { log_reward, height, ladders, reward_calls, rounds: 0 }
    }

    /// Returns the points of all chains.
    pub(crate) fn points(&self) -> impl Iterator<Item = &[u16]> {
        self.ladders.iter().flatten().map(|chain| chain.point.as_slice())
    }

    /// Returns the points of the chains that sample in proportion to R itself: the first of each ladder.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &[u16]> {
        self.ladders.iter().filter_map(|ladder| ladder.first()).map(|chain| chain.point.as_slice())
    }

    /// Makes a proposal for each chain, then exchanges every other pair of neighbours.
    pub(crate) fn round(&mut self, rng: &mut Rng) {
        for ladder in &mut self.ladders {
            for chain in ladder.iter_mut() {
                self.reward_calls += u64::from(chain.propose(self.log_reward, self.height, rng));
            }
            for pair in ladder[self.rounds % 2..].chunks_exact_mut(2) {
                exchange(pair, rng);
            }
        }
        self.rounds += 1;
    }
}

impl Chain {
    /// Proposes a step up or down along a random axis, accepted by the Metropolis rule. Returns `false` for a step off the grid, which is never
    /// accepted and needs no reward.
    fn propose(&mut self, log_reward: &dyn Fn(&[u16]) -> f64, height: usize, rng: &mut Rng) -> bool {
        let (axis, up) = (rng.below(self.point.len()), rng.uniform() < 0.5);
        let before = self.point[axis];
        let after = if up { before.checked_add(1) } else { before.checked_sub(1) };
        let Some(after) = after.filter(|&x| usize::from(x) < height) else { return false };
        self.point[axis] = after;
        let log_reward = log_reward(&self.point);
        if rng.uniform() < (self.beta * (log_reward - self.log_reward)).exp() {
            self.log_reward = log_reward;
        } else {
            self.point[axis] = before;
        }
        true
    }
}

/// Exchanges two chains' points by the Metropolis rule.
fn exchange(pair: &mut [Chain], rng: &mut Rng) {
    let [one, other] = pair else { return };
    let gain = (one.beta - other.beta) * (other.log_reward - one.log_reward);
    if rng.uniform() < gain.exp() {
        std::mem::swap(&mut one.point, &mut other.point);
        std::mem::swap(&mut one.log_reward, &mut other.log_reward);
    }
}
