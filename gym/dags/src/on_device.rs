use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use tch::{Device, Tensor};

/// A constant tensor that is built on first use, and stays on the device on which it was used last.
#[derive(Debug, Default)]
pub(crate) struct OnDevice(Mutex<Option<Tensor>>);

impl OnDevice {
    /// Returns the tensor on a device. `build` returns it on any device, and is called only once.
    pub(crate) fn get(&self, device: Device, build: impl FnOnce() -> Tensor) -> Tensor {
        let Ok(tensor) = self.try_get(device, || Ok::<_, Infallible>(build()));
        tensor
    }

    /// Returns the tensor on a device, or the error of `build`, like [`get`](Self::get).
    pub(crate) fn try_get<E>(
        &self,
        device: Device,
        build: impl FnOnce() -> Result<Tensor, E>,
    ) -> Result<Tensor, E> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tensor = stored.take().map_or_else(build, Ok)?.to_device(device);
        Ok(stored.insert(tensor).shallow_clone())
    }
}
