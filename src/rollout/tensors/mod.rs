//! Roll-outs whose states, masks, probabilities and actions stay on a device.

mod visited_rows;

pub(crate) use visited_rows::{DeviceStates, VisitedRows};

use tch::{Device, Kind, Tensor};

use super::Trajectories;
use crate::distribution::{Distribution, Exploration, NO_LEGAL_ACTION, NOT_FINITE};
use crate::env::{Direction, Env, Rows, TensorForm};
use crate::policy::{Policy, TensorPolicy};
use crate::quantity::Quantities;
use crate::tensor::{index_tensor, upload};
use crate::{Error, Result, Rng};

/// The number of steps after which a roll-out of unknown length waits for the device, to find out whether a
/// trajectory is unfinished.
const STEPS_PER_WAIT: usize = 8;

/// The forms of an environment and a policy that take states as a tensor.
pub(crate) struct TensorForms<'a, E: Env> {
    pub(crate) form: &'a TensorForm<E::States>,
    pub(crate) policy: &'a dyn TensorPolicy<E>,
    /// The device of the parameters.
    pub(crate) device: Device,
}

/// Returns the forms of environment and policy that take states as a tensor; `None` unless both have one.
pub(crate) fn tensor_forms<'a, E: Env>(env: &'a E, policy: &'a dyn Policy<E>) -> Option<TensorForms<'a, E>> {
    let form = env.tensor_form()?;
    Some(TensorForms { form, policy: policy.on_tensors(form)?, device: policy.parameters()?.device() })
}

/// The settings of a roll-out on a device.
pub(super) struct TensorRollout<'a, E: Env> {
    pub(super) forms: TensorForms<'a, E>,
    pub(super) direction: Direction,
    /// The number of steps after which the roll-out fails with an error.
    pub(super) max_steps: usize,
    pub(super) keep_states: bool,
    pub(super) exploration: Exploration,
    pub(super) conditions: Option<&'a Tensor>,
}

/// The steps of all trajectories so far. Each tensor has one row per trajectory. Rows of finished
/// trajectories are ignored.
#[derive(Default)]
struct Steps {
    /// The states before the transitions, in forward order; empty if states aren't kept.
    states: Vec<Tensor>,
    actions: Vec<Tensor>,
    reverse: Vec<Tensor>,
    is_exit: Vec<Tensor>,
    /// `true` for each trajectory that made the step.
    is_live: Vec<Tensor>,
}

/// The states of all trajectories, and the flags of a roll-out, on the device.
struct Progress {
    states: Tensor,
    /// `true` for each unfinished trajectory, `[n]`.
    live: Tensor,
    /// The fault of the state that each trajectory reached ([`Distribution::sample_tensor`]), `[n]` (i64); 0
    /// without a fault.
    fault: Tensor,
}

