//! The law of tensor forms: the form of an environment whose states are a tensor agrees with the environment.

use tch::{Device, Kind, Tensor};

use crate::env::{Direction, EnumerableEnv, Reward, Rows, Slots, TensorForm, TensorReward, describe_state};
use crate::policy::UniformPolicy;
use crate::rollout::{Sampler, Trajectories};
use crate::tensor::{catch_tch, to_host};
use crate::{Error, Result, Rng};

/// The largest difference of two log-rewards that counts as rounding, relative to the larger of the
/// log-reward's absolute value and 1.
const TOLERANCE: f64 = 1e-9;

/// Checks that the tensor form of an environment agrees with the environment on all states of `n` random
/// trajectories: states survive the conversion in both directions; the legal slots, the states after moves,
/// the moves that undo them, all parents, the initial state and the ends of trajectories are equal. If
/// `reward` has a [tensor form](Reward::on_tensors), log-rewards must agree to 1e-9.
///
/// ```
/// use gfn::{Rng, contract::check_tensors, env::PerTensor};
/// use tch::{Kind, Tensor};
/// use gfn::examples::word_env;
/// let env = word_env(2, 3);
/// let reward = PerTensor(|states: &Tensor| Ok(states.sum_dim_intlist(1, false, Kind::Double)));
/// // These words have no tensor form.
/// assert!(check_tensors(&env, &reward, 10, &mut Rng::seeded(0)).is_err());
/// ```
///
/// # Errors
/// [`Error::Contract`] for the first difference, [`Error::Missing`] for an environment without a tensor form;
/// the errors of the environment and of the reward.
pub fn check_tensors<E: EnumerableEnv>(
    env: &E,
    reward: &dyn Reward<E::States>,
    n: usize,
    rng: &mut Rng,
) -> Result<()> {
    let missing = || {
        let remedy = "call `with_tensors` of the environment, or build it by `VectorEnv::from_tensors`";
        Error::missing("`check_tensors`", "an environment with a tensor form", remedy)
    };
    let form = env.tensor_form().ok_or_else(missing)?;
    let walks = Sampler::new(env, &UniformPolicy).forward(n, rng)?;
    let check = TensorCheck { env, form };
    check.check_moves(&walks)?;
    check.check_parents(walks.states())?;
    check.check_parents(walks.terminal_states())?;
    match reward.on_tensors() {
        Some(tensors) => check.check_reward(reward, tensors, walks.terminal_states()),
        None => Ok(()),
    }
}

/// The number of random trajectories on which a trainer checks the tensor form of its environment.
const QUICK_WALKS: usize = 4;
/// The number of steps after which a random trajectory is too long for this check.
const MAX_QUICK_STEPS: usize = 1_000;

/// Checks the tensor form of an environment on a few trajectories, as [`check_tensors`] does. An environment
/// without a tensor form passes.
pub(crate) fn check_tensor_form<E: EnumerableEnv>(env: &E) -> Result<()> {
    let Some(form) = env.tensor_form() else { return Ok(()) };
    let sampler = Sampler::new(env, &UniformPolicy).max_steps(MAX_QUICK_STEPS);
    let walks = match sampler.forward(QUICK_WALKS, &mut Rng::seeded(0)) {
        Err(Error::StepLimit { .. }) => return Ok(()),
        walks => walks?,
    };
    let check = TensorCheck { env, form };
    check.check_moves(&walks)?;
    check.check_parents(walks.terminal_states())
}

struct TensorCheck<'a, E: EnumerableEnv> {
    env: &'a E,
    form: &'a TensorForm<E::States>,
}

