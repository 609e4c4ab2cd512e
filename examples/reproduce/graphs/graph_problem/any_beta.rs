//! One policy for all log-rewards of a unit of size between two numbers.

use std::sync::Arc;

use gfn::Result;
use gfn::graph::GraphStates;
use gfn::nn::{EstimatorsConfig, MlpConfig};
use gfn_extras::condition::{Condition, ConditionedReward, Conditioning, Encoding, Temperature};
use gfn_gym::graph_problems::{Problem, SizeReward};
use tch::Tensor;

/// Conditions that say beta.
pub(super) struct AnyBeta {
    problem: Problem,
    pub(super) conditioning: Conditioning,
    /// Those that the policy is measured at.
    pub(super) measured: [f64; 3],
}

impl AnyBeta {
    pub(super) fn new(problem: Problem, least: f64, most: f64) -> Result<Self> {
        let distribution = Temperature::Uniform { least, most };
        let conditioning = Conditioning::new(1)?.temperature(distribution, Encoding::Thermometer { bins: 16 })?;
        Ok(Self { problem, conditioning, measured: [least, 0.5 * (least + most), most] })
    }

    pub(super) fn reward(&self) -> Result<ConditionedReward<GraphStates>> {
        ConditionedReward::new(self.conditioning.clone(), vec![Arc::new(SizeReward::new(self.problem, 1.0)?)])
    }

    /// The condition of one trajectory, `[1, C]`.
    pub(super) fn condition(&self, beta: f64) -> Result<Tensor> {
        self.conditioning.encode(&[Condition { beta, preferences: vec![1.0], focus: None }])
    }

    pub(super) fn estimators(&self, estimators: EstimatorsConfig) -> EstimatorsConfig {
        let logit_scale = Some(MlpConfig { hidden: vec![32], ..MlpConfig::default() });
        EstimatorsConfig { n_conditions: self.conditioning.width() as i64, logit_scale, ..estimators }
    }
}
