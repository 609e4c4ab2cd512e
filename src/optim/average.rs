//! Moving averages of parameters over training.

use tch::{Tensor, no_grad};

use crate::error::check_setting;
use crate::nn::{Group, ParameterBackup, Parameters};
use crate::tensor::flat;
use crate::{Error, Result};

/// An exponential moving average of a model's parameters, for sampling or evaluation. The average changes
/// more smoothly than the parameters.
///
/// The average starts as a copy of the parameters. With the current parameters `p`, [`update`](Self::update)
/// replaces the average `a` by `decay a + (1 - decay) p`. Tensors that aren't trained (noise, for example)
/// aren't averaged.
///
/// ```
/// use gfn::{nn::Parameters, optim::Average, Rng};
/// use tch::{Device, Kind};
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
/// let mut x = parameters.scope(&mut Rng::seeded(0)).constant("x", &[1], 0.0);
/// let mut average = Average::new(&parameters, 0.75)?;
/// tch::no_grad(|| { let _ = x.fill_(8.0); });
/// average.update(&parameters)?;
/// // 0.75 * 0 + 0.25 * 8, while the closure runs.
/// let averaged = average.with(&parameters, || x.double_value(&[0]))?;
/// assert_eq!((averaged, x.double_value(&[0])), (2.0, 8.0));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Average {
    decay: f64,
    /// The average of each trained parameter, with the parameter's name.
    values: Vec<(String, Tensor)>,
}

impl Average {
    /// Creates an average that starts as a copy of the parameters' values.
    ///
    /// # Errors
    /// [`Error::Config`] unless `0 <= decay < 1`.
    pub fn new(parameters: &Parameters, decay: f64) -> Result<Self> {
        check_setting("the decay of the average", decay, (0.0..1.0).contains(&decay), "0 <= decay < 1")?;
        let values = no_grad(|| trained(parameters).map(|(name, t)| (name.to_owned(), t.copy())).collect());
        Ok(Self { decay, values })
    }

    /// Updates the average with the current values of the parameters.
    ///
    /// # Errors
    /// [`Error::Config`] for the parameters of another model.
    pub fn update(&mut self, parameters: &Parameters) -> Result<()> {
        self.check(parameters)?;
        no_grad(|| {
            for (mut average, tensor) in self.pairs(parameters)? {
                // `lerp_` computes `a + (1 - decay) (p - a)`, where `a` is the average and `p` is the
                // parameter.
                let _ = average.lerp_(&tensor, 1.0 - self.decay);
            }
            Ok(())
        })
    }

    /// Sets the average to the current values of the parameters.
    ///
    /// # Errors
    /// [`Error::Config`] for the parameters of another model.
    pub(crate) fn restart(&mut self, parameters: &Parameters) -> Result<()> {
        self.check(parameters)?;
        no_grad(|| {
            self.pairs(parameters)?.iter_mut().for_each(|(average, tensor)| average.copy_(tensor));
            Ok(())
        })
    }

    /// Runs `f` while the parameters have the values of the average, and restores the parameters' previous
    /// values afterwards, even after a panic.
    ///
    /// A loss computed before this call can't be differentiated after the call, because the call changes the
    /// parameters in place.
    ///
    /// # Errors
    /// [`Error::Config`] for the parameters of another model.
    pub fn with<T>(&self, parameters: &Parameters, f: impl FnOnce() -> T) -> Result<T> {
        self.check(parameters)?;
        let tensors: Vec<&Tensor> = trained(parameters).map(|(_, tensor)| tensor).collect();
        let _back = ParameterBackup::keep(tensors.iter().copied());
        self.give(parameters)?;
        Ok(f())
    }

    /// Sets the parameters to the average. Their previous values are lost.
    ///
    /// # Errors
    /// [`Error::Config`] for the parameters of another model.
    pub fn give(&self, parameters: &Parameters) -> Result<()> {
        self.check(parameters)?;
        no_grad(|| {
            for ((_, tensor), (_, average)) in trained(parameters).zip(&self.values) {
                tensor.shallow_clone().copy_(average);
            }
        });
        Ok(())
    }

    /// Returns copies of the averages with the parameters' names, for a section of a checkpoint
    /// ([`Checkpoint::with`](crate::train::Checkpoint::with)).
    pub fn state(&self) -> Vec<(String, Tensor)> {
        self.values.iter().map(|(name, average)| (name.clone(), average.copy())).collect()
    }

