//! Environments: the pointed directed acyclic graph of states in which a GFlowNet builds objects.
//!
//! | trait | what it adds | who implements it |
//! |---|---|---|
//! | [`Rows`] | a batch of rows: `len`, `select`, `append` | states ([`VectorStates`], graphs) and actions ([`Slots`]) |
//! | [`Env`] | `initial`, `step` both ways, `is_initial` | every environment |
//! | [`DiscreteEnv`] | the legal actions of each state, as [`Masks`] | [`VectorEnv`], [`GraphEnv`](crate::graph::GraphEnv) |
//! | [`ReplayEnv`](crate::rollout::ReplayEnv) | stores trajectories and replays them, for buffers, files and the trainer | every discrete environment (by blanket impl), continuous environments |
//! | [`EnumerableEnv`] | a key per state, so that all states can be listed | environments for exact metrics |
//! | [`TensorEnv`] | states as a tensor on a device | environments whose roll-outs stay on a GPU |
//! | [`VectorRules`] | the moves of one vector, from which [`VectorEnv`] makes an environment | environments over vectors of small integers |
//! | [`Reward`] | log R of a batch of states | closures, custom types |
//!
//! An environment holds no mutable state, and works on whole batches. Two structs implement the
//! three environment traits from rules for a single state: [`VectorEnv`] from [`VectorRules`],
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
mod tensors;
pub(crate) mod topological;
mod vector_env;

pub use batch_rules::BatchRules;
pub(crate) use batch_rules::restrict;
pub(crate) use instances::{check_instances, check_one_instance, draw_instances, instances_in_turn};
pub(crate) use listing::{check_listed, first_other, has_more_states};
pub use measure::{Forms, training_log_rewards};
pub(crate) use messages::{KEEP_BACK, dead_end, describe_move, describe_state};
pub(crate) use moves::{CHUNK, Moves, random_moves};
pub use reward::{CachedReward, Clipped, PerVector, Reward, log_rewards};
pub(crate) use reward::{check_count, check_log_rewards};
pub(crate) use state_graph::EXIT;
pub use state_graph::{Child, StateGraph};
use symmetry::NoSymmetry;
pub use symmetry::Symmetry;
pub use tensors::{PerTensor, TensorEnv, TensorForm, TensorReward};
pub use vector_env::{VectorEnv, VectorKey, VectorRules};

use serde_json::Value;

use crate::Result;
pub use crate::direction::Direction;
use crate::distribution::{Distribution, GraphActionCategorical};
pub use crate::rows::{Block, Classes, Entry, Grouping, Masks, Reals, Rows, Slots, VectorStates, Vectors};

/// The outcome of one step of a batch of states. Each field has one entry per state.
#[derive(Clone, Debug)]
pub struct Step<A> {
    /// The action of the opposite direction that undoes the step of each row. The action belongs to the state
    /// after the step.
    ///
    /// If `exit` is `true`, the entry has no meaning: an exit has no backward action, and its P_B is 1.
    pub reverse: A,
    /// `true` if the forward action was the exit action. The exit doesn't change the state, which is now
    /// terminal.
    pub exit: Vec<bool>,
    /// `true` if the state can't take a further step in the direction of the step that was made.
    pub done: Vec<bool>,
}

