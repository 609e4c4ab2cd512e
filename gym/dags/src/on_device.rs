use std::sync::{Mutex, PoisonError};

use tch::{Device, Tensor};

/// A constant tensor that is built on first use, and stays on the device on which it was used last.
#[derive(Debug, Default)]
pub(crate) struct OnDevice(Mutex<Option<Tensor>>);

impl OnDevice {
    /// Returns the tensor on a device. `build` returns it on any device, and is called only once.
    pub(crate) fn get(&self, device: Device, build: impl FnOnce() -> Tensor) -> Tensor {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tensor = stored.take().unwrap_or_else(build).to_device(device);
        stored.insert(tensor).shallow_clone()
    }
}
