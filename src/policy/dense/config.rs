//! The settings of a policy on vectors.

use serde::{Deserialize, Serialize};

use crate::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use crate::{Error, Result};

/// The architecture and size of an [`MlpPolicy`](super::MlpPolicy).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpPolicyConfig {
    /// The hidden layers of the torso.
    pub mlp: MlpConfig,
    /// The backward policy: uniform, a head on the torso of P_F, or a separate network.
    pub backward: BackwardPolicy,
    /// The settings of the state-flow head, of log Z, and of conditions.
    pub estimators: EstimatorsConfig,
    /// `true` for a head that estimates log n, the log of the number of paths to a state. The maximum-entropy
    /// backward policy needs this head.
    pub paths: bool,
    /// The hidden layers of a network for the conditions. Its outputs are added to the outputs of the first
    /// layer of the torso. If `None` (the default), a linear map of the conditions is added instead.
    #[serde(default)]
    pub condition_mlp: Option<MlpConfig>,
    /// The number of heads of P_F on the torso, at least 1. The policy uses one head at a time
    /// ([`MlpPolicy::choose_head`](super::MlpPolicy::choose_head)).
    #[serde(default = "one_head")]
    pub heads: usize,
}

fn one_head() -> usize {
    1
}

impl Default for MlpPolicyConfig {
    /// Returns two hidden layers of 256 with ReLU, P_F and P_B on one torso, one head of P_F, no flow head,
    /// no conditions, and a log Z that is set from the first batch.
    fn default() -> Self {
        Self {
            mlp: MlpConfig::default(),
            backward: BackwardPolicy::SharedTorso,
            estimators: EstimatorsConfig::default(),
            paths: false,
            condition_mlp: None,
            heads: 1,
        }
    }
}

impl MlpPolicyConfig {
    /// Checks the settings that can be checked without the environment.
    ///
    /// # Errors
    /// [`Error::Config`] if the number of heads is 0, and for a `condition_mlp` without conditions; the
    /// errors of the estimators' settings.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |setting, expected| Err(Error::config(setting, 0, expected));
        match self.heads {
            0 => refuse("heads", "at least 1 head of P_F"),
            _ if self.condition_mlp.is_some() && self.estimators.n_conditions == 0 => refuse(
                "n_conditions",
                "the width of the condition vectors, because `condition_mlp` encodes them",
            ),
            _ => self.estimators.check(),
        }
    }
}
