//! Environments: the pointed directed acyclic graph of states that a GFlowNet walks along.
//!
//! | trait | what it adds | who implements it |
//! |---|---|---|
//! | [`Rows`] | a batch of rows: `len`, `select`, `append` | states ([`VectorStates`], graphs) and actions ([`Slots`]) |
//! | [`Env`] | `initial`, `step` both ways, `is_initial` | every environment |
//! | [`DiscreteEnv`] | the legal actions of each state, as [`Masks`] | [`VectorEnv`], [`GraphEnv`](crate::graph::GraphEnv) |
//! | [`ReplayEnv`](crate::rollout::ReplayEnv) | how walks are kept and taken again: what buffers, files and trainer need | every discrete environment (by blanket impl), continuous ones |
//! | [`EnumerableEnv`] | a key per state, so that all states can be listed | what exact metrics need |
//! | [`VectorRules`] | the moves of one vector, from which [`VectorEnv`] is made | environments over vectors of small integers |
//! | [`Reward`] | log R of a batch of states; closures implement it | apart from the environment |
//!
//! An environment holds no mutable state and no tensor, and works on whole batches. Two structs implement the three environment
//! traits for what an author says of one state: [`VectorEnv`] of [`VectorRules`], [`GraphEnv`](crate::graph::GraphEnv) of
//! [`GraphRules`](crate::graph::GraphRules).

mod batch_rules;
mod instances;
mod listing;
mod measure;
mod messages;
mod moves;
mod reward;
mod state_graph;
mod symmetry;
mod topological;
mod vector_env;
mod vector_rules;

pub use batch_rules::BatchRules;
pub(crate) use batch_rules::restrict;
pub(crate) use instances::{check_instances, check_one_instance, draw_instances, instances_in_turn};
pub(crate) use listing::{check_listed, first_other, has_more_states};
pub use measure::Forms;
pub(crate) use measure::training_log_rewards;
pub(crate) use messages::{KEEP_BACK, dead_end, describe_move, describe_state};
pub(crate) use moves::{CHUNK, Moves, random_moves};
pub use reward::{Cached, Clipped, Reward, log_rewards};
pub(crate) use reward::{check_count, check_log_rewards};
pub(crate) use state_graph::EXIT;
pub use state_graph::{Child, StateGraph};
use symmetry::NoSymmetry;
pub use symmetry::Symmetry;
pub use vector_env::{VectorEnv, VectorKey};
pub use vector_rules::VectorRules;

use crate::Result;
pub use crate::direction::Direction;
use crate::distribution::{Distribution, GraphActionCategorical};
pub use crate::rows::{Block, Classes, Entry, Grouping, Masks, Reals, Rows, Slots, VectorStates, Vectors};

/// The outcome of one step of a batch, one entry per row.
#[derive(Clone, Debug)]
pub struct Step<A> {
    /// The action of the other direction that undoes the row's step, named in the state that it led to.
    ///
    /// Meaningless where `exit` is true: leaving a terminal state has no choice to make on the way back (P_B = 1).
    pub reverse: A,
    /// The forward action was the exit action: the state is unchanged, and terminal.
    pub exit: Vec<bool>,
    /// The row can go no further in this direction.
    pub done: Vec<bool>,
}

/// The pointed DAG of states: where it starts and how actions lead on and back.
///
/// Every trajectory ends either by an exit action, which leaves its state as it is, or by reaching a state with no way on
/// (`done` without `exit`). In *labelled* environments a step and its reverse restore the state; in environments up to
/// isomorphism they restore it up to relabelling.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`"
)]
pub trait Env: Send + Sync {
    /// A batch of states.
    type States: Rows;
    /// A batch of actions.
    type Actions: Rows;
    /// The distribution over actions that policies give: [`GraphActionCategorical`] if the actions are
    /// [`Slots`].
    type Dist: Distribution<Actions = Self::Actions>;

    /// The number of instances: initial states, each with trajectories, a log Z and a distribution of its own (an input
    /// graph, a scaffold). They are numbered from 0. By default there is one.
    fn n_instances(&self) -> u32 {
        1
    }

