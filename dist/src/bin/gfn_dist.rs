//! `gfn-dist local -n 4 -- PROGRAM ARGS...` runs a program in several processes of this machine, which train as one.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Start replicas of a training run
#[derive(Parser, Debug)]
struct Args {
    #[command(subcommand)]
    launcher: Launcher,
}

#[derive(Subcommand, Debug)]
enum Launcher {
    /// Run a program in several processes of this machine
    Local {
        /// How many
        #[arg(short)]
        n: usize,
        /// The program and its arguments; what its first process prints comes as it is, the others' lines with their number
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
}

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

/// Runs all, and ends all as soon as one fails.
fn local(n: usize, program: &[String]) -> Result<ExitCode, String> {
    let (Some((name, arguments)), true) = (program.split_first(), n > 0) else {
        return Err("a program and at least one process are needed: gfn-dist local -n 2 -- PROGRAM".to_owned());
    };
    let port = free_port().map_err(|error| format!("no port of this machine is free: {error}"))?;
    let mut children = Vec::new();
    for rank in 0..n {
        let mut command = Command::new(name);
        command.args(arguments).envs([("RANK", rank.to_string()), ("WORLD_SIZE", n.to_string())]);
        command.envs([("MASTER_ADDR", Ipv4Addr::LOCALHOST.to_string()), ("MASTER_PORT", port.to_string())]);
        if rank > 0 {
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        }
        match command.spawn() {
            Ok(mut child) => {
                relay(rank, child.stdout.take());
                relay(rank, child.stderr.take());
                children.push(child);
            }
            Err(error) => {
                end(&mut children);
                return Err(format!("{name} can't be run: {error}"));
            }
        }
    }
    Ok(wait(&mut children))
}

/// Prints the lines of a process with its number.
fn relay(rank: usize, output: Option<impl Read + Send + 'static>) {
    let Some(output) = output else { return };
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            eprintln!("[{rank}] {line}");
        }
    });
}

/// Waits for all of them, or for the first that fails.
fn wait(children: &mut Vec<Child>) -> ExitCode {
    let mut running = children.len();
    while running > 0 {
        running = 0;
        for rank in 0..children.len() {
            match children[rank].try_wait() {
                Ok(None) => running += 1,
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => {
                    // What it last said is still on its way.
                    thread::sleep(Duration::from_millis(200));
                    eprintln!("process {rank} of {} failed ({status}); all are ended", children.len());
                    end(children);
                    return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
                }
                Err(error) => {
                    eprintln!("process {rank} can't be waited for ({error}); all are ended");
                    end(children);
                    return ExitCode::FAILURE;
                }
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    ExitCode::SUCCESS
}

fn end(children: &mut Vec<Child>) {
    for mut child in children.drain(..) {
        // One that has ended already needs no end.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
