//! The parameters of a model: an ordered list of named leaf tensors, initialised from an [`Rng`].

mod backup;
mod expected;
mod noise;
mod parameter;
mod scope;
mod stack;

pub(crate) use backup::ParameterBackup;
pub(crate) use noise::WeightNoise;
pub use parameter::{Group, Parameter};
pub use scope::Scope;

use std::collections::{HashMap, HashSet};

use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::runtime::DeviceKind;
use crate::{Error, Result, Rng};

/// The parameters of a model, in the order in which they were built. All parameters have the same data type
/// (in libtorch: kind) and are on the same device.
///
/// Initial values are drawn on the host in f64 from an [`Rng`], so a seed gives one model on every device.
///
/// Methods that build parameters return no errors: the first mistake (such as a name used twice) is stored,
/// and [`Parameters::check`] returns it. The optimiser and checkpoints call `check` first.
///
/// ```
/// use gfn::{Rng, nn::{Group, Linear, Parameters}};
/// use tch::{Device, Kind, Tensor};
///
/// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
/// let mut rng = Rng::seeded(0);
/// let mut scope = parameters.scope(&mut rng);
/// let layer = Linear::new(&mut scope.sub("torso"), 4, 8);
/// let log_z = scope.group(Group::LogZ).constant("log_z", &[], 0.0);
/// let out = layer.forward(&Tensor::zeros([3, 4], (Kind::Float, Device::Cpu)));
/// assert_eq!(out.size(), [3, 8]);
/// assert_eq!(parameters.count(), 4 * 8 + 8 + 1);
/// assert_eq!(parameters.iter().next().map(|p| p.name.as_str()), Some("torso.weight"));
/// parameters.check()?;
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Parameters {
    list: Vec<Parameter>,
    names: HashSet<String>,
    device: Device,
    kind: Kind,
    /// The first mistake while parameters were built: the setting's name, its value, and the expected value.
    mistake: Option<(&'static str, String, &'static str)>,
    /// The requested device, if it isn't available.
    missing_device: Option<Device>,
    /// The tensors of `list` that hold noise of layers with noisy weights.
    pub(in crate::nn) noise: Vec<Tensor>,
    /// The names and shapes of the only parameters that may be built; `None` if any may be built.
    expected: Option<HashMap<String, Vec<i64>>>,
    /// The parameter log Z, if its initial value was left to the trainer.
    log_z_without_initial_value: Option<Tensor>,
    /// The number of policies whose parameters are stacked in these parameters; `None` for those of a single
    /// policy.
    n_stacked: Option<usize>,
}

/// The value of log Z before the trainer sets it, if no initial value was chosen.
pub(crate) const UNSET_LOG_Z: f64 = 0.0;

impl Parameters {
    /// Creates an empty list of parameters of the data type `kind` on one device. `Kind::Double` is meant for
    /// tests of exactness. If the data type or the device can't be used, `Kind::Float` or the host is used
    /// instead, and [`check`](Self::check) returns an error.
    pub fn new(device: Device, kind: Kind) -> Self {
        let missing_device = check_device(device).is_err().then_some(device);
        let is_float = matches!(kind, Kind::Float | Kind::Double);
        let mut parameters = Self {
            list: Vec::new(),
            names: HashSet::new(),
            device: if missing_device.is_some() { Device::Cpu } else { device },
            kind: if is_float { kind } else { Kind::Float },
            mistake: None,
            missing_device,
            noise: Vec::new(),
            expected: None,
            log_z_without_initial_value: None,
            n_stacked: None,
        };
        if !is_float {
            parameters.record_mistake(
                "the kind of the parameters",
                format!("{kind:?}"),
                "`Kind::Float` or `Kind::Double`",
            );
        }
        parameters
    }

    /// The device of all parameters.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The kind (data type) of all parameters.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of trained scalars: the elements of all tensors that require a gradient.
    pub fn count(&self) -> i64 {
        let trained = self.list.iter().filter(|p| p.tensor.requires_grad());
        trained.map(|p| p.tensor.numel() as i64).sum()
    }

