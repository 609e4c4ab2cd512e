use std::sync::Arc;

use gfn::env::{Reals, Rows};
use gfn::nn::{Estimators, EstimatorsConfig, Parameters};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, Policy};
use gfn::tensor::from_host;
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::kernel::{GaussianSteps, Steering};
use super::network::{GradNetConfig, GradientScale, JointNet, Times, harmonics, within};
use super::reference::{backward_steps, forward_steps};
use super::target::{Target, checked_gradient};
use super::{DiffusionSampling, DiffusionStates};
use crate::continuous::check_no_conditions;
use crate::rewards::positive;

/// The backward policy of a diffusion policy.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackwardSteps {
    /// The reversed process, which has no parameters.
    #[default]
    Fixed,
    /// A learned correction of the reversed process with standard deviation s: the mean is shifted by `range
    /// s tanh(m)` and the standard deviation becomes `s exp(range tanh(v))`, with m and v two outputs of a
    /// network. The step into the origin stays a point mass.
    Learned {
        /// The largest shift of the mean in units of s. The same number bounds the change of the log standard
        /// deviation.
        range: f64,
    },
    /// The learned kernel of torchgfn. With standard deviation s of the reversed process, the mean is shifted
    /// by `-scale m` and the standard deviation becomes `sqrt(s^2 + exp(scale v)^2)`. Here m and v are two
    /// outputs of a network, squeezed into (-1, 1) and (-4, 4). With torchgfn's scale of 0.1 the kernel adds
    /// a standard deviation of 0.67 to 1.5, however small s is. P_F can't match such a backward kernel, so
    /// use this variant for comparison only. The step into the origin stays a point mass, which differs from
    /// torchgfn.
    Torchgfn {
        /// The scale of the correction: torchgfn's `pb_scale_range`.
        scale: f64,
    },
}

/// Settings of a [`DiffusionPolicy`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DiffusionPolicyConfig {
    /// The size of the networks that compute the drift, P_B's corrections and the state flow.
    pub network: GradNetConfig,
    /// The largest absolute value of each coordinate of the drift. Larger values are clamped.
    pub drift_clip: f64,
    /// The range of the correction of P_F's standard deviation. The standard deviation of the process is
    /// multiplied by `exp(range tanh(v) / 2)`, with v an output of the network for the state. `None` means
    /// that P_F has the standard deviation of the process. (In torchgfn the learned standard deviation
    /// doesn't depend on that of the process.)
    pub log_variance_range: Option<f64>,
    /// The bound at which each coordinate of the target's gradient is clamped in the Langevin
    /// parametrisation; `None` means no Langevin parametrisation. This parametrisation adds the gradient at
    /// the point, times a learned factor that depends on the time, to the drift. The policy must then be
    /// built with a target.
    pub langevin_clip: Option<f64>,
    /// The backward policy: the reversed process, or a learned correction of it.
    pub backward: BackwardSteps,
    /// The settings of the state-flow network and of log Z. The state-flow network takes no conditions.
    pub estimators: EstimatorsConfig,
}

impl Default for DiffusionPolicyConfig {
    /// Returns settings with torchgfn's network size, a drift clipped at 10,000, no learned variance, no
    /// Langevin parametrisation, a fixed P_B, no state flow, and an initial log Z of 0.
    fn default() -> Self {
        Self {
            network: GradNetConfig::default(),
            drift_clip: 1e4,
            log_variance_range: None,
            langevin_clip: None,
            backward: BackwardSteps::Fixed,
            estimators: EstimatorsConfig::default(),
        }
    }
}

