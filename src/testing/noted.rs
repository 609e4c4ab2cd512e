use std::sync::{Arc, Mutex, PoisonError};

use tch::{Kind, Tensor};

use crate::Result;
use crate::nn::Parameters;
use crate::optim::{Optimizer, StepReport};

/// What a trainer's gradients were: its [optimizer](Self::optimizer) notes each one as it comes, summed over all replicas and not clipped.
///
/// ```
/// use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::{NotedGradients, Words}, Rng};
/// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Trainer, TrainerConfig};
/// let env = Words::new(2, 2);
/// let (cpu, double) = (tch::Device::Cpu, tch::Kind::Double);
/// let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), cpu, double)?;
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
/// let noted = NotedGradients::default();
/// let mut trainer =
///     Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?
///         .with_optimizer(|parameters| Ok(noted.optimizer(parameters, 0.1)))?;
/// let reported = trainer.step()?.grad_norm;
/// let norm = noted.take()[0].iter().map(|x| x * x).sum::<f64>().sqrt();
/// assert!((norm / reported - 1.0).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NotedGradients(Arc<Mutex<Vec<Vec<f64>>>>);

impl NotedGradients {
    /// An optimizer of these parameters that notes each gradient and takes `lr` times it off.
    #[must_use]
    pub fn optimizer(&self, parameters: &Parameters, lr: f64) -> impl Optimizer + use<> {
        let parameters = parameters.iter().map(|parameter| parameter.tensor.shallow_clone()).collect();
        Noting { parameters, lr, noted: self.clone() }
    }

    /// The gradients so far, which aren't kept: for each update one list of all parameters' numbers, with 0 where a parameter has none.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<f64>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Noting {
    parameters: Vec<Tensor>,
    lr: f64,
    noted: NotedGradients,
}

impl Optimizer for Noting {
    fn name(&self) -> &'static str {
        "noted gradients"
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
        self.noted.0.lock().unwrap_or_else(PoisonError::into_inner).push(all);
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
