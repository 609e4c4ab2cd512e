//! Thompson sampling: every trajectory follows a head of its own, and every head learns from a share of the batch.

use crate::policy::MultiHead;
use crate::{Error, Result, Rng};

/// What a trainer does with the heads of its policy.
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

    /// Which of `n` trajectories each head learns from. Drawn trajectory by trajectory, so that what a head costs to evaluate has no say.
    pub(in crate::train) fn draw_shares(&self, n: usize, rng: &mut Rng) -> Vec<Vec<bool>> {
        let mut shares = vec![vec![false; n]; self.n_heads];
        (0..n).for_each(|i| shares.iter_mut().for_each(|share| share[i] = rng.uniform() < self.share));
        shares
    }

    /// Calls `f` with each of these heads in use, and puts the head back that was.
    pub(in crate::train) fn each<T>(
        &self,
        policy: &P,
        heads: impl Iterator<Item = usize>,
        mut f: impl FnMut(usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        let home = (self.head)(policy);
        let done = heads.map(|head| (self.use_head)(policy, head).and_then(|()| f(head))).collect();
        (self.use_head)(policy, home)?;
        done
    }
}
