use tch::{Device, Tensor};

use crate::Result;
use crate::env::{Direction, Env, Rows};
use crate::policy::{Evaluation, Policy};
use crate::quantity::Quantities;
use crate::rollout::{
    DeviceStates, StateGroups, TensorForms, Trajectories, VisitedRows, group_states, tensor_forms,
};
use crate::tensor::{index_tensor, select_rows};

/// The visited states of a batch of trajectories, in groups of equal states.
///
/// Each row is a visited state. The first rows are the states before each transition. The terminal states of
/// trajectories without an exit action follow, because no transition starts in these states.
pub(in crate::objective) struct VisitedStates<'a, E: Env> {
    env: &'a E,
    states: VisitedRows<E::States>,
    /// The number of visited states.
    n_states: usize,
    pub(in crate::objective) groups: StateGroups<E::States>,
    /// The condition under which each state was visited, `[rows, C]`, with a row per visited state; `None`
    /// without conditions.
    pub(in crate::objective) conditions: Option<Tensor>,
    /// The number of transitions. The first `n_rows` visited states are the states before these transitions,
    /// and the others are terminal states.
    pub(in crate::objective) n_rows: usize,
    /// The indices of the transitions that aren't exits, and the index of the visited state after each of
    /// them.
    inner: (Vec<usize>, Vec<usize>),
    /// The index of each trajectory's terminal state among the visited states.
    pub(in crate::objective) terminal: Vec<usize>,
}

impl<'a, E: Env> VisitedStates<'a, E> {
    /// Collects the visited states. On the host, the policy evaluates equal states once. If environment and
    /// policy have forms on tensors, and the states or the parameters are on a device, every visited state is
    /// evaluated there, equal ones too.
    pub(in crate::objective) fn new(
        env: &'a E,
        policy: &dyn Policy<E>,
        trajectories: &Trajectories<E>,
    ) -> Self {
        let n_rows = trajectories.n_transitions();
        let next = trajectories.next_rows();
        let without_exit: Vec<usize> =
            (0..n_rows).filter(|&t| !trajectories.is_exit()[t]).filter_map(|t| next[t].err()).collect();
        let mut terminal: Vec<usize> = trajectories.offsets()[1..].iter().map(|end| end - 1).collect();
        for (k, &i) in without_exit.iter().enumerate() {
            terminal[i] = n_rows + k;
        }
        let conditions = row_conditions(trajectories, &without_exit);
        let n_states = n_rows + without_exit.len();
        let inner: Vec<usize> = (0..n_rows).filter(|&t| !trajectories.is_exit()[t]).collect();
        let after = inner.iter().map(|&t| next[t].unwrap_or_else(|i| terminal[i])).collect();
        let on_device = device_states(env, policy, trajectories, &without_exit);
        let (states, groups) = match on_device {
            Some(states) => (VisitedRows::OnDevice(states), StateGroups::identity(n_states)),
            None => {
                let mut states = trajectories.states().clone();
                if !without_exit.is_empty() {
                    states.append(trajectories.terminal_states().select(&without_exit));
                }
                let groups = group_states(env, &states, conditions.is_none());
                (VisitedRows::OnHost(states), groups)
            }
        };
        Self { env, states, n_states, groups, conditions, n_rows, inner: (inner, after), terminal }
    }

    /// Evaluates the policy in the first state of each group, on the device of the states.
    pub(in crate::objective) fn evaluate(
        &self,
        policy: &dyn Policy<E>,
        wants: Quantities,
    ) -> Result<Evaluation<E::Dist>> {
        let conditions = self.conditions.as_ref();
        let on_device = self.states.device().and_then(|kept| Some((kept, policy.on_tensors(&kept.form)?)));
        match on_device {
            Some((kept, policy)) => policy.evaluate_tensors(&kept.form, &kept.states, conditions, wants),
            None => policy.evaluate(self.env, self.distinct(), conditions, wants),
        }
    }

    /// Returns the first state of each group of equal states. The policy evaluates only these states.
    pub(in crate::objective) fn distinct(&self) -> &E::States {
        self.groups.distinct(self.states.host())
    }

    /// Returns the visited states with the indices `rows`, and the condition of each of them.
    pub(in crate::objective) fn at(&self, rows: &[usize]) -> (E::States, Option<Tensor>) {
        let conditions = self.conditions.as_ref().map(|c| select_rows(c, rows));
        (self.states.host().select(rows), conditions)
    }

    /// Returns the number of visited states.
    pub(in crate::objective) fn len(&self) -> usize {
        self.n_states
    }

    /// Returns the indices of the transitions that aren't exits, and the index of the visited state after
    /// each of them.
    pub(in crate::objective) fn inner(&self) -> (&[usize], &[usize]) {
        (&self.inner.0, &self.inner.1)
    }

    /// Returns the number of distinct states.
    pub(in crate::objective) fn n_distinct(&self) -> usize {
        self.groups.grouping.first.len()
    }

