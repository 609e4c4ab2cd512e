use std::cell::RefCell;

use tch::Tensor;

use super::super::mean_weights;
use crate::quantity::{Per, Quantity, Values, flat};
use crate::tensor::{fetch_all, from_host, segment_ids, segment_sum, select_rows, to_host};
use crate::{Error, Result};

/// The quantities of a batch from which objectives compute their loss. A row is a transition. The rows of a
/// trajectory are adjacent.
///
/// The transitions of a trajectory of k transitions start in the states `s_0 .. s_{k-1}`, one per row. Its
/// last transition is the exit action, whose P_B is 1; in an environment without exit action the last
/// transition leads to the terminal state. In both cases the flow after the last transition is the reward.
///
/// Quantities that all scores have are fields. [`need`](Self::need) returns the quantities that an objective
/// requested ([`Objective::needs`](crate::objective::Objective::needs)):
///
/// ```
/// use gfn::objective::Scores;
/// use gfn::objective::Quantity;
/// use tch::Tensor;
/// // One trajectory of one transition and an exit.
/// let log = |p: &[f64]| Tensor::from_slice(p).log();
/// let mut scores = Scores::new(vec![0, 2], log(&[0.5, 0.25]), log(&[1.0, 1.0]), log(&[1.0]));
/// scores.set(Quantity::LogFlow, log(&[8.0, 4.0]))?;
/// let next = scores.behind(scores.need(Quantity::LogFlow, "this example")?, &scores.log_reward);
/// assert_eq!(next.exp().double_value(&[0]).round(), 4.0);
/// assert_eq!(next.exp().double_value(&[1]).round(), 1.0);
/// assert!(scores.set(Quantity::LogZ, log(&[1.0, 1.0])).is_err(), "one number per trajectory");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Scores {
    /// The index of the first transition of each trajectory, followed by the number of transitions, `[n + 1]`
    /// for n trajectories.
    pub offsets: Vec<usize>,
    /// The indices of the transitions that aren't exits, in ascending order.
    pub inner: Vec<usize>,
    /// log P_F of each transition, `[transitions]`.
    pub log_pf: Tensor,
    /// log P_B of each transition, `[transitions]`; 0 for exits.
    pub log_pb: Tensor,
    /// log R of each trajectory's terminal state, `[n]`, with the symmetry correction if the environment
    /// needs it. If several terminal states are the same object, R is divided by their number.
    pub log_reward: Tensor,
    /// log R of each trajectory's object, `[n]`, without the corrections of `log_reward`. Objectives relative
    /// to a prior use this log R, because the prior's probabilities already contain these corrections. Like
    /// `log_reward` it is multiplied by the [exponent of R in this
    /// step](crate::train::TrainerConfig::reward_exponent).
    pub raw_log_reward: Tensor,
    /// The condition of each trajectory, `[n, C]`; `None` without conditions.
    pub conditions: Option<Tensor>,
    /// The instance of the environment to which all trajectories belong; `None` if they belong to several
    /// instances.
    pub instance: Option<u32>,
    /// The quantities before the first update on this batch, without gradient, for an objective that makes
    /// several updates per batch; otherwise, and in the first update, `None`.
    pub old: Option<Values>,
    /// The number of distinct states, which the policy evaluated, and the number of visited states.
    pub distinct: (usize, usize),
    /// A flag per transition, `[transitions]`, for the scores of [single
    /// transitions](crate::objective::score_transitions): `true` for a transition that was added only because
    /// objectives need the flow of the state in which it starts. `None` for the scores of whole trajectories.
    pub(crate) ahead: Option<Vec<bool>>,
    /// All quantities that aren't stored in a separate field.
    values: Values,
}

