//! The process a run lives in: its threads, its memory allocator, its device, and the libtorch that it found.
//!
//! Call [`Runtime::new`] first thing in `main`, before anything touches a tensor or rayon:
//!
//! ```
//! use gfn::runtime::{DeviceKind, Runtime};
//! let runtime = Runtime::new(1, DeviceKind::Cpu)?;
//! assert_eq!(runtime.device(), tch::Device::Cpu);
//! # Ok::<(), gfn::Error>(())
//! ```
//!
//! [`Libtorch::loaded`] and [`cuda`] tell what is there without changing anything; `examples/doctor.rs` prints it.

mod libtorch;

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, Once, PoisonError};

use serde::{Deserialize, Serialize};

pub use libtorch::{Cuda, Libtorch, cuda};

use crate::{Error, Result};

/// Where tensors live, as a user names it: `cpu`, `cuda` (the first GPU) or `cuda:N`.
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
    /// The host.
    #[default]
    Cpu,
    /// An NVIDIA GPU, by its index.
    Cuda(usize),
}

impl DeviceKind {
    /// The device as tch names it.
    ///
    /// # Errors
    /// [`Error::Device`] with the reason and a remedy, if CUDA or that GPU can't be used.
    pub fn resolve(self) -> Result<tch::Device> {
        let Self::Cuda(index) = self else {
            return Ok(tch::Device::Cpu);
        };
        match cuda() {
            Cuda::Visible { devices } if index < *devices => Ok(tch::Device::Cuda(index)),
            Cuda::Visible { devices } => Err(Error::Device {
                device: self.to_string(),
                reason: format!("there are {devices} of them, counted from 0"),
                remedy: "choose a lower index, or check CUDA_VISIBLE_DEVICES",
            }),
            Cuda::Absent { reason, remedy } => {
                Err(Error::Device { device: self.to_string(), reason: reason.clone(), remedy })
            }
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
        index.map(Self::Cuda).ok_or_else(|| Error::Config {
            setting: "device",
            got: format!("`{text}`"),
            expected: "cpu, cuda or cuda:N",
        })
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

/// A process that has been set up: holds what it was set up with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runtime {
    threads: usize,
    kind: DeviceKind,
    device: tch::Device,
}

/// The number of threads of this process, once it is set: neither rayon's pool nor libtorch's can be built twice.
static THREADS: Mutex<Option<usize>> = Mutex::new(None);

impl Runtime {
    /// Sets this process up, and resolves the device.
    ///
    /// * rayon's global pool and libtorch's intra-op and inter-op pools all get `threads` threads;
    /// * denormal numbers are flushed to zero on the calling thread, on rayon's, and on those that either starts later
    ///   (x86-64): weights and moments of dead units decay into them, and a matrix product on them takes 200 times
    ///   as long;
    /// * glibc's allocator keeps large blocks instead of handing them back to the system at each operation.
    ///
    /// Call it once, at the start of `main`. A further call with the same `threads` changes nothing but the device.
    ///
    /// # Errors
    /// * [`Error::Config`] if `threads` is zero or above 4,096, or if this process runs with another number already
    ///   (an earlier call, or somebody who used rayon before);
    /// * [`Error::Device`] if the device can't be used.
    pub fn new(threads: usize, device: DeviceKind) -> Result<Self> {
        // Resolved first: a process that asked for a GPU in vain is left as it was.
        let resolved = device.resolve()?;
        let mut set = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        match *set {
            Some(before) if before != threads => return Err(other_threads(threads)),
            Some(_) => {}
            None => {
                let wide = i32::try_from(threads).ok().filter(|n| (1..=4096).contains(n));
                let wide = wide.ok_or_else(|| Error::Config {
                    setting: "threads",
                    got: threads.to_string(),
                    expected: "a number from 1 to 4096",
                })?;
                keep_memory();
                // Before any pool is built: threads inherit the mode of the thread that starts them.
                flush_denormals();
                set_rayon(threads)?;
                set_libtorch(wide)?;
                *set = Some(threads);
            }
        }
        Ok(Self { threads, kind: device, device: resolved })
    }

    /// The number of threads of rayon's pool and of libtorch's.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The device, as the user named it.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// The device, as tch names it.
    #[must_use]
    pub fn device(&self) -> tch::Device {
        self.device
    }
}

/// Sets what nobody has set, before the first trainer or sampler works: without it libtorch and rayon each keep a thread per core
/// busy, and wait for each other.
///
/// libtorch gets one thread, rayon keeps its own default (a thread per core, or `RAYON_NUM_THREADS`). A process that called
/// [`Runtime::new`], or chose libtorch's threads by `OMP_NUM_THREADS`, `MKL_NUM_THREADS` or `tch::set_num_threads`, stays as it is.
pub(crate) fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        let set = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        if set.is_some() {
            return;
        }
        keep_memory();
        if !chose_libtorch_threads() {
            tch::set_num_threads(1);
        }
    });
}

