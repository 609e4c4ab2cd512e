//! Adam with decoupled weight decay: one pass over slices on a CPU, tensor operations elsewhere.

use tch::{Device, Kind, Tensor, no_grad};

use super::gradients::{dense, gradient, norm};
use super::update::Rule;
use super::{AdamConfig, Optimizer, StepReport};
use crate::nn::{Group, Parameter, Parameters};
use crate::tensor::slices;
use crate::{Error, Result};

/// If the norm of all gradients is below this, no second moment can overflow, because it is a weighted mean of squares.
const SAFE_NORM: f64 = 1e19;

/// First factor on gradients if the clipping factor is too small for f32.
const FIRST_CLIP: f64 = 1e-30;

/// Largest second moment in f32; slightly below the maximum, so that rounding can't give infinity.
const MAX_MOMENT: f64 = 0.99 * f32::MAX as f64;

/// Adam (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019), saveable to the last bit.
///
/// With gradient `g` (clipped by the total norm) and the parameter's own step count `t`:
/// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
/// `p = (1 - lr wd) p - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)`.
///
/// A parameter that has never had a gradient isn't changed. Once it has had one, a missing gradient counts as zero.
/// That makes a resumed run, whose gradients are undefined at first, equal to an uninterrupted one.
///
/// ```
/// use gfn::{nn::Parameters, optim::{Adam, AdamConfig}, Rng};
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
    /// The settings, with the learning rates as last set.
    config: AdamConfig,
    /// The learning rates that it was made with, or that were set: what a schedule multiplies.
    base: (f64, f64),
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    parameter: Parameter,
    steps: i64,
    moments: Moments,
}

/// First and second moment, on the device where the parameter is updated.
#[derive(Debug)]
enum Moments {
    Host(Vec<f32>, Vec<f32>),
    Device(Tensor, Tensor),
}

impl Adam {
    /// An optimiser for the parameters that require a gradient.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting out of its range, and the errors of [`Parameters::check`].
    pub fn new(parameters: &Parameters, config: AdamConfig) -> Result<Self> {
        config.check()?;
        parameters.check()?;
        let trained = parameters.iter().filter(|p| p.tensor.requires_grad());
        let slots = trained.map(|parameter| Slot {
            parameter: parameter.clone(),
            steps: 0,
            moments: Moments::zeros(&parameter.tensor),
        });
        Ok(Self { config, base: (config.lr, config.log_z_lr), slots: slots.collect() })
    }

    /// The settings, with the learning rates as last set.
    pub fn config(&self) -> &AdamConfig {
        &self.config
    }

    /// Changes both learning rates, for a schedule. They aren't a part of [`Adam::state`], because a schedule follows
    /// from the step.
    ///
    /// # Errors
    /// [`Error::Config`] if one is negative or not finite; both stay as they were then.
    pub fn set_lr(&mut self, lr: f64, log_z_lr: f64) -> Result<()> {
        let config = AdamConfig { lr, log_z_lr, ..self.config };
        config.check()?;
        self.config = config;
        self.base = (lr, log_z_lr);
        Ok(())
    }

    /// Updates every parameter from its gradient. Gradients are set to zero afterwards, even after an error.
    ///
    /// On a CPU, f32 parameters are written to directly: like any in-place operation of libtorch, this must not run
    /// while another thread uses the parameters. A loss recorded before the step can't be differentiated after it:
    /// `f_backward` then returns libtorch's error, and `backward` panics.
    ///
    /// # Errors
    /// [`Error::NonFiniteGradient`] if a gradient isn't finite; [`Error::GradientOverflow`] if its square overflows
    /// f32, because the second moment would stay infinite and the parameter would never change again. Parameters and
    /// moments are unchanged then.
    pub fn step(&mut self) -> Result<StepReport> {
        no_grad(|| {
            let done = self.update();
            if done.is_err() {
                // Gradients accumulate, so a non-finite one would spoil all later steps.
                self.slots.iter().for_each(|slot| slot.parameter.clear_gradient());
            }
            done
        })
    }

