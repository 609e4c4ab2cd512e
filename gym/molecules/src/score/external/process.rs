use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

#[cfg(unix)]
use rustix::process::{Pid, Signal};

/// The largest number of bytes of a line from the program. A longer line is cut off, because it can't be a
/// valid number.
const LONGEST_LINE: u64 = 4096;

/// A running program, and two threads that exchange lines with it: one writes to the program, and the other
/// reads from it. A full pipe or a hanging program therefore doesn't block the caller. Dropping the struct
/// kills the program and ends both threads.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    requests: Sender<String>,
    /// The lines that the program has written.
    pub(super) answers: Receiver<String>,
}

impl Process {
    pub(super) fn start(command: &[String]) -> std::io::Result<Self> {
        let missing = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let (program, arguments) = command.split_first().ok_or_else(missing)?;
        let mut command = Command::new(program);
        // The program gets its own process group, so that processes that it starts are killed with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let (requests, to_write) = channel::<String>();
        let (answer, answers) = channel();
        thread::spawn(move || {
            for text in to_write {
                if input.write_all(text.as_bytes()).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        });
        thread::spawn(move || {
            let mut reader = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let length = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).unwrap_or(0);
                if line.last() != Some(&b'\n') {
                    // A line without a line end is either too long or the last line of the program. The last
                    // line is discarded in this case, because a crash may have cut off its number.
                    if length < LONGEST_LINE as usize {
                        break;
                    }
                    line.extend_from_slice(b"...");
                }
                if answer.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, requests, answers })
    }

    /// Sends lines to the program. If the program has ended, this function returns no error, but the
    /// answers will be missing.
    pub(super) fn send(&self, lines: String) {
        let _ = self.requests.send(lines);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The id of the process can't belong to another process yet, because nobody has waited for the
        // process.
        #[cfg(unix)]
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
