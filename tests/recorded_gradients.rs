//! An optimizer that records gradients, for tests. The tests of `gfn-dist` use this file, too.

use std::sync::{Arc, Mutex, PoisonError};

use tch::{Kind, Tensor};

use gfn::Result;
use gfn::nn::Parameters;
use gfn::optim::{Optimizer, StepReport};

/// The gradients of a trainer, which its [optimizer](Self::optimizer) records. Gradients are recorded after
/// they are summed over all replicas and before they are clipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedGradients(Arc<Mutex<Vec<Vec<f64>>>>);

impl RecordedGradients {
    /// Builds an optimizer that records each gradient and then subtracts `lr` times this gradient from the
    /// parameters.
    #[must_use]
    pub(crate) fn optimizer(&self, parameters: &Parameters, lr: f64) -> impl Optimizer + use<> {
        let parameters = parameters.iter().map(|parameter| parameter.tensor.shallow_clone()).collect();
        RecordingOptimizer { parameters, lr, recorded_gradients: self.clone() }
    }

    /// Returns the recorded gradients and removes them. The result has a list for each update, with the
    /// gradients of all parameters; a parameter without a gradient has zeros.
    #[must_use]
    pub(crate) fn take(&self) -> Vec<Vec<f64>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct RecordingOptimizer {
    parameters: Vec<Tensor>,
    lr: f64,
    recorded_gradients: RecordedGradients,
}

impl Optimizer for RecordingOptimizer {
    fn name(&self) -> &'static str {
        "recorded gradients"
    }

    fn step(&mut self) -> Result<StepReport> {
        let mut all = Vec::new();
        for tensor in &mut self.parameters {
            let mut gradient = tensor.grad();
            if !gradient.defined() {
                all.extend(std::iter::repeat_n(0.0, tensor.numel()));
                continue;
            }
            all.extend(Vec::<f64>::try_from(gradient.to_kind(Kind::Double).f_reshape([-1])?)?);
            let step = &gradient * self.lr;
            let _ = tch::no_grad(|| tensor.f_sub_(&step))?;
            let _ = gradient.f_zero_()?;
        }
        let grad_norm = all.iter().map(|x| x * x).sum::<f64>().sqrt();
        self.recorded_gradients.0.lock().unwrap_or_else(PoisonError::into_inner).push(all);
        Ok(StepReport { grad_norm })
    }

    fn scale_lr(&mut self, _: f64) -> Result<()> {
        Ok(())
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        Ok(Vec::new())
    }

    fn load_state(&mut self, _: &[(String, Tensor)]) -> Result<()> {
        Ok(())
    }
}
