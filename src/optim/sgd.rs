use serde::{Deserialize, Serialize};
use tch::{Device, Tensor, no_grad};

use super::gradients::{dense, gradient, norm};
use super::{Optimizer, StepReport};
use crate::nn::{Group, Parameter, Parameters};
use crate::{Error, Result};

/// Settings of [`Sgd`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SgdConfig {
    /// Learning rate of [`Group::Network`].
    pub lr: f64,
    /// Learning rate of [`Group::LogZ`].
    pub log_z_lr: f64,
    /// Share of the last step that the next one keeps, at least 0 and below 1.
    pub momentum: f64,
    /// The largest norm of all gradients together; longer ones are scaled down to it.
    pub max_norm: Option<f64>,
}

impl Default for SgdConfig {
    /// Learning rates 1e-2 and 1e-1, momentum 0.9, gradients clipped to norm 10.
    fn default() -> Self {
        Self { lr: 1e-2, log_z_lr: 1e-1, momentum: 0.9, max_norm: Some(10.0) }
    }
}

impl SgdConfig {
    fn check(&self) -> Result<()> {
        let rate = |x: f64| x.is_finite() && x >= 0.0;
        let rates = [("lr", self.lr), ("log_z_lr", self.log_z_lr)];
        if let Some((setting, got)) = rates.into_iter().find(|(_, got)| !rate(*got)) {
            return Err(Error::config(setting, got, "a finite number of at least 0"));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(Error::config("momentum", self.momentum, "0 <= momentum < 1"));
        }
        match self.max_norm {
            Some(max) if !(max.is_finite() && max > 0.0) => {
                Err(Error::config("max_norm", max, "a finite number above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// Stochastic gradient descent with momentum (Polyak, 1964), in PyTorch's form: `b = momentum b + g`, `p = p - lr b`.
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
    factor: f64,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    parameter: Parameter,
    momentum: Tensor,
    moved: bool,
}

impl Sgd {
    /// An optimizer for the parameters that require a gradient.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting out of its range, and for what [`Parameters::check`] finds.
    pub fn new(parameters: &Parameters, config: SgdConfig) -> Result<Self> {
        config.check()?;
        parameters.check()?;
        let trained = parameters.iter().filter(|p| p.tensor.requires_grad());
        let slots = trained.map(|parameter| Slot {
            momentum: parameter.tensor.zeros_like(),
            parameter: parameter.clone(),
            moved: false,
        });
        Ok(Self { config, factor: 1.0, slots: slots.collect() })
    }

    fn update(&mut self) -> Result<StepReport> {
        let grads: Vec<_> = self.slots.iter().map(|slot| gradient(&slot.parameter, slot.moved)).collect();
        let grad_norm = norm(self.slots.iter().map(|slot| &slot.parameter), &grads)?;
        let clip = match self.config.max_norm {
            Some(max) if grad_norm > max => max / grad_norm,
            _ => 1.0,
        };
        for (slot, grad) in self.slots.iter_mut().zip(grads) {
            let Some(mut grad) = grad else { continue };
            let lr = match slot.parameter.group {
                Group::Network => self.config.lr,
                Group::LogZ => self.config.log_z_lr,
            };
            let step = dense(&grad)?.f_mul_scalar(clip)?;
            let _ = slot.momentum.f_mul_scalar_(self.config.momentum)?.f_add_(&step)?;
            let _ = slot.parameter.tensor.f_sub_(&slot.momentum.f_mul_scalar(lr * self.factor)?)?;
            let _ = grad.f_zero_()?;
            slot.moved = true;
        }
        Ok(StepReport { grad_norm })
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn step(&mut self) -> Result<StepReport> {
        no_grad(|| {
            let done = self.update();
            if done.is_err() {
                self.slots.iter().for_each(|slot| slot.parameter.clear_gradient());
            }
            done
        })
    }

    fn scale_lr(&mut self, factor: f64) -> Result<()> {
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(Error::config("lr_scale", factor, "a finite factor of at least 0"));
        }
        self.factor = factor;
        Ok(())
    }

    /// `momentum/NAME`, shaped like the parameter, and `moved` (u8, one per parameter): whether it ever had a gradient.
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let moved: Vec<u8> = self.slots.iter().map(|slot| u8::from(slot.moved)).collect();
        let mut state = vec![("moved".to_owned(), Tensor::from_slice(&moved))];
        for slot in &self.slots {
            let momentum = slot.momentum.f_to_device(Device::Cpu)?.f_contiguous()?.copy();
            state.push((format!("momentum/{}", slot.parameter.name), momentum));
        }
        Ok(state)
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        const EXPECTED: &str = "what `Sgd::state` gave for the same parameters";
        let wrong = |got: String| Error::config("the optimiser's state", got, EXPECTED);
        let get = |name: &str| {
            let found = state.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor);
            found.ok_or_else(|| wrong(format!("without `{name}`")))
        };
        let moved = Vec::<u8>::try_from(get("moved")?).map_err(|_| wrong("with a `moved` of another kind".into()))?;
        if moved.len() != self.slots.len() || state.len() != self.slots.len() + 1 {
            return Err(wrong(format!("{} tensors for {} parameters", state.len(), self.slots.len())));
        }
        let mut loaded = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let tensor = &slot.parameter.tensor;
            let name = format!("momentum/{}", slot.parameter.name);
            let momentum = get(&name)?;
            if momentum.size() != tensor.size() {
                let what = format!("`{name}` of the optimiser's state");
                return Err(Error::shape(
                    what,
                    tensor.size(),
                    momentum.size(),
                    "load a state that was saved for the same model",
                ));
            }
            if momentum.kind() != tensor.kind() {
                return Err(wrong(format!("`{name}` of kind {:?}", momentum.kind())));
            }
            if momentum.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                return Err(wrong(format!("not finite in `{name}`")));
            }
            loaded.push(momentum.f_to_device(tensor.device())?.copy());
        }
        for ((slot, momentum), moved) in self.slots.iter_mut().zip(loaded).zip(moved) {
            slot.momentum = momentum;
            slot.moved = moved == 1;
        }
        Ok(())
    }
}