    /// Restores averages that [`state`](Self::state) returned for the same model.
    ///
    /// # Errors
    /// [`Error::Config`] for the averages of another model. If it fails, the averages are unchanged.
    pub fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        let mut found = Vec::with_capacity(self.values.len());
        for (name, average) in &self.values {
            let fits = |t: &Tensor| t.size() == average.size() && t.kind() == average.kind();
            match state.iter().find(|(other, t)| other == name && fits(t)) {
                Some((_, tensor)) => found.push(tensor),
                None => return Err(other_model(name)),
            }
        }
        no_grad(|| {
            for ((_, average), tensor) in self.values.iter_mut().zip(found) {
                average.copy_(tensor);
            }
        });
        Ok(())
    }

    /// Returns each average with its parameter. The parameters of a group that an optimizer has moved into
    /// one block of memory are a single pair of blocks.
    fn pairs(&self, parameters: &Parameters) -> Result<Vec<(Tensor, Tensor)>> {
        let mut pairs = Vec::new();
        for group in [Group::Network, Group::LogZ] {
            let trained = parameters.iter().filter(|p| p.tensor.requires_grad());
            let members = trained.zip(&self.values).filter(|(parameter, _)| parameter.group == group);
            let shared = members.map(|(p, (_, average))| (average.shallow_clone(), p.tensor.shallow_clone()));
            let (mut averages, tensors): (Vec<Tensor>, Vec<Tensor>) = shared.unzip();
            match flat::view(&tensors).filter(|_| tensors.len() > 1) {
                Some(block) => pairs.push((flat::merge(&mut averages)?, block)),
                None => pairs.extend(averages.into_iter().zip(tensors)),
            }
        }
        Ok(pairs)
    }

    fn check(&self, parameters: &Parameters) -> Result<()> {
        let mut own = trained(parameters);
        for (name, average) in &self.values {
            let fits = |(other, t): (&str, &Tensor)| other == name && t.size() == average.size();
            if !own.next().is_some_and(fits) {
                return Err(other_model(name));
            }
        }
        own.next().map_or(Ok(()), |(name, _)| Err(other_model(name)))
    }
}

fn trained(parameters: &Parameters) -> impl Iterator<Item = (&str, &Tensor)> {
    let trained = parameters.iter().filter(|p| p.tensor.requires_grad());
    trained.map(|p| (p.name.as_str(), &p.tensor))
}

fn other_model(name: &str) -> Error {
    Error::config(
        "the model of an average",
        format!("a model that differs at parameter `{name}`"),
        "the model that the average was created for",
    )
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::nn::{Linear, Mlp, MlpConfig};

    fn model(outputs: i64) -> (Linear, Parameters) {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let layer = Linear::new(&mut parameters.scope(&mut Rng::seeded(0)).sub("a"), 2, outputs);
        (layer, parameters)
    }

    fn add(parameters: &Parameters, by: f64) {
        tch::no_grad(|| {
            for parameter in parameters {
                let _ = parameter.tensor.shallow_clone().g_add_scalar_(by);
            }
        });
    }

    #[test]
    fn it_is_the_weighted_sum_of_what_the_parameters_were() {
        let (layer, parameters) = model(3);
        let start = layer.weight().detach().copy();
        let mut average = Average::new(&parameters, 0.9).unwrap();
        let mut expected = 0.0;
        for step in 1..=5 {
            add(&parameters, 1.0);
            average.update(&parameters).unwrap();
            expected = 0.9 * expected + 0.1 * f64::from(step);
        }
        let seen = average.with(&parameters, || layer.weight().detach().copy()).unwrap();
        assert!((seen - (&start + expected)).abs().max().double_value(&[]) < 1e-12);
        assert_eq!(layer.weight().detach(), start + 5.0);
    }

    #[test]
    fn values_come_back_after_a_panic_and_from_a_state() {
        let (layer, parameters) = model(3);
        let mut average = Average::new(&parameters, 0.0).unwrap();
        let state = average.state();
        add(&parameters, 2.0);
        let own = layer.weight().detach().copy();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            average.with(&parameters, || panic!("in the middle of sampling")).unwrap_or(())
        }));
        assert!(result.is_err());
        assert_eq!(layer.weight().detach(), own);
        average.update(&parameters).unwrap();
        assert_eq!(average.with(&parameters, || layer.weight().detach().copy()).unwrap(), own);
        average.load_state(&state).unwrap();
        let seen = average.with(&parameters, || layer.weight().detach().copy()).unwrap();
        assert!((seen - (own - 2.0)).abs().max().double_value(&[]) < 1e-12);
    }

    #[test]
    fn other_models_are_refused() {
        let ((_, three), (_, four)) = (model(3), model(4));
        let mut average = Average::new(&three, 0.5).unwrap();
        assert!(average.update(&four).unwrap_err().to_string().contains("`a.weight`"));
        assert!(average.with(&four, || ()).is_err());
        assert!(average.load_state(&Average::new(&four, 0.5).unwrap().state()).is_err());
        let mut more = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(0);
        let mut scope = more.scope(&mut rng);
        let _ = Linear::new(&mut scope.sub("a"), 2, 3);
        let _ = Mlp::new(&mut scope.sub("b"), 2, 3, &MlpConfig::default());
        assert!(average.update(&more).unwrap_err().to_string().contains("`b.0.weight`"));
        for decay in [1.0, -0.1, f64::NAN] {
            assert!(Average::new(&three, decay).unwrap_err().to_string().contains("decay"));
        }
    }
}
