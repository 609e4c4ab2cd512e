//! Environments: the pointed directed acyclic graph of states in which a GFlowNet builds objects.
//!
//! | trait | what it adds | who implements it |
//! |---|---|---|
//! | [`Rows`] | a batch of rows: `len`, `select`, `append` | states ([`VectorStates`], graphs) and actions ([`Slots`]) |
//! | [`Env`] | `initial`, `step` both ways, `is_initial` | every environment |
//! | [`DiscreteEnv`] | the legal actions of each state, as [`Masks`] | [`VectorEnv`], [`GraphEnv`](crate::graph::GraphEnv) |
//! | [`ReplayEnv`](crate::rollout::ReplayEnv) | stores trajectories and replays them, for buffers, files and the trainer | every discrete environment (by blanket impl), continuous environments |
//! | [`EnumerableEnv`] | a key per state, so that all states can be listed | what exact metrics need |
//! | [`VectorRules`] | the moves of one vector; [`VectorEnv`] makes an environment of them | environments over vectors of small integers |
//! | [`Reward`] | log R of a batch of states | closures, types of yours |
//!
//! An environment holds no mutable state and no tensor, and works on whole batches. Two structs implement the three
//! environment traits from rules for a single state: [`VectorEnv`] from [`VectorRules`],
//! [`GraphEnv`](crate::graph::GraphEnv) from [`GraphRules`](crate::graph::GraphRules).

mod batch_rules;
mod instances;
mod listing;
mod measure;
mod messages;
mod moves;
mod reward;
mod state_graph;
mod symmetry;
pub(crate) mod topological;
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
pub use reward::{CachedReward, Clipped, Reward, log_rewards};
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
    /// The action of the other direction that undoes the row's step. It is an action of the state after the step.
    ///
    /// Meaningless if `exit` is true, because P_B of an exit is 1.
    pub reverse: A,
    /// `true` if the forward action was the exit action. The state is unchanged, and terminal.
    pub exit: Vec<bool>,
    /// `true` if the row has no further step in this direction.
    pub done: Vec<bool>,
}

/// The pointed DAG of states: its initial states, and the effect of actions in both directions.
///
/// Every trajectory ends either by an exit action, which doesn't change the state, or by reaching a state without
/// forward actions (`done` without `exit`). In *labelled* environments a step and its reverse restore the state; in
/// environments up to isomorphism they restore it up to relabelling.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`"
)]
pub trait Env: Send + Sync {
    /// A batch of states.
    type States: Rows;
    /// A batch of actions.
    type Actions: Rows;
    /// The distribution over actions that policies return: [`GraphActionCategorical`] if the actions are
    /// [`Slots`].
    type Dist: Distribution<Actions = Self::Actions>;

    /// The number of instances, numbered from 0. An instance is an initial state (an input graph, a scaffold) with
    /// its own trajectories, log Z and distribution. The default is 1.
    fn n_instances(&self) -> u32 {
        1
    }

    /// Returns the initial state of each of these instances. With one instance, `&[0; n]` gives `n` copies of it.
    ///
    /// # Panics
    /// May panic for a number of [`n_instances`](Self::n_instances) or more. The library checks numbers from samplers
    /// and files.
    fn initial(&self, instances: &[u32]) -> Self::States;

    /// Returns the instance that each of these states was built from.
    fn instances(&self, states: &Self::States) -> Vec<u32> {
        vec![0; states.len()]
    }

    /// Applies one legal action to each row in place.
    ///
    /// The caller ensures that actions are legal: by masks, or by
    /// [`Trajectories::replay`](crate::rollout::Trajectories::replay) for actions from outside.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for an action that can't be applied to its state.
    fn step(
        &self,
        direction: Direction,
        states: &mut Self::States,
        actions: &Self::Actions,
    ) -> Result<Step<Self::Actions>>;

    /// Returns `true` for each row that is the initial state.
    fn is_initial(&self, states: &Self::States) -> Vec<bool>;

    /// Returns the exit action of each of these terminal states; `None` in an environment without exit actions.
    fn exit_actions(&self, states: &Self::States) -> Option<Self::Actions>;

    /// Returns the rules that tell which states are one object. By default each state is a different object.
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

/// An environment whose legal actions can be listed. An action is a *slot*: the index of its logit among all logits of
/// its state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment whose actions can be listed",
    note = "rules become one by `.env()`, `VectorEnv::new` or `GraphEnv::new`; continuous environments have no list of actions"
)]
pub trait DiscreteEnv: Env<Actions = Slots, Dist = GraphActionCategorical> {
    /// Returns the slots of each state, and the legal slots among them.
    ///
    /// The initial state has no legal backward action. If the environment has an exit action, it is the last forward
    /// slot of every state.
    fn masks(&self, direction: Direction, states: &Self::States) -> Masks;

    /// Describes an action in words, for messages.
    fn describe(&self, direction: Direction, states: &Self::States, row: usize, slot: u32) -> String;
}

/// An environment whose states are identified by a key, and can therefore be listed from the initial state on.
///
/// Up to isomorphism, isomorphic states have one key.
#[diagnostic::on_unimplemented(
    message = "the states of `{Self}` can't be listed",
    note = "rules become an environment by `.env()`; the states of continuous environments can't be listed, so sample instead"
)]
pub trait EnumerableEnv: DiscreteEnv {
    /// The key that identifies a state.
    type Key: Clone + Eq + std::hash::Hash + Ord + Send + Sync + std::fmt::Debug;

    /// Returns the key of each row.
    fn keys(&self, states: &Self::States) -> Vec<Self::Key>;

    /// Returns the key of the state after each of these forward moves. Move `k` is slot `slots[k]` of state
    /// `rows[k]`, and isn't the exit. Override it if the keys of children are cheaper to compute than the children.
    ///
    /// # Errors
    /// Those of [`Env::step`].
    fn child_keys(&self, states: &Self::States, rows: &[usize], slots: &Slots) -> Result<Vec<Self::Key>> {
        let mut children = states.select(rows);
        self.step(Direction::Forward, &mut children, slots)?;
        Ok(self.keys(&children))
    }

    /// Groups these states by object: by key, and by [`Symmetry::forms`] if an object has several forms.
    ///
    /// # Errors
    /// Those of [`Symmetry::forms`].
    fn objects(&self, states: &Self::States) -> Result<Grouping> {
        measure::objects(self, states)
    }

    /// Returns `true` if several labelled states can have the same key, as they do up to isomorphism.
    fn merges_isomorphic(&self) -> bool {
        false
    }
}
