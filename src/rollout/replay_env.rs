use tch::Tensor;

use super::files::fingerprint;
use crate::env::{Direction, DiscreteEnv, Env, Slots};
use crate::io::malformed;
use crate::policy::{Policy, UniformPolicy};
use crate::{Error, Result};

/// An environment whose walks can be stored and replayed: in replay buffers, data sets and checkpoints.
///
/// Every [`DiscreteEnv`] is one. A continuous environment implements how its actions are written, read and checked, and
/// can then be used with the trainer like any other.
///
/// ```
/// use gfn::{env::{Env, Slots}, rollout::ReplayEnv, examples::Chain};
/// let env = Chain::new(3);
/// let states = env.initial(&[0]);
/// assert!(env.check_actions(&states, &Slots(vec![0])).is_ok());
/// assert!(env.check_actions(&states, &Slots(vec![9])).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait ReplayEnv: Env + Sized {
    /// The untrained policy: [`UniformPolicy`], or the closest thing that a continuous environment has.
    type Uniform: Policy<Self>;

    /// The policy that prefills buffers and draws the backward paths of
    /// [`UniformBackward`](crate::train::ReplayPath::UniformBackward).
    fn uniform(&self) -> Self::Uniform;

    /// Checks forward actions from outside before they are taken, one for each state.
    ///
    /// # Errors
    /// [`Error::IllegalAction`], [`Error::IllegalStep`] or [`Error::Contract`] for the first illegal one, with its row.
    fn check_actions(&self, states: &Self::States, actions: &Self::Actions) -> Result<()>;

    /// A backward action for each of these states, none of which is initial. It must be the same at every call, and
    /// following these actions must reach the initial state.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a backward action.
    fn way_back(&self, states: &Self::States) -> Result<Self::Actions>;

    /// An empty batch of actions.
    fn no_actions(&self) -> Self::Actions;

    /// Actions as a tensor with one row each, of kind i64 or f64; [`read_actions`](Self::read_actions) restores them
    /// bit for bit.
    fn write_actions(&self, actions: &Self::Actions) -> Tensor;

    /// Actions from a tensor of any origin. Only tensors that can't be actions at all are refused here;
    /// [`check_actions`](Self::check_actions) refuses illegal actions when they are taken.
    ///
    /// # Errors
    /// [`Error::Contract`] for another kind or shape.
    fn read_actions(&self, tensor: &Tensor) -> Result<Self::Actions>;

    /// A short text that differs between environments whose actions mean different things, to tell which environment a
    /// file belongs to.
    ///
    /// # Errors
    /// Those of the environment.
    fn fingerprint(&self) -> Result<String>;

    /// A hash of the actions that are legal in these states, which shows a resumed run whether the environment is the same. 0, by
    /// default: where actions can't be listed.
    fn allowed(&self, _states: &Self::States) -> u64 {
        0
    }
}

impl<E: DiscreteEnv> ReplayEnv for E {
    type Uniform = UniformPolicy;

    fn uniform(&self) -> UniformPolicy {
        UniformPolicy
    }

    fn check_actions(&self, states: &Self::States, actions: &Slots) -> Result<()> {
        let masks = self.masks(Direction::Forward, states);
        let mut rows = actions.0.iter().enumerate();
        rows.try_for_each(|(row, &slot)| {
            masks.check(row, slot, || self.describe(Direction::Forward, states, row, slot))
        })
    }

    fn way_back(&self, states: &Self::States) -> Result<Slots> {
        let masks = self.masks(Direction::Backward, states);
        let first = |row| {
            let slot = masks.legal_slots(row).next();
            slot.ok_or(Error::NoLegalAction { row, direction: Direction::Backward })
        };
        (0..masks.len()).map(first).collect::<Result<_>>().map(Slots)
    }

    fn no_actions(&self) -> Slots {
        Slots(Vec::new())
    }

    fn write_actions(&self, actions: &Slots) -> Tensor {
        let slots: Vec<i64> = actions.0.iter().map(|&slot| i64::from(slot)).collect();
        Tensor::from_slice(&slots)
    }

    fn read_actions(&self, tensor: &Tensor) -> Result<Slots> {
        let slots = match tensor.kind() {
            tch::Kind::Int64 => Vec::<i64>::try_from(tensor).ok(),
            _ => None,
        };
        let slots = slots.ok_or_else(|| malformed("actions"))?;
        // A number that can't be a slot becomes one that no state has, and is refused as illegal when it is taken.
        Ok(Slots(slots.into_iter().map(|slot| u32::try_from(slot).unwrap_or(Slots::NONE)).collect()))
    }

    fn fingerprint(&self) -> Result<String> {
        fingerprint(self)
    }

    fn allowed(&self, states: &Self::States) -> u64 {
        let masks = self.masks(Direction::Forward, states);
        let rows = (0..masks.len()).flat_map(|row| masks.legal_slots(row).map(u64::from).chain([u64::MAX]));
        crate::rng::hash(rows)
    }
}
