//! The laws of policies, checked on states of random walks.

use tch::Tensor;

use super::Budget;
use crate::condition::{ConditionSource, Conditions};
use crate::distribution::{Distribution, Exploration, check_alone, equal_up_to_rounding, logit_size};
use crate::env::{Direction, Env, Rows, draw_instances};
use crate::policy::{Evaluation, Policy};
use crate::quantity::{Quantities, Quantity};
use crate::rollout::{ReplayEnv, tensor_forms};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// States of random walks, and one action in each state.
struct StateActions<E: Env> {
    states: E::States,
    actions: E::Actions,
}

impl<E: ReplayEnv> StateActions<E> {
    fn len(&self) -> usize {
        self.states.len()
    }

    fn select(&self, rows: &[usize]) -> Self {
        Self { states: self.states.select(rows), actions: self.actions.select(rows) }
    }

    /// Returns at most `n` of the states, all different, with their actions.
    fn distinct_sample(&self, n: usize) -> Self {
        let distinct = self.states.group().first;
        let apart = distinct.len().div_ceil(n.max(1)).max(1);
        self.select(&distinct.into_iter().step_by(apart).collect::<Vec<_>>())
    }

    fn describe(&self, env: &E, row: usize) -> String {
        env.describe_state(&self.states, row).unwrap_or_else(|| format!("state {row} of random walks"))
    }
}

/// The check of one distribution of a policy, or of its log F.
struct PartCheck<'a, E> {
    env: &'a E,
    policy: &'a dyn Policy<E>,
    conditions: Option<&'a Tensor>,
    /// The part that is checked: P_F, P_B, the prior (the P_F that the objective is relative to) or log F.
    part: Quantity,
    /// The size of the policy's logits ([`logit_size`]), which determines how large a rounding error may be.
    size: f64,
}

