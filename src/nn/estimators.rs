//! Estimators that policies share, such as log Z, and the output of a policy's network.

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::nn::{Group, Mlp, MlpConfig, Parameters, Scope};
use crate::quantity::Values;
use crate::{Error, Result};

/// The output of a network for a batch of states. Illegal actions have logits, too. A policy converts the
/// output to distributions over legal actions.
#[derive(Debug, Default)]
pub struct NetworkOutput {
    /// The logits of P_F, one tensor `[rows, width]` per block of forward actions; `None` if the logits
    /// weren't requested. For graphs there is a block per action type, in the action set's order, with the
    /// exit last. Rows of a block belong to the graphs, nodes, edges or pairs of nodes of the batch.
    pub pf: Option<Vec<Tensor>>,
    /// The logits of P_B, one tensor per block of backward actions. `None` makes P_B uniform over legal
    /// backward actions.
    pub pb: Option<Vec<Tensor>>,
    /// Further estimates for each state, `[B]` each: log F
    /// ([`Quantity::LogFlow`](crate::quantity::Quantity::LogFlow)), and [custom
    /// quantities](crate::quantity::Quantity::Custom).
    pub values: Values,
    /// The factor on the logits of P_F for each state, `[B]`; `None` for a factor of 1.
    pub pf_scale: Option<Tensor>,
}

/// The settings of a policy's estimators besides P_F and P_B. All policies of the library have these
/// settings.
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
#[serde(default, deny_unknown_fields)]
pub struct EstimatorsConfig {
    /// `true` for a network with a state-flow head, which DB and SubTB need.
    pub flow: bool,
    /// The initial value of log Z without conditions. With `None` (the default) the trainer estimates it from
    /// its first batch, as the log of the mean of `R P_B / P_F`, with the symmetry correction. It must be
    /// `None` with conditions, because log Z is then a perceptron of the conditions.
    pub initial_log_z: Option<f64>,
    /// The width of the condition vectors; 0 (the default) for no conditions. Some policies don't support
    /// conditions.
    pub n_conditions: i64,
    /// The settings of a perceptron of the conditions. The softplus of the perceptron's output, initially
    /// about 1, multiplies the logits of P_F. The factor controls how peaked P_F is at a temperature (Kim et
    /// al., *Learning to Scale Logits for Temperature-Conditional GFlowNets*, 2024). The network that
    /// computes the logits receives the conditions, too. Defaults to `None`, a factor of 1.
    pub logit_scale: Option<MlpConfig>,
}

impl EstimatorsConfig {
    /// Creates settings with or without a state-flow head, without conditions, and with log Z estimated from
    /// the first batch.
    #[must_use]
    pub fn with_flow(flow: bool) -> Self {
        Self { flow, ..Self::default() }
    }

    /// Creates settings with conditions of this width and without a flow head.
    #[must_use]
    pub fn conditional(n_conditions: i64) -> Self {
        Self { n_conditions, ..Self::default() }
    }

    /// Checks the settings that concern conditions: their width, the factor on the logits that depends on
    /// them, and the initial value of log Z.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative width of conditions, for a scale of the logits without conditions,
    /// and for an initial value of log Z with conditions.
    pub fn check(&self) -> Result<()> {
        let expected = match self.n_conditions {
            1.. => {
                let Some(value) = self.initial_log_z else { return Ok(()) };
                let expected = "no value with conditions, because log Z is then computed from them";
                return Err(Error::config("initial_log_z", value, expected));
            }
            ..0 => "0 for none, or the width of the condition vectors",
            0 if self.logit_scale.is_some() => {
                "the width of the condition vectors, because `logit_scale` is computed from them"
            }
            _ => return Ok(()),
        };
        Err(Error::config("n_conditions", self.n_conditions, expected))
    }
}

/// The estimators that don't depend on a state: log Z, in a separate group of parameters, and the factor on
/// the logits of P_F. Log Z and the factor can depend on the conditions.
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
    /// The perceptron of [`EstimatorsConfig::logit_scale`].
    scale: Option<Mlp>,
}