impl Scores {
    /// Returns the number of trajectories.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the number of transitions of all trajectories.
    pub(crate) fn n_transitions(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Returns `true` if there is no trajectory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Creates scores from the index of each trajectory's first transition (followed by the number of
    /// transitions), log-probabilities, `[transitions]`, and log-rewards, `[n]`. The last transition of each
    /// trajectory counts as its exit.
    #[must_use]
    pub fn new(offsets: Vec<usize>, log_pf: Tensor, log_pb: Tensor, log_reward: Tensor) -> Self {
        let n = offsets.last().copied().unwrap_or(0);
        Self {
            inner: offsets.windows(2).flat_map(|ends| ends[0]..ends[1].saturating_sub(1)).collect(),
            offsets,
            log_pf,
            log_pb,
            raw_log_reward: log_reward.shallow_clone(),
            log_reward,
            conditions: None,
            instance: Some(0),
            old: None,
            distinct: (n, n),
            ahead: None,
            values: Values::default(),
        }
    }

    /// Returns the tensor of a quantity; `None` if the scores don't have the quantity.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<&Tensor> {
        match quantity {
            Quantity::LogPf => Some(&self.log_pf),
            Quantity::LogPb | Quantity::LearnedLogPb => Some(&self.log_pb),
            Quantity::LogReward => Some(&self.log_reward),
            Quantity::RawLogReward => Some(&self.raw_log_reward),
            _ => self.values.get(quantity),
        }
    }

    /// Returns the tensor of a quantity that an objective requires. `needed_by` names the objective in the
    /// error.
    ///
    /// # Errors
    /// [`Error::Missing`] for scores without the quantity. The error names the objective, the quantity and
    /// the setting that provides the quantity.
    pub fn need(&self, quantity: Quantity, needed_by: &'static str) -> Result<&Tensor> {
        self.get(quantity).ok_or_else(|| quantity.missing(needed_by))
    }

    /// Sets a quantity, and replaces an earlier value.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the tensor is a flat list with one number for each item ([`Quantity::per`]).
    pub fn set(&mut self, quantity: Quantity, tensor: Tensor) -> Result<()> {
        let n = match quantity.per() {
            Per::Transition => self.n_transitions(),
            Per::InnerTransition => self.inner.len(),
            Per::Trajectory => self.len(),
            Per::BalancedState | Per::LegalAction => tensor.numel(),
        };
        let tensor = flat(quantity, tensor, n)?;
        match quantity {
            Quantity::LogPf => self.log_pf = tensor,
            Quantity::LogPb | Quantity::LearnedLogPb => self.log_pb = tensor,
            Quantity::LogReward => self.log_reward = tensor,
            Quantity::RawLogReward => self.raw_log_reward = tensor,
            _ => self.values.insert(quantity, tensor),
        }
        Ok(())
    }

    /// Sets all quantities of `values`.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set). Quantities that were set before the error stay set.
    pub fn set_all(&mut self, values: Values) -> Result<()> {
        values.into_iter().try_for_each(|(quantity, tensor)| self.set(quantity, tensor))
    }

    /// Removes a quantity and returns its tensor; `None` if the scores don't have the quantity.
    /// Log-probabilities and rewards can't be removed.
    pub fn remove(&mut self, quantity: Quantity) -> Option<Tensor> {
        self.values.remove(quantity)
    }

