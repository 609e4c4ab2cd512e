use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Masks, Rows, Slots, Step, VectorStates};
use gfn::{Error, Result};

/// The integer points `0..height` in `ndim` dimensions, reached from the origin one step along one axis at a time; any point can
/// be finished.
///
/// Forward slots: `0..ndim` raise that coordinate by one, `ndim` exits. Backward slots: `0..ndim` lower that coordinate. Keys
/// are indices in lexicographic order, the last coordinate fastest: `sum x_d height^(ndim - 1 - d)`.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, EnumerableEnv, Slots};
/// use gfn_gym::hypergrid::HyperGrid;
/// let env = HyperGrid::new(2, 8)?;
/// let mut states = env.initial(1);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// assert_eq!((states.row(0), env.keys(&states)), ([0u16, 1].as_slice(), vec![1]));
/// assert_eq!(env.masks(Direction::Backward, &states).row(0), [false, true]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyperGrid {
    ndim: usize,
    height: u32,
    n_states: u64,
}

impl HyperGrid {
    /// A grid of `ndim` dimensions, `height` points along each.
    ///
    /// # Errors
    /// [`Error::Config`] for no dimension, a height outside `2..=65536`, or so many points that `height^ndim` passes `u64`.
    pub fn new(ndim: usize, height: usize) -> Result<Self> {
        let refuse = |setting, got: String, expected| Err(Error::Config { setting, got, expected });
        if ndim == 0 {
            return refuse("ndim", "0".into(), "at least 1 dimension");
        }
        let height = match u32::try_from(height) {
            Ok(h) if (2..=1 << 16).contains(&h) => h,
            _ => return refuse("height", height.to_string(), "2 to 65,536 points along each dimension"),
        };
        let n_states = u32::try_from(ndim).ok().and_then(|d| u64::from(height).checked_pow(d));
        let Some(n_states) = n_states else {
            let got = format!("{height} points along each of {ndim} dimensions");
            return refuse("the size of the grid", got, "height^ndim below 2^64, so that every point has an index");
        };
        Ok(Self { ndim, height, n_states })
    }

    /// The number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The number of points along each dimension.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height as usize
    }

    /// The number of states, `height^ndim`.
    #[must_use]
    pub fn n_states(&self) -> u64 {
        self.n_states
    }

    /// The points of these keys.
    ///
    /// # Errors
    /// [`Error::Config`] for a key that no point has.
    pub fn states_of(&self, keys: impl IntoIterator<Item = u64>) -> Result<VectorStates> {
        let mut coordinates = Vec::new();
        for key in keys {
            if key >= self.n_states {
                return Err(Error::Config {
                    setting: "a grid point's key",
                    got: key.to_string(),
                    expected: "a number below `n_states()`",
                });
            }
            let start = coordinates.len();
            coordinates.resize(start + self.ndim, 0);
            let mut rest = key;
            for x in coordinates[start..].iter_mut().rev() {
                *x = (rest % u64::from(self.height)) as u16;
                rest /= u64::from(self.height);
            }
        }
        VectorStates::from_flat(self.ndim, coordinates)
    }

    /// Whether a point has as many coordinates as the grid has dimensions, each below the height.
    #[must_use]
    pub fn contains(&self, point: &[u16]) -> bool {
        point.len() == self.ndim && point.iter().all(|&x| u32::from(x) < self.height)
    }

    /// The key of one point of the grid.
    pub(super) fn key_of(&self, point: &[u16]) -> u64 {
        point.iter().fold(0, |key, &x| key * u64::from(self.height) + u64::from(x))
    }

    /// The largest coordinate.
    fn top(&self) -> u16 {
        (self.height - 1) as u16
    }

    fn illegal(&self, row: usize, direction: Direction, states: &VectorStates, slot: u32) -> Error {
        let masks = self.masks(direction, &states.select(&[row]));
        Error::IllegalAction {
            row,
            direction,
            slot: slot as usize,
            n_slots: masks.row(0).len(),
            n_legal: masks.n_legal(0),
            detail: self.describe(direction, states, row, slot),
        }
    }
}

