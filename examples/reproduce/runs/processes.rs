//! Programs that end with the one that started them: what a sweep runs.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gfn::{Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// How long a program that was asked to end may take for its checkpoint.
const GRACE: Duration = Duration::from_secs(60);
/// Time between two looks at programs.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// The variable that tells a program which process it ends with.
const STARTER: &str = "GFN_SWEEP_PROCESS";

/// Whether this process was asked to end: by Ctrl-C, or by SIGTERM, which schedulers send. The second signal ends it.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// # Errors
    /// [`Error::Config`] if the system doesn't allow a handler.
    pub(crate) fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the first signal makes the second one end the process, not itself.
            flag::register_conditional_default(signal, Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .map_err(|error| {
                    Error::config("stopping on an interrupt", error, "a system that lets a process handle signals")
                })?;
        }
        Ok(Self(asked))
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A program that runs. It is killed where it is dropped before its end.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    /// When it is killed, once it was asked to end.
    deadline: Option<Instant>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // In a group of its own: a terminal sends Ctrl-C to all of a group, and a second signal would end it without a checkpoint.
        let child = command.env(STARTER, std::process::id().to_string()).process_group(0).spawn()?;
        Ok(Self { child, deadline: None })
    }

    /// How it ended, if it has. When this process is asked to end, so is the program, and killed if it doesn't.
    pub(crate) fn ended(&mut self, interrupt: &Interrupt) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        match self.deadline {
            None if interrupt.asked() => {
                if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
                    kill_process(pid, Signal::TERM)?;
                }
                self.deadline = Some(Instant::now() + GRACE);
            }
            Some(deadline) if Instant::now() > deadline => self.child.kill()?,
            _ => {}
        }
        Ok(None)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Lets this process be asked to end as soon as the one that started it as a [`Program`] is gone, killed, say; does nothing in another.
///
/// The system asks at the end of each thread of the starter, and the second time ends this process without a checkpoint: a starter must
/// have one thread.
///
/// # Errors
/// [`Error::Config`] if it has gone already.
#[cfg(target_os = "linux")]
pub(crate) fn end_with_starter() -> Result<()> {
    use rustix::process::{getppid, set_parent_process_death_signal};

    let Ok(starter) = std::env::var(STARTER) else { return Ok(()) };
    let refuse = |got: String| Error::config(STARTER, got, "the process that started this one: unset it");
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| refuse(error.to_string()))?;
    match getppid() {
        Some(parent) if parent.to_string() == starter => Ok(()),
        _ => Err(refuse(format!("{starter}, which isn't, or has ended"))),
    }
}

/// Only Linux tells of a parent's end.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_starter() -> Result<()> {
    Ok(())
}
