use tch::{Device, Tensor};

use super::run::Rollout;
use super::state_groups::group_states;
use super::tensors::{TensorForms, TensorRollout, tensor_forms};
use super::{RolloutPlace, Trajectories, Walks};
use crate::condition::Conditions;
use crate::distribution::{Distribution, Exploration};
use crate::env::{Direction, Env, HostPolicy, Rows, check_instances, draw_instances};
use crate::policy::{Policy, evaluate_direction};
use crate::tensor::{select_rows, to_device};
use crate::{Error, Result, Rng, runtime};

/// The default maximum number of steps of a trajectory.
const DEFAULT_MAX_STEPS: usize = 100_000;

/// Samples trajectories of an environment from a policy.
///
/// On the host, the policy evaluates only the states of unfinished trajectories in each step. If the policy
/// has parameters and there are no conditions, equal states are evaluated once per step. A roll-out on a
/// device ([`RolloutPlace`]) evaluates the states of all trajectories in each step. The same seed gives the
/// same trajectories, bit for bit, with any number of rayon threads.
///
/// ```
/// use gfn::{Rng, examples::Chain, policy::UniformPolicy, rollout::Sampler};
/// let env = Chain::new(3);
/// let trajectories = Sampler::new(&env, &UniformPolicy).forward(8, &mut Rng::seeded(0))?;
/// assert_eq!(trajectories.len(), 8);
/// let back =
///     Sampler::new(&env, &UniformPolicy).backward(trajectories.terminal_states(), &mut Rng::seeded(1))?;
/// assert_eq!(back.terminal_states(), trajectories.terminal_states());
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Sampler<'a, E: Env> {
    pub(super) env: &'a E,
    pub(super) policy: &'a dyn Policy<E>,
    exploration: Exploration,
    pub(super) max_steps: usize,
    place: RolloutPlace,
}