    /// The initial state of each of these instances; `&[0; n]` are `n` copies of the only one.
    ///
    /// # Panics
    /// May panic for a number of [`n_instances`](Self::n_instances) or more; the library checks those that come from
    /// outside (samplers, files).
    fn initial(&self, instances: &[u32]) -> Self::States;

    /// The instance that each of these states was built from.
    fn instances(&self, states: &Self::States) -> Vec<u32> {
        vec![0; states.len()]
    }

    /// Applies one legal action to each row in place.
    ///
    /// Legality is the caller's business (masks, and the checks of
    /// [`Trajectories::replay`](crate::rollout::Trajectories::replay) for actions from outside).
    ///
    /// # Errors
    /// [`Error`](crate::Error) for an action that the state can't take at all.
    fn step(
        &self,
        direction: Direction,
        states: &mut Self::States,
        actions: &Self::Actions,
    ) -> Result<Step<Self::Actions>>;

    /// `true` for each row that is the initial state.
    fn is_initial(&self, states: &Self::States) -> Vec<bool>;

    /// The exit action of each of these states, which are terminal; `None` in an environment whose trajectories end without.
    fn exit_actions(&self, states: &Self::States) -> Option<Self::Actions>;

    /// Tells which states are one object; by default each state is an object of its own.
    fn symmetry(&self) -> &dyn Symmetry<Self::States, Self::Actions> {
        &NoSymmetry
    }
}

/// A policy's form on the host for one roll-out, in which parameters stay as they are
/// ([`Policy::on_host`](crate::policy::Policy::on_host)). Environments' policies and graph networks
/// ([`GraphNetwork::on_host`](crate::nn::GraphNetwork::on_host)) implement it.
pub trait HostPolicy<E: Env> {
    /// Returns P_F or P_B of each state, without gradients.
    ///
    /// # Errors
    /// Those of [`Policy::evaluate`](crate::policy::Policy::evaluate).
    fn distribution(&self, env: &E, states: &E::States) -> Result<E::Dist>;
}

/// An environment whose legal actions can be listed: an action is a *slot*, the index of a logit among all logits of its
/// state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment whose actions can be listed",
    note = "rules become one by `.env()`, `VectorEnv::new` or `GraphEnv::new`; continuous environments have no list of actions"
)]
pub trait DiscreteEnv: Env<Actions = Slots, Dist = GraphActionCategorical> {
    /// The slots of each state and which of them are legal.
    ///
    /// Going backwards from the initial state nothing is legal. Where the environment has an exit action, it is the last
    /// forward slot of every state.
    fn masks(&self, direction: Direction, states: &Self::States) -> Masks;

    /// An action in words, for messages.
    fn describe(&self, direction: Direction, states: &Self::States, row: usize, slot: u32) -> String;
}

/// An environment whose states can be told apart by a key, and therefore listed by walking from the initial state.
///
/// Up to isomorphism, isomorphic states have one key.
#[diagnostic::on_unimplemented(
    message = "the states of `{Self}` can't be listed",
    note = "rules become an environment by `.env()`; the states of continuous environments can't be listed, so sample instead"
)]
pub trait EnumerableEnv: DiscreteEnv {
    /// The key that tells states apart.
    type Key: Clone + Eq + std::hash::Hash + Ord + Send + Sync + std::fmt::Debug;

    /// The key of each row.
    fn keys(&self, states: &Self::States) -> Vec<Self::Key>;

    /// The key of the state that each of these forward moves leads to: move `k` is slot `slots[k]` of state `rows[k]`, and
    /// not the exit. Override it where the keys of children can be had for less than the children.
    ///
    /// # Errors
    /// Those of [`Env::step`].
    fn child_keys(&self, states: &Self::States, rows: &[usize], slots: &Slots) -> Result<Vec<Self::Key>> {
        let mut children = states.select(rows);
        self.step(Direction::Forward, &mut children, slots)?;
        Ok(self.keys(&children))
    }

    /// The groups of these states that are one object: by key, and by [`Symmetry::forms`] where an object has several.
    ///
    /// # Errors
    /// Those of [`Symmetry::forms`].
    fn objects(&self, states: &Self::States) -> Result<Grouping> {
        measure::objects(self, states)
    }

    /// `true` if one key can belong to several labelled states, as it does up to isomorphism.
    fn merges_isomorphic(&self) -> bool {
        false
    }
}