    /// Returns an iterator over the parameters, in the order in which they were built.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.list.iter()
    }

    /// Returns a number that grows when values of parameters are changed by [`Adam`](crate::optim::Adam), by
    /// restoring a checkpoint, or by an in-place libtorch operation. An equal number doesn't prove that
    /// nothing has changed: libtorch's fused optimizers, `set_data`, and writes through [`Tensor::data_ptr`]
    /// don't increase it.
    ///
    /// ```
    /// # use gfn::{Rng, nn::Parameters};
    /// # use tch::{Device, Kind};
    /// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    /// let mut x = parameters.scope(&mut Rng::seeded(0)).constant("x", &[2], 1.0);
    /// let before = parameters.version();
    /// assert_eq!(parameters.version(), before);
    /// tch::no_grad(|| { let _ = x.fill_(2.0); });
    /// assert!(parameters.version() > before);
    /// ```
    pub fn version(&self) -> u64 {
        // No term ever decreases, so changes can't cancel each other.
        self.list.iter().map(|p| p.tensor.internal_version() as u64).sum()
    }

    /// Returns the parameter log Z if its value hasn't been chosen, restored or learned yet.
    pub(crate) fn unset_log_z(&self) -> Option<Tensor> {
        let log_z = self.log_z_without_initial_value.as_ref()?;
        (log_z.double_value(&[0]) == UNSET_LOG_Z).then(|| log_z.shallow_clone())
    }

    /// Returns the root scope, which draws initial values from `rng`. The scope has an empty name prefix and
    /// the group [`Group::Network`].
    pub fn scope<'a>(&'a mut self, rng: &'a mut Rng) -> Scope<'a> {
        Scope::root(self, rng)
    }

    /// Returns an error that describes the first mistake made while parameters were built, if there was one.
    ///
    /// # Errors
    /// [`Error::Config`] for a name used twice, a shape with a size below 1, a data type other than `Float`
    /// and `Double`, and an invalid amplitude of noise; [`Error::Device`] for a device that isn't available.
    pub fn check(&self) -> Result<()> {
        if let Some((setting, got, expected)) = &self.mistake {
            return Err(Error::config(setting, got, expected));
        }
        if let Some(device) = self.missing_device {
            check_device(device)?;
        }
        Ok(())
    }

    /// Adds the variables of a `tch::nn` module to [`Group::Network`], named `prefix.name` and sorted by
    /// name. The parameters share their tensors with the module, so training changes the module in place.
    /// Tensors of the module that aren't trainable are saved in checkpoints, but not trained.
    ///
    /// The module's initial values come from libtorch's generator, which `tch::manual_seed` seeds.
    ///
    /// ```
    /// # use gfn::nn::Parameters;
    /// # use tch::{Device, Kind, nn};
    /// let module = nn::VarStore::new(Device::Cpu);
    /// let layer = nn::linear(module.root() / "head", 4, 2, Default::default());
    /// let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    /// parameters.extend_from_var_store("mine", &module)?;
    /// let names: Vec<_> = parameters.iter().map(|p| p.name.as_str()).collect();
    /// assert_eq!(names, ["mine.head.bias", "mine.head.weight"]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a name that is taken, a tensor that is registered already, or a tensor of
    /// another data type or on another device. In these cases no variable is added.
    pub fn extend_from_var_store(&mut self, prefix: &str, module: &VarStore) -> Result<()> {
        let mut variables: Vec<(String, Tensor)> = module.variables().into_iter().collect();
        variables.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, tensor) in &mut variables {
            *name = join(prefix, name);
            self.check_addition(name, tensor)?;
        }
        for (name, tensor) in variables {
            self.push(name, tensor, Group::Network);
        }
        Ok(())
    }

    /// Checks that a tensor of another library can be added to these parameters.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that is taken, a tensor that is registered already, or a tensor of
    /// another data type or on another device.
    fn check_addition(&self, name: &str, tensor: &Tensor) -> Result<()> {
        if self.names.contains(name) {
            return Err(Error::config(NAME, describe_duplicate(name), DIFFERENT));
        }
        let same_storage = |p: &&Parameter| tensor.numel() > 0 && p.tensor.data_ptr() == tensor.data_ptr();
        let kind = tensor.kind();
        let device = tensor.device();
        let (got, expected) = match self.list.iter().find(same_storage) {
            Some(other) => (
                format!("`{name}`, whose tensor is already registered as `{}`", other.name),
                "tensors that are registered only once (otherwise they are updated twice per step)",
            ),
            None if (kind, device) != (self.kind, self.device) => (
                format!(
                    "`{name}` ({kind:?} on {device:?}) among parameters that are {:?} on {:?}",
                    self.kind, self.device
                ),
                "the same kind and device for all parameters (`VarStore::new(device)`, `to_kind`)",
            ),
            None => return Ok(()),
        };
        Err(Error::config("a parameter that the library did not create", got, expected))
    }

    /// Records a mistake: a setting, its value, and the expected value. Only the first mistake is kept.
    pub(in crate::nn) fn record_mistake(
        &mut self,
        setting: &'static str,
        got: String,
        expected: &'static str,
    ) {
        self.mistake.get_or_insert((setting, got, expected));
    }

    /// Registers a tensor of noise. The tensor is saved in checkpoints, but not trained.
    pub(in crate::nn) fn push_noise(&mut self, name: String, tensor: Tensor) {
        self.noise.push(tensor.shallow_clone());
        self.push(name, tensor, Group::Network);
    }

    /// Registers a tensor as a parameter. If its name is taken, only a mistake is recorded.
    pub(in crate::nn) fn push(&mut self, name: String, tensor: Tensor, group: Group) {
        if self.names.insert(name.clone()) {
            self.list.push(Parameter { name, tensor, group });
        } else {
            self.record_mistake(NAME, describe_duplicate(&name), DIFFERENT);
        }
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = &'a Parameter;
    type IntoIter = std::slice::Iter<'a, Parameter>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

const NAME: &str = "a parameter's name";
const DIFFERENT: &str = "different names: build each layer in a separate scope (`scope.sub(\"name\")`)";

fn describe_duplicate(name: &str) -> String {
    format!("`{name}`, which another parameter has")
}

/// Checks that tensors can be built on a device.
///
/// # Errors
/// [`Error::Device`] if the device isn't available.
fn check_device(device: Device) -> Result<()> {
    let is_available = match device {
        Device::Cpu => true,
        Device::Cuda(index) => return DeviceKind::Cuda(index).resolve().map(drop),
        Device::Mps => tch::utils::has_mps(),
        Device::Vulkan => tch::utils::has_vulkan(),
    };
    let error =
        || Error::device(format!("{device:?}"), "this libtorch has no such device", "use `Device::Cpu`");
    if is_available { Ok(()) } else { Err(error()) }
}

/// Returns the full name of a parameter in a scope with this prefix.
pub(in crate::nn) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_the_seed_and_are_the_same_in_both_kinds() {
        let build = |kind| {
            let mut p = Parameters::new(Device::Cpu, kind);
            let mut rng = Rng::seeded(3);
            let mut scope = p.scope(&mut rng);
            let a = scope.sub("a").uniform("w", &[20, 50], 0.5);
            let b = scope.normal("n", &[1000], 2.0);
            (p, a, b)
        };
        let (p, a, b) = build(Kind::Float);
        let (_, a64, b64) = build(Kind::Double);
        assert_eq!(a, a64.to_kind(Kind::Float));
        assert_eq!(b, b64.to_kind(Kind::Float));
        let bound = a64.abs().max().double_value(&[]);
        assert!((0.49..=0.5).contains(&bound), "bound {bound}");
        let mean = b64.mean(Kind::Double).double_value(&[]);
        let std = b64.std(true).double_value(&[]);
        assert!(mean.abs() < 0.3 && (std - 2.0).abs() < 0.2, "mean {mean}, std {std}");
        assert!(p.iter().all(|p| p.tensor.requires_grad() && p.tensor.is_leaf()));
        assert_eq!(p.count(), 2000);
    }

    #[test]
    fn the_returned_tensor_is_the_registered_one() {
        let mut p = Parameters::new(Device::Cpu, Kind::Double);
        let mut rng = Rng::seeded(0);
        let x = p.scope(&mut rng).constant("x", &[2], 3.0);
        (&x * &x).sum(Kind::Double).backward();
        let grad = p.iter().next().map(|p| p.tensor.grad());
        assert_eq!(grad, Some(Tensor::from_slice(&[6.0, 6.0])));
    }

    #[test]
    fn scopes_name_and_group() {
        let mut p = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let mut scope = p.scope(&mut rng);
        let mut conv = scope.sub("conv0");
        let _ = conv.sub("mlp").constant("w", &[1], 0.0);
        let _ = conv.group(Group::LogZ).sub("z").constant("w", &[], 0.0);
        let _ = conv.constant("w", &[1], 0.0);
        let got: Vec<_> = p.iter().map(|p| (p.name.as_str(), p.group)).collect();
        let expected =
            [("conv0.mlp.w", Group::Network), ("conv0.z.w", Group::LogZ), ("conv0.w", Group::Network)];
        assert_eq!(got, expected);
    }

    #[test]
    fn mistakes_are_reported() {
        let mut p = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let _ = p.scope(&mut rng).constant("w", &[1], 0.0);
        assert!(p.check().is_ok());
        let _ = p.scope(&mut rng).constant("w", &[1], 0.0);
        let message = p.check().unwrap_err().to_string();
        assert!(message.contains("`w`"), "{message}");

        let mut p = Parameters::new(Device::Cpu, Kind::Float);
        let _ = p.scope(&mut rng).uniform("w", &[2, -1], 0.1);
        let message = p.check().unwrap_err().to_string();
        assert!(message.contains("[2, -1]"), "{message}");

        for kind in [Kind::Half, Kind::Int64] {
            let mut p = Parameters::new(Device::Cpu, kind);
            let _ = p.scope(&mut rng).uniform("w", &[2], 0.1);
            let message = p.check().unwrap_err().to_string();
            assert!(message.contains(&format!("{kind:?}")), "{message}");
        }
    }

    #[test]
    fn an_unavailable_device_is_refused_when_parameters_are_checked() {
        // No machine has 4,097 GPUs, so this device is never available.
        let mut p = Parameters::new(Device::Cuda(4096), Kind::Float);
        let mut rng = Rng::seeded(0);
        let _ = p.scope(&mut rng).uniform("w", &[2], 0.1);
        let error = p.check().unwrap_err();
        assert!(matches!(error, Error::Device { .. }) && error.to_string().contains("cuda:4096"), "{error}");
    }

    #[test]
    fn a_tch_module_is_added_once_and_stays_shared() {
        let module = VarStore::new(Device::Cpu);
        let x = (module.root() / "a").var("x", &[2], tch::nn::Init::Const(1.0));
        let mut p = Parameters::new(Device::Cpu, Kind::Float);
        p.extend_from_var_store("m", &module).unwrap();
        x.sum(Kind::Float).backward();
        let parameter = p.iter().next().unwrap();
        assert_eq!((parameter.name.as_str(), p.count()), ("m.a.x", 2));
        assert_eq!(parameter.tensor.grad(), Tensor::from_slice(&[1f32, 1.0]));

        let same_name = p.extend_from_var_store("m", &module).unwrap_err();
        assert!(same_name.to_string().contains("`m.a.x`"), "{same_name}");
        let same_tensor = p.extend_from_var_store("n", &module).unwrap_err();
        assert!(same_tensor.to_string().contains("`m.a.x`"), "{same_tensor}");
        assert_eq!(p.iter().count(), 1);

        let mut doubles = Parameters::new(Device::Cpu, Kind::Double);
        let kind = doubles.extend_from_var_store("m", &module).unwrap_err();
        assert!(kind.to_string().contains("Float"), "{kind}");
    }
}