impl<E: Env> TensorRollout<'_, E> {
    /// Runs trajectories from the states `start`, `[n, width]`, and returns them in forward order. The
    /// uniform numbers for all actions come from `rng`, so a seed gives one result on every device, up to
    /// rounding.
    pub(super) fn run(&self, start: Tensor, rng: &mut Rng) -> Result<Trajectories<E>> {
        let n = start.size()[0];
        if n == 0 {
            let expected = "at least one trajectory, each with at least one step";
            return Err(Error::config("the batch of trajectories", "0 trajectories", expected));
        }
        let mut steps = Steps::default();
        let flags = (Kind::Bool, self.forms.device);
        let mut progress = Progress {
            states: start.shallow_clone(),
            live: Tensor::ones([n], flags),
            fault: Tensor::zeros([n], (Kind::Int64, self.forms.device)),
        };
        if self.direction == Direction::Backward {
            self.begin_backward(&mut steps, &mut progress, &start);
        }
        let exits = steps.actions.len();
        let known = self.forms.form.env().n_steps().map(|known| known.saturating_sub(exits));
        let mut made = 0;
        loop {
            let mut per_wait = STEPS_PER_WAIT;
            match known {
                Some(_) if made > 0 => break,
                Some(known) => per_wait = known,
                None => {
                    let live = progress.live.sum(Kind::Int64).int64_value(&[]);
                    if live == 0 {
                        break;
                    }
                    if made == self.max_steps {
                        return Err(self.step_limit(live as usize, n as usize));
                    }
                }
            }
            let per_wait = per_wait.min(self.max_steps - made);
            // All random numbers until the next wait cross to the device together.
            let draws: Vec<f64> = (0..per_wait * n as usize).map(|_| rng.uniform()).collect();
            let draws = upload(&draws, self.forms.device).view([per_wait as i64, n]);
            for draws in draws.unbind(0) {
                self.step(&mut steps, &mut progress, &draws)?;
            }
            made += per_wait;
            if per_wait == 0 {
                break;
            }
        }
        let terminal = match self.direction {
            Direction::Forward => &progress.states,
            Direction::Backward => &start,
        };
        self.finish(&steps, &progress, terminal)
    }

    /// Adds the exit that ends each object of a backward roll-out, if the environment has an exit.
    fn begin_backward(&self, steps: &mut Steps, progress: &mut Progress, objects: &Tensor) {
        let n = objects.size()[0];
        if let Some(exit) = self.forms.form.exit_slot(Direction::Forward) {
            let slots = Tensor::full([n], exit, (Kind::Int64, self.forms.device));
            if self.keep_states {
                steps.states.push(objects.shallow_clone());
            }
            steps.actions.push(slots.shallow_clone());
            steps.reverse.push(slots);
            steps.is_exit.push(progress.live.shallow_clone());
            steps.is_live.push(progress.live.shallow_clone());
        }
        progress.live = self.forms.form.env().legal(Direction::Backward, objects).any_dim(1, false);
    }

    /// Makes one step of all unfinished trajectories.
    fn step(&self, steps: &mut Steps, progress: &mut Progress, draws: &Tensor) -> Result<()> {
        let env = self.forms.form.env();
        let (wants, direction) = match self.direction {
            Direction::Forward => (Quantities::PF, Direction::Forward),
            Direction::Backward => (Quantities::PB, Direction::Backward),
        };
        let evaluation =
            self.forms.policy.evaluate_tensors(self.forms.form, &progress.states, self.conditions, wants)?;
        let dist = match direction {
            Direction::Forward => evaluation.pf,
            Direction::Backward => evaluation.pb,
        };
        let missing = || {
            let remedy = "use a policy that has it, such as `UniformPolicy`";
            Error::missing("the sampler", "the distribution of a roll-out on a device", remedy)
        };
        let dist = dist.ok_or_else(missing)?;
        let (slots, fault) = dist.sample_tensor(&self.exploration, draws)?;
        // A trajectory without a valid action stays where it is, because a move of slot 0 may lead to a state
        // that doesn't exist.
        let was_live = progress.live.shallow_clone();
        let live = was_live.logical_and(&fault.eq(0));
        progress.fault = &progress.fault + fault * &was_live;
        let is_exit = match self.forms.form.exit_slot(direction) {
            Some(exit) => slots.eq(exit).logical_and(&live),
            None => live.zeros_like(),
        };
        // Trajectories that have ended, or end now by the exit, make move 0, whose result is ignored.
        let moves_on = live.logical_and(&is_exit.logical_not());
        let moves = slots.where_scalarother(&moves_on, 0);
        let reverse = env.reverse(direction, &progress.states, &moves);
        let next = env.step(direction, &progress.states, &moves);
        let next = next.where_self(&moves_on.unsqueeze(1), &progress.states);
        let has_ended = match direction {
            Direction::Forward if env.has_exit() => is_exit.shallow_clone(),
            Direction::Forward => env.can_end(&next),
            Direction::Backward => env.legal(Direction::Backward, &next).any_dim(1, false).logical_not(),
        };
        let (before, actions, reverse) = match direction {
            Direction::Forward => (progress.states.shallow_clone(), slots, reverse),
            // A backward step is stored as the forward transition that it undoes, which starts in the parent.
            Direction::Backward => (next.shallow_clone(), reverse, slots),
        };
        if self.keep_states {
            steps.states.push(before);
        }
        steps.actions.push(actions);
        steps.reverse.push(reverse);
        steps.is_exit.push(is_exit);
        progress.live = live.logical_and(&has_ended.logical_not());
        steps.is_live.push(live);
        progress.states = next;
        Ok(())
    }

    /// Sorts the steps by trajectory, in forward order, and returns the trajectories.
    fn finish(&self, steps: &Steps, progress: &Progress, terminal: &Tensor) -> Result<Trajectories<E>> {
        let n = terminal.size()[0] as usize;
        let form = self.forms.form;
        let reached_start = match self.direction {
            Direction::Forward => progress.live.logical_not(),
            Direction::Backward => {
                let start = form.env().initial(n as i64, self.forms.device);
                progress.states.eq_tensor(&start).all_dim(1, false)
            }
        };
        let stacked = if self.keep_states { Tensor::cat(&steps.states, 0) } else { terminal.shallow_clone() };
        let is_wrong = form.is_wrong(&stacked).logical_or(&form.is_wrong(terminal));
        // Everything that the host needs crosses in one copy: the flags, actions and reverse actions of all
        // steps, the flags and terminal states of all trajectories, and a flag for wrong states.
        let parts = [&steps.is_live, &steps.is_exit, &steps.actions, &steps.reverse];
        let mut flat: Vec<Tensor> = parts.iter().map(|part| Tensor::stack(part, 0)).collect();
        flat.extend(
            [&progress.live, &progress.fault, &reached_start, terminal, &is_wrong].map(Tensor::shallow_clone),
        );
        let flat: Vec<Tensor> = flat.iter().map(|part| part.to_kind(Kind::Int64).reshape([-1])).collect();
        let values = Vec::<i64>::try_from(Tensor::cat(&flat, 0).to_device(Device::Cpu))?;
        let size = steps.is_live.len() * n;
        let (rows, ends) = values.split_at(4 * size);
        let (flags, ends) = ends.split_at(3 * n);
        self.check_flags(flags, n)?;
        if ends.last() != Some(&0) {
            form.check(&stacked)?;
            form.check(terminal)?;
        }
        let objects = Tensor::from_slice(&ends[..ends.len() - 1]).view([n as i64, -1]);
        let objects = form.to_host_unchecked(&objects);
        let mut offsets = vec![0];
        let mut order = Vec::new();
        for i in 0..n {
            let made = (0..steps.is_live.len()).map(|step| step * n + i).filter(|&row| rows[row] != 0);
            order.extend(made);
            let start = offsets[i];
            if self.direction == Direction::Backward {
                order[start..].reverse();
            }
            offsets.push(order.len());
        }
        if offsets.windows(2).any(|ends| ends[0] == ends[1]) {
            let found = "a trajectory without a step";
            let expected = "at least one trajectory, each with at least one step";
            return Err(Error::config("the batch of trajectories", found, expected));
        }
        let actions = |part: usize| {
            let slots = order.iter().map(|&row| rows[part * size + row] as u32).collect();
            E::Dist::slots_as_actions(slots).ok_or_else(|| {
                let remedy = "give only environments whose actions are slots a tensor form";
                Error::missing("a roll-out on a device", "actions that are slots", remedy)
            })
        };
        let states = if self.keep_states {
            let states = stacked.index_select(0, &index_tensor(&order, self.forms.device));
            let terminal = terminal.shallow_clone();
            VisitedRows::OnDevice(DeviceStates::new(form.clone(), states, terminal))
        } else {
            VisitedRows::OnHost(objects.select(&[]))
        };
        Ok(Trajectories {
            states,
            actions: actions(2)?,
            reverse: actions(3)?,
            exit: order.iter().map(|&row| rows[size + row] != 0).collect(),
            offsets,
            terminal: objects,
            conditions: None,
            log_rewards: None,
        })
    }

    /// Returns an error if a trajectory met a state in which no action could be sampled, or if it is
    /// unfinished. `flags` has three numbers per trajectory: 1 if it is unfinished, its fault, and 1 if it
    /// ends where trajectories of this direction end.
    fn check_flags(&self, flags: &[i64], n: usize) -> Result<()> {
        let (live, others) = flags.split_at(n);
        let (faults, has_ended) = others.split_at(n);
        if let Some(row) = faults.iter().position(|&fault| fault == NO_LEGAL_ACTION) {
            return Err(Error::NoLegalAction { row, direction: self.direction });
        }
        if let Some(row) = faults.iter().position(|&fault| fault == NOT_FINITE) {
            let remedy =
                "lower the learning rate, clip gradients (`max_norm`), or check the inputs of the network";
            return Err(Error::non_finite("logit", row, f64::NAN, remedy));
        }
        let n_live = live.iter().filter(|&&live| live != 0).count();
        let known = self.forms.form.env().n_steps().filter(|&known| known <= self.max_steps);
        match known {
            _ if n_live == 0 => {}
            None => return Err(self.step_limit(n_live, n)),
            Some(known) => {
                let found = format!("it is {known}, but then {n_live} of {n} trajectories are unfinished");
                let law =
                    "`TensorEnv::n_steps` is the number of actions of every trajectory, including the exit";
                return Err(Error::contract(law, found));
            }
        }
        if let Some(row) = has_ended.iter().position(|&has_ended| has_ended == 0) {
            return Err(Error::NoLegalAction { row, direction: self.direction });
        }
        Ok(())
    }

    fn step_limit(&self, live: usize, n: usize) -> Error {
        Error::StepLimit { direction: self.direction, limit: self.max_steps, live, n }
    }
}

#[cfg(test)]
mod tests;