impl<E: Env> std::fmt::Debug for Sampler<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Sampler");
        out.field("exploration", &self.exploration)
            .field("max_steps", &self.max_steps)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl<'a, E: Env> Sampler<'a, E> {
    /// Creates a sampler without exploration, whose trajectories have at most 100,000 steps.
    #[must_use]
    pub fn new(env: &'a E, policy: &'a dyn Policy<E>) -> Self {
        runtime::prepare();
        let exploration = Exploration::on_policy();
        Self { env, policy, exploration, max_steps: DEFAULT_MAX_STEPS, place: RolloutPlace::default() }
    }

    /// Sets the exploration of forward sampling. Backward sampling never explores. Exploration changes the
    /// probabilities with which actions are sampled, but not the training target. The default is
    /// [`Exploration::on_policy`].
    #[must_use]
    pub fn exploration(mut self, exploration: Exploration) -> Self {
        self.exploration = exploration;
        self
    }

    /// Sets the maximum number of steps of a trajectory. A longer trajectory causes
    /// [`Error::StepLimit`](crate::Error::StepLimit). The default is 100,000.
    #[must_use]
    pub fn max_steps(mut self, max_steps: usize) -> Self {
        self.max_steps = max_steps;
        self
    }

    /// Sets the place where roll-outs evaluate the policy. The default, [`RolloutPlace::Measured`], is the
    /// copy of the policy on the host if there is one: only a trainer measures times.
    #[must_use]
    pub fn place(mut self, place: RolloutPlace) -> Self {
        self.place = place;
        self
    }

    /// Samples `n` trajectories from the initial state. If the environment has several
    /// [instances](Env::n_instances), each trajectory starts in an instance that is drawn uniformly.
    ///
    /// # Errors
    /// [`Error::StepLimit`](crate::Error::StepLimit), [`Error::NoLegalAction`](crate::Error::NoLegalAction),
    /// [`Error::NonFinite`](crate::Error::NonFinite), and the errors of the policy; [`Error::Missing`] if the
    /// policy must be evaluated on the host ([`RolloutPlace::Host`]) and has no copy there.
    pub fn forward(&self, n: usize, rng: &mut Rng) -> Result<Trajectories<E>> {
        self.forward_from(&draw_instances(self.env, n, rng), None, rng)
    }

    /// Samples one trajectory in each of these instances of the environment. `conditions` has a row for each
    /// trajectory, `[n, C]`; `None` without conditions.
    ///
    /// # Errors
    /// The errors of [`forward_conditional`](Self::forward_conditional);
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an instance that the environment doesn't have.
    pub fn forward_in(
        &self,
        instances: &[u32],
        conditions: Option<&Tensor>,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        check_instances(self.env, instances)?;
        self.forward_from(instances, conditions, rng)
    }

    /// Samples a trajectory for each row of `conditions`, `[n, C]`.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward); [`Error::Shape`](crate::Error::Shape) if `conditions` has
    /// another shape.
    pub fn forward_conditional(&self, conditions: &Tensor, rng: &mut Rng) -> Result<Trajectories<E>> {
        let n = conditions.size().first().copied().unwrap_or(1) as usize;
        self.forward_from(&draw_instances(self.env, n, rng), Some(conditions), rng)
    }

    fn forward_from(
        &self,
        instances: &[u32],
        conditions: Option<&Tensor>,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        self.rollout(Direction::Forward, self.env.initial(instances), conditions, true, rng)
    }

    /// Samples `n` trajectories from the initial state, and returns only their actions and terminal states
    /// ([`Walks`]). This method needs less time and memory than [`forward`](Self::forward).
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn walks(&self, n: usize, rng: &mut Rng) -> Result<Walks<E>> {
        self.walks_from(&draw_instances(self.env, n, rng), None, rng)
    }

    /// Samples a trajectory for each row of `conditions`, `[n, C]`, and returns only the actions and terminal
    /// states.
    ///
    /// # Errors
    /// The errors of [`forward_conditional`](Self::forward_conditional).
    pub fn walks_conditional(&self, conditions: &Tensor, rng: &mut Rng) -> Result<Walks<E>> {
        let n = conditions.size().first().copied().unwrap_or(1) as usize;
        self.walks_from(&draw_instances(self.env, n, rng), Some(conditions), rng)
    }

    fn walks_from(&self, instances: &[u32], conditions: Option<&Tensor>, rng: &mut Rng) -> Result<Walks<E>> {
        let Trajectories { actions, offsets, terminal, conditions, .. } =
            self.rollout(Direction::Forward, self.env.initial(instances), conditions, false, rng)?;
        Ok(Walks { actions, offsets, terminal, conditions })
    }

    /// Samples a backward trajectory from each of these finished objects with P_B, without exploration. The
    /// returned trajectories are in forward order.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn backward(&self, terminal: &E::States, rng: &mut Rng) -> Result<Trajectories<E>> {
        check_instances(self.env, &self.env.instances(terminal))?;
        self.rollout(Direction::Backward, terminal.clone(), None, true, rng)
    }

    /// Samples backward trajectories as [`backward`](Self::backward) does, under conditions. `conditions` has
    /// one row for each object, `[n, C]`.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward); [`Error::Shape`](crate::Error::Shape) if `conditions` has
    /// another shape.
    pub fn backward_conditional(
        &self,
        terminal: &E::States,
        conditions: &Tensor,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        check_instances(self.env, &self.env.instances(terminal))?;
        self.rollout(Direction::Backward, terminal.clone(), Some(conditions), true, rng)
    }

    fn rollout(
        &self,
        direction: Direction,
        start: E::States,
        conditions: Option<&Tensor>,
        keep_states: bool,
        rng: &mut Rng,
    ) -> Result<Trajectories<E>> {
        let checked = conditions.map(|c| Conditions::checked(c.shallow_clone(), start.len())).transpose()?;
        let exploration = match direction {
            Direction::Forward => self.exploration,
            Direction::Backward => Exploration::on_policy(),
        };
        let on_host = self.on_host(direction, conditions.is_some())?;
        if let Some(forms) = self.tensor_forms(on_host.is_some()) {
            let max_steps = self.max_steps;
            // States from outside are checked on the host, because a device would report a wrong index only
            // by ending the process.
            let start = forms.form.to_tensor(&start, Device::Cpu);
            forms.form.check(&start)?;
            let start = to_device(&start, forms.device);
            let rollout = TensorRollout { forms, direction, max_steps, keep_states, exploration, conditions };
            let sampled = tch::no_grad(|| rollout.run(start, rng))?;
            return Ok(Trajectories { conditions: checked, ..sampled });
        }
        let rollout = Rollout { direction, max_steps: self.max_steps, keep_states };
        // Equal states are evaluated once, unless they may have different conditions, or the policy has no
        // parameters. Such a policy is evaluated so fast that finding equal states would save no time.
        let merges = conditions.is_none() && self.policy.parameters().is_some();
        // Sampling needs no gradients, because training evaluates the sampled states again.
        let sampled = tch::no_grad(|| {
            rollout.run(self.env, start, |states, live, _| {
                let groups = group_states(self.env, states, merges);
                let dist = match &on_host {
                    Some(on_host) => on_host.distribution(self.env, groups.distinct(states))?,
                    None => self.evaluate(direction, groups.distinct(states), live, conditions)?,
                };
                let actions = dist.sample(&groups.grouping.group_of, &exploration, rng)?;
                let rows: Vec<usize> = (0..states.len()).collect();
                groups.rename(self.env, direction, states, &rows, actions, true)
            })
        })?;
        Ok(Trajectories { conditions: checked, ..sampled })
    }

    /// Returns the forms of environment and policy for a roll-out on a device; `None` if the roll-out steps
    /// states on the host.
    fn tensor_forms(&self, has_host_copy: bool) -> Option<TensorForms<'a, E>> {
        let device = self.policy.parameters()?.device();
        let is_chosen = match self.place {
            RolloutPlace::Device => true,
            RolloutPlace::Host => false,
            RolloutPlace::Measured => !has_host_copy && device != Device::Cpu,
        };
        if is_chosen { tensor_forms(self.env, self.policy) } else { None }
    }

    /// Returns the copy of the policy that a roll-out evaluates; `None` if the roll-out evaluates the policy
    /// itself.
    fn on_host(
        &self,
        direction: Direction,
        has_conditions: bool,
    ) -> Result<Option<Box<dyn HostPolicy<E> + 'a>>> {
        let may_copy = self.place != RolloutPlace::Device && !has_conditions;
        let copy = if may_copy { self.policy.on_host(direction) } else { None };
        let is_learned = self.policy.parameters().is_some();
        if copy.is_none() && is_learned && (self.place, direction) == (RolloutPlace::Host, Direction::Forward)
        {
            let missing = "a copy of the policy on the host, which tables and policies in double precision, \
                with conditions or with custom tensor layers don't have";
            let remedy = "choose `RolloutPlace::Measured` or `RolloutPlace::Device`";
            return Err(Error::missing("a roll-out on the host", missing, remedy));
        }
        Ok(copy)
    }

    /// Evaluates P_F or P_B of each state, depending on the direction. `live[i]` is the row of `conditions`
    /// for state `i`.
    pub(super) fn evaluate(
        &self,
        direction: Direction,
        states: &E::States,
        live: &[usize],
        conditions: Option<&Tensor>,
    ) -> Result<E::Dist> {
        let conditions = conditions.map(|c| select_rows(c, live));
        evaluate_direction(self.policy, self.env, states, conditions.as_ref(), direction, "the sampler")
    }
}
