use tch::Tensor;

use super::files::fingerprint;
use crate::env::{Direction, DiscreteEnv, Env, Slots};
use crate::io::malformed;
use crate::policy::{Policy, UniformPolicy};
use crate::{Error, Result};

/// An environment whose trajectories can be stored in compact form ([`Walks`](super::Walks): actions and
/// terminal states) and replayed. Replay buffers, data sets and checkpoints store trajectories in this
/// compact form.
///
/// Every [`DiscreteEnv`] implements this trait. A trainer can use a continuous environment only if the
/// environment implements this trait, that is, defines how its actions are written, read and checked.
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
    /// The type of the untrained policy: [`UniformPolicy`] for discrete environments, and a custom policy for
    /// continuous environments.
    type Uniform: Policy<Self>;

    /// Returns the untrained policy. A trainer samples from this policy to prefill replay buffers, and uses
    /// its backward policy for [`UniformBackward`](crate::train::ReplayPath::UniformBackward).
    fn uniform(&self) -> Self::Uniform;

    /// Checks forward actions that come from a file or a caller, one for each state, before they are applied.
    ///
    /// # Errors
    /// [`Error::IllegalAction`], [`Error::IllegalStep`] or [`Error::Contract`] for the first illegal action,
    /// with the index of its state as row.
    fn check_actions(&self, states: &Self::States, actions: &Self::Actions) -> Result<()>;

    /// Returns a backward action for each of these states. No state may be initial. Every call must return
    /// the same action for a state, and following these actions must lead to the initial state.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a backward action.
    fn way_back(&self, states: &Self::States) -> Result<Self::Actions>;

    /// Returns an empty batch of actions.
    fn no_actions(&self) -> Self::Actions;

    /// Converts actions to a tensor with dtype i64 or f64 and one row per action.
    /// [`read_actions`](Self::read_actions) restores them bit for bit.
    fn write_actions(&self, actions: &Self::Actions) -> Tensor;

    /// Converts a tensor, for example from a file, to actions. This method checks only dtype and shape;
    /// [`check_actions`](Self::check_actions) refuses illegal actions before they are applied.
    ///
    /// # Errors
    /// [`Error::Contract`] for a tensor with another dtype or shape.
    fn read_actions(&self, tensor: &Tensor) -> Result<Self::Actions>;

    /// Returns a short text that identifies the environment in a file. Two environments in which the same
    /// action has different meanings should have different texts.
    ///
    /// # Errors
    /// The errors of the environment.
    fn fingerprint(&self) -> Result<String>;

    /// Returns a hash of the legal actions of these states. A resumed run compares it with the saved hash, to
    /// detect that the environment has changed. The default is 0, for environments whose actions can't be
    /// listed.
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
        // A number that doesn't fit in 32 bits becomes `Slots::NONE`, a slot that no state has, so that
        // `check_actions` refuses it.
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
