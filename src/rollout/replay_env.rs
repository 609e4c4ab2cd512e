use tch::Tensor;

use super::files::fingerprint;
use crate::env::{Direction, DiscreteEnv, Env, Slots};
use crate::io::malformed;
use crate::policy::{Policy, UniformPolicy};
use crate::{Error, Result};

/// An environment whose walks can be kept and taken again: in replay buffers, data sets and checkpoints.
///
/// Every [`DiscreteEnv`] is one. A continuous environment says itself how its actions are written, read and checked; the
/// trainer takes it then like any other.
///
/// ```
/// use gfn::{env::{Env, Slots}, rollout::ReplayEnv, testing::Chain};
/// let env = Chain::new(3);
/// let states = env.initial(1);
/// assert!(env.check_actions(&states, &Slots(vec![0])).is_ok());
/// assert!(env.check_actions(&states, &Slots(vec![9])).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait ReplayEnv: Env + Sized {
    /// What walks at random where nothing was learned yet: [`UniformPolicy`], or what comes next to it.
    type Uniform: Policy<Self>;

    /// The policy that prefills buffers, and that [`UniformBackward`](crate::train::ReplayPath::UniformBackward) draws ways back by.
    fn uniform(&self) -> Self::Uniform;

    /// Checks actions from outside before they are taken, one for each state, forwards.
    ///
    /// # Errors
    /// [`Error::IllegalAction`], [`Error::IllegalStep`] or [`Error::Contract`] for the first one that can't be taken, with its row.
    fn check_actions(&self, states: &Self::States, actions: &Self::Actions) -> Result<()>;

    /// Whether a trajectory can end in each of these states.
    fn can_finish(&self, states: &Self::States) -> Vec<bool>;

    /// Some action back from each of these states, none of them the initial one; the same at every call, and after finitely many of
    /// them stands the initial state.
    ///
    /// # Errors
    /// [`Error::NoLegalAction`] for a state without a way back.
    fn way_back(&self, states: &Self::States) -> Result<Self::Actions>;

    /// No actions.
    fn no_actions(&self) -> Self::Actions;

    /// Actions as a tensor with a row for each, of kind i64 or f64; [`read_actions`](Self::read_actions) gives back the same, bit for bit.
    fn write_actions(&self, actions: &Self::Actions) -> Tensor;

    /// Actions from a tensor that may come from anywhere: what could be no action at all is refused here, what is illegal where it is
    /// taken by [`check_actions`](Self::check_actions).
    ///
    /// # Errors
    /// [`Error::Contract`] for another kind or shape.
    fn read_actions(&self, tensor: &Tensor) -> Result<Self::Actions>;

    /// A few words that differ between environments whose actions mean something else, to tell whose a file is.
    ///
    /// # Errors
    /// Those of the environment.
    fn fingerprint(&self) -> Result<String>;
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

    fn can_finish(&self, states: &Self::States) -> Vec<bool> {
        let masks = self.masks(Direction::Forward, states);
        let can = |row: usize| match masks.has_exit {
            true => masks.row(row).last() == Some(&true),
            false => masks.n_legal(row) == 0,
        };
        (0..masks.len()).map(can).collect()
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
        // What is no slot at all becomes one that no state has, to be found illegal where it is taken.
        Ok(Slots(slots.into_iter().map(|slot| u32::try_from(slot).unwrap_or(Slots::NONE)).collect()))
    }

    fn fingerprint(&self) -> Result<String> {
        fingerprint(self)
    }
}
