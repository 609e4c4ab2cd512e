//! Rules of environments over vectors of small integers. The author implements the moves of one vector; the
//! library applies them to batches of vectors.

use crate::distribution::GraphActionCategorical;
use crate::env::{
    BatchRules, Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step, VectorKey,
    VectorStates, restrict,
};
use crate::{Error, Result};

/// The moves of one vector. The author of a [`VectorEnv`](super::VectorEnv) implements only this trait.
///
/// The moves of a direction are numbered, and the number of a move is its slot. The exit, if there is one, is
/// the last forward slot; the library adds it. The initial state is the vector of zeros, unless
/// [`starts`](Self::starts) returns other vectors.
///
/// ```
/// use gfn::env::{Direction, VectorEnv, VectorRules};
///
/// /// Subsets of `n` items, added one at a time; any of them can be the end.
/// struct Subsets { n: usize }
///
/// impl VectorRules for Subsets {
///     fn width(&self) -> usize {
///         self.n
///     }
///     fn n_values(&self) -> usize {
///         2
///     }
///     fn n_moves(&self, _: Direction) -> usize {
///         self.n
///     }
///     fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
///         let (before, after) = if direction == Direction::Forward { (0, 1) } else { (1, 0) };
///         let entry = row.get_mut(slot).filter(|entry| **entry == before)?;
///         *entry = after;
///         Some(slot)
///     }
/// }
///
/// let env = VectorEnv::new(Subsets { n: 3 });
/// assert_eq!(gfn::env::StateGraph::build(&env, 100)?.len(), 8);
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait VectorRules: Send + Sync {
    /// Returns the number of entries of a state, at least 1.
    fn width(&self) -> usize;

    /// Returns the number of values that an entry can have, at least 1. All entries are below this number.
    /// Networks encode entries by it ([`KHot`](crate::policy::KHot)).
    fn n_values(&self) -> usize;

    /// Returns the number of moves in a direction, legal or not. The exit isn't counted. Each legal backward
    /// move leads to a different parent.
    fn n_moves(&self, direction: Direction) -> usize;

    /// Makes a move in place and returns the move of the other direction that undoes it. Returns `None` and
    /// leaves the vector unchanged if the move isn't legal or doesn't exist.
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize>;

    /// Returns the initial states, each of which starts an [instance](Env::n_instances) of the environment.
    /// An empty list (the default) means that the only initial state is the vector of zeros.
    fn starts(&self) -> &[Vec<u16>] {
        &[]
    }

    /// Returns the index of the initial state from which a state was reached. The result must depend on the
    /// vector alone. With several initial states, some entries must identify the initial state, and no move
    /// may change these entries.
    fn instance(&self, _row: &[u16]) -> u32 {
        0
    }

    /// Sets `legal[move]` to `true` for each legal move. All entries are `false` before the call.
    ///
    /// The default tries every move on a copy of the vector. Override this method if legality can be checked
    /// without making the move, which is nearly always faster.
    fn mark(&self, direction: Direction, row: &[u16], legal: &mut [bool]) {
        let mut tried = row.to_vec();
        for (slot, legal) in legal.iter_mut().enumerate() {
            if self.apply(direction, &mut tried, slot).is_some() {
                *legal = true;
                tried.copy_from_slice(row);
            }
        }
    }

    /// Returns `true` (the default) if trajectories end by an exit action. If the method returns `false`, a
    /// trajectory ends in the first state for which [`can_end`](Self::can_end) returns `true`.
    fn has_exit(&self) -> bool {
        true
    }

    /// Returns `true` if a trajectory can end in this state. The default returns `true` for every state.
    fn can_end(&self, _row: &[u16]) -> bool {
        true
    }

    /// Returns rules that forbid further moves, and that receive a batch of moves per call. A move is given
    /// by the index of its state in the batch and its slot. The default is `None`.
    fn batched(&self) -> Option<&dyn BatchRules<VectorStates, (usize, u32)>> {
        None
    }

    /// Describes a move in words, for messages. The slot is less than [`n_moves`](Self::n_moves).
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        format!("{direction} move {slot} of {row:?}")
    }
}

/// The environment that some rules define. The struct is generic over the type of the rules, so that the
/// compiler can inline the rules.
pub(super) struct RulesEnv<R>(pub(super) R);

fn is_initial(rules: &impl VectorRules, row: &[u16]) -> bool {
    match rules.starts() {
        [] => row.iter().all(|&x| x == 0),
        starts => starts.get(rules.instance(row) as usize).is_some_and(|start| start == row),
    }
}