#[derive(Debug)]
enum LogZ {
    /// The parameter log Z without conditions, a single number `[1]`.
    Scalar(Tensor),
    /// The perceptron that computes log Z from the conditions.
    Conditional(Mlp),
    /// The parameter log Z of each of several stacked policies, `[policies, 1]`. A condition is the index of
    /// a policy.
    Stacked(Tensor),
}

/// The number whose softplus is 1. It is the initial bias of the perceptron that computes the factor on the
/// logits of P_F.
const INVERSE_SOFTPLUS_OF_1: f64 = 0.541_324_854_612_918_1;

impl Estimators {
    /// Builds the estimators that `config` sets. `conditional_log_z` holds the settings of the perceptron
    /// that computes log Z from conditions; `None` for a policy that doesn't support conditions.
    ///
    /// # Errors
    /// The errors of [`EstimatorsConfig::check`], and [`Error::Config`] for conditions that the policy
    /// doesn't support.
    pub fn new(
        scope: &mut Scope<'_>,
        config: &EstimatorsConfig,
        conditional_log_z: Option<&MlpConfig>,
    ) -> Result<Self> {
        config.check()?;
        // The perceptrons have no noise, because noise is for exploration, and no actions are drawn from
        // these perceptrons.
        let perceptron = |scope: &mut Scope<'_>, mlp: &MlpConfig| {
            Mlp::new(scope, config.n_conditions, 1, &MlpConfig { noise: None, ..mlp.clone() })
        };
        let log_z = match (config.n_conditions, conditional_log_z) {
            (0, _) => LogZ::Scalar(scope.log_z(config.initial_log_z)),
            (_, Some(mlp)) => LogZ::Conditional(perceptron(&mut scope.group(Group::LogZ).sub("log_z"), mlp)),
            (n, None) => {
                return Err(Error::config("n_conditions", n, "0, because this policy takes no conditions"));
            }
        };
        let scale = config.logit_scale.as_ref().map(|mlp| {
            let scale = perceptron(&mut scope.sub("logit_scale"), mlp);
            scale.fill_output_bias(INVERSE_SOFTPLUS_OF_1);
            scale
        });
        Ok(Self { log_z, scale })
    }

    /// Returns the estimators of policies whose parameters are stacked, from the parameter log Z of all of
    /// them.
    pub(crate) fn stacked(parameters: &Parameters) -> Self {
        let log_z = parameters.iter().find(|parameter| parameter.group == Group::LogZ);
        let log_z = log_z.map_or_else(Tensor::new, |parameter| parameter.tensor.shallow_clone());
        Self { log_z: LogZ::Stacked(log_z), scale: None }
    }

    /// Returns log Z of `n` trajectories, `[n]`. `conditions` is `[n, C]`. Returns `None` if log Z depends on
    /// conditions and `conditions` is `None`.
    #[must_use]
    pub fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        match &self.log_z {
            LogZ::Scalar(value) => Some(value.expand([n as i64], false)),
            LogZ::Conditional(mlp) => conditions.map(|conditions| evaluate_rows(mlp, conditions)),
            LogZ::Stacked(values) => conditions.map(|policies| {
                // An index out of range, which libtorch answers by a panic, is clamped here, because the
                // evaluation of the trajectories' states returns an error for it.
                let policies = policies.to_device(values.device()).to_kind(Kind::Int64).view(-1);
                values.view(-1).index_select(0, &policies.clamp(0, values.size()[0] - 1))
            }),
        }
    }

    /// Returns the factor on the logits of P_F for each row of conditions, `[n, C]` to `[n]`; `None` for a
    /// factor of 1.
    #[must_use]
    pub fn pf_scale(&self, conditions: Option<&Tensor>) -> Option<Tensor> {
        self.scale
            .as_ref()
            .zip(conditions)
            .map(|(scale, conditions)| evaluate_rows(scale, conditions).softplus())
    }
}

/// Computes a number for each row of conditions, `[n, C]` to `[n]`.
fn evaluate_rows(mlp: &Mlp, conditions: &Tensor) -> Tensor {
    mlp.forward(&mlp.convert_input(conditions)).view(-1)
}
