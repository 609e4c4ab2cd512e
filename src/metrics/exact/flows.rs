//! The exact flows of a reward and a backward policy.

use tch::Tensor;

use super::evaluate::backward_log_probs;
use crate::env::{
    CHUNK, Direction, EXIT, EnumerableEnv, KEEP_BACK, Moves, Reward, Rows, Slots, StateGraph, describe_move,
    describe_state, training_log_rewards,
};
use crate::policy::Policy;
use crate::tensor::log_sum_exp;
use crate::{Error, Result};

/// The largest difference between log F(s0) and log Z that counts as rounding. In single precision, P_B sums
/// to 1 with an error of about 1e-6 in each state, and these errors add up along a trajectory.
const TOLERANCE: f64 = 1e-4;

/// The logarithm of the flow F of every state, for one reward and one backward policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactFlows {
    /// The log flow of each state, by state index; minus infinity for a state from which no trajectory can
    /// end.
    pub log_flow: Vec<f64>,
    /// The log-reward of each state as training uses it, corrected for symmetry and for objects of several
    /// states, by state index; minus infinity if no trajectory ends in the state.
    pub log_rewards: Vec<f64>,
    /// The value of log Z, which is log F(s0).
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// Computes the flows of a reward under the backward policy P_B of `backward`, which may be any policy,
    /// such as `UniformPolicy`.
    ///
    /// The equation is `F(s) = R(s) [s can end] + sum over legal moves s -> s' of F(s') P_B(s | s')`, solved
    /// from the last state to the first. R is the reward as training uses it: up to isomorphism the reward is
    /// multiplied by `|Aut(s)| / |Aut(s0)|`, and if several states are one object, each state has an equal
    /// share of the object's reward. The sum is over single moves, not over classes of isomorphic children,
    /// and P_B is evaluated at the state that the move leads to. With these corrections `log_z` is the log of
    /// the sum of the uncorrected rewards of all objects.
    ///
    /// The result is checked: log F(s0) must equal the log of the sum of all rewards up to 1e-4. The two
    /// differ if P_B gives probability to states that no forward move reaches. In an environment up to
    /// isomorphism without the symmetry correction the two can't be compared, so each legal backward move is
    /// checked instead.
    ///
    /// # Errors
    /// The errors of reward and policy; [`Error::IllegalAction`] if the reverse of a move isn't legal;
    /// [`Error::Contract`] if P_B gives probability to an unreachable state, with the name of the backward
    /// move that leads to this state.
    pub fn exact_flows(
        &self,
        env: &E,
        backward: &dyn Policy<E>,
        reward: &dyn Reward<E::States>,
        conditions: Option<&Tensor>,
    ) -> Result<ExactFlows> {
        self.check_env(env)?;
        let target = self.target_distribution(reward, conditions)?;
        let mut log_rewards = target.log_rewards;
        for ends in self.ends().chunks(CHUNK) {
            let raw = ends.iter().map(|&state| log_rewards[state]).collect();
            let measured = training_log_rewards(env, &self.states().select(ends), raw)?;
            for (&state, value) in ends.iter().zip(measured) {
                log_rewards[state] = value;
            }
        }
        let mut log_flow = log_rewards.clone();
        for range in self.chunks().rev() {
            let states = self.states_of(&range);
            let moves = Moves::new(&env.masks(Direction::Forward, &states));
            if moves.rows.len() != self.first_move(range.end) - self.first_move(range.start) {
                return Err(Error::contract(
                    "the environment must be the one whose states were listed",
                    format!(
                        "the states {range:?} of the list have another number of legal moves in this \
                         environment"
                    ),
                ));
            }
            let log_pb = log_pb_of_moves(env, backward, &states, &moves, conditions)?;
            for state in range.clone().rev() {
                let shift = self.first_move(state) - self.first_move(range.start);
                let inner = self.raw_children(state).iter().enumerate().filter(|(_, child)| **child != EXIT);
                let flows = inner.map(|(k, &child)| log_flow[child as usize] + log_pb[shift + k]);
                log_flow[state] = log_sum_exp(flows.chain([log_flow[state]]));
            }
        }
        self.check_leaks(env, log_flow[0], target.log_z)?;
        Ok(ExactFlows { log_z: log_flow[0], log_flow, log_rewards })
    }

    /// Checks that log Z, the log of the sum of all rewards, equals the log flow through the initial state.
    fn check_leaks(&self, env: &E, log_flow: f64, log_z: f64) -> Result<()> {
        let all = match env.symmetry().log_symmetry(&self.states().select(&[0]))? {
            None if env.merges_isomorphic() => None,
            known => Some(log_z + known.map_or(0.0, |values| values[0])),
        };
        if all.is_some_and(|all| all == log_flow || (all - log_flow).abs() <= TOLERANCE) {
            return Ok(());
        }
        match (self.leak(env, self.len())?, all) {
            (None, None) => Ok(()),
            (Some(leak), None) => Err(leak_error(leak)),
            (leak, Some(all)) => {
                let why = leak.as_deref().unwrap_or(NO_LEAK);
                Err(leak_error(format!(
                    "log F(s0) is {log_flow}, but the log of the sum of all rewards is {all}: {why}"
                )))
            }
        }
    }

    /// Checks that backward moves lead to states of this state graph, that is, to states that forward moves
    /// reach. If P_B gives probability to other states, this probability is lost, and a policy that is
    /// trained with this P_B learns a wrong distribution. If there are more than 10,000 states, at most
    /// 10,000 evenly spaced states are checked.
    ///
    /// ```
    /// use gfn::{env::StateGraph, examples::Triangles};
    /// let env = Triangles::env();
    /// StateGraph::build(&env, 100)?.check_ways_back(&env)?;
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Contract`] with the name of the move that leads to an unlisted state, and for another
    /// environment than the one whose states are listed.
    pub fn check_ways_back(&self, env: &E) -> Result<()> {
        const MAX_CHECKED_STATES: usize = 10_000;
        self.check_env(env)?;
        match self.leak(env, MAX_CHECKED_STATES)? {
            Some(leak) => Err(leak_error(leak)),
            None => Ok(()),
        }
    }

    /// Looks for a legal backward move to a state that no forward move reaches, in at most `max_states`
    /// evenly spaced states. Returns a description of the first such move; `None` if there is no such move.
    fn leak(&self, env: &E, max_states: usize) -> Result<Option<String>> {
        let step = self.len().div_ceil(max_states.max(1)).max(1);
        let checked: Vec<usize> = (0..self.len()).step_by(step).collect();
        for states in checked.chunks(CHUNK).map(|chunk| self.states().select(chunk)) {
            let moves = Moves::new(&env.masks(Direction::Backward, &states));
            let mut parents = states.select(&moves.rows);
            env.step(Direction::Backward, &mut parents, &Slots(moves.slots.clone()))?;
            let keys = env.keys(&parents);
            if let Some(k) = keys.iter().position(|key| self.index_of_key(key).is_none()) {
                let by = describe_move(env, Direction::Backward, &states, moves.rows[k], moves.slots[k]);
                let to = describe_state(env, &parents, k);
                return Ok(Some(format!("{by} leads to {to}, which no forward move reaches; {KEEP_BACK}")));
            }
        }
        Ok(None)
    }
}

/// The explanation in the error if log F(s0) is wrong although no backward move leads to an unreachable
/// state.
const NO_LEAK: &str = "every backward move leads to a state that forward moves reach; so either P_B doesn't \
    sum to 1 over the legal moves, or, up to isomorphism, P_B depends on labels, or `log_automorphisms` is \
    wrong";

/// Returns the error for flows that don't match the rewards, for example because P_B gives probability to
/// unreachable states.
fn leak_error(detail: String) -> Error {
    Error::contract(
        "P_B loses no probability: forward moves reach every state that a backward move leads to; \
         `contract::check_env` (for graphs `contract::check_graph_env`) follows all backward moves and names \
         the move at which probability is lost",
        detail,
    )
}

/// Returns log P_B of the reverse of each of these moves, evaluated at the state that the move leads to; 0
/// for exits.
pub(super) fn log_pb_of_moves<E: EnumerableEnv>(
    env: &E,
    backward: &dyn Policy<E>,
    states: &E::States,
    moves: &Moves,
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let mut out = vec![0.0; moves.rows.len()];
    for inner in moves.inner().places.chunks(CHUNK) {
        let mut children = states.select(&inner.iter().map(|&k| moves.rows[k]).collect::<Vec<_>>());
        let slots = Slots(inner.iter().map(|&k| moves.slots[k]).collect());
        let step = env.step(Direction::Forward, &mut children, &slots)?;
        let log_pb = backward_log_probs(env, backward, &children, &step.reverse.0, conditions)?;
        for (&k, value) in inner.iter().zip(log_pb) {
            out[k] = value;
        }
    }
    Ok(out)
}
