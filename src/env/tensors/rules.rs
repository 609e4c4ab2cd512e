//! The environment on the host that a [`TensorEnv`](super::TensorEnv) alone defines.

use tch::{Device, Kind, Tensor};

use super::TensorForm;
use crate::distribution::GraphActionCategorical;
use crate::env::{
    Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step, VectorKey, VectorStates,
};
use crate::{Error, Result};

/// An environment over vectors whose rules are tensor operations, evaluated on the host.
pub(in crate::env) struct TensorRules {
    form: TensorForm<VectorStates>,
    start: VectorStates,
}

impl TensorRules {
    /// Checks the shapes of the initial state and of its moves.
    pub(in crate::env) fn new(form: TensorForm<VectorStates>) -> Result<Self> {
        let initial = form.env().initial(1, Device::Cpu);
        for direction in [Direction::Forward, Direction::Backward] {
            let expected = [1, form.n_slots(direction) as i64];
            let masks = form.masks(direction, &initial);
            if masks.size() != expected || masks.kind() != Kind::Bool {
                let what =
                    format!("the legal {direction} moves ({:?}) of a tensor environment", masks.kind());
                let remedy = "let `TensorEnv::legal` return bool of shape `[n, n_moves]`, and `can_end` bool \
                    of shape `[n]`";
                return Err(Error::shape(what, expected, masks.size(), remedy));
            }
        }
        let start = form.to_host(&initial)?;
        Ok(Self { form, start })
    }

    fn to_tensor(&self, states: &VectorStates) -> Tensor {
        self.form.to_tensor(states, Device::Cpu)
    }

    /// Returns an error for the first action that isn't legal in its state.
    fn check_legal(&self, direction: Direction, states: &VectorStates, actions: &Slots) -> Result<()> {
        let masks = self.masks(direction, states);
        for (row, &slot) in actions.0.iter().enumerate() {
            if masks.row(row).get(slot as usize) != Some(&true) {
                return Err(Error::IllegalAction {
                    row,
                    direction,
                    slot: slot as usize,
                    n_slots: masks.row(row).len(),
                    n_legal: masks.n_legal(row),
                    detail: self.describe(direction, states, row, slot),
                });
            }
        }
        Ok(())
    }
}

impl Env for TensorRules {
    type States = VectorStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn initial(&self, instances: &[u32]) -> VectorStates {
        self.start.select(&vec![0; instances.len()])
    }

    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        let n = actions.len();
        let width = self.start.width();
        if (states.len(), states.width()) != (n, width) {
            let got = [states.len() as i64, states.width() as i64];
            let remedy = "give one action per state, and states of this environment";
            return Err(Error::shape("states", [n as i64, width as i64], got, remedy));
        }
        self.check_legal(direction, states, actions)?;
        let env = self.form.env();
        let exit = self.form.exit_slot(direction);
        let exits: Vec<bool> = actions.0.iter().map(|&slot| Some(i64::from(slot)) == exit).collect();
        let moves: Vec<i64> =
            actions.0.iter().zip(&exits).map(|(&slot, exit)| if *exit { 0 } else { slot.into() }).collect();
        let moves = Tensor::from_slice(&moves);
        let before = self.to_tensor(states);
        let reverse = Vec::<i64>::try_from(env.reverse(direction, &before, &moves))?;
        let stays = Tensor::from_slice(&exits).unsqueeze(1);
        let after = before.where_self(&stays, &env.step(direction, &before, &moves));
        *states = self.form.to_host(&after)?;
        let ends = match (direction, exit) {
            (Direction::Forward, Some(_)) => exits.clone(),
            (Direction::Forward, None) => Vec::try_from(env.can_end(&after))?,
            (Direction::Backward, _) => self.is_initial(states),
        };
        let reverse = Slots(reverse.into_iter().map(|slot| slot as u32).collect());
        Ok(Step { reverse, exit: exits, done: ends })
    }

    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|row| row == self.start.row(0)).collect()
    }

    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        let slot = self.form.exit_slot(Direction::Forward)?;
        Some(Slots(vec![slot as u32; states.len()]))
    }
}

impl DiscreteEnv for TensorRules {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        let width = self.form.n_slots(direction);
        let has_exit = self.form.exit_slot(direction).is_some();
        let legal = self.form.masks(direction, &self.to_tensor(states)).contiguous().view(-1);
        // `new` has checked the shapes. If they change with the state, no action is legal here, so that an
        // error follows.
        let legal = Vec::<bool>::try_from(legal).ok().filter(|legal| legal.len() == states.len() * width);
        let legal = legal.unwrap_or_else(|| vec![false; states.len() * width]);
        Masks::from_rows(direction, states.len(), width, legal, has_exit)
    }

    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        let state = states.describe(row).unwrap_or_else(|| format!("state {row}"));
        if self.form.exit_slot(direction) == Some(i64::from(slot)) {
            format!("exit at {state}")
        } else {
            format!("{direction} move {slot} of {state}")
        }
    }
}

impl EnumerableEnv for TensorRules {
    type Key = VectorKey;

    fn keys(&self, states: &VectorStates) -> Vec<VectorKey> {
        states.rows().map(VectorKey::from_slice).collect()
    }
}