impl<R: VectorRules> RulesEnv<R> {
    /// Returns the error for a slot that isn't legal in its state.
    fn illegal(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> Error {
        let masks = self.masks(direction, &states.select(&[row]));
        Error::IllegalAction {
            row,
            direction,
            slot: slot as usize,
            n_slots: masks.row(0).len(),
            n_legal: masks.n_legal(0),
            detail: DiscreteEnv::describe(self, direction, states, row, slot),
        }
    }
}

impl<R: VectorRules> Env for RulesEnv<R> {
    type States = VectorStates;
    type Actions = Slots;
    type Dist = GraphActionCategorical;

    fn n_instances(&self) -> u32 {
        self.0.starts().len().max(1) as u32
    }

    fn initial(&self, instances: &[u32]) -> VectorStates {
        match self.0.starts() {
            [] => VectorStates::filled(self.0.width(), instances.len(), 0),
            starts => {
                let rows = instances.iter().map(|&instance| starts[instance as usize].clone()).collect();
                VectorStates::from_vecs(self.0.width(), rows)
            }
        }
    }

    fn instances(&self, states: &VectorStates) -> Vec<u32> {
        states.rows().map(|row| self.0.instance(row)).collect()
    }

    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        let rules = &self.0;
        let n = actions.len();
        if (states.len(), states.width()) != (n, rules.width()) {
            return Err(Error::shape(
                "states",
                [n as i64, rules.width() as i64],
                [states.len() as i64, states.width() as i64],
                "give one action per state, and states of this environment",
            ));
        }
        let forward = direction == Direction::Forward;
        let exit_slot = (forward && rules.has_exit()).then(|| rules.n_moves(direction));
        let mut step = Step { reverse: Slots(vec![0; n]), exit: vec![false; n], done: vec![false; n] };
        for (i, (row, &slot)) in
            states.values_mut().chunks_exact_mut(rules.width()).zip(&actions.0).enumerate()
        {
            if exit_slot == Some(slot as usize) && rules.can_end(row) {
                (step.exit[i], step.done[i]) = (true, true);
            } else if let Some(reverse) = rules.apply(direction, row, slot as usize) {
                step.reverse.0[i] = reverse as u32;
                step.done[i] =
                    if forward { exit_slot.is_none() && rules.can_end(row) } else { is_initial(rules, row) };
            } else {
                return Err(self.illegal(direction, states, i, slot));
            }
        }
        Ok(step)
    }

    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|row| is_initial(&self.0, row)).collect()
    }

    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        self.0.has_exit().then(|| Slots(vec![self.0.n_moves(Direction::Forward) as u32; states.len()]))
    }
}

impl<R: VectorRules> DiscreteEnv for RulesEnv<R> {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        let n_moves = self.0.n_moves(direction);
        let has_exit = self.0.has_exit() && direction == Direction::Forward;
        let width = n_moves + usize::from(has_exit);
        let mut legal = vec![false; states.len() * width];
        for (legal, row) in legal.chunks_exact_mut(width.max(1)).zip(states.rows()) {
            self.0.mark(direction, row, &mut legal[..n_moves]);
            if has_exit {
                legal[n_moves] = self.0.can_end(row);
            }
        }
        let mut masks = Masks::from_rows(direction, states.len(), width, legal, has_exit);
        if let Some(rules) = self.0.batched() {
            let forward = |row: usize, slot: u32, at: usize| {
                if direction == Direction::Forward {
                    return Some(((row, slot), None));
                }
                let mut parent = states.row(row).to_vec();
                let redo = self.0.apply(direction, &mut parent, slot as usize)?;
                Some(((at, redo as u32), Some(parent)))
            };
            let batch = |parents: Vec<Vec<u16>>| VectorStates::from_vecs(states.width(), parents);
            restrict(rules, states, &mut masks, forward, batch);
        }
        masks
    }

    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        if row >= states.len() {
            return format!("there is no state {row}");
        }
        let row = states.row(row);
        let slot = slot as usize;
        let n_moves = self.0.n_moves(direction);
        if slot < n_moves {
            self.0.describe(direction, row, slot)
        } else if slot == n_moves && self.0.has_exit() && direction == Direction::Forward {
            format!("exit at {row:?}")
        } else {
            format!("there is no {direction} slot {slot} at {row:?}")
        }
    }
}

impl<R: VectorRules> EnumerableEnv for RulesEnv<R> {
    type Key = VectorKey;

    fn keys(&self, states: &VectorStates) -> Vec<VectorKey> {
        states.rows().map(VectorKey::from_slice).collect()
    }