    /// Returns the group of the state before each transition. A group is an index into the distinct states.
    pub(in crate::objective) fn groups_before(&self) -> &[usize] {
        &self.groups.grouping.group_of[..self.n_rows]
    }

    /// Returns the group of each visited state with an index in `rows`. A group is an index into the distinct
    /// states.
    pub(in crate::objective) fn group_of(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.groups.grouping.group_of[row]).collect()
    }

    /// Renames actions. Action `i` belongs to the visited state with the index `rows[i]`. The action is
    /// renamed to the node labels of the first state of that state's group, because the policy evaluates only
    /// the first state.
    pub(in crate::objective) fn rename(
        &self,
        direction: Direction,
        rows: &[usize],
        actions: E::Actions,
    ) -> Result<E::Actions> {
        if self.states.device().is_some() {
            return Ok(actions);
        }
        self.groups.rename(self.env, direction, self.states.host(), rows, actions, false)
    }
}

/// Returns the states before all transitions, and then the terminal states with the indices `extra`, on the
/// device; `None` if the states and the policy's parameters are on the host, or if environment or policy
/// don't take states as a tensor. States on the host are copied to the device.
fn device_states<E: Env>(
    env: &E,
    policy: &dyn Policy<E>,
    trajectories: &Trajectories<E>,
    extra: &[usize],
) -> Option<DeviceStates<E::States>> {
    let kept = trajectories.states.device();
    if kept.is_none() && policy.parameters()?.device() == Device::Cpu {
        return None;
    }
    let TensorForms { form, device, .. } = tensor_forms(env, policy)?;
    let upload = |states: &E::States| form.to_tensor(states, device);
    let terminal =
        kept.map_or_else(|| upload(trajectories.terminal_states()), |kept| kept.terminal.to_device(device));
    let mut states = kept.map_or_else(|| upload(trajectories.states()), |kept| kept.states.to_device(device));
    if !extra.is_empty() {
        states = Tensor::cat(&[states, terminal.index_select(0, &index_tensor(extra, device))], 0);
    }
    Some(DeviceStates::new(form.clone(), states, terminal))
}

/// Returns the condition of each visited state, which is the condition of its trajectory. `extra` holds the
/// indices of the trajectories whose terminal states are appended after the states before the transitions.
fn row_conditions<E: Env>(trajectories: &Trajectories<E>, extra: &[usize]) -> Option<Tensor> {
    let conditions = trajectories.conditions()?;
    let mut owner = Vec::with_capacity(trajectories.n_transitions() + extra.len());
    for (i, ends) in trajectories.offsets().windows(2).enumerate() {
        owner.resize(ends[1], i);
    }
    owner.extend(extra);
    Some(select_rows(conditions, &owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::env::{VectorEnv, VectorRules};
    use crate::policy::UniformPolicy;
    use crate::rollout::Sampler;
    use crate::tensor::to_host;

    /// An environment whose state is a number that starts at 0. Each action adds 1 or 2, until the number is
    /// 2 or more. A trajectory has one or two steps, and no exit action.
    struct Sums;

    impl VectorRules for Sums {
        fn width(&self) -> usize {
            1
        }
        fn n_values(&self) -> usize {
            4
        }
        fn n_moves(&self, _: Direction) -> usize {
            2
        }
        fn apply(&self, direction: Direction, row: &mut [u16], slot: usize) -> Option<usize> {
            let by = slot as u16 + 1;
            row[0] = match direction {
                Direction::Forward if row[0] < 2 => row[0] + by,
                Direction::Backward => row[0].checked_sub(by).filter(|&before| before < 2)?,
                Direction::Forward => return None,
            };
            Some(slot)
        }
        fn has_exit(&self) -> bool {
            false
        }
        fn can_end(&self, row: &[u16]) -> bool {
            row[0] >= 2
        }
    }

    #[test]
    fn every_state_has_the_condition_of_its_trajectory() {
        let env = VectorEnv::new(Sums);
        let conditions = Tensor::from_slice(&[10f32, 20.0, 30.0, 40.0, 50.0, 60.0]).unsqueeze(1);
        let sampler = Sampler::new(&env, &UniformPolicy);
        let trajectories = sampler.forward_conditional(&conditions, &mut Rng::seeded(0)).unwrap();
        let visited = VisitedStates::new(&env, &UniformPolicy, &trajectories);
        let mut expected = Vec::new();
        for (i, ends) in trajectories.offsets().windows(2).enumerate() {
            expected.extend(std::iter::repeat_n(10.0 * (i + 1) as f64, ends[1] - ends[0]));
        }
        assert!(
            (7..12).contains(&expected.len()),
            "walks of one and of two steps: {} in all",
            expected.len()
        );
        // The terminal states are the last rows, because no transition starts in them.
        assert_eq!(visited.terminal, (expected.len()..expected.len() + 6).collect::<Vec<_>>());
        expected.extend([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(to_host(visited.conditions.as_ref().unwrap()), expected);
    }
}
