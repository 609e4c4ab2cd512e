//! One task under several seeds: a run folder for each, and how far their results are spread.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use gfn::{Error, Result};
use gfn_plot::{Cell, Table, number};
use serde_json::{Map, Value, json};

use super::INTERRUPTED;
use super::asked::Asked;
use super::compare::own_figures;
use super::folder::{RunFolder, State};
use super::processes::{Interrupt, LOOK, Program};
use super::recorded::Recorded;
use super::spread::Spread;
use crate::Reproduce;
use crate::cli::{at_least_one, matches, try_folder, words};

/// Run a task under several seeds and print how far results are spread; run again, it goes on with what is missing
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// The task: one that takes `--run` and `--seed`
    task: String,
    /// Folder for the runs: `seed-0` and so on
    #[arg(long)]
    runs: PathBuf,
    /// Number of seeds
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    seeds: usize,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Runs at a time, each of as many threads as its flags say
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    jobs: usize,
    /// Print one line of JSON in place of the table
    #[arg(long)]
    json: bool,
    /// Flags of the task, behind `--`
    #[arg(last = true)]
    flags: Vec<String>,
}

/// What is shown of every task, whether it has it or not.
const SHOWN: [&str; 5] = ["l1", "tv", "jsd", "log_z", "its_per_s"];

/// The run of one seed.
#[derive(Debug)]
struct Job {
    seed: u64,
    folder: RunFolder,
    asked: Asked,
    arguments: Vec<String>,
}

/// A run that came to no result.
#[derive(Debug)]
struct Failure {
    seed: u64,
    log: PathBuf,
    why: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let past = || Error::config("--first", args.first, "a seed with so many --seeds behind it: the last is 2^64 - 1");
    let end = args.first.checked_add(args.seeds as u64).ok_or_else(past)?;
    let jobs = (args.first..end).map(|seed| job(args, seed)).collect::<Result<Vec<_>>>()?;
    try_folder(&args.runs)?;
    // Before anything is worked for: no folder may hold another run.
    let states = jobs.iter().map(|job| job.folder.state(&job.asked)).collect::<Result<Vec<_>>>()?;
    let missing: Vec<&Job> =
        jobs.iter().zip(&states).filter(|(_, state)| **state != State::Finished).map(|(job, _)| job).collect();
    if missing.len() < jobs.len() {
        eprintln!("{} of {} seeds are done already", jobs.len() - missing.len(), jobs.len());
    }
    let interrupt = Interrupt::listen()?;
    let mut failures = run_all(&missing, args.jobs, &interrupt)?;
    failures.sort_by_key(|failure| failure.seed);

    let done: Vec<&Job> = jobs.iter().filter(|job| job.folder.result().exists()).collect();
    if interrupt.asked() && done.len() < jobs.len() {
        eprintln!("interrupted: {} of {} seeds are done; the same command goes on", done.len(), jobs.len());
        std::process::exit(INTERRUPTED);
    }
    let runs = done.iter().map(|job| Recorded::read(job.folder.path())).collect::<Result<Vec<_>>>()?;
    let spreads = spreads(&runs);
    if args.json {
        println!("{}", line(args, &runs, &spreads, &failures));
    } else {
        print!("{}", table(args, &runs, &spreads));
    }
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(Error::file(
            &first.log,
            format!("{} of {} seeds came to no result; seed {} {}", failures.len(), jobs.len(), first.seed, first.why),
            "mend what the log says, and give the same command again: it goes on with what is missing",
        )),
    }
}

/// The run of a seed; an error where the task doesn't take these flags.
fn job(args: &Args, seed: u64) -> Result<Job> {
    let folder = RunFolder::new(args.runs.join(format!("seed-{seed}")));
    let path = folder.path().to_string_lossy().into_owned();
    let own = ["--seed".to_owned(), seed.to_string(), "--run".to_owned(), path];
    let arguments: Vec<String> =
        std::iter::once(args.task.clone()).chain(args.flags.iter().cloned()).chain(own).collect();
    let program = Reproduce::command();
    // Where it is hidden, it is there to be refused in words.
    let run = |arg: &clap::Arg| arg.get_long() == Some("run") && !arg.is_hide_set();
    let takes_runs = |task: &clap::Command| task.get_arguments().any(run);
    if !program.find_subcommand(&args.task).is_some_and(takes_runs) {
        const EXPECTED: &str = "a task that trains and takes --run, such as `ring`: see `reproduce --help`";
        return Err(Error::config("the task of a sweep", format!("`{}`", args.task), EXPECTED));
    }
    let given = std::iter::once("reproduce".to_owned()).chain(arguments.iter().cloned());
    // What the task refuses is said as the task says it, and once.
    let matches = matches::<Reproduce>(given).unwrap_or_else(|error| error.exit());
    match Asked::of(&program, &matches) {
        Some(asked) => Ok(Job { seed, folder, asked, arguments }),
        None => Err(Error::config("the task of a sweep", format!("`{}`", args.task), "a task")),
    }
}

