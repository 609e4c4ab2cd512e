use std::io::{PipeReader, PipeWriter, Read, Result, Write, pipe};

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, poll};

/// One end of a pipe to another program, which a thread may wait at until somebody stops it: on Unix also where a process that got
/// away, in a session of its own, holds the other end.
pub(super) struct Stoppable<T> {
    pipe: T,
    /// Closed from the other side to stop.
    #[cfg_attr(not(unix), allow(dead_code, reason = "polled on Unix only"))]
    stop: PipeReader,
}

/// What a pipe takes without waiting where it takes anything: Linux's `PIPE_BUF`; other systems say they are ready for so much.
#[cfg(unix)]
const AT_ONCE: usize = 4096;

impl<T> Stoppable<T> {
    /// This end; it stops when what comes with it is dropped.
    pub(super) fn new(pipe_end: T) -> Result<(Self, PipeWriter)> {
        let (stop, stopper) = pipe()?;
        Ok((Self { pipe: pipe_end, stop }, stopper))
    }
}

#[cfg(unix)]
impl<T: std::os::fd::AsFd> Stoppable<T> {
    /// Waits until there is something to do; false when it was stopped.
    fn wait(&self, wanted: PollFlags) -> Result<bool> {
        let mut ends = [PollFd::new(&self.pipe, wanted), PollFd::new(&self.stop, PollFlags::IN)];
        loop {
            match poll(&mut ends, None) {
                Ok(_) => return Ok(ends[1].revents().is_empty()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(unix)]
impl<T: Read + std::os::fd::AsFd> Read for Stoppable<T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.wait(PollFlags::IN)? { self.pipe.read(buffer) } else { Ok(0) }
    }
}

#[cfg(unix)]
impl<T: Write + std::os::fd::AsFd> Write for Stoppable<T> {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        let part = &buffer[..buffer.len().min(AT_ONCE)];
        if self.wait(PollFlags::OUT)? { self.pipe.write(part) } else { Ok(0) }
    }

    fn flush(&mut self) -> Result<()> {
        self.pipe.flush()
    }
}

#[cfg(not(unix))]
impl<T: Read> Read for Stoppable<T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.pipe.read(buffer)
    }
}

#[cfg(not(unix))]
impl<T: Write> Write for Stoppable<T> {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        self.pipe.write(buffer)
    }

    fn flush(&mut self) -> Result<()> {
        self.pipe.flush()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::thread;

    use super::*;

    /// Whoever holds the other end and neither writes nor reads, such as a process in a session of its own.
    #[test]
    fn waiting_ends_though_the_other_end_is_held() {
        let (reader, held_by_another) = pipe().unwrap();
        let (mut reading, stopper) = Stoppable::new(reader).unwrap();
        let thread = thread::spawn(move || reading.read(&mut [0; 8]).unwrap());
        drop(stopper);
        assert_eq!(thread.join().unwrap(), 0);
        drop(held_by_another);

        let (held_by_another, writer) = pipe().unwrap();
        let (mut writing, stopper) = Stoppable::new(writer).unwrap();
        let thread = thread::spawn(move || writing.write_all(&vec![7; 1 << 22]).is_err());
        drop(stopper);
        assert!(thread.join().unwrap());
        drop(held_by_another);
    }

    #[test]
    fn what_is_written_is_read() {
        let (reader, writer) = pipe().unwrap();
        let (mut reading, _stop) = Stoppable::new(reader).unwrap();
        let (mut writing, stop_writing) = Stoppable::new(writer).unwrap();
        let sent: Vec<u8> = (0..1 << 18).map(|k: u32| (k % 251) as u8).collect();
        let expected = sent.clone();
        let thread = thread::spawn(move || writing.write_all(&sent).unwrap());
        let mut got = Vec::new();
        reading.read_to_end(&mut got).unwrap();
        thread.join().unwrap();
        drop(stop_writing);
        assert!(got == expected);
    }
}
