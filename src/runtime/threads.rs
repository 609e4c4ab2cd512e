//! Numbers of threads and the allocator's thresholds. The numbers and the thresholds are set once per
//! process.

use std::env;
use std::sync::{Mutex, Once, PoisonError};

use super::denormals::flushing_denormals;
use crate::{Error, Result, parallel};

/// The numbers of threads of rayon and libtorch. A single number sets the threads of rayon, and libtorch then
/// uses one thread. If other programs use the cores, several libtorch threads can be ten times slower than
/// one, because they spin while they wait for each other.
///
/// ```
/// use gfn::runtime::Threads;
/// assert_eq!(Threads::from(2), Threads { rayon: 2, libtorch: 1 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// The number of threads of rayon's pool, which applies actions, computes masks, encodes states and
    /// evaluates small networks. Results are the same, bit for bit, with any number of threads.
    pub rayon: usize,
    /// The number of threads of libtorch's pools, which split large products and sums. Results with different
    /// numbers of threads differ by rounding.
    pub libtorch: usize,
}

impl From<usize> for Threads {
    fn from(rayon: usize) -> Self {
        Self { rayon, libtorch: 1 }
    }
}

/// The numbers of threads of this process; `None` until they are set. The numbers can't be changed, because
/// neither rayon's pool nor libtorch's can be built twice.
static CURRENT: Mutex<Option<Threads>> = Mutex::new(None);

impl Threads {
    /// Returns the result of `f` for each item, in order, or the first error. Rewards use this method to
    /// process the states of a batch in parallel.
    ///
    /// The items are split over rayon's threads if each thread gets at least `per_thread` items and if
    /// measurements show that this is faster than the calling thread alone. In a replica that
    /// `gfn::group::replicate` runs on a thread, the items aren't split. The result is the same in all cases.
    ///
    /// ```
    /// let squares = gfn::runtime::Threads::try_map(&[1, 2, 3], 64, |k| Ok(k * k))?;
    /// assert_eq!(squares, [1, 4, 9]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `f`.
    #[track_caller]
    pub fn try_map<T: Sync, U: Send>(
        items: &[T],
        per_thread: usize,
        f: impl Fn(&T) -> Result<U> + Sync + Send,
    ) -> Result<Vec<U>> {
        parallel::try_map_range(items.len(), per_thread, |k| f(&items[k]))
    }

    /// Sets up the thread pools of this process. Returns an error if the pools already have other numbers of
    /// threads.
    pub(super) fn set(self) -> Result<()> {
        let mut set = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        match *set {
            Some(before) if before == self => return Ok(()),
            Some(_) => return Err(other_threads(self)),
            None => {}
        }
        let libtorch = i32::try_from(self.libtorch).ok().filter(|n| (1..=4096).contains(n));
        let (Some(libtorch), 1..=4096) = (libtorch, self.rayon) else {
            let got = self.to_string();
            return Err(Error::config("threads", got, "numbers from 1 to 4096"));
        };
        keep_memory();
        self.set_rayon()?;
        self.set_libtorch(libtorch)?;
        *set = Some(self);
        Ok(())
    }

    fn set_rayon(self) -> Result<()> {
        let mut pool = rayon::ThreadPoolBuilder::new().num_threads(self.rayon);
        // The calling thread is one of the pool's threads. If the calling thread only waited, each piece of
        // work would have to wait for a core that another program may use. A pool of one thread is separate
        // from the calling thread, because otherwise nothing would run the work of other threads.
        if self.rayon > 1 && rayon::current_thread_index().is_none() {
            pool = pool.use_current_thread();
        }
        let built = pool.build_global();
        if built.is_err() && rayon::current_num_threads() != self.rayon {
            Err(other_threads(self))
        } else {
            Ok(())
        }
    }

    fn set_libtorch(self, threads: i32) -> Result<()> {
        tch::set_num_threads(threads);
        if tch::get_num_interop_threads() != threads {
            // libtorch refuses to set the number of its inter-op threads twice, and tch turns the refusal
            // into a panic.
            std::panic::catch_unwind(|| tch::set_num_interop_threads(threads))
                .map_err(|_| other_threads(self))?;
        }
        if threads > 1 {
            // An operation that is large enough to be split starts libtorch's threads. These threads inherit
            // the mode for denormal numbers from the thread that starts them. They are started here, while
            // the mode of this thread treats denormal numbers as zero.
            let _ = flushing_denormals(|| {
                tch::Tensor::ones([1 << 18], (tch::Kind::Float, tch::Device::Cpu)).exp()
            });
        }
        Ok(())
    }
}

