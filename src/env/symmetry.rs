//! States that are one object: under other labels, or in other forms.

use super::{Classes, Direction, Forms, Rows};
use crate::{Result, Rng};

/// Tells which states of an environment are one object ([`Env::symmetry`](super::Env::symmetry)). Graph environments implement it.
/// The defaults are those of an environment in which each state is an object of its own.
pub trait Symmetry<S, A: Rows> {
    /// The number that must be added to the log-reward of each state so that training samples in proportion to R.
    ///
    /// `None` where every state is one object. Up to isomorphism it is log |Aut(s)| (Kim et al., *Symmetry-Aware
    /// GFlowNets*, 2025): training on R alone samples R(x) / |Aut(x)| there. It is taken less that of the initial state, whose
    /// automorphisms would be counted in log Z.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose symmetry isn't found.
    fn log_symmetry(&self, _states: &S) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// The log of the number of states that are the same object as each of these, itself among them (a molecule's Kekule forms); `None`
    /// (the default) where every state is an object of its own.
    ///
    /// With [`log_symmetry`](Self::log_symmetry) it is the measure over states. A reward says R of the object, whichever of its states
    /// it is shown; each state has an equal share of that in training and in the target, so that the object is sampled in proportion to R.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose object has more of them than can be counted.
    fn log_multiplicity(&self, _states: &S) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// The states that [`log_multiplicity`](Self::log_multiplicity) counts: for each of these all that are the same object, itself
    /// among them; `None` where each is an object of its own. They have the same exits, and count each other.
    ///
    /// # Errors
    /// [`Error`](crate::Error) for a state whose object has more of them than can be listed.
    fn forms(&self, _states: &S) -> Result<Option<Forms<S>>> {
        Ok(None)
    }

    /// The rows that are one object under different labels, so that a policy is asked about it once; `None` (the default) where
    /// only equal rows are, or where looking costs more than it saves.
    fn classes(&self, _states: &S) -> Option<Classes> {
        None
    }

    /// These states, and behind them each under other labels, drawn at random; with what [`translate`](Self::translate) needs to rename
    /// actions of one as the other names them. `None` (the default) where no two states are one object.
    ///
    /// A trainer compares by them what a policy and a reward say of both.
    fn relabelled(&self, _states: &S, _rng: &mut Rng) -> Option<(S, Classes)> {
        None
    }

    /// Actions of `rows` as the first row of each one's class names them; with `back`, the other way round.
    ///
    /// Up to isomorphism a policy is equivariant: what it says of one row's action it says of the renamed one.
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

    /// Renames walks that were taken backwards, so that they can be replayed from the initial state: the forward actions, and the
    /// terminal states. `None` if nothing needs renaming.
    ///
    /// `states` and `actions` are trajectory-major: the state before each forward action and the action as it is named
    /// there, `reverse` its undoing as it is named in the next row. Only environments whose states lose their labels on the
    /// way back rename anything.
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

/// The symmetry of an environment in which each state is an object of its own.
pub(super) struct NoSymmetry;

impl<S, A: Rows> Symmetry<S, A> for NoSymmetry {}
