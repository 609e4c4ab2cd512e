use tch::Tensor;

use crate::nn::{Mlp, MlpConfig, Scope};

/// A positive number that the logits of P_F are multiplied by, as a function of the condition: how sharp a policy is at a temperature
/// (Kim et al., *Learning to Scale Logits for Temperature-Conditional GFlowNets*, 2024).
///
/// The softplus of a perceptron's output; about 1 at first. The network behind the logits is told the condition as well.
#[derive(Debug)]
pub struct LogitScale(Mlp);

/// softplus(x) = 1.
const UNIT: f64 = 0.541_324_854_612_918_1;

impl LogitScale {
    /// A function of conditions of `n_conditions` numbers, without noise.
    pub fn new(scope: &mut Scope<'_>, n_conditions: i64, config: &MlpConfig) -> Self {
        let config = MlpConfig { noise: None, ..config.clone() };
        let mlp = Mlp::new(&mut scope.sub("logit_scale"), n_conditions, 1, &config);
        mlp.fill_output_bias(UNIT);
        Self(mlp)
    }

    /// The numbers for conditions `[n, C]`, `[n]`.
    pub fn forward(&self, conditions: &Tensor) -> Tensor {
        self.0.forward(&self.0.suited(conditions)).view(-1).softplus()
    }
}
