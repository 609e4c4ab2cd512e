use tch::Tensor;

use crate::nn::{Mlp, MlpConfig, Scope};

/// A positive factor on the logits of P_F, as a function of the condition. It controls how sharp a policy is at a
/// temperature (Kim et al., *Learning to Scale Logits for Temperature-Conditional GFlowNets*, 2024).
///
/// It is the softplus of a perceptron's output, initially about 1. The network that computes the logits gets the
/// condition as well.
#[derive(Debug)]
pub struct LogitScale(Mlp);

/// The x with softplus(x) = 1.
const UNIT: f64 = 0.541_324_854_612_918_1;

impl LogitScale {
    /// A scale for conditions of `n_conditions` numbers, without noise.
    pub fn new(scope: &mut Scope<'_>, n_conditions: i64, config: &MlpConfig) -> Self {
        let config = MlpConfig { noise: None, ..config.clone() };
        let mlp = Mlp::new(&mut scope.sub("logit_scale"), n_conditions, 1, &config);
        mlp.fill_output_bias(UNIT);
        Self(mlp)
    }

    /// The factors for conditions `[n, C]`, `[n]`.
    pub fn forward(&self, conditions: &Tensor) -> Tensor {
        self.0.forward(&self.0.suited(conditions)).view(-1).softplus()
    }
}
