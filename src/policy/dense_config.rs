//! The settings of a policy on vectors.

use serde::{Deserialize, Serialize};

use crate::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use crate::{Error, Result};

/// The architecture and size of an [`MlpPolicy`](super::MlpPolicy).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MlpPolicyConfig {
    /// The hidden layers.
    pub mlp: MlpConfig,
    /// The kind of backward policy.
    pub backward: BackwardPolicy,
    /// The settings of the state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
    /// `true` for a head that estimates log n, the log of the number of paths to a state, for the
    /// maximum-entropy backward policy.
    pub paths: bool,
    /// The hidden layers of a network for the conditions. Its outputs, as many as the first layer's, are
    /// added to the first layer. `None` (the default) adds a linear map of the conditions instead.
    #[serde(default)]
    pub condition_mlp: Option<MlpConfig>,
    /// The number of heads of P_F on the torso, at least 1. A single head is in use at a time
    /// ([`MlpPolicy::choose_head`](super::MlpPolicy::choose_head)).
    #[serde(default = "one_head")]
    pub heads: usize,
}

fn one_head() -> usize {
    1
}

impl Default for MlpPolicyConfig {
    /// Two hidden layers of 256 with ReLU, P_F and P_B on one torso, one head of P_F, no flow head, no
    /// conditions, log Z from the first batch.
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
    /// Checks the settings that need no environment.
    ///
    /// # Errors
    /// [`Error::Config`] for no head, and for networks of conditions without conditions.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |setting, expected| Err(Error::config(setting, 0, expected));
        match self.heads {
            0 => refuse("heads", "at least 1 head of P_F"),
            _ if self.condition_mlp.is_some() && self.estimators.n_conditions == 0 => {
                refuse("n_conditions", "the width of the condition vectors that `condition_mlp` takes")
            }
            _ => self.estimators.check(),
        }
    }
}
