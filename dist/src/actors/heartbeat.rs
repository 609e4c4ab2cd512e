//! An actor's word that it is there, however long its reward takes.

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::frame::{Broken, Kind, write};

/// The sending end of an actor's connection, which says that the actor is there when nothing else is said.
pub(super) struct Heartbeat {
    shared: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

struct Ending {
    stream: Mutex<TcpStream>,
    over: Mutex<bool>,
    changed: Condvar,
}

impl Heartbeat {
    pub(super) fn start(stream: TcpStream, every: Duration) -> io::Result<Self> {
        let shared = Arc::new(Ending { stream: Mutex::new(stream), over: Mutex::new(false), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || theirs.beat(every))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends a message; no heartbeat comes into it.
    pub(super) fn send(&self, kind: Kind, body: &[u8]) -> Result<(), Broken> {
        self.shared.send(kind, body)
    }
}

impl Ending {
    fn send(&self, kind: Kind, body: &[u8]) -> Result<(), Broken> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut *stream, kind, body)
    }

    fn beat(&self, every: Duration) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let waited;
            (over, waited) = self.changed.wait_timeout(over, every).unwrap_or_else(PoisonError::into_inner);
            // The actor itself finds out when the learner is gone.
            if waited.timed_out() && self.send(Kind::Alive, &[]).is_err() {
                return;
            }
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        *self.shared.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics with nobody left to tell.
            let _ = thread.join();
        }
    }
}
