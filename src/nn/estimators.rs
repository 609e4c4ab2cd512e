//! What a network gives beside its heads, and what it says of a batch of states.

use tch::Tensor;

use crate::nn::{LogZ, LogitScale, MlpConfig, Scope};
use crate::quantity::Values;

/// What a network says of a batch of states, before anybody has asked what is legal there.
/// [`Evaluation::of_network`](crate::policy::Evaluation::of_network) makes distributions of it.
#[derive(Debug, Default)]
pub struct NetworkOutput {
    /// Logits of P_F: one block `[rows, width]` per block of forward actions. For graphs that is `[anchor rows, width]` per action type, in
    /// the action set's order, exit last.
    pub pf: Option<Vec<Tensor>>,
    /// Logits of P_B: one block per block of backward actions. `None` makes P_B uniform over legal backward actions.
    pub pb: Option<Vec<Tensor>>,
    /// What it estimates of each state, `[B]` each: log F ([`Quantity::LogFlow`](crate::quantity::Quantity::LogFlow)), quantities of its
    /// [own](crate::quantity::Quantity::Own).
    pub values: Values,
    /// What the logits of P_F of each state are multiplied by, `[B]`.
    pub pf_scale: Option<Tensor>,
}

/// The estimators that aren't heads of a state: log Z, and how sharp P_F is under a condition.
///
/// ```
/// use gfn::nn::{Estimators, MlpConfig, Parameters};
/// let mut parameters = Parameters::new(tch::Device::Cpu, tch::Kind::Float);
/// let mut rng = gfn::Rng::seeded(0);
/// let estimators = Estimators::new(&mut parameters.scope(&mut rng), 0, 3.0, &MlpConfig::default(), None);
/// assert_eq!(estimators.log_z(None, 2).ok_or("without conditions there is one")?.double_value(&[1]), 3.0);
/// assert!(estimators.pf_scale(None).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Estimators {
    log_z: LogZ,
    scale: Option<LogitScale>,
}

impl Estimators {
    /// log Z as a number that starts at `initial_log_z`, or with conditions as a perceptron of them; a [`LogitScale`] where `scale` says
    /// what it is made of.
    pub fn new(
        scope: &mut Scope<'_>,
        n_conditions: i64,
        initial_log_z: f64,
        log_z: &MlpConfig,
        scale: Option<&MlpConfig>,
    ) -> Self {
        let log_z = match n_conditions {
            0 => LogZ::scalar(scope, initial_log_z),
            n => LogZ::conditional(scope, n, log_z),
        };
        Self { log_z, scale: scale.map(|mlp| LogitScale::new(scope, n_conditions, mlp)) }
    }

    /// log Z of `n` trajectories, `[n]`, with conditions `[n, C]`; `None` where a condition is needed and there is none.
    #[must_use]
    pub fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.log_z.forward(conditions, n)
    }

    /// What the logits of P_F are multiplied by under conditions `[n, C]`, `[n]`; `None` for nothing.
    #[must_use]
    pub fn pf_scale(&self, conditions: Option<&Tensor>) -> Option<Tensor> {
        self.scale.as_ref().zip(conditions).map(|(scale, conditions)| scale.forward(conditions))
    }
}