impl<E: ReplayEnv> PartCheck<'_, E> {
    fn direction(&self) -> Direction {
        if self.part == Quantity::LogPb { Direction::Backward } else { Direction::Forward }
    }

    fn describe(&self) -> String {
        match self.part {
            Quantity::LogPrior => "of the prior".to_owned(),
            Quantity::LogFlow => "log F".to_owned(),
            _ => self.direction().to_string(),
        }
    }

    /// Returns the log-probability of each action, or log F of each state. All states are evaluated in one
    /// batch. State `i` of `sample` gets row `first + i` of the conditions.
    fn values(&self, sample: &StateActions<E>, first: usize) -> Result<Vec<f64>> {
        let conditions = self.conditions_of(sample, first)?;
        tch::no_grad(|| {
            let evaluation =
                self.policy.evaluate(self.env, &sample.states, conditions.as_ref(), self.part.into())?;
            self.values_of(evaluation, sample)
        })
    }

    fn conditions_of(&self, sample: &StateActions<E>, first: usize) -> Result<Option<Tensor>> {
        let narrow = |c: &Tensor| c.f_narrow(0, first as i64, sample.len() as i64);
        Ok(self.conditions.map(narrow).transpose()?)
    }

    /// Returns the checked part of an evaluation of the states of `sample`.
    fn values_of(&self, values: Evaluation<E::Dist>, sample: &StateActions<E>) -> Result<Vec<f64>> {
        let dist = match self.part {
            Quantity::LogPb => values.pb,
            Quantity::LogPrior => values.prior,
            Quantity::LogFlow => {
                let Some(log_flow) = values.values.get(Quantity::LogFlow) else {
                    return Ok(vec![0.0; sample.len()]);
                };
                if log_flow.numel() != sample.len() {
                    let remedy = "let `Policy::evaluate` return one log F for each state";
                    let expected = [sample.len() as i64];
                    return Err(Error::shape("log F of a policy", expected, log_flow.size(), remedy));
                }
                return without_nan("log F that the policy returns", to_host(log_flow));
            }
            _ => values.pf,
        };
        log_probs(dist, sample)
    }

    /// Checks that the policy's probabilities for a state depend neither on the other states of its batch nor
    /// on chance.
    fn check_independence(&self, sample: &StateActions<E>, together: &[f64]) -> Result<()> {
        let offsets: Vec<usize> = (0..=sample.len()).collect();
        let alone = |row: usize| self.values(&sample.select(&[row]), row);
        let words = |row: usize| format!("in {} ({})", sample.describe(self.env, row), self.describe());
        check_alone(&offsets, together, self.size, alone, words)
    }

    /// Checks that a state's probabilities don't change under other labels, if states that differ only in
    /// labels are one object.
    fn check_equivariance(&self, sample: &StateActions<E>, values: &[f64]) -> Result<()> {
        let symmetry = self.env.symmetry();
        let Some((both, classes)) = symmetry.relabelled(&sample.states, &mut Rng::seeded(0)) else {
            return Ok(());
        };
        let twins: Vec<usize> = (sample.len()..both.len()).collect();
        let actions = symmetry.translate(self.direction(), &both, &classes, &twins, &sample.actions, true)?;
        let renamed = StateActions { states: both.select(&twins), actions };
        let law = "up to isomorphism a policy is equivariant: relabelling a graph changes no probability \
            (the network must use neither the numbers nor the order of nodes, nor random numbers)";
        let words = |k| {
            let twin = format!("in the same state under other labels, {}", renamed.describe(self.env, k));
            (format!("in {}", sample.describe(self.env, k)), twin)
        };
        self.compare(law, values, &self.values(&renamed, 0)?, words)
    }

    /// Checks that `Policy::on_host`, which roll-outs use, returns the same log-probabilities as `evaluate`.
    fn check_host(&self, sample: &StateActions<E>, values: &[f64]) -> Result<()> {
        // `on_host` is used neither with conditions nor for a prior or log F, so nothing is checked in these
        // cases.
        if self.conditions.is_some() || matches!(self.part, Quantity::LogPrior | Quantity::LogFlow) {
            return Ok(());
        }
        let Some(on_host) = self.policy.on_host(self.direction()) else { return Ok(()) };
        let dist = on_host.distribution(self.env, &sample.states)?;
        let law = "a policy samples from the distribution that is trained: its form on the host \
            (`Policy::on_host`, `Torso::on_host`) returns the same log-probabilities as `evaluate`, up to \
            rounding";
        let words =
            |k| ("by `evaluate`".to_owned(), format!("by `on_host`, in {}", sample.describe(self.env, k)));
        self.compare(law, values, &log_probs(Some(dist), sample)?, words)
    }

    /// Checks that `Policy::on_tensors`, which roll-outs and scores on a device use, returns the same values
    /// as `evaluate`.
    fn check_tensors(&self, sample: &StateActions<E>, values: &[f64]) -> Result<()> {
        let Some(forms) = tensor_forms(self.env, self.policy) else { return Ok(()) };
        let conditions = self.conditions_of(sample, 0)?;
        let states = forms.form.to_tensor(&sample.states, forms.device);
        let others = tch::no_grad(|| {
            let wants = self.part.into();
            let evaluation =
                forms.policy.evaluate_tensors(forms.form, &states, conditions.as_ref(), wants)?;
            self.values_of(evaluation, sample)
        })?;
        let law = "`Policy::on_tensors` (of features, `StateFeatures::encode_tensor`) returns the same \
            values as `evaluate`, up to rounding";
        let words =
            |k| ("by `evaluate`".to_owned(), format!("by `on_tensors`, in {}", sample.describe(self.env, k)));
        self.compare(law, values, &others, words)
    }

    /// Returns an error if two log-probabilities differ by more than rounding. `words` returns, for the
    /// message, a description of the source of each of the two log-probabilities.
    fn compare(
        &self,
        law: &'static str,
        values: &[f64],
        others: &[f64],
        words: impl Fn(usize) -> (String, String),
    ) -> Result<()> {
        let differs = |k: &usize| !equal_up_to_rounding(values[*k], others[*k], self.size);
        let Some(k) = (0..values.len()).find(differs) else { return Ok(()) };
        let value = values[k];
        let other = others[k];
        let part = self.describe();
        let (here, there) = words(k);
        let detail = match self.part {
            Quantity::LogFlow => format!("log F of one state is {value} {here}, but {other} {there}"),
            _ => format!("the log-probability ({part}) of one action is {value} {here}, but {other} {there}"),
        };
        Err(Error::contract(law, detail))
    }
}

