//! The optimizer Adam with decoupled weight decay. Adam updates f32 parameters on a CPU in one pass over
//! slices, and the other parameters of a group together by tensor operations.

use tch::{Kind, Tensor};

use super::config::check_stacked;
use super::slots::{Slot, Slots};
use super::update::Rule;
use super::{AdamConfig, Optimizer, StepReport};
use crate::nn::{Group, Parameters};
use crate::{Error, Result};

/// The largest second moment that is accepted in f32. The limit is slightly below the maximum of f32, so that
/// rounding can't give infinity.
const MAX_MOMENT: f64 = 0.99 * f32::MAX as f64;

/// Adam (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019), whose state is
/// restored bit for bit.
///
/// With the gradient `g` (clipped by the norm of all gradients), the number `t` of updates of the parameter,
/// and the settings `b1` (`beta1`), `b2` (`beta2`), `lr`, `wd` (`weight_decay`) and `eps`: `m = b1 m + (1 -
/// b1) g`, `v = b2 v + (1 - b2) g^2`, `p = (1 - lr wd) p - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) +
/// eps)`.
///
/// A parameter isn't changed before it has a gradient for the first time; afterwards a missing gradient
/// counts as zero. Therefore a resumed run, in which no gradient is defined at first, equals an uninterrupted
/// run.
///
/// ```
/// use gfn::{nn::Parameters, optim::{Adam, AdamConfig, Optimizer}, Rng};
/// use tch::{Device, Kind};
///
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
/// let x = parameters.scope(&mut Rng::seeded(0)).constant("x", &[2], 1.0);
/// let mut adam = Adam::new(&parameters, AdamConfig { lr: 0.1, ..AdamConfig::default() })?;
/// (&x * &x).sum(Kind::Float).backward();
/// let report = adam.step()?;
/// assert!((report.grad_norm - 8f64.sqrt()).abs() < 1e-6);
/// assert!((x.double_value(&[0]) - 0.9).abs() < 1e-6);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Adam {
    config: AdamConfig,
    slots: Slots<2>,
}

impl Adam {
    /// Creates an optimizer for the parameters that require a gradient.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting out of its range, and for a `max_norm` with the parameters of several
    /// [stacked](crate::policy::MlpPolicy::stacked) policies; the errors of [`Parameters::check`].
    pub fn new(parameters: &Parameters, config: AdamConfig) -> Result<Self> {
        config.check()?;
        check_stacked(parameters, config.max_norm)?;
        Ok(Self { config, slots: Slots::new(parameters, ["m", "v"], [config.lr, config.log_z_lr])? })
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    /// Updates every parameter from its gradient. Gradients are set to zero afterwards, even after an error.
    ///
    /// Parameters on a device or of type f64 are moved into one block of memory per group, so that they
    /// don't share memory with other tensors afterwards. f32 parameters on a CPU stay where they are. All
    /// parameters are changed in place. As with any in-place operation of libtorch, no other thread may use
    /// the parameters during the step. A loss computed before the step can't be differentiated after the
    /// step: `f_backward` returns libtorch's error, and `backward` panics.
    ///
    /// # Errors
    /// [`Error::NonFiniteGradient`] if a gradient isn't finite; [`Error::GradientOverflow`] if the square of
    /// a gradient overflows f32, because the second moment would stay infinite and the parameter would never
    /// change again. If it fails, parameters and moments are unchanged.
    fn step(&mut self) -> Result<StepReport> {
        let config = self.config;
        let check =
            |slot: &Slot<2>, grad: &Tensor, clip, lr| check_square(slot, grad, config.beta2, clip, lr);
        self.slots.step(config.max_norm, check, |block, clip, lr| {
            let t = block.steps as f64;
            let weight_decay = if block.group == Group::Network { config.weight_decay } else { 0.0 };
            let rule = Rule {
                clip,
                beta1: config.beta1,
                beta2: config.beta2,
                eps: config.eps,
                decay: 1.0 - lr * weight_decay,
                step: lr / (1.0 - config.beta1.powf(t)),
                scale: (1.0 - config.beta2.powf(t)).sqrt().recip(),
            };
            let [m, v] = &mut block.moments;
            rule.apply_to_tensors(&mut block.parameter, &mut block.gradient, m, v)
        })
    }

    fn scale_lr(&mut self, factor: f64) -> Result<()> {
        self.slots.scale_lr(factor)
    }

    /// Returns copies of the moments (`m/NAME` and `v/NAME`, on the host, with the parameter's shape) and of
    /// the numbers of updates (`steps`, i64, one per parameter).
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        self.slots.state()
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        self.slots.load_state(state)
    }
}

/// Checks that this gradient doesn't make the parameter's second moments overflow f32. Second moments in f64
/// can't overflow if the norm of the gradients is finite.
fn check_square(slot: &Slot<2>, grad: &Tensor, beta2: f64, clip: f64, lr: f64) -> Result<()> {
    let square = grad.f_to_kind(Kind::Double)?.f_mul_scalar(clip)?.f_square()?;
    let before = slot.moments[1].f_to_kind(Kind::Double)?.f_mul_scalar(beta2)?;
    let largest = before.f_add(&square.f_mul_scalar(1.0 - beta2)?)?.f_max()?.f_double_value(&[])?;
    if slot.parameter.tensor.kind() != Kind::Float || largest <= MAX_MOMENT {
        return Ok(());
    }
    let largest = grad.f_abs()?.f_max()?.f_double_value(&[])?;
    Err(Error::GradientOverflow { parameter: slot.parameter.name.clone(), largest, lr })
}
