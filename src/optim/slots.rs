//! The parameters of an optimizer with their moments, and the operations that all optimizers share:
//! gradients, the norm of the gradients and clipping, saving and loading.

use tch::{Device, Kind, Tensor, no_grad};

use super::StepReport;
use super::config::is_rate;
use super::update::sum_of_squares;
use crate::error::check_setting;
use crate::nn::{Group, Parameter, Parameters};
use crate::tensor::{flat, slices};
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
    steps: i64,
    pub(super) moments: [Tensor; N],
}

/// Parameters that are updated together: a single parameter, or several parameters that lie in one block of
/// memory, as their gradients and their moments do.
pub(super) struct Block<const N: usize> {
    pub(super) group: Group,
    /// The number of updates of each of the parameters, including the current update.
    pub(super) steps: i64,
    pub(super) parameter: Tensor,
    /// The gradient, dense.
    pub(super) gradient: Tensor,
    pub(super) moments: [Tensor; N],
    /// The slot of each parameter and its gradient, dense.
    members: Vec<(usize, Tensor)>,
}

impl<const N: usize> Slot<N> {
    /// Returns the dense, contiguous gradient by which the parameter is updated; `None` if the parameter
    /// isn't updated in this step. If the parameter's gradient isn't dense and contiguous, the function
    /// returns a copy and sets the gradient to zero.
    fn gradient(&self) -> Result<Option<Tensor>> {
        let tensor = &self.parameter.tensor;
        if !tensor.requires_grad() {
            return Ok(None);
        }
        let mut grad = tensor.grad();
        if !grad.defined() {
            return Ok((self.steps > 0).then(|| tensor.zeros_like()));
        }
        let is_sparse = grad.is_sparse();
        if !is_sparse && grad.is_contiguous() {
            return Ok(Some(grad));
        }
        // Duplicate entries of a sparse gradient (of an embedding) are summed.
        let copy = if is_sparse { grad.f_to_dense(None, false)? } else { grad.f_contiguous()? };
        let _ = grad.f_zero_()?;
        Ok(Some(copy))
    }