/// The number of steps that random walks to the checked states may make even if the budget allows fewer.
const MIN_STEPS: usize = 64;

/// Returns two samples of states from random walks: states with the forward actions taken in them, and states
/// with the backward actions that undo the steps that led to them.
fn random_states<E: ReplayEnv>(env: &E, budget: &Budget<'_>, rng: &mut Rng) -> Result<[StateActions<E>; 2]> {
    let uniform = env.uniform();
    let none = || StateActions::<E> { states: env.initial(&[]), actions: env.no_actions() };
    let [mut forward, mut backward] = [none(), none()];
    let mut states = env.initial(&draw_instances(env, budget.walks, rng));
    for _ in 0..budget.steps.max(MIN_STEPS) {
        if states.is_empty() {
            break;
        }
        let all: Vec<usize> = (0..states.len()).collect();
        let dist = tch::no_grad(|| uniform.evaluate(env, &states, None, Quantities::PF))?.pf;
        let missing = || {
            Error::missing(
                "a random walk",
                "a forward policy",
                "let the uniform policy of the environment (`uniform`) return P_F",
            )
        };
        let actions = dist.ok_or_else(missing)?.sample(&all, &Exploration::on_policy(), rng)?;
        forward.states.append(states.clone());
        forward.actions.append(actions.clone());
        let step = env.step(Direction::Forward, &mut states, &actions)?;
        let moved: Vec<usize> = all.iter().copied().filter(|&row| !step.exit[row]).collect();
        backward.states.append(states.select(&moved));
        backward.actions.append(step.reverse.select(&moved));
        let live: Vec<usize> = all.into_iter().filter(|&row| !step.done[row]).collect();
        states = states.select(&live);
    }
    if backward.len() > 0 {
        return Ok([forward.distinct_sample(budget.states), backward.distinct_sample(budget.states)]);
    }
    Err(Error::missing(
        "a trainer",
        "a move that is legal in the initial state, and the environment has none",
        "start from another state, such as a graph with more nodes, or add an action type that can be used \
         in the initial state",
    ))
}

/// Returns the log-probability of each action; 0 for each action if `dist` is `None`, because the policy
/// doesn't have this distribution.
///
/// # Errors
/// [`Error::NonFinite`] for a value that is NaN, because NaN can't be compared.
fn log_probs<E: ReplayEnv>(dist: Option<E::Dist>, sample: &StateActions<E>) -> Result<Vec<f64>> {
    let Some(dist) = dist else { return Ok(vec![0.0; sample.len()]) };
    let all: Vec<usize> = (0..sample.len()).collect();
    let values = to_host(&dist.log_prob(&all, &sample.actions)?);
    without_nan("log-probability that the policy returns", values)
}

/// Returns the values, or [`Error::NonFinite`] if one of them is NaN. `what` names a value.
fn without_nan(what: &'static str, values: Vec<f64>) -> Result<Vec<f64>> {
    let Some(row) = values.iter().position(|value| value.is_nan()) else { return Ok(values) };
    let remedy = "let the network return finite numbers for every state: look for a division by 0, a mean \
        over no nodes or a logarithm of 0";
    Err(Error::non_finite(what, row, values[row], remedy))
}

