//! The laws that environments, action types, policies and rewards must obey, and functions that check them.
//!
//! A broken law makes training learn a wrong distribution, mostly without any other error. A trainer checks
//! the laws on samples ([`Budget::quick`]) before its first step, and checks policies and rewards again after
//! ten and a hundred steps. For graph environments and environments over vectors a trainer always checks the
//! laws; any other environment may override [`TrainEnv::check_laws`](crate::train::TrainEnv::check_laws).
//! Authors of environments should check all states and moves that random walks visit ([`Budget::thorough`])
//! in their tests.
//!
//! | law | what it guards against | checked by |
//! |---|---|---|
//! | masks have one entry for each slot of each action type | logits of other actions | [`check_env`] |
//! | masks of a state don't depend on its batch | trajectories that can't be replayed | [`check_env`] |
//! | exactly the initial state has no backward move; `is_initial` names it | backward trajectories that end elsewhere | [`check_env`] |
//! | an unfinished state has a move or the exit | roll-outs that get stuck | [`check_env`] |
//! | `exit`, `done`, `exit_actions` agree with the masks | wrong terminal states | [`check_env`] |
//! | a move changes the state; its reverse is legal, restores the state, and is reversed by the move | a P_B of transitions that don't exist | [`check_env`] |
//! | backward moves are legal, and redone by their reverses | reward mass on moves that are never made | [`check_env`] |
//! | backward moves lead to the initial state | reward mass that P_B leaks | [`check_env`] |
//! | moves form no cycle | flows that aren't defined | [`check_env`] |
//! | numbers of moves satisfy N_forward \|Aut(child)\| = N_backward \|Aut(parent)\| | wrong corrections for symmetry | [`check_env`] |
//! | `child_keys` are the keys of children (thorough) | wrong exact distributions | [`check_env`] |
//! | the number of `forms` agrees with `log_multiplicity` (thorough) | objects counted several times | [`check_env`] |
//! | graphs keep to the schema | slots or attributes that networks can't encode | [`check_graph_env`] |
//! | no two instances lead to the same graph | flows of two instances in one state | [`check_graph_env`] |
//! | a removed part of the initial graph doesn't come back | graphs without a backward trajectory to the initial graph | [`check_graph_env`] |
//! | moves are at nodes that `GraphRules::reduced` keeps | logits of nodes that are left out | [`check_graph_env`] |
//! | backward masks that action types compute equal the masks derived by undoing moves | reward mass on moves that are never made | [`check_graph_env`] |
//! | up to isomorphism legality doesn't depend on labels | isomorphic graphs with different moves | [`check_graph_env`] |
//! | `GraphRules::is_reachable` holds for graphs that are built | missing backward moves | [`check_graph_env`] |
//! | if a slot is decoded to a move, the move is encoded as this slot; moves and reverses undo each other; `removed_nodes` lists nodes in order | broken action types, on graphs of your choice | [`check_action_type`] |
//! | a policy evaluates each state by itself | batch normalisation, dropout | [`check_policy`] |
//! | up to isomorphism a policy is equivariant | networks that see labels | [`check_policy`] |
//! | roll-outs on the host use the trained policy | sampling from another policy | [`check_policy`] |
//! | a regression loss is 0 at 0 and positive elsewhere, and `apply`, `cost` and slopes agree | another minimum than the target | [`check_regression`] |
//! | up to isomorphism a reward doesn't depend on labels | objects with several rewards | [`check_reward`] |
//!
//! The laws of a graph environment include those that [`check_env`] checks. An error is
//! [`Error::Contract`](crate::Error::Contract) and names the law, the state and the move. A continuous
//! environment has no masks to check.

mod action_type;
mod env;
mod graph;
mod moves;
mod policy;
mod reward;
mod tensors;
mod ways_back;

pub use action_type::check_action_type;
pub use env::check_env;
pub use graph::check_graph_env;
pub use policy::check_policy;
pub use reward::check_reward;
pub(crate) use tensors::check_tensor_form;
pub use tensors::check_tensors;
pub use ways_back::{Coverage, WaysBack};

use crate::Result;
pub use crate::objective::check_regression;

/// The limits of a check: how many states, moves and objects it examines.
///
/// ```
/// use gfn::{contract::{Budget, check_env}, examples::Chain, Rng};
/// check_env(&Chain::new(9), Budget::quick(), &mut Rng::seeded(0))?;
/// check_env(&Chain::new(9), Budget::thorough().with_walks(500), &mut Rng::seeded(0))?;
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// The number of random walks: 32 in a quick check, 100 in a thorough check.
    pub walks: usize,
    /// The largest number of steps of a random walk: 32 in a quick check, unlimited in a thorough check.
    pub steps: usize,
    /// The largest number of states that are examined: 48 in a quick check, unlimited in a thorough check.
    /// Rewards may be slow, so [`check_reward`] evaluates only a third of this number of objects.
    pub states: usize,
    /// The number of moves per state and direction that are made and undone: 3 in a quick check, unlimited in
    /// a thorough check. If some states have fewer moves, more moves are made in other states. Only if
    /// `moves` is `usize::MAX`, a check also examines `child_keys` and `forms`, and follows all backward
    /// moves.
    pub moves: usize,
    /// The largest number of mask entries, summed over all visited states: 2^19 in a quick check, unlimited
    /// in a thorough check. If masks have more entries, random walks end earlier (after at least two steps),
    /// and fewer states (at least eight) are examined.
    pub entries: usize,
    /// The largest number of states from which all backward moves are followed: 0 in a quick check, 5,000 in
    /// a thorough check. If there are more states, random backward walks are sampled instead.
    pub followed: usize,
    /// A function that is called after every few hundred states of the checks of environments and policies.
    /// The function may end the check by returning an error, for example if a user interrupts the program.
    pub watch: Option<&'a dyn Fn() -> Result<()>>,
}

impl<'a> Budget<'a> {
    /// Returns the small budget that a trainer uses for its checks.
    #[must_use]
    pub fn quick() -> Self {
        Self { walks: 32, steps: 32, states: 48, moves: 3, entries: 1 << 19, followed: 0, watch: None }
    }

    /// Returns the budget for tests: all states that 100 random walks visit, and all moves of these states.
    #[must_use]
    pub fn thorough() -> Self {
        let all = usize::MAX;
        Self { walks: 100, steps: all, states: all, moves: all, entries: all, followed: 5_000, watch: None }
    }

    /// Sets the number of random walks.
    #[must_use]
    pub fn with_walks(self, walks: usize) -> Self {
        Self { walks, ..self }
    }

    /// Sets a function that is called after every few hundred states. The function may end the check by
    /// returning an error.
    #[must_use]
    pub fn with_watch(self, watch: &'a dyn Fn() -> Result<()>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    fn call_watch(&self) -> Result<()> {
        match self.watch {
            Some(watch) => watch(),
            None => Ok(()),
        }
    }

    /// Returns `true` if a check makes every move of the examined states.
    fn is_complete(&self) -> bool {
        self.moves == usize::MAX
    }

    /// Returns the number of moves that a check may make in all states together.
    fn total_moves(&self) -> usize {
        self.moves.saturating_mul(self.states)
    }
}
