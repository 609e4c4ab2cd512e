//! Exact flows of a reward and a backward policy.

use tch::Tensor;

use super::evaluate::backward_log_probs;
use crate::env::{
    CHUNK, Direction, EXIT, EnumerableEnv, KEEP_BACK, Moves, Reward, Rows, Slots, StateGraph, describe_move,
    describe_state, training_log_rewards,
};
use crate::policy::Policy;
use crate::tensor::log_sum_exp;
use crate::{Error, Result};

/// Allowed difference of log F(s0) from log Z: in single precision, P_B at each state of a path sums to 1 to about
/// 1e-6.
const TOLERANCE: f64 = 1e-4;

/// log F of every state, for one reward and one backward policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactFlows {
    /// log F by state index; minus infinity for states from which no trajectory can end.
    pub log_flow: Vec<f64>,
    /// log R of each state as used in training, by the environment's measure over states; minus infinity if no trajectory ends
    /// there.
    pub log_rewards: Vec<f64>,
    /// log Z = log F(s0).
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// The flows of a reward under a backward policy (any policy's P_B; `UniformPolicy`'s is uniform).
    ///
    /// `F(s) = R(s) [s can end] + sum over legal moves s -> s' of F(s') P_B(s | s')`, from the last state to the first.
    /// R is the training reward (up to isomorphism |Aut(s)| R(s) over |Aut(s0)|, and where several states are one object, a share of it), and the sum is over moves, not classes, with P_B
    /// evaluated at the very state that the move leads to. `log_z` is then that of the raw reward.
    ///
    /// log F(s0) is compared with the log of the sum of all rewards. They agree to 1e-4 unless P_B gives mass to states
    /// that no forward move reaches. Up to isomorphism without the symmetry correction the two aren't comparable, so
    /// each legal backward move is checked instead.
    ///
    /// # Errors
    /// Those of reward and policy; [`Error::IllegalAction`] if a move's reverse isn't legal; [`Error::Contract`] if P_B
    /// leaks mass, with the move by which it does.
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
            ends.iter().zip(measured).for_each(|(&state, value)| log_rewards[state] = value);
        }
        let mut log_flow = log_rewards.clone();
        for chunk in (0..self.n_chunks()).rev() {
            let (range, states) = (self.chunk(chunk), self.states_of(chunk));
            let moves = Moves::new(&env.masks(Direction::Forward, &states));
            if moves.rows.len() != self.first_move(range.end) - self.first_move(range.start) {
                return Err(Error::contract(
                    "the environment is the one that was enumerated",
                    format!("states {range:?} have other legal moves now"),
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

    /// Checks that the mass of all rewards has reached the initial state.
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
            (Some(leak), None) => Err(leaks(leak)),
            (leak, Some(all)) => {
                let why = leak.as_deref().unwrap_or(NO_LEAK);
                Err(leaks(format!("log F(s0) is {log_flow}, the log of the sum of all rewards {all}: {why}")))
            }
        }
    }

    /// Checks that backward moves lead to listed states: what P_B gives to others is lost, and a policy that is trained with it learns
    /// another distribution. Of more than 10,000 states it looks at so many, from all over the list.
    ///
    /// ```
    /// use gfn::{env::StateGraph, examples::Triangles};
    /// let env = Triangles::env();
    /// StateGraph::build(&env, 100)?.check_ways_back(&env)?;
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Contract`] with the move that leads elsewhere, and for another environment than the listed one.
    pub fn check_ways_back(&self, env: &E) -> Result<()> {
        const LOOKED_AT: usize = 10_000;
        self.check_env(env)?;
        self.leak(env, LOOKED_AT)?.map_or(Ok(()), |leak| Err(leaks(leak)))
    }

    /// A description of a legal backward move to a state that no forward move reaches, if there is one among those of `most` states.
    fn leak(&self, env: &E, most: usize) -> Result<Option<String>> {
        let looked_at: Vec<usize> = (0..self.len()).step_by(self.len().div_ceil(most.max(1)).max(1)).collect();
        for states in looked_at.chunks(CHUNK).map(|chunk| self.states().select(chunk)) {
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

/// The explanation if no backward move leaks.
const NO_LEAK: &str = "every backward move leads to a state that forward moves reach, so P_B doesn't sum to 1 over the legal ones, or, up \
     to isomorphism, depends on labels, or `log_automorphisms` is wrong";

fn leaks(detail: String) -> Error {
    Error::contract(
        "P_B leaks no mass: all that backward moves lead to is reached by forward moves (`contract::check_env`, of graphs \
                `contract::check_graph_env`, walks every way back and finds what isn't)",
        detail,
    )
}

/// log P_B of undoing each of these moves, at the very state that the move leads to; 0 for exits.
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
        inner.iter().zip(log_pb).for_each(|(&k, value)| out[k] = value);
    }
    Ok(out)
}
