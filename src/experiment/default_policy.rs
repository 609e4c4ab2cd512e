use tch::{Device, Kind};

use crate::env::VectorEnv;
use crate::graph::GraphEnv;
use crate::nn::{EstimatorsConfig, GraphNet, GraphNetConfig};
use crate::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use crate::train::TrainEnv;
use crate::{Result, Rng};

/// An environment for which an [`Experiment`](super::Experiment) can build the policy: a [`GraphNet`] for
/// [`GraphEnv`], and an [`MlpPolicy`] on the features [`KHot`] for [`VectorEnv`].
#[diagnostic::on_unimplemented(
    message = "an experiment can't build a policy for `{Self}`",
    note = "experiments train on `GraphEnv` and `VectorEnv`; rules become an environment by `.env()`, \
        `VectorEnv::new` or `GraphEnv::new`",
    note = "for any other environment build a policy, and a `Trainer` with it"
)]
pub trait DefaultPolicy: TrainEnv {
    /// The settings of the policy.
    type Config: Clone + Default + std::fmt::Debug;
    /// The type of the policy.
    type Policy: Policy<Self> + Send + 'static;

    /// Returns the settings of log F, log Z and conditions among the settings of the policy.
    fn estimators_mut(config: &mut Self::Config) -> &mut EstimatorsConfig;

    /// Builds the policy, with initial weights drawn from `rng`.
    ///
    /// # Errors
    /// The errors of [`GraphNet::new`] and [`MlpPolicy::new`].
    fn build_default_policy(
        &self,
        config: Self::Config,
        device: Device,
        rng: &mut Rng,
    ) -> Result<Self::Policy>;
}

impl DefaultPolicy for GraphEnv {
    type Config = GraphNetConfig;
    type Policy = GraphPolicy<GraphNet>;

    fn estimators_mut(config: &mut GraphNetConfig) -> &mut EstimatorsConfig {
        &mut config.estimators
    }

    fn build_default_policy(
        &self,
        config: GraphNetConfig,
        device: Device,
        rng: &mut Rng,
    ) -> Result<Self::Policy> {
        GraphNet::new(self, config, device, Kind::Float, rng).map(GraphPolicy)
    }
}

impl DefaultPolicy for VectorEnv {
    type Config = MlpPolicyConfig;
    type Policy = MlpPolicy<KHot>;

    fn estimators_mut(config: &mut MlpPolicyConfig) -> &mut EstimatorsConfig {
        &mut config.estimators
    }

    fn build_default_policy(
        &self,
        config: MlpPolicyConfig,
        device: Device,
        rng: &mut Rng,
    ) -> Result<Self::Policy> {
        MlpPolicy::new(self, KHot::from_env(self), config, device, Kind::Float, rng)
    }
}