impl Env for HyperGrid {
    type States = VectorStates;
    type Actions = Slots;

    fn initial(&self, n: usize) -> VectorStates {
        VectorStates::filled(self.ndim, n, 0)
    }

    fn step(&self, direction: Direction, states: &mut VectorStates, actions: &Slots) -> Result<Step<Slots>> {
        if states.len() != actions.len() {
            return Err(Error::Shape {
                what: "actions".into(),
                expected: vec![states.len() as i64],
                got: vec![actions.len() as i64],
                remedy: "give one action per state",
            });
        }
        let (ndim, top) = (self.ndim, self.top());
        let n = actions.len();
        let mut step = Step { reverse: Slots(vec![0; n]), exit: vec![false; n], done: vec![false; n] };
        let mut illegal = None;
        for (i, (row, &slot)) in states.values_mut().chunks_exact_mut(ndim).zip(&actions.0).enumerate() {
            let d = slot as usize;
            step.reverse.0[i] = slot;
            match direction {
                Direction::Forward if d == ndim => {
                    (step.reverse.0[i], step.exit[i], step.done[i]) = (0, true, true);
                }
                Direction::Forward if d < ndim && row[d] < top => row[d] += 1,
                Direction::Backward if d < ndim && row[d] > 0 => {
                    row[d] -= 1;
                    step.done[i] = row.iter().all(|&x| x == 0);
                }
                _ => {
                    illegal = Some((i, slot));
                    break;
                }
            }
        }
        match illegal {
            None => Ok(step),
            Some((row, slot)) => Err(self.illegal(row, direction, states, slot)),
        }
    }

    fn is_initial(&self, states: &VectorStates) -> Vec<bool> {
        states.rows().map(|row| row.iter().all(|&x| x == 0)).collect()
    }

    fn exit_actions(&self, states: &VectorStates) -> Option<Slots> {
        Some(Slots(vec![self.ndim as u32; states.len()]))
    }
}

impl DiscreteEnv for HyperGrid {
    fn masks(&self, direction: Direction, states: &VectorStates) -> Masks {
        let top = self.top();
        let (width, legal) = match direction {
            Direction::Forward => {
                let mut legal = vec![true; states.len() * (self.ndim + 1)];
                for (mask, row) in legal.chunks_exact_mut(self.ndim + 1).zip(states.rows()) {
                    mask.iter_mut().zip(row).for_each(|(legal, &x)| *legal = x < top);
                }
                (self.ndim + 1, legal)
            }
            Direction::Backward => (self.ndim, states.values().iter().map(|&x| x > 0).collect()),
        };
        Masks::of_rows(direction, states.len(), width, legal, direction == Direction::Forward)
    }

    fn describe(&self, direction: Direction, states: &VectorStates, row: usize, slot: u32) -> String {
        if row >= states.len() {
            return format!("there is no state {row}");
        }
        let at = states.row(row);
        match direction {
            Direction::Forward if slot as usize == self.ndim => format!("exit at {at:?}"),
            _ if slot as usize >= self.ndim => format!("there is no dimension {slot} at {at:?}"),
            Direction::Forward => format!("raise coordinate {slot} of {at:?}, at most {}", self.top()),
            Direction::Backward => format!("lower coordinate {slot} of {at:?}"),
        }
    }
}

impl EnumerableEnv for HyperGrid {
    type Key = u64;

    fn keys(&self, states: &VectorStates) -> Vec<u64> {
        states.rows().map(|row| self.key_of(row)).collect()
    }

