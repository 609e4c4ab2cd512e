//! The reaction to Ctrl-C: the first signal ends a run after its step, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::{Error, Result};

/// The signal handlers of this library, which are installed once for all runs because they can't be removed.
/// While no run listens, a signal has its usual effect. If the program has a handler, too, each signal calls
/// both, and only the program's handler has an effect outside of runs.
static HANDLERS: Mutex<Option<Handlers>> = Mutex::new(None);

struct Handlers {
    /// `true` if a signal has arrived. A run that starts to listen resets this flag, unless another run is
    /// listening already.
    has_arrived: Arc<AtomicBool>,
    /// `true` if the next signal ends the process.
    deadly: Arc<AtomicBool>,
    /// The number of runs that listen for signals.
    listening: usize,
}

impl Handlers {
    fn new() -> std::io::Result<Self> {
        let has_arrived = Arc::new(AtomicBool::new(false));
        let deadly = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM] {
            // The process's current reaction to the signal is checked before the handlers are installed,
            // because they replace it.
            let ends_process = is_default(signal);
            // Handlers are called in the order of registration. The handler that ends the process if `deadly`
            // is set comes before the handler that sets `deadly`. The first signal during a run therefore
            // only sets `deadly`, and the second ends the process.
            if ends_process {
                flag::register_conditional_default(signal, deadly.clone())?;
            }
            flag::register(signal, has_arrived.clone())?;
            flag::register(signal, deadly.clone())?;
        }
        Ok(Self { has_arrived, deadly, listening: 0 })
    }
}

/// Returns `true` if a signal has the operating system's default action, that is, the program has no handler.
#[cfg(unix)]
#[allow(unsafe_code, reason = "what a signal does can only be asked of the system")]
fn is_default(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is valid. The call has a null pointer for the new action, so it only
    // writes the current action to `action`.
    let (status, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action), action)
    };
    status == 0 && action.sa_sigaction == libc::SIG_DFL
}

#[cfg(not(unix))]
fn is_default(_signal: i32) -> bool {
    true
}

/// Returns `true` once SIGINT (Ctrl-C) or SIGTERM has arrived during a run that listens
/// ([`Fit::stop_on_interrupt`](super::Fit::stop_on_interrupt)). The run then saves a checkpoint and ends.
/// Code that waits for other processes, such as a [`Group`](crate::group::Group), should stop waiting once
/// this is `true`, because schedulers kill the process soon after the signal.
///
/// ```
/// assert!(!gfn::run::interrupted());
/// ```
#[must_use]
pub fn interrupted() -> bool {
    let handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
    handlers
        .as_ref()
        .is_some_and(|handlers| handlers.listening > 0 && handlers.has_arrived.load(Ordering::SeqCst))
}

/// A guard that listens for SIGINT (Ctrl-C) and SIGTERM (which schedulers send before they kill a process)
/// until it is dropped.
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen for signals. The first call installs the signal handlers.
    ///
    /// # Errors
    /// [`Error::Config`] if the system doesn't allow a signal handler.
    pub(super) fn listen() -> Result<Self> {
        let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
        let handlers = match &mut *handlers {
            Some(handlers) => handlers,
            none => none.insert(Handlers::new().map_err(|error| {
                Error::config(
                    "stopping on an interrupt",
                    error,
                    "a system that lets a process handle SIGINT and SIGTERM",
                )
            })?),
        };
        if handlers.listening == 0 {
            handlers.has_arrived.store(false, Ordering::SeqCst);
            handlers.deadly.store(false, Ordering::SeqCst);
        }
        handlers.listening += 1;
        Ok(Self(handlers.has_arrived.clone()))
    }

    /// Returns `true` once SIGINT or SIGTERM has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(handlers) = &mut *HANDLERS.lock().unwrap_or_else(PoisonError::into_inner) {
            handlers.listening -= 1;
            if handlers.listening == 0 {
                handlers.deadly.store(true, Ordering::SeqCst);
            }
        }
    }
}