impl std::fmt::Display for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads of rayon and {} threads of libtorch", self.rayon, self.libtorch)
    }
}

fn other_threads(threads: Threads) -> Error {
    Error::config(
        "threads",
        threads,
        "the numbers of threads that this process already has, because thread pools are built once: call \
         `Runtime::new` once, before anything uses rayon or libtorch",
    )
}

/// Sets the number of libtorch threads and the allocator's thresholds before the first trainer or sampler
/// runs, unless the program has chosen them.
///
/// By default libtorch starts one thread per core, and these threads spin while they wait for each other. If
/// rayon's threads or another program use the same cores, most of the time is spent waiting. Therefore
/// libtorch gets one thread, and rayon keeps its default. If the program called
/// [`Runtime::new`](crate::runtime::Runtime::new), nothing is changed. If the program chose libtorch's
/// threads in another way, only the allocator's thresholds are set.
pub(crate) fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        let set = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if set.is_some() {
            return;
        }
        keep_memory();
        if !chose_libtorch_threads() {
            tch::set_num_threads(1);
        }
    });
}

/// Returns `true` if an environment variable sets the number of libtorch threads, or if the number isn't
/// libtorch's default, which is a thread per core or per pair of hyperthreads.
fn chose_libtorch_threads() -> bool {
    let by_environment =
        ["OMP_NUM_THREADS", "MKL_NUM_THREADS"].into_iter().any(|name| env::var_os(name).is_some());
    let threads = usize::try_from(tch::get_num_threads()).unwrap_or(1);
    by_environment || cores().into_iter().all(|cores| threads != cores && threads != cores.div_ceil(2))
}

/// Returns the number of cores that this process may use, and the number of cores of the system. The two
/// numbers differ in a container with a limit on cores. libtorch's default number of threads ignores this
/// limit.
fn cores() -> [usize; 2] {
    let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    [usable, online_cores().unwrap_or(usable)]
}

#[cfg(target_os = "linux")]
fn online_cores() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    Some(text.lines().filter(|line| line.starts_with("processor")).count()).filter(|&cores| cores > 0)
}

#[cfg(not(target_os = "linux"))]
fn online_cores() -> Option<usize> {
    None
}

/// Raises thresholds of glibc's allocator, so that the memory of large activations is reused. With the
/// default thresholds, the memory would be mapped, zeroed by the kernel and unmapped in each operation.
/// Measurements are in `docs/decisions.md`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory() {
    const MIB: libc::c_int = 1 << 20;
    // 32 MiB is the highest mmap threshold that glibc accepts.
    for (option, value) in
        [(libc::M_MMAP_THRESHOLD, 32 * MIB), (libc::M_TRIM_THRESHOLD, 512 * MIB), (libc::M_TOP_PAD, 16 * MIB)]
    {
        #[allow(unsafe_code, reason = "the allocator is tuned through libc only")]
        // SAFETY: mallopt takes two integers, locks the allocator itself, and ignores what it does not
        // accept.
        unsafe {
            libc::mallopt(option, value);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{DeviceKind, Runtime};

    // There is one test for everything that changes the process, because the tests of one binary share the
    // process.
    #[test]
    fn a_process_is_set_up_once() {
        assert!(matches!(Runtime::new(0, DeviceKind::Cpu), Err(Error::Config { setting: "threads", .. })));
        let before = rayon::current_num_threads();
        let runtime = Runtime::new(before, DeviceKind::Cpu).unwrap();
        assert_eq!(runtime.threads(), Threads::from(before));
        assert_eq!((tch::get_num_threads(), tch::get_num_interop_threads()), (1, 1), "by a single number");
        assert_eq!(Runtime::new(before, DeviceKind::Cpu).unwrap(), runtime);
        let error = Runtime::new(before + 1, DeviceKind::Cpu).unwrap_err().to_string();
        assert!(error.contains("once"), "{error}");
    }
}
