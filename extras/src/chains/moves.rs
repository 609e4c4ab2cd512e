//! Proposals of one move.

use gfn::env::{Direction, DiscreteEnv, Rows, Slots, training_log_rewards};
use gfn::{Error, Result};

/// The legal moves of a state in both directions, without the exit.
#[derive(Clone, Debug)]
pub(super) struct LegalMoves {
    backward: Vec<u32>,
    forward: Vec<u32>,
    /// `true` if the state is a finished object: its exit is legal, or it has no legal forward move at all.
    pub(super) is_finished: bool,
}

impl LegalMoves {
    /// Returns the moves of each state.
    pub(super) fn list<E: DiscreteEnv>(env: &E, states: &E::States) -> Vec<Self> {
        let before = env.masks(Direction::Backward, states);
        let after = env.masks(Direction::Forward, states);
        let moves = |row| {
            let backward = before.legal_slots(row).collect();
            let mut forward: Vec<u32> = after.legal_slots(row).collect();
            let n_legal = forward.len();
            forward.retain(|&slot| !after.is_exit(row, slot));
            Self { backward, is_finished: forward.len() < n_legal || n_legal == 0, forward }
        };
        (0..after.len()).map(moves).collect()
    }

    /// Returns the number of backward moves.
    pub(super) fn n_backward(&self) -> usize {
        self.backward.len()
    }

    /// Returns the log-probability of one move among those of `after`, minus that of one move among these.
    pub(super) fn log_ratio(&self, after: &Self) -> f64 {
        (self.len() as f64 / after.len() as f64).ln()
    }

    /// Returns the number of moves.
    pub(super) fn len(&self) -> usize {
        self.backward.len() + self.forward.len()
    }

    /// Returns the direction and the slot of move `k`.
    ///
    /// # Panics
    /// If there is no move `k`.
    pub(super) fn get(&self, k: usize) -> (Direction, u32) {
        match self.backward.get(k) {
            Some(&slot) => (Direction::Backward, slot),
            None => (Direction::Forward, self.forward[k - self.backward.len()]),
        }
    }
}

/// Makes move `choices[i]`, a direction and a slot, in state `rows[i]`. Returns the indices of the choices,
/// backward moves first, and the resulting states in this order.
pub(super) fn make_moves<E: DiscreteEnv>(
    env: &E,
    states: &E::States,
    rows: &[usize],
    choices: &[(Direction, u32)],
) -> Result<(Vec<usize>, E::States)> {
    let mut order = Vec::new();
    let mut results = states.select(&[]);
    for direction in [Direction::Backward, Direction::Forward] {
        let places: Vec<usize> = (0..rows.len()).filter(|&i| choices[i].0 == direction).collect();
        if places.is_empty() {
            continue;
        }
        let mut moved = states.select(&places.iter().map(|&i| rows[i]).collect::<Vec<_>>());
        env.step(direction, &mut moved, &Slots(places.iter().map(|&i| choices[i].1).collect()))?;
        results.append(moved);
        order.extend(places);
    }
    Ok((order, results))
}

/// Returns the corrections of log-rewards for symmetry and for objects of several states.
pub(super) fn log_corrections<E: DiscreteEnv>(env: &E, states: &E::States) -> Result<Vec<f64>> {
    training_log_rewards(env, states, vec![0.0; states.len()])
}

/// A move that [`Proposal::OneMove`](super::Proposal::OneMove) may propose.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProposedMove {
    /// The probability of this proposal, 1 / n for an object of n legal moves.
    pub probability: f64,
    /// `true` if the move leads to a finished object; otherwise the chain stays.
    pub is_finished: bool,
    /// The logarithm of the factor of the acceptance probability besides the ratio of rewards: m(y) n(x) /
    /// (m(x) n(y)) for a move from x to y, with n the number of legal moves, and m the correction of the
    /// reward for symmetry and for objects of several states
    /// ([`training_log_rewards`](gfn::env::training_log_rewards)).
    pub log_factor: f64,
}

/// Lists all proposals of [`Proposal::OneMove`](super::Proposal::OneMove) from one finished object (a batch
/// of one state): the resulting states, and the properties of each move. A chain of power b accepts a move
/// from x to y with probability `min(1, (R(y) / R(x))^b * exp(log_factor))`.
///
/// The rule is exact, because each move has a reverse. Let s(x, y) be the number of moves from x that lead to
/// y. If each state is an object, s(x, y) = s(y, x). Up to isomorphism s(x, y) / |Aut(x)| = s(y, x) /
/// |Aut(y)|, because both sides are proportional to the number of moves between all labelled forms of x and
/// of y. In both cases s(x, y) exp(log_factor) / n(x) = s(y, x) / n(y) for the sum over all moves, so that
/// R(x)^b times the probability of a transition from x to y is the same as with x and y exchanged: R^b is the
/// stationary distribution of objects. An environment up to isomorphism that doesn't correct for symmetry has
/// the stationary distribution R^b / |Aut|, which with b = 1 is also the target of its training.
///
/// # Errors
/// [`Error::Shape`] unless there is exactly one state; the errors of environment and symmetry.
pub fn proposed_moves<E: DiscreteEnv>(env: &E, object: &E::States) -> Result<(E::States, Vec<ProposedMove>)> {
    if object.len() != 1 {
        let remedy = "give a batch of one object";
        return Err(Error::shape("an object whose moves are listed", [1], [object.len() as i64], remedy));
    }
    let moves = LegalMoves::list(env, object).remove(0);
    let n = moves.len();
    let choices: Vec<(Direction, u32)> = (0..n).map(|k| moves.get(k)).collect();
    let (_, results) = make_moves(env, object, &vec![0; n], &choices)?;
    let correction = log_corrections(env, object)?[0];
    let corrections = log_corrections(env, &results)?;
    let describe = |(after, new): (LegalMoves, f64)| ProposedMove {
        probability: 1.0 / n as f64,
        is_finished: after.is_finished,
        log_factor: new - correction + moves.log_ratio(&after),
    };
    let proposed = LegalMoves::list(env, &results).into_iter().zip(corrections).map(describe).collect();
    Ok((results, proposed))
}
