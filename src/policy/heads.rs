use super::MlpPolicy;
use crate::{Error, Result};

/// A policy with several heads of P_F, for Thompson sampling (`Thompson` in the package `gfn-extras`). The
/// policy uses one head at a time.
///
/// ```
/// use gfn::policy::{ByNumber, MultiHead, MlpPolicy, MlpPolicyConfig};
/// use gfn::{examples::word_env, Rng};
/// let env = word_env(2, 2);
/// let config = MlpPolicyConfig { heads: 3, ..MlpPolicyConfig::default() };
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
/// policy.use_head(2)?;
/// assert_eq!((policy.n_heads(), policy.head()), (3, 2));
/// assert!(policy.use_head(3).is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
pub trait MultiHead {
    /// Returns the number of heads, at least 1.
    fn n_heads(&self) -> usize;

    /// Returns the index of the head in use, counted from 0.
    fn head(&self) -> usize;

    /// Switches to another head, both for sampling and for training.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if `head` is not below [`n_heads`](Self::n_heads).
    fn use_head(&self, head: usize) -> Result<()>;
}

impl<F> MultiHead for MlpPolicy<F> {
    fn n_heads(&self) -> usize {
        self.config().heads
    }
    fn head(&self) -> usize {
        self.head.get()
    }
    fn use_head(&self, head: usize) -> Result<()> {
        if head >= self.config().heads {
            return Err(Error::config(
                "the head of P_F",
                format!("{head}, but the policy has {} heads", self.config().heads),
                "a head from 0 to below `MlpPolicyConfig::heads`",
            ));
        }
        self.head.set(head);
        Ok(())
    }
}
