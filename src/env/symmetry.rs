//! Equality of objects: states can be the same object because they differ only in labels, or because an
//! object has several states.

use super::{Classes, Direction, Forms, Rows};
use crate::{Result, Rng};

/// Rules that determine which states of an environment are the same object
/// ([`Env::symmetry`](super::Env::symmetry)). Graph environments implement this trait. The defaults are for
/// an environment in which each state is a different object.
pub trait Symmetry<S, A: Rows> {
    /// Returns the number that must be added to the log-reward of each state so that training samples objects
    /// in proportion to R.
    ///
    /// Returns `None` (the default) if every state is a different object. In an environment up to isomorphism
    /// the number is log |Aut(s)|, the log of the number of automorphisms (Kim et al., *Symmetry-Aware
    /// GFlowNets*, 2025), because training on R alone samples in proportion to R(x) / |Aut(x)|. The value of
    /// the initial state is subtracted; otherwise log Z would contain its automorphisms.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose symmetry can't be computed.
    fn log_symmetry(&self, _states: &S) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Returns, for each of these states, the log of the number of states that are the same object, the state
    /// itself included (for example the Kekule forms of a molecule); `None` (the default) if every state is a
    /// different object.
    ///
    /// A reward returns R of the object for each of its states. In training and in the target, R is divided
    /// equally among the states of the object, so that the object is sampled in proportion to R.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose object has too many states to count.
    fn log_multiplicity(&self, _states: &S) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Lists the states that [`log_multiplicity`](Self::log_multiplicity) counts: for each state all states
    /// that are the same object, the state itself included. Returns `None` (the default) if every state is a
    /// different object. The list must be the same for all states of an object, and trajectories must be able
    /// to end in all of them or in none.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose object has too many states to list.
    fn forms(&self, _states: &S) -> Result<Option<Forms<S>>> {
        Ok(None)
    }

    /// Groups rows that are the same object under different labels, so that a policy is evaluated once per
    /// object. Returns `None` (the default) if only equal rows are the same object, or if grouping takes more
    /// time than it saves.
    fn classes(&self, _states: &S) -> Option<Classes> {
        None
    }

    /// Returns these states followed by the same states under random other labels, and the classes by which
    /// [`translate`](Self::translate) renames actions from one labelling to the other. Returns `None` (the
    /// default) if labels have a meaning, so that relabelled states are different objects.
    ///
    /// A trainer uses this method to check that policy and reward don't depend on labels.
    fn relabelled(&self, _states: &S, _rng: &mut Rng) -> Option<(S, Classes)> {
        None
    }

    /// Renames actions of the states `rows`. States that are the same object under different labels form a
    /// class. If `back` is `false`, actions are renamed from the labels of their state to the labels of the
    /// first state of its class; if `back` is `true`, in the opposite direction.
    ///
    /// In an environment up to isomorphism a policy is equivariant: an action and the renamed action have the
    /// same probability.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for actions that don't belong to these states.
    fn translate(
        &self,
        _direction: Direction,
        _states: &S,
        _classes: &Classes,
        _rows: &[usize],
        actions: &A,
        _back: bool,
    ) -> Result<A> {
        Ok(actions.clone())
    }

    /// Renames trajectories that were sampled backwards, so that they can be replayed from the initial state.
    /// Returns the forward actions and the terminal states; `None` if nothing needs renaming.
    ///
    /// `states` holds the state before each forward action, trajectory by trajectory, and `actions` holds the
    /// action in the labels of that state. `reverse` holds the action that undoes each action, in the labels
    /// of the next state. Renaming is needed only in environments up to isomorphism, whose states get other
    /// labels on backward steps.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for actions that don't belong to these states.
    fn to_insertion_order(
        &self,
        _states: &S,
        _actions: &A,
        _reverse: &A,
        _offsets: &[usize],
    ) -> Result<Option<(A, S)>> {
        Ok(None)
    }
}

/// The symmetry of an environment in which each state is a different object.
pub(super) struct NoSymmetry;

impl<S, A: Rows> Symmetry<S, A> for NoSymmetry {}