/// Checks the laws of a policy, and of its prior if it has one, in states of random walks. The probabilities
/// and log F of a state must not depend on other states of the batch. If states that differ only in labels
/// are one object, the policy must be equivariant. Roll-outs on the host must sample from the distribution
/// that is trained. Conditions are drawn from `conditions`.
///
/// Returns `false` without a check if there is no source of conditions and the policy can't be evaluated
/// without a condition ([`Error::Missing`] or [`Error::Shape`]). A trainer then checks the policy in its
/// first step.
///
/// ```
/// use gfn::{contract::{Budget, check_policy}, examples::Chain, policy::UniformPolicy, Rng};
/// assert!(check_policy(&Chain::new(9), &UniformPolicy, None, Budget::thorough(), &mut Rng::seeded(0))?);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] with the name of the law; [`Error::Missing`] for an environment without any move;
/// [`Error::NonFinite`] for log-probabilities that are NaN; errors of the environment and of the policy.
pub fn check_policy<E: ReplayEnv>(
    env: &E,
    policy: &dyn Policy<E>,
    conditions: Option<&dyn ConditionSource>,
    budget: Budget<'_>,
    rng: &mut Rng,
) -> Result<bool> {
    let [forward, backward] = random_states(env, &budget, rng)?;
    let n = forward.len().max(backward.len());
    let draw = |source: &dyn ConditionSource| Conditions::checked(source.draw(n, rng)?, n);
    let drawn = conditions.map(draw).transpose()?;
    let conditions = drawn.as_ref().map(|Conditions(tensor)| tensor);
    if conditions.is_none() {
        let evaluated = tch::no_grad(|| policy.evaluate(env, &env.initial(&[0]), None, Quantities::PF));
        if let Err(Error::Missing { .. } | Error::Shape { .. }) = evaluated {
            return Ok(false);
        }
    }
    for part in [Quantity::LogPf, Quantity::LogPb, Quantity::LogPrior, Quantity::LogFlow] {
        let sample = if part == Quantity::LogPb { &backward } else { &forward };
        if sample.len() == 0 {
            continue;
        }
        budget.call_watch()?;
        let mut check = PartCheck { env, policy: &env.uniform(), conditions: None, part, size: 0.0 };
        let uniform = check.values(sample, 0)?;
        check = PartCheck { policy, conditions, ..check };
        let values = check.values(sample, 0)?;
        if part == Quantity::LogFlow && values.iter().all(|&log_flow| log_flow == 0.0) {
            // The policy has no log F, or a log F of 0 that nothing has changed yet.
            continue;
        }
        check.size = logit_size(&values, &uniform);
        check.check_independence(sample, &values)?;
        check.check_equivariance(sample, &values)?;
        check.check_host(sample, &values)?;
        check.check_tensors(sample, &values)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::VectorEnv;
    use crate::examples::word_env;
    use crate::policy::{Evaluation, UniformPolicy};

    /// A policy that returns log F of fewer states than it receives. The number counts the missing states.
    struct ShortFlow(i64);

    impl Policy<VectorEnv> for ShortFlow {
        fn evaluate(
            &self,
            env: &VectorEnv,
            states: &<VectorEnv as Env>::States,
            conditions: Option<&Tensor>,
            wants: Quantities,
        ) -> Result<Evaluation<<VectorEnv as Env>::Dist>> {
            let mut out = UniformPolicy.evaluate(env, states, conditions, wants)?;
            let log_flow =
                Tensor::ones([states.len() as i64 - self.0], (tch::Kind::Double, tch::Device::Cpu));
            out.values.insert(Quantity::LogFlow, log_flow);
            Ok(out)
        }
    }

    #[test]
    fn log_flows_of_another_number_are_refused() {
        let check = |policy: ShortFlow| {
            check_policy(&word_env(2, 3), &policy, None, Budget::thorough(), &mut Rng::seeded(0))
        };
        assert!(check(ShortFlow(0)).unwrap());
        let error = check(ShortFlow(1)).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error:?}");
        assert!(error.to_string().contains("log F"), "{error}");
    }
}
