//! Markov chains on a grid: Metropolis-Hastings, and replica exchange of chains at several temperatures.

use std::ops::ControlFlow;

use gfn::Rng;

/// A chain that samples in proportion to R to the power `beta`.
pub(crate) struct Chain {
    pub(crate) point: Vec<u16>,
    log_reward: f64,
    beta: f64,
}

/// The chains after a round, and the number of points whose reward was computed so far.
pub(crate) struct Round<'a> {
    /// Ladders of chains, each of which has all powers of R.
    pub(crate) ladders: &'a [Vec<Chain>],
    pub(crate) reward_calls: u64,
}

/// Runs ladders of chains from random points of a grid of `[dimensions, height]` until `visit` ends it. Each
/// round makes a proposal for each chain, then exchanges the points of every other pair of neighbours on a
/// ladder. With a single power, 1, they are Metropolis-Hastings chains.
pub(crate) fn run_chains(
    grid: [usize; 2],
    n_ladders: usize,
    betas: &[f64],
    log_reward: &dyn Fn(&[u16]) -> f64,
    rng: &mut Rng,
    mut visit: impl FnMut(Round<'_>) -> ControlFlow<()>,
) {
    let [ndim, height] = grid;
    let mut start = |beta: &f64| {
        let point: Vec<u16> = (0..ndim).map(|_| rng.below(height) as u16).collect();
        Chain { log_reward: log_reward(&point), point, beta: *beta }
    };
    let mut ladders: Vec<Vec<Chain>> = (0..n_ladders).map(|_| betas.iter().map(&mut start).collect()).collect();
    let mut reward_calls = (n_ladders * betas.len()) as u64;
    for first_of_pair in [0, 1].into_iter().cycle() {
        for ladder in &mut ladders {
            for chain in ladder.iter_mut() {
                reward_calls += u64::from(chain.propose(log_reward, height, rng));
            }
            for pair in ladder[first_of_pair..].chunks_exact_mut(2) {
                exchange(pair, rng);
            }
        }
        if visit(Round { ladders: &ladders, reward_calls }).is_break() {
            return;
        }
    }
}

impl Chain {
    /// Proposes a step up or down along a random axis, accepted by the Metropolis rule. Returns `false` for a
    /// step off the grid, which is never accepted and needs no reward.
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
