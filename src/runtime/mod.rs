//! Set-up of the process: threads, memory allocator, device, and libtorch.
//!
//! A program that doesn't choose the numbers of threads gets defaults from its first trainer or sampler. To
//! choose the numbers, or to choose a device by name, call [`Runtime::new`] first in `main`, before any use
//! of a tensor or of rayon:
//!
//! ```
//! use gfn::runtime::{DeviceKind, Runtime};
//! let runtime = Runtime::new(1, DeviceKind::Cpu)?;
//! assert_eq!(runtime.device(), tch::Device::Cpu);
//! # Ok::<(), gfn::Error>(())
//! ```

mod backward;
mod denormals;
mod libtorch;
mod threads;

pub use backward::{backward, differentiate_by};
pub(crate) use denormals::flushing_denormals;
pub use threads::Threads;
pub(crate) use threads::prepare;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The device of tensors, as a user writes it: `cpu`, `cuda` (the first GPU) or `cuda:N`.
///
/// ```
/// use gfn::runtime::DeviceKind;
/// assert_eq!("cuda:1".parse::<DeviceKind>()?, DeviceKind::Cuda(1));
/// assert_eq!("cuda".parse::<DeviceKind>()?.to_string(), "cuda:0");
/// assert!("gpu".parse::<DeviceKind>().is_err());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceKind {
    /// The CPU.
    #[default]
    Cpu,
    /// The NVIDIA GPU with this index, counted from 0.
    Cuda(usize),
}

impl DeviceKind {
    /// Converts the device to a device of tch.
    ///
    /// # Errors
    /// [`Error::Device`] with the reason and a remedy if CUDA or the GPU with this index can't be used.
    pub fn resolve(self) -> Result<tch::Device> {
        let Self::Cuda(index) = self else {
            return Ok(tch::Device::Cpu);
        };
        match libtorch::n_gpus() {
            Ok(n) if index < *n => Ok(tch::Device::Cuda(index)),
            Ok(n) => {
                let reason = format!("this machine has {n} such devices, counted from 0");
                Err(Error::device(self, reason, "choose a lower index, or check CUDA_VISIBLE_DEVICES"))
            }
            Err((reason, remedy)) => Err(Error::device(self, reason, remedy)),
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for DeviceKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let index = match text {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            _ => text
                .strip_prefix("cuda:")
                .filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|index| index.parse().ok()),
        };
        index
            .map(Self::Cuda)
            .ok_or_else(|| Error::config("device", format!("`{text}`"), "cpu, cuda or cuda:N"))
    }
}

impl TryFrom<String> for DeviceKind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<DeviceKind> for String {
    fn from(device: DeviceKind) -> Self {
        device.to_string()
    }
}

/// The set-up of this process: its numbers of threads and its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runtime {
    threads: Threads,
    kind: DeviceKind,
    device: tch::Device,
}

impl Runtime {
    /// Sets up the threads and the allocator of this process, and resolves the device.
    ///
    /// * If `threads` is a single number, rayon gets this number of threads, which step, mask and encode
    ///   states and compute rewards, and libtorch's pools (intra-op and inter-op) get one thread. [`Threads`]
    ///   sets both numbers.
    /// * glibc's allocator keeps large blocks for later operations instead of returning them to the system.
    ///
    /// Call this function once, at the start of `main`. A second call with the same `threads` changes only
    /// the device. If a program doesn't call this function, its first trainer or sampler gives libtorch one
    /// thread and leaves rayon's default, unless the program has chosen numbers of threads by
    /// `OMP_NUM_THREADS`, `MKL_NUM_THREADS`, `RAYON_NUM_THREADS`, `tch::set_num_threads` or a custom global
    /// rayon pool.
    ///
    /// # Threads and reproducibility
    /// The same seed gives the same bits for any number of *rayon* threads. *libtorch's* products and sums
    /// round differently for each number of threads (and each type of processor). Runs with different numbers
    /// of libtorch threads therefore diverge after some steps: the runs are equally good, but not equal. If
    /// `threads` is a single number, libtorch has one thread, so any such number gives the same bits.
    ///
    /// # Threads and speed
    /// Work on states and rewards is split over rayon's threads only while measurements show that this is
    /// faster than the calling thread alone. If other programs use the cores, little time is lost. With two
    /// or more threads the calling thread, usually the main thread, is one of rayon's threads.
    ///
    /// libtorch's threads spin while they wait for each other. Several threads speed up large products on an
    /// otherwise idle machine. If other processes use the same cores, each wait can take a scheduler time
    /// slice, and a run can take ten times as long. In this case set `OMP_WAIT_POLICY=passive` before the
    /// program starts, or keep libtorch at one thread.
    ///
    /// # Errors
    /// * [`Error::Config`] if a number of threads is zero or above 4,096, or if this process already runs
    ///   with other numbers (from an earlier call, or because rayon was used before);
    /// * [`Error::Device`] if the device can't be used.
    pub fn new(threads: impl Into<Threads>, device: DeviceKind) -> Result<Self> {
        // The device is resolved first, so that a failed request for a GPU leaves the process unchanged.
        let resolved = device.resolve()?;
        let threads = threads.into();
        threads.set()?;
        Ok(Self { threads, kind: device, device: resolved })
    }

    /// Returns the numbers of rayon and libtorch threads.
    #[must_use]
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// Returns the device as the user wrote it.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Returns the device as a device of tch.
    #[must_use]
    pub fn device(&self) -> tch::Device {
        self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_parsed_and_printed() {
        for (text, device) in
            [("cpu", DeviceKind::Cpu), ("cuda:0", DeviceKind::Cuda(0)), ("cuda:12", DeviceKind::Cuda(12))]
        {
            assert_eq!(text.parse::<DeviceKind>().unwrap(), device);
            assert_eq!(device.to_string(), text);
            let json = serde_json::to_string(&device).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<DeviceKind>(&json).unwrap(), device);
        }
        for text in ["", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "gpu", "cuda:99999999999999999999"]
        {
            let error = text.parse::<DeviceKind>().unwrap_err().to_string();
            assert!(error.contains("cpu, cuda or cuda:N"), "{text}: {error}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_the_reason() {
        let error = DeviceKind::Cuda(4095).resolve().unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
        assert!(error.to_string().contains("cuda:4095"), "{error}");
    }
}