    fn update(&mut self) -> Result<StepReport> {
        let grads: Vec<_> = self.slots.iter().map(|slot| gradient(&slot.parameter, slot.steps > 0)).collect();
        let grad_norm = norm(self.slots.iter().map(|slot| &slot.parameter), &grads)?;
        let mut clip = match self.config.max_norm {
            Some(max) if grad_norm > max => max / grad_norm,
            _ => 1.0,
        };
        if clip < f64::from(f32::MIN_POSITIVE) {
            // The factor is too small for f32, so it is applied in two steps.
            grads.iter().flatten().try_for_each(|grad| grad.shallow_clone().f_mul_scalar_(FIRST_CLIP).map(|_| ()))?;
            clip /= FIRST_CLIP;
        }
        if grad_norm.min(self.config.max_norm.unwrap_or(f64::INFINITY)) > SAFE_NORM {
            self.check_squares(&grads, clip)?;
        }
        for (slot, grad) in self.slots.iter_mut().zip(grads) {
            if let Some(grad) = grad {
                slot.update(grad, &self.config, clip)?;
            }
        }
        Ok(StepReport { grad_norm })
    }

    /// Refuses gradients whose second moment would overflow f32. (f64 can't overflow if the norm is finite.)
    fn check_squares(&self, grads: &[Option<Tensor>], clip: f64) -> Result<()> {
        for (slot, grad) in self.slots.iter().zip(grads) {
            let Some(grad) = grad else { continue };
            let moment = slot.next_second_moment(grad, self.config.beta2, clip)?;
            if slot.parameter.tensor.kind() == Kind::Float && moment > MAX_MOMENT {
                let largest = dense(grad)?.f_abs()?.f_max()?.f_double_value(&[])?;
                let (lr, _) = slot.rates(&self.config);
                return Err(Error::GradientOverflow { parameter: slot.parameter.name.clone(), largest, lr });
            }
        }
        Ok(())
    }

    /// Moments (`m/NAME`, `v/NAME`, on the host, shaped like the parameter) and step counts (`steps`, i64, one per
    /// parameter), copied. With the parameters' values they are all that [`Adam::load_state`] needs to go on bit for bit.
    ///
    /// # Errors
    /// [`Error::Torch`] if data can't be copied from a device.
    pub fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let mut state = Vec::with_capacity(2 * self.slots.len() + 1);
        let steps: Vec<i64> = self.slots.iter().map(|slot| slot.steps).collect();
        state.push(("steps".to_owned(), Tensor::from_slice(&steps)));
        for slot in &self.slots {
            let name = &slot.parameter.name;
            let (m, v) = match &slot.moments {
                Moments::Host(m, v) => (Tensor::f_from_slice(m)?, Tensor::f_from_slice(v)?),
                Moments::Device(m, v) => (m.copy(), v.copy()),
            };
            for (which, moment) in [("m", m), ("v", v)] {
                let moment = moment.f_to_device(Device::Cpu)?.f_contiguous()?;
                let moment = moment.f_view(slot.parameter.tensor.size().as_slice())?;
                state.push((format!("{which}/{name}"), moment));
            }
        }
        Ok(state)
    }

    /// Continues from a state that [`Adam::state`] gave for the same parameters.
    ///
    /// # Errors
    /// [`Error::Config`] if a tensor is missing, left over, of another kind or not finite; [`Error::Shape`] if one has
    /// another shape. Nothing is changed then.
    pub fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let wrong = |got: String| {
            Error::config("the optimiser's state", got, "what `Adam::state` gave for the same parameters")
        };
        let get = |name: &str, size: &[i64], kind: Kind| -> Result<&Tensor> {
            let Some((_, tensor)) = state.iter().find(|(n, _)| n == name) else {
                return Err(wrong(format!("without `{name}`")));
            };
            if tensor.size() != size {
                return Err(Error::shape(
                    format!("`{name}` of the optimiser's state"),
                    size.to_vec(),
                    tensor.size(),
                    "load a state that was saved for the same model",
                ));
            }
            if tensor.kind() != kind {
                return Err(wrong(format!("`{name}` of kind {:?}", tensor.kind())));
            }
            if kind != Kind::Int64 && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                return Err(wrong(format!("not finite in `{name}`")));
            }
            Ok(tensor)
        };
        let steps = get("steps", &[self.slots.len() as i64], Kind::Int64)?;
        let steps = Vec::<i64>::try_from(steps)?;
        if let Some(step) = steps.iter().find(|&&step| step < 0) {
            return Err(wrong(format!("with a step count of {step}")));
        }
        let mut loaded = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let Parameter { name, tensor, .. } = &slot.parameter;
            let m = get(&format!("m/{name}"), &tensor.size(), tensor.kind())?;
            let v = get(&format!("v/{name}"), &tensor.size(), tensor.kind())?;
            loaded.push(match slot.moments {
                Moments::Host(..) => Moments::Host(host(m)?, host(v)?),
                Moments::Device(..) => {
                    Moments::Device(m.f_to_device(tensor.device())?.copy(), v.f_to_device(tensor.device())?.copy())
                }
            });
        }
        if state.len() != 2 * self.slots.len() + 1 {
            return Err(wrong(format!("{} tensors for {} parameters", state.len(), self.slots.len())));
        }
        for ((slot, moments), steps) in self.slots.iter_mut().zip(loaded).zip(steps) {
            slot.moments = moments;
            slot.steps = steps;
        }
        Ok(())
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn step(&mut self) -> Result<StepReport> {
        Self::step(self)
    }

    fn scale_lr(&mut self, factor: f64) -> Result<()> {
        let config = AdamConfig { lr: self.base.0 * factor, log_z_lr: self.base.1 * factor, ..self.config };
        config.check()?;
        self.config = config;
        Ok(())
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Self::state(self)
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        Self::load_state(self, state)
    }
}