    /// Returns `true` if the parameter may be moved into a block of memory together with other parameters.
    /// f32 parameters on the host are updated one by one, because their update is a single pass over slices.
    fn can_move(&self) -> bool {
        let tensor = &self.parameter.tensor;
        let is_slice = (tensor.kind(), tensor.device()) == (Kind::Float, Device::Cpu);
        !is_slice && tensor.is_contiguous() && tensor.numel() > 0
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
    /// square of a gradient might overflow, `check` examines all gradients before the first update. `check`
    /// receives a parameter and its gradient, and `update` a block of parameters, each with the clipping
    /// factor and the learning rate. `update` must set the gradient to zero.
    pub(super) fn step(
        &mut self,
        max_norm: Option<f64>,
        check: impl Fn(&Slot<N>, &Tensor, f64, f64) -> Result<()>,
        update: impl Fn(&mut Block<N>, f64, f64) -> Result<()>,
    ) -> Result<StepReport> {
        let [network, log_z] = self.rates.map(|rate| self.factor * rate);
        let rate = |group| match group {
            Group::Network => network,
            Group::LogZ => log_z,
        };
        let done = no_grad(|| {
            let mut blocks = self.blocks()?;
            let grad_norm = self.norm(&blocks)?;
            let mut clip = max_norm.filter(|max| grad_norm > *max).map_or(1.0, |max| max / grad_norm);
            if clip < f64::from(f32::MIN_POSITIVE) {
                // The clipping factor is too small for f32. Gradients are therefore multiplied by
                // `FIRST_CLIP` here, and by the remaining factor in the update.
                for block in &mut blocks {
                    let _ = block.gradient.f_mul_scalar_(FIRST_CLIP)?;
                }
                clip /= FIRST_CLIP;
            }
            if grad_norm.min(max_norm.unwrap_or(f64::INFINITY)) > SAFE_NORM {
                for (slot, grad) in blocks.iter().flat_map(|block| &block.members) {
                    let slot = &self.slots[*slot];
                    check(slot, grad, clip, rate(slot.parameter.group))?;
                }
            }
            for block in &mut blocks {
                update(block, clip, rate(block.group))?;
                for &(slot, _) in &block.members {
                    self.slots[slot].steps = block.steps;
                    slices::mark_modified(&self.slots[slot].parameter.tensor)?;
                }
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

    /// Returns the parameters that are updated in this step, in as few blocks as possible. The parameters of
    /// a block are in the same group and have had the same number of updates.
    fn blocks(&self) -> Result<Vec<Block<N>>> {
        let mut lists: Vec<Vec<(usize, Tensor)>> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(grad) = slot.gradient()? else { continue };
            let fits = |list: &&mut Vec<(usize, Tensor)>| {
                let first = &self.slots[list[0].0];
                first.can_move() && (first.parameter.group, first.steps) == (slot.parameter.group, slot.steps)
            };
            let list = if slot.can_move() { lists.iter_mut().find(fits) } else { None };
            match list {
                Some(list) => list.push((index, grad)),
                None => lists.push(vec![(index, grad)]),
            }
        }
        lists.into_iter().map(|members| self.block(members)).collect()
    }

    fn block(&self, members: Vec<(usize, Tensor)>) -> Result<Block<N>> {
        let merge = |tensor: &dyn Fn(&Slot<N>) -> &Tensor| {
            let tensors = members.iter().map(|(slot, _)| tensor(&self.slots[*slot]).shallow_clone());
            flat::merge(&mut tensors.collect::<Vec<_>>())
        };
        let first = &self.slots[members[0].0];
        let mut moments = first.moments.each_ref().map(Tensor::shallow_clone);
        for (k, moment) in moments.iter_mut().enumerate() {
            *moment = merge(&|slot| &slot.moments[k])?;
        }
        let mut gradients: Vec<Tensor> = members.iter().map(|(_, grad)| grad.shallow_clone()).collect();
        Ok(Block {
            group: first.parameter.group,
            steps: first.steps + 1,
            parameter: merge(&|slot| &slot.parameter.tensor)?,
            gradient: flat::merge(&mut gradients)?,
            moments,
            members,
        })
    }

    /// Returns the Euclidean norm of all gradients together. Returns an error that names the parameter if a
    /// gradient isn't finite.
    fn norm(&self, blocks: &[Block<N>]) -> Result<f64> {
        let gradients: Vec<&Tensor> = blocks.iter().map(|block| &block.gradient).collect();
        let squares = squared_norms(&gradients)?;
        let Some(wrong) = squares.iter().position(|square| !square.is_finite()) else {
            return Ok(squares.iter().sum::<f64>().sqrt());
        };
        let members = &blocks[wrong].members;
        let of_members = squared_norms(&members.iter().map(|(_, grad)| grad).collect::<Vec<_>>())?;
        let first = of_members.iter().position(|square| !square.is_finite()).unwrap_or(0);
        Err(Error::NonFiniteGradient {
            parameter: self.slots[members[first].0].parameter.name.clone(),
            value: squares[wrong].sqrt(),
        })
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

/// Returns the sum of the squares of each gradient. The norms of gradients on a device are copied to the
/// host together, so that the host waits only once.
fn squared_norms(gradients: &[&Tensor]) -> Result<Vec<f64>> {
    let mut squares = vec![0.0; gradients.len()];
    let mut rows = Vec::new();
    let mut pending = Vec::new();
    for (row, grad) in gradients.iter().enumerate() {
        match slices::read(grad, sum_of_squares) {
            Some(square) => squares[row] = square,
            None => {
                rows.push(row);
                pending.push(grad.f_norm_scalaropt_dtype(2, Kind::Double)?);
            }
        }
    }
    if !pending.is_empty() {
        let fetched = Vec::<f64>::try_from(Tensor::f_stack(&pending, 0)?)?;
        for (row, norm) in rows.into_iter().zip(fetched) {
            squares[row] = norm * norm;
        }
    }
    Ok(squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// A step makes the same operations for each block, so few blocks mean few operations.
    #[test]
    fn the_number_of_blocks_does_not_grow_with_the_number_of_parameters() {
        let count = |n: usize, kind| {
            let mut parameters = Parameters::new(Device::Cpu, kind);
            let mut rng = Rng::seeded(0);
            for group in [Group::Network, Group::LogZ] {
                for i in 0..n {
                    let mut scope = parameters.scope(&mut rng);
                    let _ = scope.group(group).normal(&format!("{group:?}{i}"), &[2, 3], 1.0);
                }
            }
            let sum: Vec<Tensor> = parameters.iter().map(|p| p.tensor.square()).collect();
            Tensor::cat(&sum, 0).sum(kind).backward();
            let slots = Slots::new(&parameters, ["m"], [0.1; 2]).unwrap();
            let blocks = slots.blocks().unwrap();
            assert_eq!(blocks.iter().map(|block| block.members.len()).sum::<usize>(), 2 * n);
            blocks.len()
        };
        assert_eq!([1, 2, 40].map(|n| count(n, Kind::Double)), [2; 3]);
        assert_eq!(count(40, Kind::Float), 80, "slices are updated one by one");
    }
}
