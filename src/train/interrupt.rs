//! Ctrl-C: the first asks a run to stop, the second kills.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::{Error, Result};

/// Handlers can't be taken back, so there is one set for the process, which does what the system would while no run listens, and
/// nothing where the program has a handler of its own, which is called beside ours.
static HANDLERS: Mutex<Option<Handlers>> = Mutex::new(None);

struct Handlers {
    /// Whether a signal arrived since runs began to listen.
    asked: Arc<AtomicBool>,
    /// Whether the next signal ends the process.
    deadly: Arc<AtomicBool>,
    /// Runs that listen.
    listening: usize,
}

impl Handlers {
    fn new() -> std::io::Result<Self> {
        let (asked, deadly) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        for signal in [SIGINT, SIGTERM] {
            // Asked before ours are set.
            let ends_process = is_default(signal);
            // In this order: the first signal makes the second deadly, not itself.
            if ends_process {
                flag::register_conditional_default(signal, deadly.clone())?;
            }
            flag::register(signal, asked.clone())?;
            flag::register(signal, deadly.clone())?;
        }
        Ok(Self { asked, deadly, listening: 0 })
    }
}

/// Whether a signal does what it does where nobody has set a handler or had it ignored.
#[cfg(unix)]
#[allow(unsafe_code, reason = "what a signal does can only be asked of the system")]
fn is_default(signal: i32) -> bool {
    // SAFETY: a `sigaction` of zeros is a valid one, and without a new action the call does nothing but write to it.
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

/// Listens for SIGINT (Ctrl-C) and SIGTERM (what schedulers send before they kill) while it lives.
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// # Errors
    /// [`Error::Config`] where the system lets no handler be set.
    pub(super) fn listen() -> Result<Self> {
        let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
        let handlers = match &mut *handlers {
            Some(handlers) => handlers,
            none => none.insert(Handlers::new().map_err(|error| Error::Config {
                setting: "stopping on an interrupt",
                got: error.to_string(),
                expected: "a system that lets a process handle SIGINT and SIGTERM",
            })?),
        };
        if handlers.listening == 0 {
            handlers.asked.store(false, Ordering::SeqCst);
            handlers.deadly.store(false, Ordering::SeqCst);
        }
        handlers.listening += 1;
        Ok(Self(handlers.asked.clone()))
    }

    /// Whether the run should save and end.
    pub(super) fn asked(&self) -> bool {
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
