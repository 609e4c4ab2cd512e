//! The toy DAG of Bengio et al., *GFlowNet Foundations* (JMLR 2023), figure 2: 11 states that are easy to
//! inspect.

use gfn::Result;
use gfn::env::{Direction, Reward, VectorEnv, VectorRules, VectorStates};

use crate::rewards;

/// The 11 states of figure 2 of Bengio et al. (JMLR 2023), with the edges of `Toy` in
/// alexhernandezgarcia/gflownet.
///
/// ```text
/// s0 -> s1 s2    s1 -> s3    s2 -> s3 s4    s3 -> s5    s4 -> s6    s5 -> s7 s8
/// s6 -> s8 s10   s7 -> s9    s8 -> s9       trajectories can end in s3, s4, s6, s8, s9, s10
/// ```
///
/// Several paths lead to s3, s8 and s9. No trajectory can end in s0, s1, s2, s5 and s7.
///
/// * *States.* A state has one entry, its number. The input layer of a network is `KHot::new(1, 11)`.
/// * *Forward slots.* Slot 0 leads to the child with the lower number, slot 1 to the other child, and slot 2
///   exits.
/// * *Backward slots.* Slot 0 leads to the parent with the lower number, and slot 1 to the other parent.
///
/// ```
/// use gfn::env::{Direction, DiscreteEnv, Env, Slots};
/// use gfn_gym::toy_dag::ToyDag;
/// let env = ToyDag.env();
/// let mut states = env.initial(&[0]);
/// env.step(Direction::Forward, &mut states, &Slots(vec![1]))?;
/// assert_eq!(states.row(0), [2]);
/// let step = env.step(Direction::Forward, &mut states, &Slots(vec![0]))?;
/// assert_eq!((states.row(0), step.reverse.0[0]), ([3u16].as_slice(), 1));
/// assert_eq!(env.masks(Direction::Forward, &states).row(0), [true, false, true]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ToyDag;

/// The children of each state, ascending.
const CHILDREN: [&[u16]; 11] = [&[1, 2], &[3], &[3, 4], &[5], &[6], &[7, 8], &[8, 10], &[9], &[9], &[], &[]];

impl ToyDag {
    /// The number of states of the toy DAG.
    pub const N_STATES: usize = CHILDREN.len();

    /// The states that trajectories can end in, ascending.
    pub const TERMINATING: [u16; 6] = [3, 4, 6, 8, 9, 10];

    /// Returns the children of a state, ascending. The list is empty if the state doesn't exist.
    #[must_use]
    pub fn children(state: u16) -> &'static [u16] {
        CHILDREN.get(usize::from(state)).copied().unwrap_or(&[])
    }

    /// Returns the parents of a state, ascending.
    pub fn parents(state: u16) -> impl Iterator<Item = u16> {
        (0..Self::N_STATES as u16).filter(move |&parent| Self::children(parent).contains(&state))
    }

    /// Returns the [`VectorEnv`] whose rules `self` defines.
    #[must_use]
    pub fn env(&self) -> VectorEnv {
        VectorEnv::new(*self)
    }
}

impl VectorRules for ToyDag {
    fn width(&self) -> usize {
        1
    }
    fn n_values(&self) -> usize {
        Self::N_STATES
    }
    fn n_moves(&self, _: Direction) -> usize {
        2
    }
    fn can_end(&self, row: &[u16]) -> bool {
        Self::TERMINATING.contains(&row[0])
    }
    fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
        let here = row[0];
        let (there, reverse) = match direction {
            Direction::Forward => {
                let child = *Self::children(here).get(slot)?;
                (child, Self::parents(child).position(|parent| parent == here)?)
            }
            Direction::Backward => {
                let parent = Self::parents(here).nth(slot)?;
                (parent, Self::children(parent).iter().position(|&child| child == here)?)
            }
        };
        row[0] = there;
        Some(reverse)
    }
    fn describe(&self, direction: Direction, row: &[u16], slot: usize) -> String {
        match direction {
            Direction::Forward => {
                format!("go to child {slot} of s{}, which are {:?}", row[0], Self::children(row[0]))
            }
            Direction::Backward => {
                let parents: Vec<u16> = Self::parents(row[0]).collect();
                format!("go back to parent {slot} of s{}, which are {parents:?}", row[0])
            }
        }
    }
}

/// A reward that is a table with R of each terminating state: s3, s4, s6, s8, s9 and s10.
///
/// ```
/// use gfn_gym::toy_dag::ToyReward;
/// assert!((ToyReward::default().log_z() - 112f64.ln()).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToyReward([f64; 6]);

impl ToyReward {
    /// Builds the reward from R of the states s3, s4, s6, s8, s9 and s10, in this order.
    ///
    /// # Errors
    /// [`Error::Config`](gfn::Error::Config) unless all rewards are above 0 and finite.
    pub fn new(rewards: [f64; 6]) -> Result<Self> {
        for reward in rewards {
            rewards::positive("the reward of a state", reward)?;
        }
        Ok(Self(rewards))
    }

    /// Returns log Z, the log of the sum of the six rewards.
    #[must_use]
    pub fn log_z(&self) -> f64 {
        self.0.iter().sum::<f64>().ln()
    }
}

impl Default for ToyReward {
    /// Returns the rewards of alexhernandezgarcia/gflownet: 30, 14, 23, 10, 30 and 5 in the order of
    /// [`new`](Self::new). The sum of these rewards is 112.
    fn default() -> Self {
        Self([30.0, 14.0, 23.0, 10.0, 30.0, 5.0])
    }
}

impl Reward<VectorStates> for ToyReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&tch::Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, 1, |row| {
            let place = ToyDag::TERMINATING.iter().position(|&state| state == row[0])?;
            Some(self.0[place].ln())
        })
    }
}
