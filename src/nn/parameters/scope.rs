//! Scopes, in which parameters are built.

use tch::{Device, Kind, Tensor};

use super::noise::noise;
use super::{UNSET_LOG_Z, join};
use crate::nn::{Group, Parameters};
use crate::{Result, Rng};

/// A scope in which parameters are built. The scope determines the prefix of their names, their group, and
/// the random generator of their initial values.
///
/// The methods [`uniform`](Self::uniform), [`constant`](Self::constant) and [`normal`](Self::normal) register
/// a tensor that requires a gradient, and return a shallow clone of it. A mistake is recorded, and
/// [`Parameters::check`] returns it as an error.
#[derive(Debug)]
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    rng: &'a mut Rng,
    prefix: String,
    group: Group,
}

impl<'a> Scope<'a> {
    /// Creates the root scope that [`Parameters::scope`] returns.
    pub(in crate::nn) fn root(parameters: &'a mut Parameters, rng: &'a mut Rng) -> Self {
        Self { parameters, rng, prefix: String::new(), group: Group::Network }
    }
    /// Returns a scope inside this scope. The names of its parameters have the prefix of this scope, a dot,
    /// and `name`.
    pub fn sub(&mut self, name: &str) -> Scope<'_> {
        Scope {
            prefix: join(&self.prefix, name),
            parameters: &mut *self.parameters,
            rng: &mut *self.rng,
            group: self.group,
        }
    }

    /// Returns a scope with the same prefix for parameters of another group.
    pub fn group(&mut self, group: Group) -> Scope<'_> {
        Scope { prefix: self.prefix.clone(), parameters: &mut *self.parameters, rng: &mut *self.rng, group }
    }

    /// The device on which the parameters are built.
    pub fn device(&self) -> Device {
        self.parameters.device()
    }

    /// The kind (data type) of the parameters.
    pub fn kind(&self) -> Kind {
        self.parameters.kind()
    }

    /// Builds a parameter with this shape, whose values are uniform on `[-bound, bound)`.
    pub fn uniform(&mut self, name: &str, shape: &[i64], bound: f64) -> Tensor {
        self.build(name, shape, |rng| bound * (2.0 * rng.uniform() - 1.0))
    }

    /// Builds a parameter with this shape, whose elements all have the same value. The shape `[]` is a
    /// scalar.
    pub fn constant(&mut self, name: &str, shape: &[i64], value: f64) -> Tensor {
        self.build(name, shape, |_| value)
    }

    /// Builds the parameter log Z, `[1]`. If `initial` is `None`, the trainer sets the initial value from its
    /// first batch.
    pub(in crate::nn) fn log_z(&mut self, initial: Option<f64>) -> Tensor {
        let log_z = self.group(Group::LogZ).constant("log_z", &[1], initial.unwrap_or(UNSET_LOG_Z));
        if initial.is_none() {
            self.parameters.log_z_without_initial_value = Some(log_z.shallow_clone());
        }
        log_z
    }

    /// Builds a parameter with this shape, whose values are normally distributed with mean 0 and standard
    /// deviation `std`.
    pub fn normal(&mut self, name: &str, shape: &[i64], std: f64) -> Tensor {
        self.build(name, shape, |rng| std * rng.normal())
    }

    /// Registers a tensor that another library created. The tensor stays shared with that library, and is
    /// trained in place if it requires a gradient.
    ///
    /// ```
    /// use gfn::{Rng, nn::Parameters};
    /// use tch::{Device, Kind, Tensor};
    /// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    /// let weight = Tensor::zeros([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    /// parameters.scope(&mut Rng::seeded(0)).sub("theirs").adopt("weight", &weight)?;
    /// assert_eq!(parameters.iter().next().map(|p| p.name.as_str()), Some("theirs.weight"));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a name that is taken, a tensor that is registered already,
    /// and a tensor of another data type or on another device than the parameters.
    pub fn adopt(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let name = join(&self.prefix, name);
        self.parameters.check_addition(&name, tensor)?;
        self.parameters.push(name, tensor.shallow_clone(), self.group);
        Ok(())
    }

    /// Builds a tensor of noise, `[n]`, with one number for each input, or for each output, of a layer. The
    /// noise is saved in checkpoints, but not trained.
    pub(in crate::nn) fn noise(&mut self, name: &str, n: i64) -> Tensor {
        let (name, tensor) = self.draw(name, &[n], noise);
        self.parameters.push_noise(name, tensor.shallow_clone());
        tensor
    }

    /// Checks the amplitude of noise and returns it. If the amplitude is invalid, a mistake is recorded and 0
    /// is returned.
    pub(in crate::nn) fn checked_noise(&mut self, sigma: f64) -> f64 {
        if sigma.is_finite() && sigma >= 0.0 {
            return sigma;
        }
        let setting = "the noise of a perceptron's weights";
        self.parameters.record_mistake(setting, sigma.to_string(), "a finite amplitude of at least 0");
        0.0
    }

    /// Registers a parameter. The function `draw` returns its initial values one by one.
    fn build(&mut self, name: &str, shape: &[i64], draw: impl FnMut(&mut Rng) -> f64) -> Tensor {
        let (name, tensor) = self.draw(name, shape, draw);
        let tensor = tensor.set_requires_grad(true);
        let clone = tensor.shallow_clone();
        self.parameters.push(name, tensor, self.group);
        clone
    }

    /// Returns the full name of a parameter and the tensor of its initial values. An invalid shape is
    /// recorded as a mistake.
    fn draw(&mut self, name: &str, shape: &[i64], mut draw: impl FnMut(&mut Rng) -> f64) -> (String, Tensor) {
        let name = join(&self.prefix, name);
        const SETTING: &str = "a parameter's shape";
        let mut sizes = shape.to_vec();
        if let Some(there) = self.parameters.find_difference(&name, shape) {
            let got = format!("{shape:?} for `{name}`, of which the checkpoint has {there}");
            let expected = "the environment and the network of the checkpoint";
            self.parameters.record_mistake(SETTING, got, expected);
            // The number of dimensions stays the same, because layers may read it.
            sizes.fill(0);
        }
        let mut refuse =
            |expected| self.parameters.record_mistake(SETTING, format!("{shape:?} for `{name}`"), expected);
        if shape.iter().any(|&size| size < 1) {
            refuse("sizes of at least 1");
            for size in &mut sizes {
                *size = (*size).max(0);
            }
        }
        let n = sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size));
        let mut values = Vec::new();
        match n.and_then(|n| usize::try_from(n).ok()).filter(|&n| values.try_reserve_exact(n).is_ok()) {
            Some(n) => values.extend((0..n).map(|_| draw(self.rng))),
            // Above, memory for the initial values is requested by `try_reserve_exact`, because a failed
            // ordinary allocation would abort the process.
            None => {
                refuse("a shape whose numbers fit into memory");
                sizes.fill(0);
            }
        }
        let tensor = Tensor::from_slice(&values)
            .view(sizes.as_slice())
            .to_kind(self.parameters.kind())
            .to_device(self.parameters.device());
        (name, tensor)
    }
}