/// A policy of Gaussian steps, whose drift is a network of point and time (PIS-GradNet; Zhang and Chen, *Path
/// Integral Sampler*, 2022).
///
/// P_F is `N(a x + g u(x, t), b^2)`. Here u is the drift, and a, g and b are the decay, the gain and the
/// standard deviation of the [process](super::Process) at that step. The network evaluates all points of a
/// batch at once and embeds each time once.
///
/// ```
/// use gfn::{
///     Rng,
///     objective::TrajectoryBalance,
///     train::{Trainer, TrainerConfig},
/// };
/// use gfn_gym::diffusion::{
///     DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling, Energy, Mixture, Process, ProcessKind,
/// };
/// use std::sync::Arc;
/// let env = DiffusionSampling::new(2, Process::new(ProcessKind::PinnedBrownian, 5.0, 8)?)?;
/// let target = Arc::new(Mixture::two_modes());
/// let mut rng = Rng::seeded(0);
/// let config = DiffusionPolicyConfig::default();
/// let policy = DiffusionPolicy::new(&env, config, None, tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
/// let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, Energy::new(target), policy, TrajectoryBalance, config, rng)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct DiffusionPolicy {
    config: DiffusionPolicyConfig,
    /// The dimension and the number of steps of the environment for which the policy was built.
    expected_size: (usize, usize),
    /// The harmonics of each step's time, which are inputs of the networks.
    times: Tensor,
    drift: JointNet,
    langevin: Option<(f64, GradientScale, Arc<dyn Target>)>,
    backward: Option<JointNet>,
    flow: Option<JointNet>,
    estimators: Estimators,
    parameters: Parameters,
}

impl std::fmt::Debug for DiffusionPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiffusionPolicy").field("config", &self.config).finish_non_exhaustive()
    }
}

impl DiffusionPolicy {
    /// Builds a policy for an environment, with weights drawn from `rng`. The Langevin parametrisation needs
    /// the `target`.
    ///
    /// # Errors
    /// [`Error::Config`] for sizes below 1, clips and ranges that aren't positive, and a target of another
    /// dimension; [`Error::Missing`] for the Langevin parametrisation without a target.
    pub fn new(
        env: &DiffusionSampling,
        config: DiffusionPolicyConfig,
        target: Option<Arc<dyn Target>>,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        config.network.check()?;
        let range = match config.backward {
            BackwardSteps::Fixed => None,
            BackwardSteps::Learned { range } => Some(range),
            BackwardSteps::Torchgfn { scale } => Some(scale),
        };
        for (setting, value) in [
            ("drift_clip", Some(config.drift_clip)),
            ("log_variance_range", config.log_variance_range),
            ("langevin_clip", config.langevin_clip),
            ("the range of the backward kernel", range),
        ] {
            value.map(|value| positive(setting, value)).transpose()?;
        }
        let dim = env.dim() as i64;
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let times = harmonics(&scope, config.network.harmonics, env.process().steps());
        let net = |scope: &mut gfn::nn::Scope<'_>, name: &str, outputs| {
            JointNet::new(&mut scope.sub(name), dim, outputs, &config.network)
        };
        let drift = net(&mut scope, "drift", dim + i64::from(config.log_variance_range.is_some()));
        let langevin = match (config.langevin_clip, target) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(Error::missing(
                    "the Langevin parametrisation",
                    "the target's gradient",
                    "give `DiffusionPolicy::new` the target, or leave `langevin_clip` out",
                ));
            }
            (Some(clip), Some(target)) => {
                super::target::check_dim(env, target.as_ref())?;
                Some((clip, GradientScale::new(&mut scope, dim, &config.network), target))
            }
        };
        let backward = range.map(|_| net(&mut scope, "backward", dim + 1));
        let flow = config.estimators.flow.then(|| net(&mut scope, "flow", 1));
        let estimators = Estimators::new(&mut scope, &config.estimators, None)?;
        parameters.check()?;
        let expected_size = (env.dim(), env.process().steps());
        Ok(Self { config, expected_size, times, drift, langevin, backward, flow, estimators, parameters })
    }

    /// Refuses an environment whose dimension or number of steps differs from those for which the networks
    /// were built.
    fn check_env(&self, env: &DiffusionSampling) -> Result<()> {
        let (dim, steps) = self.expected_size;
        if (env.dim(), env.process().steps()) == (dim, steps) {
            return Ok(());
        }
        let got = format!(
            "{} and {}, but the policy was built for {dim} and {steps}",
            env.dim(),
            env.process().steps()
        );
        let expected = "the dimension and the number of steps of the environment that the policy was built \
            for";
        Err(Error::config("the environment's dimension and number of steps", got, expected))
    }

    fn tensor(&self, points: &Reals) -> Tensor {
        points.to_tensor(self.parameters.kind(), self.parameters.device())
    }

    /// Returns P_F in states that aren't finished.
    fn forward(
        &self,
        env: &DiffusionSampling,
        states: &DiffusionStates,
        points: &Tensor,
    ) -> Result<GaussianSteps> {
        let times = Times::new(&states.steps, points.device());
        let out = self.drift.forward(points, &self.times, &times);
        let dim = env.dim() as i64;
        let mut drift = out.narrow(1, 0, dim).clamp(-self.config.drift_clip, self.config.drift_clip);
        if let Some((clip, scale, target)) = &self.langevin {
            let gradient = checked_gradient(target.as_ref(), &states.points)?;
            drift += scale.forward(&self.times, &times) * self.tensor(&gradient).clamp(-clip, *clip);
        }
        let log_sd = self.config.log_variance_range.map(|range| within(&out.narrow(1, dim, 1), 0.5 * range));
        let gain = states.steps.iter().map(|&step| env.process().forward(step as usize).gain).collect();
        Ok(forward_steps(env, states).steered(gain, Steering { drift, log_sd }))
    }

    fn backward(&self, env: &DiffusionSampling, states: &DiffusionStates, points: &Tensor) -> GaussianSteps {
        let fixed = backward_steps(env, states);
        let Some(network) = &self.backward else { return fixed };
        let times = Times::new(&states.steps, points.device());
        let out = network.forward(points, &self.times, &times);
        let dim = env.dim() as i64;
        let mean = out.narrow(1, 0, dim);
        let spread = out.narrow(1, dim, 1);
        // This closure applies `value` to the standard deviation of each state's step of the reversed
        // process. The result is 0 if this step is a point mass.
        let per_row = |value: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let sds = states.steps.iter().map(|&step| env.process().backward(step as usize).sd);
            sds.map(|sd| if sd > 0.0 { value(sd) } else { 0.0 }).collect()
        };
        match self.config.backward {
            BackwardSteps::Fixed => fixed,
            BackwardSteps::Learned { range } => {
                let steering = Steering { drift: within(&mean, range), log_sd: Some(within(&spread, range)) };
                fixed.steered(per_row(&|sd| sd), steering)
            }
            BackwardSteps::Torchgfn { scale } => {
                // The reversed process has standard deviation s, and torchgfn's P_B has `sqrt(s^2 + e^2)`,
                // with e = exp(scale v) and v an output of the network. The log of their ratio is half of
                // log1p(e^2 / s^2).
                let over_s2 =
                    from_host(&per_row(&|sd| sd.powi(-2)), spread.kind(), spread.device()).view([-1, 1]);
                let log_sd = ((within(&spread, 4.0) * (2.0 * scale)).exp() * over_s2).log1p() * 0.5;
                let steering = Steering { drift: within(&mean, 1.0), log_sd: Some(log_sd) };
                fixed.steered(per_row(&|_| -scale), steering)
            }
        }
    }
}