/// The pointed DAG of states: its initial states, and the effect of actions in both directions.
///
/// Every trajectory ends either by an exit action, which doesn't change the state, or by reaching a state in
/// which the step reports `done` without `exit`. In *labelled* environments a step followed by its reverse
/// action restores the state exactly; in environments up to isomorphism it restores the state up to
/// relabelling.
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

    /// Returns the number of instances, which are numbered from 0. An instance is an initial state (an input
    /// graph, a scaffold) with its own trajectories, log Z and distribution. The default is 1.
    fn n_instances(&self) -> u32 {
        1
    }

    /// Returns the initial state of each of these instances. If there is only one instance, `&[0; n]` gives
    /// `n` copies of its initial state.
    ///
    /// # Panics
    /// May panic if an instance isn't below [`n_instances`](Self::n_instances). The library checks the
    /// instances that samplers and files give.
    fn initial(&self, instances: &[u32]) -> Self::States;

    /// Returns, for each of these states, the instance from whose initial state the state was built. The
    /// default is instance 0 for all states.
    fn instances(&self, states: &Self::States) -> Vec<u32> {
        vec![0; states.len()]
    }

    /// Applies one legal action to each row in place.
    ///
    /// The caller ensures that actions are legal: by masks if the caller chooses the actions, or by
    /// [`Trajectories::replay`](crate::rollout::Trajectories::replay) if the actions come from outside.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for an action that can't be applied to its state.
    fn step(
        &self,
        direction: Direction,
        states: &mut Self::States,
        actions: &Self::Actions,
    ) -> Result<Step<Self::Actions>>;

    /// Returns `true` for each row that is the initial state of its instance.
    fn is_initial(&self, states: &Self::States) -> Vec<bool>;

    /// Returns the exit action of each of these terminal states; `None` in an environment without exit
    /// actions.
    fn exit_actions(&self, states: &Self::States) -> Option<Self::Actions>;

    /// Returns the settings of the environment, which a checkpoint stores; null (the default) for an
    /// environment without settings. [`gfn::load`](crate::load) builds a
    /// [`GraphEnv`](crate::graph::GraphEnv) from its settings, and
    /// [`gfn::load_with_env`](crate::load_with_env) compares the settings with those of a given environment.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// Returns the form of the environment whose states are a tensor, for roll-outs that stay on a device;
    /// `None` (the default) if the environment has no such form.
    fn tensor_form(&self) -> Option<&TensorForm<Self::States>> {
        None
    }

    /// Describes a state in words, for messages. The default is [`Rows::describe`]; `None` means that there
    /// are no words for the state. A [`CachedReward`] has no environment, so its messages always use
    /// [`Rows::describe`].
    fn describe_state(&self, states: &Self::States, row: usize) -> Option<String> {
        states.describe(row)
    }

    /// Returns the rules that determine which states are the same object. By default each state is a
    /// different object.
    fn symmetry(&self) -> &dyn Symmetry<Self::States, Self::Actions> {
        &NoSymmetry
    }
}

/// A copy of a policy for one roll-out, during which parameters don't change
/// ([`Policy::on_host`](crate::policy::Policy::on_host)). Policies of this library and graph networks
/// ([`GraphNetwork::on_host`](crate::nn::GraphNetwork::on_host)) return such copies.
pub trait HostPolicy<E: Env> {
    /// Returns P_F or P_B of each state, without gradients.
    ///
    /// # Errors
    /// The errors of [`Policy::evaluate`](crate::policy::Policy::evaluate).
    fn distribution(&self, env: &E, states: &E::States) -> Result<E::Dist>;
}

/// An environment whose legal actions can be listed. An action is a *slot*: the index of its logit among all
/// logits of its state.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an environment whose actions can be listed",
    note = "rules become an environment by `.env()`, `VectorEnv::new` or `GraphEnv::new`; continuous \
        environments have no list of actions"
)]
pub trait DiscreteEnv: Env<Actions = Slots, Dist = GraphActionCategorical> {
    /// Returns masks, which contain the slots of each state and tell which of them are legal.
    ///
    /// The initial state has no legal backward action. If the environment has an exit action, it is the last
    /// forward slot of every state.
    fn masks(&self, direction: Direction, states: &Self::States) -> Masks;

    /// Describes an action in words, for messages.
    fn describe(&self, direction: Direction, states: &Self::States, row: usize, slot: u32) -> String;
}

/// An environment whose states are identified by a key, so that all states can be listed, beginning with the
/// initial state.
///
/// In an environment up to isomorphism, isomorphic states have the same key.
#[diagnostic::on_unimplemented(
    message = "the states of `{Self}` can't be listed",
    note = "rules become an environment by `.env()`; the states of continuous environments can't be listed, \
        so sample instead"
)]
pub trait EnumerableEnv: DiscreteEnv {
    /// The key that identifies a state.
    type Key: Clone + Eq + std::hash::Hash + Ord + Send + Sync + std::fmt::Debug;

    /// Returns the key of each row.
    fn keys(&self, states: &Self::States) -> Vec<Self::Key>;

    /// Returns the key of the state after each of these forward moves. Move `k` is slot `slots[k]` of state
    /// `rows[k]`, and isn't the exit. Override the default, which makes the moves, if the keys can be
    /// computed in less time.
    ///
    /// # Errors
    /// The errors of [`Env::step`].
    fn child_keys(&self, states: &Self::States, rows: &[usize], slots: &Slots) -> Result<Vec<Self::Key>> {
        let mut children = states.select(rows);
        self.step(Direction::Forward, &mut children, slots)?;
        Ok(self.keys(&children))
    }

    /// Groups these states by object: states with equal keys are one object, and so are states that
    /// [`Symmetry::forms`] lists as different forms of one object.
    ///
    /// # Errors
    /// The errors of [`Symmetry::forms`].
    fn objects(&self, states: &Self::States) -> Result<Grouping> {
        measure::objects(self, states)
    }

    /// Returns `true` if several labelled states can have the same key, as in environments up to isomorphism.
    /// The default is `false`.
    fn merges_isomorphic(&self) -> bool {
        false
    }
}