    fn child_keys(&self, states: &VectorStates, rows: &[usize], slots: &Slots) -> Result<Vec<VectorKey>> {
        // The vector of the child is reused for all moves, because only the keys of the children are
        // returned.
        let mut child = vec![0; states.width()];
        let key_of = |(&row, &slot): (&usize, &u32)| {
            child.copy_from_slice(states.row(row));
            match self.0.apply(Direction::Forward, &mut child, slot as usize) {
                Some(_) => Ok(VectorKey::from_slice(&child)),
                None => Err(self.illegal(Direction::Forward, states, row, slot)),
            }
        };
        rows.iter().zip(&slots.0).map(key_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::VectorEnv;

    /// Rules whose states are words of at most three letters. A forward move appends the letter `slot + 1`.
    /// Masks are made by the default `mark`.
    struct Ones {
        has_exit: bool,
    }

    impl VectorRules for Ones {
        fn width(&self) -> usize {
            3
        }
        fn n_values(&self) -> usize {
            4
        }
        fn n_moves(&self, direction: Direction) -> usize {
            if direction == Direction::Forward { 3 } else { 1 }
        }
        fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
            let filled = row.iter().filter(|&&x| x > 0).count();
            match direction {
                Direction::Forward if slot < 3 && filled < 3 => {
                    row[filled] = slot as u16 + 1;
                    Some(0)
                }
                Direction::Backward if slot == 0 && filled > 0 => {
                    Some(usize::from(std::mem::take(&mut row[filled - 1]) - 1))
                }
                _ => None,
            }
        }
        fn has_exit(&self) -> bool {
            self.has_exit
        }
        fn can_end(&self, row: &[u16]) -> bool {
            row[2] > 0
        }
    }

    #[test]
    fn masks_are_the_legal_moves() {
        for has_exit in [false, true] {
            let env = VectorEnv::new(Ones { has_exit });
            let states = VectorStates::from_rows([[0, 0, 0], [1, 3, 0], [2, 2, 2]]);
            let exit = |legal: bool| has_exit.then_some(legal);
            let forward = env.masks(Direction::Forward, &states);
            for (row, (moves, end)) in [(true, false), (true, false), (false, true)].into_iter().enumerate() {
                let expected: Vec<bool> = [moves; 3].into_iter().chain(exit(end)).collect();
                assert_eq!(forward.row(row), expected);
            }
            assert_eq!(env.masks(Direction::Backward, &states).legal, [false, true, true]);
            assert_eq!(env.masks(Direction::Forward, &states.select(&[])).len(), 0);
            crate::contract::check_env(
                &env,
                crate::contract::Budget::thorough().with_walks(20),
                &mut Rng::seeded(0),
            )
            .unwrap();
        }
    }

    #[test]
    fn a_full_vector_ends_without_an_exit() {
        let env = VectorEnv::new(Ones { has_exit: false });
        let mut states = VectorStates::from_rows([[1, 0, 0], [1, 2, 0]]);
        let step = env.step(Direction::Forward, &mut states, &Slots(vec![1, 2])).unwrap();
        assert_eq!((step.done, states.values()), (vec![false, true], [1u16, 2, 0, 1, 2, 3].as_slice()));
        assert!(env.exit_actions(&states).is_none());
        let with_exit = VectorEnv::new(Ones { has_exit: true });
        assert_eq!(with_exit.exit_actions(&states), Some(Slots(vec![3, 3])));
        let step = with_exit.step(Direction::Forward, &mut states, &Slots(vec![0, 3])).unwrap();
        assert_eq!((step.exit, step.done), (vec![false, true], vec![false, true]));
    }

    #[test]
    fn errors_name_the_illegal_move() {
        let env = VectorEnv::new(Ones { has_exit: true });
        let step = |direction, slot| {
            env.step(direction, &mut VectorStates::from_rows([[1, 0, 0]]), &Slots(vec![slot]))
                .unwrap_err()
                .to_string()
        };
        assert!(step(Direction::Forward, 3).contains("exit at [1, 0, 0]"));
        assert!(step(Direction::Forward, 4).contains("there is no forward slot 4"));
        assert!(step(Direction::Backward, 1).contains("there is no backward slot 1"));
        let states = VectorStates::from_rows([[1, 1, 1]]);
        let error = env.child_keys(&states, &[0], &Slots(vec![2])).unwrap_err().to_string();
        assert!(error.contains("forward move 2 of [1, 1, 1]"), "{error}");
        let mut narrow = VectorStates::from_rows([[0, 0]]);
        assert!(matches!(
            env.step(Direction::Forward, &mut narrow, &Slots(vec![0])),
            Err(Error::Shape { .. })
        ));
    }

    #[test]
    fn keys_of_children_are_those_of_stepped_states() {
        let env = VectorEnv::new(Ones { has_exit: true });
        let states = VectorStates::from_rows([[0, 0, 0], [1, 3, 0]]);
        let rows = [0, 0, 1];
        let slots = Slots(vec![0, 2, 1]);
        let mut children = states.select(&rows);
        env.step(Direction::Forward, &mut children, &slots).unwrap();
        assert_eq!(env.child_keys(&states, &rows, &slots).unwrap(), env.keys(&children));
    }
}
