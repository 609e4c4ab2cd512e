//! What a policy estimates beside P_F and P_B, and what its network says of a batch of states.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::nn::{Group, Mlp, MlpConfig, Scope};
use crate::quantity::Values;
use crate::{Error, Result};

/// The outputs of a network for a batch of states, of legal and illegal actions alike.
/// [`Evaluation::of_network`](crate::policy::Evaluation::of_network) makes distributions of it.
#[derive(Debug, Default)]
pub struct NetworkOutput {
    /// Logits of P_F: one block `[rows, width]` per block of forward actions. For graphs that is
    /// `[anchor rows, width]` per action type, in the action set's order, exit last.
    pub pf: Option<Vec<Tensor>>,
    /// Logits of P_B: one block per block of backward actions. `None` makes P_B uniform over legal backward
    /// actions.
    pub pb: Option<Vec<Tensor>>,
    /// Its estimates of each state, `[B]` each: log F
    /// ([`Quantity::LogFlow`](crate::quantity::Quantity::LogFlow)), quantities of its
    /// [own](crate::quantity::Quantity::Own).
    pub values: Values,
    /// The factor of each state's logits of P_F, `[B]`; `None` for 1.
    pub pf_scale: Option<Tensor>,
}

/// The estimates of a policy beside P_F and P_B: the part that the settings of all policies share.
///
/// ```
/// use gfn::nn::EstimatorsConfig;
/// use gfn::objective::{DetailedBalance, Objective};
/// use gfn::objective::Quantity;
/// let needs = DetailedBalance::default().needs();
/// let config = EstimatorsConfig::with_flow(needs.has(Quantity::LogFlow));
/// assert!(config.flow && config.n_conditions == 0);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EstimatorsConfig {
    /// `true` if there is a state-flow head, for DB and SubTB.
    pub flow: bool,
    /// Initial value of log Z, where there are no conditions. `None` leaves it to the trainer, which
    /// estimates it from its first batch (the log of the mean of `R P_B / P_F`, with the symmetry
    /// correction). With conditions, log Z is a perceptron of them.
    pub initial_log_z: Option<f64>,
    /// Width of the condition vectors; 0 for none. Not all policies take any.
    pub n_conditions: i64,
    /// A perceptron of the conditions whose output multiplies the logits of P_F. It controls how sharp P_F is
    /// at a temperature (Kim et al., *Learning to Scale Logits for Temperature-Conditional GFlowNets*, 2024):
    /// a softplus, initially about 1. The network that computes the logits gets the condition as well.
    pub logit_scale: Option<MlpConfig>,
}

impl EstimatorsConfig {
    /// A state-flow head or none, no conditions, and log Z from the first batch.
    #[must_use]
    pub fn with_flow(flow: bool) -> Self {
        Self { flow, ..Self::default() }
    }

    /// For conditions of this width, and no flow head.
    #[must_use]
    pub fn conditional(n_conditions: i64) -> Self {
        Self { n_conditions, ..Self::default() }
    }

    /// Checks the settings that concern conditions.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative width, and for a scale of the logits without conditions.
    pub fn check(&self) -> Result<()> {
        let expected = match self.n_conditions {
            ..0 => "0 for none, or the width of the condition vectors",
            0 if self.logit_scale.is_some() => "the width of the condition vectors that `logit_scale` takes",
            _ => return Ok(()),
        };
        Err(Error::config("n_conditions", self.n_conditions, expected))
    }
}

/// The estimators that aren't heads of a state: log Z, with a learning rate of its own, and how sharp P_F is
/// under a condition.
///
/// ```
/// use gfn::nn::{Estimators, EstimatorsConfig, Parameters};
/// let mut parameters = Parameters::new(tch::Device::Cpu, tch::Kind::Float);
/// let config = EstimatorsConfig { initial_log_z: Some(3.0), ..EstimatorsConfig::default() };
/// let estimators = Estimators::new(&mut parameters.scope(&mut gfn::Rng::seeded(0)), &config, None)?;
/// assert_eq!(estimators.log_z(None, 2).ok_or("without conditions there is one")?.double_value(&[1]), 3.0);
/// assert!(estimators.pf_scale(None).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Estimators {
    log_z: LogZ,
    scale: Option<Mlp>,
}

#[derive(Debug)]
enum LogZ {
    /// One number, `[1]`.
    Scalar(Tensor),
    OfConditions(Mlp),
}

/// The x with softplus(x) = 1.
const UNIT: f64 = 0.541_324_854_612_918_1;

impl Estimators {
    /// The estimators that the settings ask for. `of_conditions` is the make of log Z where there are
    /// conditions; `None` for a policy that takes none.
    ///
    /// # Errors
    /// Those of [`EstimatorsConfig::check`], and [`Error::Config`] for conditions that the policy doesn't
    /// take.
    pub fn new(scope: &mut Scope<'_>, config: &EstimatorsConfig, of_conditions: Option<&MlpConfig>) -> Result<Self> {
        config.check()?;
        // Noise explores where actions are drawn; none is drawn by these.
        let perceptron = |scope: &mut Scope<'_>, mlp: &MlpConfig| {
            Mlp::new(scope, config.n_conditions, 1, &MlpConfig { noise: None, ..mlp.clone() })
        };
        let log_z = match (config.n_conditions, of_conditions) {
            (0, _) => LogZ::Scalar(scope.log_z(config.initial_log_z)),
            (_, Some(mlp)) => LogZ::OfConditions(perceptron(&mut scope.group(Group::LogZ).sub("log_z"), mlp)),
            (n, None) => return Err(Error::config("n_conditions", n, "0: this policy takes no conditions")),
        };
        let scale = config.logit_scale.as_ref().map(|mlp| {
            let scale = perceptron(&mut scope.sub("logit_scale"), mlp);
            scale.fill_output_bias(UNIT);
            scale
        });
        Ok(Self { log_z, scale })
    }

    /// log Z of `n` trajectories, `[n]`, with conditions `[n, C]`; `None` where a condition is needed and
    /// there is none.
    #[must_use]
    pub fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        match &self.log_z {
            LogZ::Scalar(value) => Some(value.expand([n as i64], false)),
            LogZ::OfConditions(mlp) => conditions.map(|conditions| of_rows(mlp, conditions)),
        }
    }

    /// The factors of the logits of P_F under conditions `[n, C]`, `[n]`; `None` for 1.
    #[must_use]
    pub fn pf_scale(&self, conditions: Option<&Tensor>) -> Option<Tensor> {
        self.scale.as_ref().zip(conditions).map(|(scale, conditions)| of_rows(scale, conditions).softplus())
    }
}

/// A number for each row of conditions, `[n]`.
fn of_rows(mlp: &Mlp, conditions: &Tensor) -> Tensor {
    mlp.forward(&mlp.suited(conditions)).view(-1)
}
