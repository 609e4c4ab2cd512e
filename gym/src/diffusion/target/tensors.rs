use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gfn::env::{Reals, Rows};
use gfn::nn::load_torch_script;
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use super::Target;

type Density = Box<dyn Fn(&Tensor) -> Result<Tensor> + Send>;

/// A target given by tensor operations, as a closure or a TorchScript file that maps points `[n, d]` to
/// log-densities `[n]`. The gradient comes from autograd.
///
/// ```
/// use gfn::env::Reals;
/// use gfn_gym::diffusion::{FromTensors, Target};
/// use tch::{Device, Kind, Tensor};
/// let bowl =
///     |points: &Tensor| Ok(points.square().sum_dim_intlist([1i64].as_slice(), false, points.kind()) * -0.5);
/// let target = FromTensors::new(2, Kind::Double, Device::Cpu, bowl)?;
/// assert_eq!(target.gradient(&Reals::from_rows([[1.0, -3.0]]))?.row(0), [-1.0, 3.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct FromTensors {
    dim: usize,
    kind: Kind,
    device: Device,
    /// The closure or the script. A lock protects it, because the tensors that it may hold must be used from
    /// one thread at a time.
    density: Mutex<Density>,
    log_z: Option<f64>,
}

impl std::fmt::Debug for FromTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromTensors")
            .field("dim", &self.dim)
            .field("log_z", &self.log_z)
            .finish_non_exhaustive()
    }
}

impl FromTensors {
    /// Builds a target from a closure that computes the log-densities of points of `dim` coordinates. The
    /// points are passed to the closure as a tensor with the dtype `kind` on `device`. The closure is called
    /// once as a test.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the closure returns `[n]` for `[n, dim]`, and the closure's errors.
    pub fn new(
        dim: usize,
        kind: Kind,
        device: Device,
        density: impl Fn(&Tensor) -> Result<Tensor> + Send + 'static,
    ) -> Result<Self> {
        if dim == 0 {
            let expected = "at least one coordinate";
            return Err(Error::config("the target's dimension", "0", expected));
        }
        let target = Self { dim, kind, device, density: Mutex::new(Box::new(density)), log_z: None };
        let _ = target.call(&Tensor::zeros([2, dim as i64], (kind, device)))?;
        Ok(target)
    }

    /// Loads a TorchScript file whose forward method returns the log-density; the script runs in evaluation
    /// mode. `kind` is the dtype of the script's parameters.
    ///
    /// # Errors
    /// [`Error::File`] if the file doesn't exist or isn't TorchScript, [`Error::Torch`] for a script that
    /// can't take points of `dim` coordinates, and [`Error::Shape`] unless the script returns `[n]` for `[n,
    /// dim]`.
    pub fn load(path: &Path, dim: usize, kind: Kind, device: Device) -> Result<Self> {
        let script = load_torch_script(path, device)?;
        Self::new(dim, kind, device, move |points| Ok(script.forward_ts(&[points])?))
    }

    /// Sets the value that [`Target::log_z`] returns.
    #[must_use]
    pub fn with_log_z(self, log_z: f64) -> Self {
        Self { log_z: Some(log_z), ..self }
    }

    fn call(&self, points: &Tensor) -> Result<Tensor> {
        let density = self.density.lock().unwrap_or_else(PoisonError::into_inner);
        let values = density(points)?;
        let n = points.size()[0];
        if values.size() == [n] {
            return Ok(values);
        }
        Err(Error::shape(
            format!("the log-densities of a target for points {:?}", points.size()),
            [n],
            values.size(),
            "let the closure or script return one number per point, and check the target's dimension",
        ))
    }
}

impl Target for FromTensors {
    fn dim(&self) -> usize {
        self.dim
    }

    fn log_density(&self, points: &Reals) -> Result<Vec<f64>> {
        let values = tch::no_grad(|| self.call(&points.to_tensor(self.kind, self.device)))?;
        Ok(Vec::try_from(values.to_kind(Kind::Double).to_device(Device::Cpu))?)
    }

    fn gradient(&self, points: &Reals) -> Result<Reals> {
        if points.is_empty() {
            return Ok(points.clone());
        }
        tch::with_grad(|| {
            let points = points.to_tensor(self.kind, self.device).set_requires_grad(true);
            let total = self.call(&points)?.sum(self.kind);
            let gradient = Tensor::f_run_backward(&[&total], &[&points], false, false)?;
            Reals::from_tensor(&gradient[0])
        })
    }

    fn log_z(&self) -> Option<f64> {
        self.log_z
    }
}