/// Whether somebody chose the number of libtorch's threads. One that is libtorch's own default, a thread per core or per pair of
/// hyperthreads, counts as nobody's choice.
fn chose_libtorch_threads() -> bool {
    let by_environment = ["OMP_NUM_THREADS", "MKL_NUM_THREADS"].into_iter().any(|name| env::var_os(name).is_some());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
    by_environment || (threads != cores && threads != cores.div_ceil(2))
}

fn other_threads(threads: usize) -> Error {
    Error::Config {
        setting: "threads",
        got: threads.to_string(),
        expected: "the number that this process already runs with: thread pools are built once, so call \
                   `Runtime::new` once, before anything uses rayon or libtorch",
    }
}

fn set_rayon(threads: usize) -> Result<()> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    if built.is_err() && rayon::current_num_threads() != threads {
        return Err(other_threads(threads));
    }
    // A pool that was there before did not inherit it.
    rayon::broadcast(|_| flush_denormals());
    Ok(())
}

fn set_libtorch(threads: i32) -> Result<()> {
    tch::set_num_threads(threads);
    if tch::get_num_interop_threads() != threads {
        // libtorch refuses a second setting, and tch turns the refusal into a panic.
        std::panic::catch_unwind(|| tch::set_num_interop_threads(threads))
            .map_err(|_| other_threads(usize::try_from(threads).unwrap_or_default()))?;
    }
    Ok(())
}

/// Raises glibc's thresholds, so that the blocks of large activations are used again instead of mapped, zeroed by the
/// kernel and unmapped at each operation. Figures: `docs/decisions.md`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory() {
    const MIB: libc::c_int = 1 << 20;
    // 32 MiB is the highest mmap threshold that glibc accepts.
    for (option, value) in
        [(libc::M_MMAP_THRESHOLD, 32 * MIB), (libc::M_TRIM_THRESHOLD, 512 * MIB), (libc::M_TOP_PAD, 16 * MIB)]
    {
        #[allow(unsafe_code, reason = "the allocator is tuned through libc only")]
        // SAFETY: mallopt takes two integers, locks the allocator itself, and ignores what it does not accept.
        unsafe {
            libc::mallopt(option, value);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory() {}

/// Makes the calling thread treat denormal numbers as zero: bits FTZ (15) and DAZ (6) of the SSE control register.
#[cfg(target_arch = "x86_64")]
fn flush_denormals() {
    let mut mode = 0_u32;
    #[allow(unsafe_code, reason = "tch does not bind libtorch's set_flush_denormal")]
    // SAFETY: both instructions only touch the four bytes pointed at and the control register; the two bits set change
    // how denormals round, which nothing here relies on, and leave the exception masks and the rounding mode alone.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack));
        mode |= (1 << 15) | (1 << 6);
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, readonly));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn flush_denormals() {}

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
        for text in ["", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "gpu", "cuda:99999999999999999999"] {
            let error = text.parse::<DeviceKind>().unwrap_err().to_string();
            assert!(error.contains("cpu, cuda or cuda:N"), "{text}: {error}");
        }
    }

    // One test for all that changes the process: tests of one binary share it.
    #[test]
    fn a_process_is_set_up_once() {
        assert!(matches!(Runtime::new(0, DeviceKind::Cpu), Err(Error::Config { setting: "threads", .. })));
        let before = rayon::current_num_threads();
        let runtime = Runtime::new(before, DeviceKind::Cpu).unwrap();
        assert_eq!(runtime.threads(), before);
        assert_eq!(usize::try_from(tch::get_num_threads()).unwrap(), before);
        assert_eq!(usize::try_from(tch::get_num_interop_threads()).unwrap(), before);
        assert_eq!(Runtime::new(before, DeviceKind::Cpu).unwrap(), runtime);
        let error = Runtime::new(before + 1, DeviceKind::Cpu).unwrap_err().to_string();
        assert!(error.contains("once"), "{error}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn denormals_are_flushed_here_and_on_new_threads() {
        fn halved() -> f32 {
            std::hint::black_box(f32::MIN_POSITIVE) * std::hint::black_box(0.5)
        }
        std::thread::spawn(|| {
            assert!(halved() > 0.0);
            flush_denormals();
            assert_eq!(halved(), 0.0);
            assert_eq!(std::thread::spawn(halved).join().unwrap(), 0.0);
            // Large enough for libtorch's own threads to take a share.
            let smallest =
                tch::Tensor::full([1 << 20], f64::from(f32::MIN_POSITIVE), (tch::Kind::Float, tch::Device::Cpu));
            assert_eq!((smallest * 0.5).count_nonzero(0).int64_value(&[]), 0);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_gpu_that_is_not_there_is_refused_with_the_reason() {
        let error = DeviceKind::Cuda(4095).resolve().unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
        assert!(error.to_string().contains("cuda:4095"), "{error}");
    }
}