/// The elements of an f32 tensor, row by row.
fn host(tensor: &Tensor) -> Result<Vec<f32>> {
    let mut out = vec![0.0; tensor.numel()];
    tensor.f_to_device(Device::Cpu)?.f_contiguous()?.f_copy_data(&mut out, tensor.numel())?;
    Ok(out)
}

impl Moments {
    fn zeros(parameter: &Tensor) -> Self {
        match slices::read(parameter, <[f32]>::len) {
            Some(n) => Self::Host(vec![0.0; n], vec![0.0; n]),
            None => Self::Device(parameter.zeros_like(), parameter.zeros_like()),
        }
    }
}

impl Slot {
    /// The largest element that the second moment would have after this gradient, in f64.
    fn next_second_moment(&self, grad: &Tensor, beta2: f64, clip: f64) -> Result<f64> {
        let v = match &self.moments {
            Moments::Host(_, v) => Tensor::f_from_slice(v)?.f_view_as(&self.parameter.tensor)?,
            Moments::Device(_, v) => v.shallow_clone(),
        };
        let square = dense(grad)?.f_to_kind(Kind::Double)?.f_mul_scalar(clip)?.f_square()?;
        let next = v.f_to_kind(Kind::Double)?.f_mul_scalar(beta2)?.f_add(&square.f_mul_scalar(1.0 - beta2)?)?;
        Ok(next.f_max()?.f_double_value(&[])?)
    }

    /// Learning rate and weight decay.
    fn rates(&self, config: &AdamConfig) -> (f64, f64) {
        match self.parameter.group {
            Group::Network => (config.lr, config.weight_decay),
            Group::LogZ => (config.log_z_lr, 0.0),
        }
    }

    fn update(&mut self, mut grad: Tensor, config: &AdamConfig, clip: f64) -> Result<()> {
        self.steps += 1;
        let (lr, weight_decay) = self.rates(config);
        let t = self.steps as f64;
        let rule = Rule {
            clip,
            beta1: config.beta1,
            beta2: config.beta2,
            eps: config.eps,
            decay: 1.0 - lr * weight_decay,
            step: lr / (1.0 - config.beta1.powf(t)),
            scale: (1.0 - config.beta2.powf(t)).sqrt().recip(),
        };
        let parameter = &mut self.parameter.tensor;
        match &mut self.moments {
            Moments::Host(m, v) => {
                let done = slices::write(parameter, &mut grad, |p, g| rule.apply(p, g, m, v)).or_else(|| {
                    // For a sparse or strided gradient: use a dense copy, and clear the original.
                    let mut copy = dense(&grad).ok()?.f_contiguous().ok()?;
                    let _ = grad.f_zero_().ok()?;
                    slices::write(parameter, &mut copy, |p, g| rule.apply(p, g, m, v))
                });
                done.ok_or_else(|| {
                    Error::config(
                        "a parameter of the optimiser",
                        format!("`{}` ({parameter:?})", self.parameter.name),
                        "the kind and device that it had when the optimiser was made",
                    )
                })?;
                slices::mark_modified(parameter)?;
            }
            Moments::Device(m, v) => {
                rule.apply_to_tensors(parameter, &dense(&grad)?, m, v)?;
                let _ = grad.f_zero_()?;
            }
        }
        Ok(())
    }
}
