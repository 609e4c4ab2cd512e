//! Thompson sampling: every trajectory follows a head of its own, and every head learns from a share of the batch.

use crate::env::Env;
use crate::policy::{MultiHead, Policy};
use crate::rollout::{Container, Trajectories};
use crate::{Error, Result, Rng};

/// The heads of a policy, and the share of a batch that each learns from.
pub(in crate::train) struct Thompson {
    /// Probability that a head learns from a trajectory.
    share: f64,
    n_heads: usize,
}

impl Thompson {
    /// # Errors
    /// [`Error::Config`] for a policy with one head, and unless `0 < share <= 1`.
    pub(in crate::train) fn new<E: Env>(policy: &dyn Policy<E>, share: f64) -> Result<Self> {
        let n_heads = policy.heads().map_or(1, MultiHead::n_heads);
        if n_heads < 2 {
            let expected = "a policy with at least 2 heads of P_F (`MlpPolicyConfig::heads`; a policy that wraps another one must forward its heads)";
            return Err(Error::config("the heads of Thompson sampling", n_heads, expected));
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::config("the share of a batch that a head learns from", share, "0 < share <= 1"));
        }
        Ok(Self { share, n_heads })
    }

    pub(in crate::train) fn n_heads(&self) -> usize {
        self.n_heads
    }

    /// The trajectories of a batch that each head learns from, drawn trajectory by trajectory, so that what a head costs to evaluate has no
    /// say. A head whose share is smaller than `least`, too small to learn anything from, learns from all.
    pub(in crate::train) fn shares<E: Env>(
        &self,
        batch: &Trajectories<E>,
        least: usize,
        rng: &mut Rng,
    ) -> Result<Vec<Trajectories<E>>> {
        let mut rows = vec![Vec::new(); self.n_heads];
        for row in 0..batch.len() {
            rows.iter_mut().for_each(|rows| rows.extend((rng.uniform() < self.share).then_some(row)));
        }
        let share = |rows: Vec<usize>| batch.select(if rows.len() < least { (0..batch.len()).collect() } else { rows });
        rows.into_iter().map(share).collect()
    }

    /// Does something with each of these heads in use, and puts the head back that was.
    pub(in crate::train) fn each<E: Env, T>(
        &self,
        policy: &dyn Policy<E>,
        heads: impl Iterator<Item = usize>,
        mut work: impl FnMut(usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        let Some(policy) = policy.heads() else {
            let rule = "`Policy::heads` gives the heads in every step";
            return Err(Error::contract(rule, "it gave heads to `with_thompson`, and `None` in this step"));
        };
        let home = policy.head();
        let done = heads.map(|head| policy.use_head(head).and_then(|()| work(head))).collect();
        policy.use_head(home)?;
        done
    }
}