/// Makes these runs, so many at a time, until all are made or this process is asked to end; those that came to no result by themselves.
///
/// By one thread: see [`end_with_starter`](super::end_with_starter).
fn run_all(missing: &[&Job], at_a_time: usize, interrupt: &Interrupt) -> Result<Vec<Failure>> {
    let program = std::env::current_exe().map_err(|source| Error::io("reproduce", source))?;
    let (mut waiting, mut running, mut failures) = (missing.iter(), Vec::new(), Vec::new());
    loop {
        while running.len() < at_a_time
            && !interrupt.asked()
            && let Some(job) = waiting.next()
        {
            match start(&program, job) {
                Ok(started) => running.push((*job, started, Instant::now())),
                Err(error) => failures.push(job.failed(format!("couldn't be run: {error}"))),
            }
        }
        if running.is_empty() {
            return Ok(failures);
        }
        thread::sleep(LOOK);
        running.retain_mut(|(job, program, started)| {
            let came = match program.ended(interrupt) {
                Ok(None) => return true,
                Ok(Some(status)) => job.came_of(status),
                Err(error) => Err(format!("couldn't be waited for: {error}")),
            };
            match came {
                Ok(summary) => eprintln!("seed {}: {:.1} s, {summary}", job.seed, started.elapsed().as_secs_f64()),
                Err(_) if interrupt.asked() => eprintln!("seed {}: stopped", job.seed),
                Err(why) => failures.push(job.failed(why)),
            }
            false
        });
    }
}

/// Starts a run in a process of its own, which another's failure can't end.
fn start(program: &Path, job: &Job) -> io::Result<Program> {
    let out = File::create(job.log())?;
    let err = out.try_clone()?;
    Program::start(Command::new(program).args(&job.arguments).stdin(Stdio::null()).stdout(out).stderr(err))
}

impl Job {
    /// What the run said.
    fn log(&self) -> PathBuf {
        self.folder.path().with_extension("log")
    }

    /// Tells of a run that came to no result.
    fn failed(&self, why: String) -> Failure {
        let log = self.log();
        eprintln!("seed {}: {why}; see {}", self.seed, log.display());
        Failure { seed: self.seed, log, why }
    }

    /// The figures of the run, which has ended; why there are none.
    fn came_of(&self, status: ExitStatus) -> std::result::Result<String, String> {
        if !status.success() {
            return Err(ended(status, &self.log()));
        }
        match Recorded::read(self.folder.path()) {
            Ok(run) if run.result.is_some() => Ok(summary(&run)),
            Ok(_) => Err("ended without a result".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// How a run ended, and the last thing that it said.
fn ended(status: ExitStatus, log: &Path) -> String {
    let said = fs::read_to_string(log).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    format!("ended with {status}: {last}")
}

fn summary(run: &Recorded) -> String {
    let known = SHOWN.iter().filter_map(|name| Some((name, run.figure(name)?)));
    known.map(|(name, value)| format!("{} {}", words(name), number(value))).collect::<Vec<_>>().join(", ")
}

/// The figures and their spread, where at least one run has them or every task is asked for them.
fn spreads(runs: &[Recorded]) -> Vec<(String, Option<Spread>)> {
    let names = SHOWN.into_iter().map(str::to_owned).chain(own_figures(runs));
    names
        .map(|name| {
            let spread = Spread::of(runs.iter().filter_map(|run| run.figure(&name)));
            (name, spread)
        })
        .collect()
}

fn table(args: &Args, runs: &[Recorded], spreads: &[(String, Option<Spread>)]) -> String {
    let mut table = Table::new([args.task.as_str(), "median", "least", "most", "seeds"]);
    for (name, spread) in spreads {
        let number = |of: fn(&Spread) -> f64| Cell::from(spread.as_ref().map(of));
        let n = spread.map_or(0, |spread| spread.n);
        table.push([words(name).into(), number(|s| s.median), number(|s| s.min), number(|s| s.max), n.into()]);
    }
    let folders = runs.iter().map(|run| format!("wrote {}\n", run.path.display()));
    format!("{table}\n{}", folders.collect::<String>())
}

/// The sweep for programs; each run's own line is in it.
fn line(args: &Args, runs: &[Recorded], spreads: &[(String, Option<Spread>)], failures: &[Failure]) -> Value {
    let figures: Map<String, Value> = spreads.iter().map(|(name, spread)| (name.clone(), json!(spread))).collect();
    let failed = failures.iter().map(|f| json!({ "seed": f.seed, "why": f.why, "log": f.log }));
    let of_run = |run: &Recorded| json!({ "run": run.path, "result": run.result });
    json!({ "example": "sweep", "task": args.task, "first": args.first, "seeds": args.seeds, "done": runs.len(),
        "figures": figures, "failed": failed.collect::<Vec<_>>(), "runs": runs.iter().map(of_run).collect::<Vec<_>>() })
}
