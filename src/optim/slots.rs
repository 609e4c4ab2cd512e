//! The parameters of an optimizer with their moments, and the operations that all optimizers share:
//! gradients, the norm of the gradients and clipping, saving and loading.

use tch::{Device, Kind, Tensor, no_grad};

use super::StepReport;
use super::config::is_rate;
use super::update::sum_of_squares;
use crate::error::check_setting;
use crate::nn::{Group, Parameter, Parameters};
use crate::tensor::slices;
use crate::{Error, Result};

/// The norm of all gradients below which no second moment can overflow f32. A second moment is a weighted
/// mean of squared gradients, each of which is then at most 1e38.
const SAFE_NORM: f64 = 1e19;

/// The first of two factors by which gradients are clipped if the whole clipping factor is too small for f32.
const FIRST_CLIP: f64 = 1e-30;

/// The parameters that an optimizer updates. Each has `N` moments, such as the running averages of its
/// gradients and of their squares.
#[derive(Debug)]
pub(super) struct Slots<const N: usize> {
    /// The names of the `N` moments in saved states.
    names: [&'static str; N],
    slots: Vec<Slot<N>>,
    /// The learning rates of the network and of log Z, without the factor of a schedule.
    rates: [f64; 2],
    /// The factor by which a schedule currently multiplies both learning rates.
    factor: f64,
}

/// A parameter with its moments, which are stored on the parameter's device.
#[derive(Debug)]
pub(super) struct Slot<const N: usize> {
    pub(super) parameter: Parameter,
    /// The number of updates of this parameter. A parameter isn't updated before it has a gradient for the
    /// first time; afterwards a missing gradient counts as zero.
    pub(super) steps: i64,
    pub(super) moments: [Tensor; N],
}

impl<const N: usize> Slot<N> {
    /// Returns the gradient by which the parameter is updated; `None` if the parameter isn't updated in this
    /// step.
    fn gradient(&self) -> Option<Tensor> {
        let tensor = &self.parameter.tensor;
        let grad = if tensor.requires_grad() { tensor.grad() } else { return None };
        if grad.defined() { Some(grad) } else { (self.steps > 0).then(|| tensor.zeros_like()) }
    }
}

impl<const N: usize> Slots<N> {
    /// Collects the parameters that require a gradient, and sets their moments to zero.
    pub(super) fn new(parameters: &Parameters, names: [&'static str; N], rates: [f64; 2]) -> Result<Self> {
        parameters.check()?;
        let trained = parameters.iter().filter(|parameter| parameter.tensor.requires_grad());
        let slots = trained.map(|parameter| Slot {
            parameter: parameter.clone(),
            steps: 0,
            moments: names.map(|_| parameter.tensor.zeros_like()),
        });
        Ok(Self { names, slots: slots.collect(), rates, factor: 1.0 })
    }

    /// Sets the factor by which the learning rates are multiplied. The new factor replaces the previous
    /// factor.
    pub(super) fn scale_lr(&mut self, factor: f64) -> Result<()> {
        self.factor = check_setting("lr_scale", factor, is_rate(factor), "a finite factor of at least 0")?;
        Ok(())
    }

    /// Updates every parameter by `update`, and sets the gradients to zero, even after an error. If the
    /// square of a gradient might overflow, `check` examines all gradients before the first update. Both
    /// functions receive a parameter, its gradient, the clipping factor and the learning rate. `update` must
    /// set the gradient to zero.
    pub(super) fn step(
        &mut self,
        max_norm: Option<f64>,
        check: impl Fn(&Slot<N>, &Tensor, f64, f64) -> Result<()>,
        update: impl Fn(&mut Slot<N>, &mut Tensor, f64, f64) -> Result<()>,
    ) -> Result<StepReport> {
        let [network, log_z] = self.rates.map(|rate| self.factor * rate);
        let rate = |slot: &Slot<N>| match slot.parameter.group {
            Group::Network => network,
            Group::LogZ => log_z,
        };
        let done = no_grad(|| {
            let grads: Vec<_> = self.slots.iter().map(Slot::gradient).collect();
            let grad_norm = self.norm(&grads)?;
            let mut clip = max_norm.filter(|max| grad_norm > *max).map_or(1.0, |max| max / grad_norm);
            if clip < f64::from(f32::MIN_POSITIVE) {
                // The clipping factor is too small for f32. Gradients are therefore multiplied by
                // `FIRST_CLIP` here, and by the remaining factor in the update.
                grads
                    .iter()
                    .flatten()
                    .try_for_each(|grad| grad.shallow_clone().f_mul_scalar_(FIRST_CLIP).map(|_| ()))?;
                clip /= FIRST_CLIP;
            }
            let given = self.slots.iter_mut().zip(grads).filter_map(|(slot, grad)| Some((slot, grad?)));
            let mut given: Vec<_> = given.collect();
            if grad_norm.min(max_norm.unwrap_or(f64::INFINITY)) > SAFE_NORM {
                given.iter().try_for_each(|(slot, grad)| check(slot, grad, clip, rate(slot)))?;
            }
            for (slot, grad) in &mut given {
                slot.steps += 1;
                update(slot, grad, clip, rate(slot))?;
            }
            Ok(StepReport { grad_norm })
        });
        if done.is_err() {
            // Gradients accumulate, so a gradient that isn't finite would make the gradients of all later
            // steps invalid.
            for slot in &self.slots {
                slot.parameter.clear_gradient();
            }
        }
        done
    }

    /// Returns the Euclidean norm of all gradients together. Returns an error that names the parameter if a
    /// gradient isn't finite.
    fn norm(&self, grads: &[Option<Tensor>]) -> Result<f64> {
        let mut squares = vec![0.0; grads.len()];
        // The sums of squares of gradients on a device are copied to the host together, so that the host
        // waits only once.
        let mut rows = Vec::new();
        let mut pending = Vec::new();
        for (row, grad) in grads.iter().enumerate() {
            let Some(grad) = grad else { continue };
            match slices::read(grad, sum_of_squares) {
                Some(square) => squares[row] = square,
                None => {
                    rows.push(row);
                    pending.push(dense(grad)?.f_to_kind(Kind::Double)?.f_square()?.f_sum(Kind::Double)?);
                }
            }
        }
        if !pending.is_empty() {
            let fetched = Vec::<f64>::try_from(Tensor::f_stack(&pending, 0)?)?;
            for (row, square) in rows.into_iter().zip(fetched) {
                squares[row] = square;
            }
        }
        match squares.iter().position(|square| !square.is_finite()) {
            Some(row) => Err(Error::NonFiniteGradient {
                parameter: self.slots[row].parameter.name.clone(),
                value: squares[row].sqrt(),
            }),
            None => Ok(squares.iter().sum::<f64>().sqrt()),
        }
    }

    /// Returns copies of the step counts (`steps`, one per parameter) and of the moments (`MOMENT/NAME`, on
    /// the host, with the parameter's shape).
    pub(super) fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let steps: Vec<i64> = self.slots.iter().map(|slot| slot.steps).collect();
        let mut state = vec![("steps".to_owned(), Tensor::from_slice(&steps))];
        for Slot { parameter, moments, .. } in &self.slots {
            for (which, moment) in self.names.iter().zip(moments) {
                let moment = moment.f_to_device(Device::Cpu)?.f_contiguous()?.copy();
                state.push((format!("{which}/{}", parameter.name), moment));
            }
        }
        Ok(state)
    }

