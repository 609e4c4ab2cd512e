//! Thompson sampling: every trajectory follows a head of its own, and every head learns from a share of the batch.

use crate::env::Env;
use crate::policy::MultiHead;
use crate::rollout::{Container, Trajectories};
use crate::{Error, Result, Rng};

/// The heads of a policy, and the share of a batch that each learns from.
pub(in crate::train) struct Thompson<P> {
    /// Probability that a head learns from a trajectory.
    share: f64,
    n_heads: usize,
    head: fn(&P) -> usize,
    use_head: fn(&P, usize) -> Result<()>,
}

impl<P> Thompson<P> {
    /// # Errors
    /// [`Error::Config`] for a policy with one head, and unless `0 < share <= 1`.
    pub(in crate::train) fn new(policy: &P, share: f64) -> Result<Self>
    where
        P: MultiHead,
    {
        let n_heads = policy.n_heads();
        if n_heads < 2 {
            let expected = "a policy with at least 2 heads of P_F (`MlpPolicyConfig::heads`)";
            return Err(Error::config("the heads of Thompson sampling", n_heads, expected));
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::config("the share of a batch that a head learns from", share, "0 < share <= 1"));
        }
        Ok(Self { share, n_heads, head: P::head, use_head: P::use_head })
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

    /// The head in use, to which the policy goes back when this is dropped.
    pub(in crate::train) fn home<'a>(&self, policy: &'a P) -> Home<'a, P> {
        Home { policy, head: (self.head)(policy), use_head: self.use_head }
    }
}

/// The head that was in use.
pub(in crate::train) struct Home<'a, P> {
    policy: &'a P,
    head: usize,
    use_head: fn(&P, usize) -> Result<()>,
}

impl<P> Home<'_, P> {
    /// Puts another head in use.
    pub(in crate::train) fn enter(&self, head: usize) -> Result<()> {
        (self.use_head)(self.policy, head)
    }
}

impl<P> Drop for Home<'_, P> {
    fn drop(&mut self) {
        // A head that was in use can be in use again.
        let _ = self.enter(self.head);
    }
}