    fn child_keys(&self, states: &VectorStates, rows: &[usize], slots: &Slots) -> Result<Vec<u64>> {
        let keys = self.keys(states);
        let mut stride = vec![1u64; self.ndim];
        for d in (1..self.ndim).rev() {
            stride[d - 1] = stride[d] * u64::from(self.height);
        }
        let child = |(&row, &slot): (&usize, &u32)| match stride.get(slot as usize) {
            Some(stride) if states.row(row)[slot as usize] < self.top() => Ok(keys[row] + stride),
            _ => Err(self.illegal(row, Direction::Forward, states, slot)),
        };
        rows.iter().zip(&slots.0).map(child).collect()
    }
}

#[cfg(test)]
mod tests {
    use gfn::Rng;
    use gfn::policy::UniformPolicy;
    use gfn::rollout::Sampler;

    use super::*;

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (ndim, height, setting) in [
            (0, 8, "ndim"),
            (2, 1, "height"),
            (2, 65_537, "height"),
            (22, 8, "the size of the grid"),
            (64, 2, "the size of the grid"),
            (usize::MAX, 2, "the size of the grid"),
        ] {
            let message = HyperGrid::new(ndim, height).unwrap_err().to_string();
            assert!(message.starts_with(setting), "{message}");
        }
        assert_eq!(HyperGrid::new(63, 2).unwrap().n_states(), 1 << 63);
    }

    #[test]
    fn keys_and_states_are_inverse() {
        let env = HyperGrid::new(3, 5).unwrap();
        let states = env.states_of(0..env.n_states()).unwrap();
        assert_eq!(env.keys(&states), (0..125).collect::<Vec<u64>>());
        assert_eq!(states.row(7), [0, 1, 2]);
        assert!(env.states_of([125]).unwrap_err().to_string().contains("125"));
        let tall = HyperGrid::new(1, 65_536).unwrap();
        assert_eq!(tall.states_of([65_535]).unwrap().row(0), [65_535]);
    }

    /// Every legal move of every state and its reverse restore the state, and every other slot is refused.
    #[test]
    fn a_step_and_its_reverse_are_the_identity() {
        let env = HyperGrid::new(2, 4).unwrap();
        let states = env.states_of(0..16).unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            let masks = env.masks(direction, &states);
            for row in 0..16 {
                for slot in 0..4u32 {
                    let before = states.select(&[row]);
                    let mut state = before.clone();
                    let result = env.step(direction, &mut state, &Slots(vec![slot]));
                    if masks.row(row).get(slot as usize) != Some(&true) {
                        let message = result.unwrap_err().to_string();
                        assert!(
                            message.contains("not legal") && message.contains(&format!("{direction}")),
                            "{message}"
                        );
                        continue;
                    }
                    let step = result.unwrap();
                    assert_eq!(step.exit[0], direction == Direction::Forward && slot == 2);
                    if !step.exit[0] {
                        assert_ne!(state, before);
                        env.step(direction.opposite(), &mut state, &step.reverse).unwrap();
                    }
                    assert_eq!(state, before);
                }
            }
        }
        assert_eq!(env.masks(Direction::Backward, &env.initial(1)).n_legal(0), 0);
    }

    #[test]
    fn walks_go_both_ways() {
        let env = HyperGrid::new(3, 4).unwrap();
        let sampler = Sampler::new(&env, &UniformPolicy);
        let walked = sampler.forward(50, &mut Rng::seeded(0)).unwrap();
        let back = sampler.backward(walked.terminal_states(), &mut Rng::seeded(1)).unwrap();
        assert_eq!(back.terminal_states(), walked.terminal_states());
        for (i, ends) in back.offsets().windows(2).enumerate() {
            // One step per unit of each coordinate, and the exit.
            let length: usize = back.terminal_states().row(i).iter().map(|&x| usize::from(x)).sum();
            assert_eq!(ends[1] - ends[0], length + 1);
        }
    }

    #[test]
    fn a_wrong_number_of_actions_is_refused() {
        let env = HyperGrid::new(2, 4).unwrap();
        let error = env.step(Direction::Forward, &mut env.initial(2), &Slots(vec![0])).unwrap_err();
        assert!(error.to_string().contains("one action per state"));
    }
}