    /// Iterates over all quantities of these scores, including the quantities stored in fields.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Quantity, &Tensor)> {
        let always = [
            (Quantity::LogPf, &self.log_pf),
            (Quantity::LogPb, &self.log_pb),
            (Quantity::LogReward, &self.log_reward),
            (Quantity::RawLogReward, &self.raw_log_reward),
        ];
        always.into_iter().chain(self.values.iter())
    }

    /// Concatenates the scores of several batches to the scores of one batch. `make` converts each
    /// concatenated tensor before it is stored.
    ///
    /// # Errors
    /// [`Error::Missing`] if `parts` is empty.
    pub(crate) fn concatenate(parts: &[Self], make: impl Fn(Quantity, Tensor) -> Tensor) -> Result<Self> {
        let Some(first) = parts.first() else {
            return Err(Error::missing(
                "joining the scores of a batch",
                "a trajectory",
                "give a batch of at least one trajectory",
            ));
        };
        let mut offsets = vec![0];
        let mut inner = Vec::new();
        for part in parts {
            let start = offsets[offsets.len() - 1];
            inner.extend(part.inner.iter().map(|row| start + row));
            offsets.extend(part.offsets[1..].iter().map(|offset| start + offset));
        }
        let [log_pf, log_pb, log_reward] =
            [&first.log_pf, &first.log_pb, &first.log_reward].map(Tensor::shallow_clone);
        let mut joined = Self { inner, ..Self::new(offsets, log_pf, log_pb, log_reward) };
        for (quantity, _) in first.all() {
            let tensors: Vec<&Tensor> = parts.iter().filter_map(|part| part.get(quantity)).collect();
            joined.set(quantity, make(quantity, Tensor::cat(&tensors, 0)))?;
        }
        let conditions: Option<Vec<&Tensor>> = parts.iter().map(|part| part.conditions.as_ref()).collect();
        joined.conditions = conditions.map(|conditions| Tensor::cat(&conditions, 0));
        joined.instance = first.instance.filter(|_| parts.iter().all(|part| part.instance == first.instance));
        joined.distinct = parts.iter().fold((0, 0), |sum, s| (sum.0 + s.distinct.0, sum.1 + s.distinct.1));
        Ok(joined)
    }

    /// Returns the weight of each transition's residual, `[transitions]`. The weights are equal and sum to 1.
    /// For scores of [single transitions](crate::objective::score_transitions) each transition that was added
    /// only because it starts in the state to which a scored transition leads has weight 0.
    pub fn mean_weights(&self, of_transitions: &Tensor) -> Tensor {
        let Some(ahead) = &self.ahead else { return mean_weights(of_transitions) };
        let counted: Vec<f64> = ahead.iter().map(|&ahead| if ahead { 0.0 } else { 1.0 }).collect();
        let total = counted.iter().sum::<f64>().max(1.0);
        from_host(&counted, of_transitions.kind(), of_transitions.device()) / total
    }

    /// Returns the sum of a quantity over the transitions of each trajectory, `[n]`.
    pub fn sums(&self, of_transitions: &Tensor) -> Tensor {
        segment_sum(of_transitions, &segment_ids(&self.offsets, self.log_pf.device()), self.len())
    }

    /// Returns the value after each transition, `[transitions]`: the value of `of_transitions` at the next
    /// transition, or, after a trajectory's last transition, the trajectory's value of `last`, `[n]`. If
    /// `of_transitions` is log F and `last` is log R, the result is the log flow of the state after each
    /// transition.
    pub fn behind(&self, of_transitions: &Tensor, last: &Tensor) -> Tensor {
        let rows = of_transitions.size()[0] as usize;
        let all = Tensor::cat(&[of_transitions.shallow_clone(), last.shallow_clone()], 0);
        let mut next: Vec<usize> = (1..=rows).collect();
        for (i, end) in self.offsets[1..].iter().enumerate() {
            next[end - 1] = rows + i;
        }
        select_rows(&all, &next)
    }

    /// Returns the log importance weight `beta log R + sum log prior - sum log P_F` of each trajectory, for
    /// the posterior proportional to prior times R^beta.
    /// [`importance_log_z`](crate::metrics::importance_log_z) estimates log Z from these weights.
    ///
    /// # Errors
    /// [`Error::Missing`] for scores without [`Quantity::LogPrior`].
    pub fn relative_log_weights(&self, beta: f64) -> Result<Vec<f64>> {
        self.need(Quantity::LogPrior, "an importance weight relative to a prior")?;
        Ok(self.log_weights(beta))
    }

    /// Returns the log importance weight `log R + sum log P_B - sum log P_F` of each trajectory.
    /// [`importance_log_z`](crate::metrics::importance_log_z) estimates log Z from these weights. If the
    /// scores have a prior, the weights are [relative](Self::relative_log_weights) to the prior, with R to
    /// the power `beta`; without a prior `beta` has no effect.
    #[must_use]
    pub fn log_weights(&self, beta: f64) -> Vec<f64> {
        let (reference, log_reward, beta) = match self.get(Quantity::LogPrior) {
            Some(prior) => (prior, &self.raw_log_reward, beta),
            None => (&self.log_pb, &self.log_reward, 1.0),
        };
        let [reference, log_pf, log_reward] = [reference, &self.log_pf, log_reward].map(to_host);
        let ratio = |ends: &[usize]| (ends[0]..ends[1]).map(|row| reference[row] - log_pf[row]).sum::<f64>();
        self.offsets.windows(2).zip(log_reward).map(|(ends, r)| beta * r + ratio(ends)).collect()
    }

    /// Returns detached copies of all quantities through which a loss is differentiated. An objective with
    /// several updates per batch compares the later updates with these values of the first update.
    pub(crate) fn to_old(&self) -> Values {
        let differentiated = self.all().filter(|(quantity, _)| quantity.is_differentiated());
        differentiated.map(|(quantity, tensor)| (quantity, tensor.detach())).collect()
    }

    /// Returns a copy of the scores without gradients, which shares memory with these scores.
    pub(crate) fn detached(&self) -> Self {
        self.map(Tensor::detach)
    }

    /// Returns the scores without gradients and on the host. Scores on a device are copied together.
    pub(crate) fn on_host(&self) -> Self {
        let all = RefCell::new(Vec::new());
        let _ = self.map(|tensor| {
            all.borrow_mut().push(tensor.detach());
            tensor.shallow_clone()
        });
        let fetched = RefCell::new(fetch_all(&all.into_inner().iter().collect::<Vec<_>>()).into_iter());
        self.map(|tensor| fetched.borrow_mut().next().unwrap_or_else(|| tensor.detach()))
    }

    /// Returns a copy that shares memory and gradients with these scores.
    pub(crate) fn shallow_clone(&self) -> Self {
        self.map(Tensor::shallow_clone)
    }

    /// Returns a copy of the scores in which P_B has no gradient.
    pub(crate) fn with_constant_log_pb(&self) -> Self {
        Self { log_pb: self.log_pb.detach(), ..self.shallow_clone() }
    }

    /// Returns a copy of the scores in which P_F and P_B have no gradient. `log_pf` replaces log P_F.
    pub(crate) fn with_constant_policies(&self, log_pf: &Tensor) -> Self {
        Self { log_pf: log_pf.detach(), ..self.with_constant_log_pb() }
    }

    /// Returns a copy of the scores, with `f` applied to each tensor except the conditions.
    fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Self {
        let each = |values: &Values| values.iter().map(|(quantity, tensor)| (quantity, f(tensor))).collect();
        Self {
            offsets: self.offsets.clone(),
            inner: self.inner.clone(),
            log_pf: f(&self.log_pf),
            log_pb: f(&self.log_pb),
            log_reward: f(&self.log_reward),
            raw_log_reward: f(&self.raw_log_reward),
            conditions: self.conditions.as_ref().map(Tensor::shallow_clone),
            instance: self.instance,
            old: self.old.as_ref().map(each),
            distinct: self.distinct,
            ahead: self.ahead.clone(),
            values: each(&self.values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that concatenated scores have an instance only if all concatenated batches have the same
    /// instance.
    #[test]
    fn joined_scores_have_an_instance_only_if_all_parts_share_it() {
        let part = |instance| {
            let tensor = || Tensor::from_slice(&[1.0]);
            Scores { instance, ..Scores::new(vec![0, 1], tensor(), tensor(), tensor()) }
        };
        let common = |parts: [Option<u32>; 2]| {
            Scores::concatenate(&parts.map(part), |_, tensor| tensor).unwrap().instance
        };
        assert_eq!(common([Some(1), Some(1)]), Some(1));
        assert_eq!([common([Some(1), Some(0)]), common([Some(1), None]), common([None, None])], [None; 3]);
    }
}