impl<E: EnumerableEnv> TensorCheck<'_, E> {
    fn tensor(&self, states: &E::States) -> Tensor {
        self.form.to_tensor(states, Device::Cpu)
    }

    /// Returns an error unless `got` equals `expected`. Each has one row per state.
    fn compare(&self, what: &str, states: &E::States, got: &Tensor, expected: &Tensor) -> Result<()> {
        if got.size() != expected.size() || got.kind() != expected.kind() {
            let found = format!(
                "{:?} {:?} instead of {:?} {:?}",
                got.kind(),
                got.size(),
                expected.kind(),
                expected.size()
            );
            return Err(broken(what, &found));
        }
        let n = states.len() as i64;
        if n == 0 {
            return Ok(());
        }
        let differs = got.ne_tensor(expected).view([n, -1]).any_dim(1, false);
        let differs = Vec::<bool>::try_from(differs)?;
        let Some(row) = differs.iter().position(|differs| *differs) else { return Ok(()) };
        let state = describe_state(self.env, states, row);
        let shown = |tensor: &Tensor| to_host(&tensor.get(row as i64).to_kind(Kind::Double).view(-1));
        let got = shown(got);
        let expected = shown(expected);
        Err(broken(what, &format!("{got:?} instead of {expected:?} in {state}")))
    }

    fn check_masks(&self, direction: Direction, states: &E::States) -> Result<()> {
        let masks = self.env.masks(direction, states).in_one_block();
        let width = self.form.n_slots(direction);
        if masks.legal.len() != states.len() * width {
            let found =
                format!("{width} slots of {} states instead of {} in all", states.len(), masks.legal.len());
            return Err(broken("the number of slots", &found));
        }
        let expected = Tensor::from_slice(&masks.legal).view([states.len() as i64, width as i64]);
        let what = format!("the legal {direction} slots");
        self.compare(&what, states, &self.form.masks(direction, &self.tensor(states)), &expected)
    }

    /// Checks conversions, masks, steps, reverse moves and ends along trajectories.
    fn check_moves(&self, walks: &Trajectories<E>) -> Result<()> {
        let tensors = self.form.env();
        let start = self.env.initial(&[0]);
        let initial = tensors.initial(1, Device::Cpu);
        self.compare("the initial state", &start, &initial, &self.tensor(&start))?;
        for states in [walks.states(), walks.terminal_states()] {
            let tensor = self.tensor(states);
            let again = self.tensor(&self.form.to_host(&tensor)?);
            self.compare("the states after a conversion to a tensor and back", states, &again, &tensor)?;
            self.check_masks(Direction::Forward, states)?;
            self.check_masks(Direction::Backward, states)?;
        }
        let inner: Vec<usize> = (0..walks.n_transitions()).filter(|&row| !walks.is_exit()[row]).collect();
        if inner.len() == walks.n_transitions() && tensors.has_exit() {
            return Err(broken("the exit", "`has_exit` is true, but the environment has no exit"));
        }
        let states = walks.states().select(&inner);
        let actions = walks.actions().select(&inner);
        let before = self.tensor(&states);
        let moves = moves(&actions);
        let mut after = states.clone();
        let step = self.env.step(Direction::Forward, &mut after, &actions)?;
        let got = tensors.step(Direction::Forward, &before, &moves);
        self.compare("the states after forward moves", &states, &got, &self.tensor(&after))?;
        let got = tensors.reverse(Direction::Forward, &before, &moves);
        self.compare("the moves that undo forward moves", &states, &got, &self::moves(&step.reverse))?;
        if !tensors.has_exit() {
            let ends = tensors.can_end(&self.tensor(&after));
            self.compare("the ends of trajectories", &after, &ends, &Tensor::from_slice(&step.done))?;
        }
        // Rows of finished trajectories get move 0, which must not fail.
        let ends = self.tensor(walks.terminal_states());
        let zeros = ends.select(1, 0).zeros_like();
        for direction in [Direction::Forward, Direction::Backward] {
            for rows in [&ends, &initial.expand_as(&ends)] {
                let call =
                    || Ok([tensors.step(direction, rows, &zeros), tensors.reverse(direction, rows, &zeros)]);
                let _ = catch_tch("move 0 of a tensor environment in a state without legal moves", call)?;
            }
        }
        match tensors.n_steps() {
            Some(n) if walks.offsets().windows(2).any(|ends| ends[1] - ends[0] != n) => Err(broken(
                "the number of actions of a trajectory",
                &format!("always {n}, as `n_steps` says"),
            )),
            _ => Ok(()),
        }
    }

    /// Checks all parents of states, and the forward moves that lead back from them.
    fn check_parents(&self, states: &E::States) -> Result<()> {
        let masks = self.env.masks(Direction::Backward, states);
        let mut rows = Vec::new();
        let mut slots = Vec::new();
        for row in 0..states.len() {
            for slot in masks.legal_slots(row) {
                rows.push(row);
                slots.push(slot);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let children = states.select(&rows);
        let slots = Slots(slots);
        let mut parents = children.clone();
        let step = self.env.step(Direction::Backward, &mut parents, &slots)?;
        let before = self.tensor(&children);
        let got = self.form.env().step(Direction::Backward, &before, &moves(&slots));
        self.compare("the parents", &children, &got, &self.tensor(&parents))?;
        let got = self.form.env().reverse(Direction::Backward, &before, &moves(&slots));
        self.compare("the forward moves from parents", &children, &got, &moves(&step.reverse))
    }

    fn check_reward(
        &self,
        reward: &dyn Reward<E::States>,
        tensors: &dyn TensorReward,
        objects: &E::States,
    ) -> Result<()> {
        let expected = reward.log_reward(objects, None)?;
        let got = tensors.log_rewards(&self.tensor(objects))?;
        if got.size() != [objects.len() as i64] || got.kind() != Kind::Double {
            let found = format!("{:?} of shape {:?} instead of f64 of shape [n]", got.kind(), got.size());
            return Err(broken("the log-rewards", &found));
        }
        for (row, (got, expected)) in to_host(&got).into_iter().zip(expected).enumerate() {
            let is_equal = got == expected || (got - expected).abs() <= TOLERANCE * expected.abs().max(1.0);
            if !is_equal {
                let state = describe_state(self.env, objects, row);
                return Err(broken("the log-reward", &format!("{got} instead of {expected} of {state}")));
            }
        }
        Ok(())
    }
}

fn moves(slots: &Slots) -> Tensor {
    Tensor::from_slice(&slots.0.iter().map(|&slot| i64::from(slot)).collect::<Vec<_>>())
}

fn broken(what: &str, found: &str) -> Error {
    Error::contract(
        "the tensor form of an environment agrees with the environment",
        format!("{what} of the tensor form: {found}"),
    )
}
