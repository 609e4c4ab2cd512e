use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::config::{check_norm, check_rate, check_stacked, is_decay};
use super::slots::{Block, Slots};
use super::{Optimizer, StepReport};
use crate::Result;
use crate::error::check_setting;
use crate::nn::Parameters;

/// The settings of [`Sgd`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SgdConfig {
    /// The learning rate of the parameters in [`Group::Network`](crate::nn::Group::Network).
    pub lr: f64,
    /// The learning rate of the parameters in [`Group::LogZ`](crate::nn::Group::LogZ).
    pub log_z_lr: f64,
    /// The factor by which each step multiplies the velocity, at least 0 and below 1.
    pub momentum: f64,
    /// The largest Euclidean norm of all gradients together. Gradients with a larger norm are scaled down to
    /// this norm. `None` disables clipping.
    pub max_norm: Option<f64>,
}

impl Default for SgdConfig {
    /// Returns the defaults: learning rates 1e-2 and 1e-1, momentum 0.9, gradients clipped to norm 10.
    fn default() -> Self {
        Self { lr: 1e-2, log_z_lr: 1e-1, momentum: 0.9, max_norm: Some(10.0) }
    }
}

impl SgdConfig {
    fn check(&self) -> Result<()> {
        check_rate("lr", self.lr)?;
        check_rate("log_z_lr", self.log_z_lr)?;
        check_setting("momentum", self.momentum, is_decay(self.momentum), "0 <= momentum < 1")?;
        check_norm(self.max_norm)
    }
}

/// Stochastic gradient descent with momentum (Polyak, 1964), in PyTorch's form: `b = momentum b + g` and
/// `p = p - lr b`, with the velocity `b`, the gradient `g` and the parameter `p`.
///
/// ```
/// use gfn::{nn::Parameters, optim::{Optimizer, Sgd, SgdConfig}, Rng};
/// use tch::{Device, Kind};
///
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
/// let x = parameters.scope(&mut Rng::seeded(0)).constant("x", &[1], 1.0);
/// let config = SgdConfig { lr: 0.1, momentum: 0.5, ..SgdConfig::default() };
/// let mut sgd = Sgd::new(&parameters, config)?;
/// for _ in 0..2 {
///     (&x * &x).sum(Kind::Double).backward();
///     sgd.step()?;
/// }
/// // 1 - 0.1 * 2 = 0.8, then 0.8 - 0.1 * (0.5 * 2 + 1.6) = 0.54.
/// assert!((x.double_value(&[0]) - 0.54).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Sgd {
    config: SgdConfig,
    slots: Slots<1>,
}

impl Sgd {
    /// Creates an optimizer for the parameters that require a gradient.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a setting out of its range, and for a `max_norm` with the
    /// parameters of several [stacked](crate::policy::MlpPolicy::stacked) policies; the errors of
    /// [`Parameters::check`].
    pub fn new(parameters: &Parameters, config: SgdConfig) -> Result<Self> {
        config.check()?;
        check_stacked(parameters, config.max_norm)?;
        Ok(Self { config, slots: Slots::new(parameters, ["momentum"], [config.lr, config.log_z_lr])? })
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn step(&mut self) -> Result<StepReport> {
        let SgdConfig { momentum, max_norm, .. } = self.config;
        let update = |block: &mut Block<1>, clip, lr| {
            let Block { parameter, gradient, moments: [velocity], .. } = block;
            let _ = velocity.f_mul_scalar_(momentum)?.f_add_(&gradient.f_mul_scalar(clip)?)?;
            let _ = parameter.f_sub_(&velocity.f_mul_scalar(lr)?)?;
            let _ = gradient.f_zero_()?;
            Ok(())
        };
        self.slots.step(max_norm, |_, _, _, _| Ok(()), update)
    }

    fn scale_lr(&mut self, factor: f64) -> Result<()> {
        self.slots.scale_lr(factor)
    }

    /// Returns the velocities (`momentum/NAME`, with the parameter's shape) and the number of updates of each
    /// parameter (`steps`).
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        self.slots.state()
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        self.slots.load_state(state)
    }
}
