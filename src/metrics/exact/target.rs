//! The target distribution R(x) / Z over the states in which trajectories can end.

use tch::Tensor;

use super::alike::of_list;
use super::evaluate::repeated;
use crate::env::{CHUNK, EnumerableEnv, Reward, Rows, StateGraph, log_rewards};
use crate::group::Shares;
use crate::metrics::Evaluator;
use crate::tensor::log_sum_exp;
use crate::{Error, Result};

/// The target distribution of a reward, by state index.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// R(x) / Z; 0 for states in which no trajectory ends. Up to isomorphism each class counts once; states that are one object
    /// ([`Env::forms`](crate::env::Env::forms)) have equal shares of R.
    pub probs: Vec<f64>,
    /// log R(x) of each state, as the reward says it of the object; minus infinity where no trajectory ends.
    pub log_rewards: Vec<f64>,
    /// log Z, the log of the sum of the rewards of all objects.
    pub log_z: f64,
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// The target distribution of a reward; `conditions` is one vector `[C]`. [`Evaluator::target_distribution`] shares the work.
    ///
    /// It uses the raw reward: up to isomorphism R counts once per class, not multiplied by |Aut|, and once per object, however many
    /// states that has.
    ///
    /// # Errors
    /// Those of [`log_rewards`].
    pub fn target_distribution<R: Reward<E::States> + ?Sized>(
        &self,
        reward: &R,
        conditions: Option<&Tensor>,
    ) -> Result<Target> {
        target(self, Shares::of(None), reward, conditions)
    }

    /// The target distribution of log-rewards that were asked for before: one for each of [`ends`](Self::ends).
    ///
    /// ```
    /// use gfn::{env::StateGraph, testing::Triangles};
    /// let graph = StateGraph::build(&Triangles::new(), 100)?;
    /// let target = graph.target_of(&vec![1.0; graph.ends().len()])?;
    /// assert!((target.log_z - 1.0 - (graph.ends().len() as f64).ln()).abs() < 1e-12);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of them.
    pub fn target_of(&self, log_rewards: &[f64]) -> Result<Target> {
        let ends = self.ends();
        if ends.len() != log_rewards.len() {
            let remedy = "give one for each state in which trajectories can end (`StateGraph::ends`)";
            return Err(Error::shape("log-rewards", [ends.len() as i64], [log_rewards.len() as i64], remedy));
        }
        let mut values = vec![f64::NEG_INFINITY; self.len()];
        ends.iter().zip(log_rewards).for_each(|(&state, &value)| values[state] = value);
        let shares = self.log_shares(&values);
        let log_z = log_sum_exp(shares.iter().copied());
        let probs = shares.iter().map(|share| (share - log_z).exp()).collect();
        Ok(Target { probs, log_rewards: values, log_z })
    }
}

impl<E: EnumerableEnv> Evaluator<'_, E> {
    /// Same as [`StateGraph::target_distribution`]. Each member asks the reward about its share of the objects.
    ///
    /// # Errors
    /// As there; [`Error::Contract`](crate::Error::Contract) for members that don't evaluate the same, and those of the group.
    pub fn target_distribution<R: Reward<E::States> + ?Sized>(
        &self,
        graph: &StateGraph<E>,
        reward: &R,
        conditions: Option<&Tensor>,
    ) -> Result<Target> {
        self.shares.check_alike(|| Ok(of_list("target distribution", graph, conditions)))?;
        target(graph, self.shares, reward, conditions)
    }
}

fn target<E: EnumerableEnv, R: Reward<E::States> + ?Sized>(
    graph: &StateGraph<E>,
    shares: Shares<'_>,
    reward: &R,
    conditions: Option<&Tensor>,
) -> Result<Target> {
    let ends = graph.ends();
    let of_ends = shares.figures(ends.len(), |range| {
        let mut out = Vec::with_capacity(range.len());
        for ends in ends[range].chunks(CHUNK) {
            let conditions = repeated(conditions, ends.len());
            out.extend(log_rewards(reward, &graph.states().select(ends), conditions.as_ref())?);
        }
        Ok(out)
    })?;
    graph.target_of(&of_ends)
}