    /// Restores a state that [`state`](Self::state) returned. If it returns an error, the moments are
    /// unchanged.
    pub(super) fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let wrong = |got: String| {
            Error::config(
                "the optimiser's state",
                got,
                "the state that the same kind of optimizer returned for the same parameters",
            )
        };
        let get = |name: &str, size: &[i64], kind: Kind| -> Result<&Tensor> {
            let Some((_, tensor)) = state.iter().find(|(n, _)| n == name) else {
                return Err(wrong(format!("a state without `{name}`")));
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
                return Err(wrong(format!("a state whose `{name}` has kind {:?}", tensor.kind())));
            }
            if kind != Kind::Int64 && tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                return Err(wrong(format!("a state whose `{name}` isn't finite")));
            }
            Ok(tensor)
        };
        let steps = Vec::<i64>::try_from(get("steps", &[self.slots.len() as i64], Kind::Int64)?)?;
        if let Some(step) = steps.iter().find(|&&step| step < 0) {
            return Err(wrong(format!("a state with a step count of {step}")));
        }
        let mut loaded = Vec::with_capacity(N * self.slots.len());
        for Slot { parameter: Parameter { name, tensor, .. }, .. } in &self.slots {
            for which in self.names {
                let moment = get(&format!("{which}/{name}"), &tensor.size(), tensor.kind())?;
                loaded.push(moment.f_to_device(tensor.device())?.f_contiguous()?.copy());
            }
        }
        if state.len() != loaded.len() + 1 {
            return Err(wrong(format!(
                "a state of {} tensors for {} parameters",
                state.len(),
                self.slots.len()
            )));
        }
        let mut loaded = loaded.into_iter();
        for (slot, steps) in self.slots.iter_mut().zip(steps) {
            slot.steps = steps;
            for (moment, new) in slot.moments.iter_mut().zip(&mut loaded) {
                *moment = new;
            }
        }
        Ok(())
    }
}

/// Converts a sparse gradient (of an embedding) to a dense gradient, with duplicate entries summed. A dense
/// gradient is returned as it is.
pub(super) fn dense(grad: &Tensor) -> Result<Tensor> {
    if grad.is_sparse() { Ok(grad.f_to_dense(None, false)?) } else { Ok(grad.shallow_clone()) }
}
