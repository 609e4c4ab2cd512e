//! Starts several processes of a program on this machine, which train together: `gfn-dist local -n 4 --
//! PROGRAM ARGS...`.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Start the processes of a training run
#[derive(Parser, Debug)]
struct Args {
    #[command(subcommand)]
    launcher: Launcher,
}

#[derive(Subcommand, Debug)]
enum Launcher {
    /// Run a program in several processes on this machine
    Local {
        /// Number of processes
        #[arg(short)]
        n: usize,
        /// Program to run, and its arguments. The output of the first process is printed unchanged. Lines of
        /// other processes are printed to standard error, with the rank of the process as prefix
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
}

/// The time that processes get to write a checkpoint after they were asked to end. Afterwards they are
/// killed.
const GRACE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let Launcher::Local { n, program } = Args::parse().launcher;
    match local(n, &program) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The started processes, and the threads that print the output of all processes but the first.
struct Processes {
    children: Vec<Child>,
    printers: Vec<JoinHandle<()>>,
}

fn local(n: usize, program: &[String]) -> Result<ExitCode, String> {
    let (Some((name, arguments)), true) = (program.split_first(), n > 0) else {
        return Err(
            "a program and at least one process are needed: gfn-dist local -n 2 -- PROGRAM".to_owned()
        );
    };
    let stop_signal = Arc::new(AtomicUsize::new(0));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        let set = signal_hook::flag::register_usize(
            signal,
            Arc::clone(&stop_signal),
            signal.unsigned_abs() as usize,
        );
        set.map_err(|error| format!("this system doesn't let the program handle signals: {error}"))?;
    }
    // The id of the run is random, so that no process of another run joins this one.
    let [high, low] = [0, 1].map(|half| RandomState::new().hash_one(half));
    let run = format!("{high:016x}{low:016x}");
    let port = free_port().map_err(|error| format!("no port of this machine is free: {error}"))?;
    let mut processes = Processes { children: Vec::new(), printers: Vec::new() };
    for rank in 0..n {
        let mut command = Command::new(name);
        command.args(arguments).envs([("RANK", rank.to_string()), ("WORLD_SIZE", n.to_string())]);
        command.env("GFN_RUN_ID", &run);
        // Each process gets a separate process group, so that Ctrl-C reaches only this launcher. The launcher
        // passes the signal on exactly once, because a second signal would end a process before it has saved
        // its checkpoint.
        command.process_group(0);
        command.envs([("MASTER_ADDR", Ipv4Addr::LOCALHOST.to_string()), ("MASTER_PORT", port.to_string())]);
        if std::io::stdin().is_terminal() {
            // A process in another process group would be stopped by the system when it reads from the
            // terminal. The standard input of each process is therefore empty.
            command.stdin(Stdio::null());
        }
        if rank > 0 {
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        }
        match command.spawn() {
            Ok(mut child) => {
                processes.printers.extend(child.stdout.take().map(|output| print_lines(rank, output)));
                processes.printers.extend(child.stderr.take().map(|output| print_lines(rank, output)));
                processes.children.push(child);
            }
            Err(error) => {
                processes.send_signal(Signal::KILL);
                return Err(format!(
                    "{name} can't be run ({error}): check the name and the permissions of the program"
                ));
            }
        }
    }
    let code = processes.wait(&stop_signal);
    // Waiting for the printing threads ensures that the last lines of each process are printed.
    for printer in processes.printers.into_iter() {
        drop(printer.join());
    }
    Ok(code)
}

/// Starts a thread that prints the lines of a process to standard error, with the rank of the process as
/// prefix.
fn print_lines(rank: usize, output: impl Read + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            eprintln!("[{rank}] {}", String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    })
}

/// Returns the exit code that shells give for a process that was ended by this signal.
fn signal_exit_code(signal: usize) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

/// Returns the exit code that shells give for a process with this status.
fn status_exit_code(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        (None, Some(signal)) => signal_exit_code(signal.unsigned_abs() as usize),
        (None, None) => ExitCode::FAILURE,
    }
}

impl Processes {
    /// Waits until all processes have ended. If a process fails or this launcher gets a signal, all processes
    /// are asked to end, and killed if they don't end within `GRACE`. Returns the exit code of the first
    /// failure or signal.
    fn wait(&mut self, stop_signal: &AtomicUsize) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        let mut deadline = None;
        let mut ended: Vec<Option<ExitStatus>> = vec![None; self.children.len()];
        while ended.iter().any(Option::is_none) {
            for (rank, child) in self.children.iter_mut().enumerate() {
                if ended[rank].is_none() {
                    ended[rank] = child.try_wait().ok().flatten();
                }
            }
            if deadline.is_none() {
                let failed = ended.iter().position(|status| status.is_some_and(|status| !status.success()));
                let first = match (stop_signal.load(Ordering::SeqCst), failed) {
                    (0, None) => None,
                    (0, Some(rank)) => {
                        let status = ended[rank].unwrap_or_default();
                        eprintln!(
                            "process {rank} of {} failed ({status}); all processes are asked to end",
                            ended.len()
                        );
                        Some(status_exit_code(status))
                    }
                    (signal, _) => Some(signal_exit_code(signal)),
                };
                if let Some(first) = first {
                    self.send_signal(Signal::TERM);
                    (code, deadline) = (first, Some(Instant::now() + GRACE));
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                eprintln!("processes that haven't ended are killed");
                self.send_signal(Signal::KILL);
                deadline = Some(Instant::now() + GRACE);
            }
            thread::sleep(Duration::from_millis(20));
        }
        code
    }

    /// Sends a signal to all processes that still run.
    fn send_signal(&mut self, signal: Signal) {
        for child in &mut self.children {
            if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