impl Policy<DiffusionSampling> for DiffusionPolicy {
    fn evaluate(
        &self,
        env: &DiffusionSampling,
        states: &DiffusionStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GaussianSteps>> {
        check_no_conditions(conditions)?;
        self.check_env(env)?;
        env.check_states(states)?;
        let n = states.len();
        let all = self.tensor(&states.points);
        let end = env.process().steps() as u32;
        // Finished states have no P_F. In a batch of whole trajectories they come last, so P_F is computed
        // only for the states before them.
        let going = states.steps.iter().rposition(|&step| step < end).map_or(0, |last| last + 1);
        let pf = if !wants.has(Quantity::LogPf) {
            None
        } else if going == n {
            Some(self.forward(env, states, &all)?)
        } else {
            let rows: Vec<usize> = (0..going).collect();
            Some(self.forward(env, &states.select(&rows), &all.narrow(0, 0, going as i64))?)
        };
        let log_flow = match (&self.flow, wants.has(Quantity::LogFlow)) {
            (Some(flow), true) => {
                Some(flow.forward(&all, &self.times, &Times::new(&states.steps, all.device())).squeeze_dim(1))
            }
            _ => None,
        };
        let pb = wants.has(Quantity::LogPb).then(|| self.backward(env, states, &all));
        Ok(Evaluation { pf, pb, ..Evaluation::default() }.with(Quantity::LogFlow, log_flow))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }
}
