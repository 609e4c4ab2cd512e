//! Training with several seeds in one process (`--seeds`).
//!
//! Each seed runs the task with its own seed, one thread and its own output paths. Its report is stored
//! instead of printed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{ArgMatches, Command};
use gfn::run::train_seeds;
use gfn_plot::{Cell, Table};

use super::files::set_prefix;
use super::folder::{RunFolder, write_json};
use super::spread::{mean, spread};
use super::task_flags::{self, ProcessFlags, TaskFlags, is_one_of_several};
use super::training::INTERRUPTED;
use crate::flags::config_file;
use crate::prelude::*;

/// The flags that name a folder, in which each seed gets a folder of its own.
const FOLDERS: [&str; 4] = ["run", "out", "save", "tensorboard"];
/// The columns of the table of seeds, if all seeds have these numbers.
const COLUMNS: [&str; 8] = ["l1", "tv", "jsd", "loss", "log_z", "modes_found", "train_s", "its_per_s"];

/// The run of a seed on this thread.
#[derive(Default)]
struct SeedRun {
    /// The report, as it would be printed; `None` before the end of the run.
    report: Option<Value>,
    /// `true` if the report was read from the run folder, because the run was finished before.
    is_read: bool,
    /// The number of steps that this process has made.
    steps: usize,
}

thread_local! {
    /// The seed that this thread trains; `None` without `--seeds`.
    static SEED_RUN: RefCell<Option<SeedRun>> = const { RefCell::new(None) };
}

/// `true` if a signal has interrupted the run of a seed. No other seed trains further.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Stores the report of this thread's seed, and returns `true`. Returns `false` without `--seeds`: the report
/// must then be printed.
pub(super) fn store_report(report: &Value) -> bool {
    SEED_RUN.with_borrow_mut(|run| run.as_mut().map(|run| run.report = Some(report.clone())).is_some())
}

/// Counts steps of this thread's seed.
pub(super) fn count_steps(steps: usize) {
    SEED_RUN.with_borrow_mut(|run| run.iter_mut().for_each(|run| run.steps += steps));
}

/// Returns `true` if a signal has interrupted the run of a seed, so that all runs of seeds must end.
pub(super) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// Ends all runs of seeds after a signal, and returns `true`. Returns `false` without `--seeds`: the process
/// must then end.
pub(super) fn interrupt_all_seeds() -> bool {
    let is_seed = is_one_of_several();
    IS_INTERRUPTED.fetch_or(is_seed, Ordering::SeqCst);
    is_seed
}

/// Returns the number of seeds of a command. Tasks that train nothing have one seed.
pub(crate) fn count(flags: &ArgMatches) -> usize {
    flags.try_get_one::<usize>("seeds").ok().flatten().copied().unwrap_or(1)
}

/// Runs a task with several seeds side by side, and prints the mean and the spread of their reports.
pub(crate) fn run(
    program: &Command,
    flags: &ArgMatches,
    task: impl Fn(&ArgMatches) -> Result<()> + Sync,
) -> Result<()> {
    refuse(
        &["--dist", "--threads-for", "--resume"],
        "a command without this flag, because with --seeds each seed trains alone on one thread; the same \
         command resumes the seeds of a --run folder",
    )?;
    let n = count(flags) as u64;
    let first = flags.get_one::<u64>("seed").copied().unwrap_or_default();
    let threads = flags.get_one::<usize>("threads").copied().unwrap_or(1);
    let expected = "a seed to which --seeds can be added without exceeding 64 bits";
    let end = first.checked_add(n).ok_or_else(|| Error::config("--seed", first, expected))?;
    let commands: Vec<(ArgMatches, &'static ProcessFlags)> =
        (first..end).map(|seed| command_of_seed(program, flags, seed)).collect::<Result<_>>()?;
    // Each seed has one thread, however many seeds train side by side.
    let of_all_seeds = TaskFlags::of_process().map(|flags| flags.with("threads", json!(1)));
    let folder = flags.get_one::<PathBuf>("run").map(RunFolder::new).zip(of_all_seeds);
    if let Some((folder, of_all_seeds)) = &folder {
        folder.claim_for_seeds(of_all_seeds)?;
    }
    let started = Instant::now();
    let runs = Mutex::new(BTreeMap::new());
    let ended = train_seeds(first..end, threads, |seed| {
        let (flags, process_flags) = &commands[(seed - first) as usize];
        let run = train(seed, flags, process_flags, &task)?;
        runs.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, run);
        Ok(())
    });
    let train_s = started.elapsed().as_secs_f64();
    let runs: Vec<SeedRun> =
        runs.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect();
    let reports: Vec<&Value> = runs.iter().filter_map(|run| run.report.as_ref()).collect();
    let unfinished =
        |error: String| json!({ "seed": first, "seeds": n, "per_seed": reports, "error": error });
    let is_json = flags.get_flag("json");
    if let Err(error) = ended {
        print_reports(&reports, unfinished(error.to_string()), is_json)?;
        return Err(error);
    }
    if reports.len() < commands.len() {
        let error = format!("interrupted: {} of {n} seeds are done", reports.len());
        print_reports(&reports, unfinished(error.clone()), is_json)?;
        tell(error);
        std::process::exit(INTERRUPTED);
    }
    let mut line = summarize(&runs, &reports, train_s);
    merge(&mut line, json!({ "seed": first, "seeds": n, "threads": threads }));
    if let Some((folder, of_all_seeds)) = folder {
        // The times of the command that trained the seeds are in the earlier result.
        let stored = folder.finished(&of_all_seeds)?;
        line = stored.filter(|stored| stored["per_seed"] == line["per_seed"]).unwrap_or(line);
        write_json(&folder.result(), &line)?;
        report_file(&folder.result());
    }
    print_reports(&reports, line, is_json)
}

/// Returns the means and spreads of the reports, with the times of all seeds together. The times are null if
/// a report was read from a folder, because another command trained that seed.
fn summarize(runs: &[SeedRun], reports: &[&Value], train_s: f64) -> Value {
    let train_s = (!runs.iter().any(|run| run.is_read)).then_some(train_s);
    let steps = runs.iter().map(|run| run.steps).sum::<usize>() as f64;
    let its_per_s = train_s.map(|train_s| steps / train_s);
    let mut line = mean(reports);
    let states_per_step = line["batch"].as_f64().zip(line["mean_len"].as_f64()).map(|(a, b)| a * b);
    let states_per_s = states_per_step.zip(its_per_s).map(|(states, its_per_s)| states * its_per_s);
    let times = json!({ "train_s": train_s, "its_per_s": its_per_s, "states_per_s": states_per_s });
    merge(&mut line, times);
    merge(&mut line, json!({ "spread": spread(reports), "per_seed": reports }));
    line
}

/// Prints the reports as tables. With `--json`, prints `line`, and the tables to standard error.
fn print_reports(reports: &[&Value], line: Value, is_json: bool) -> Result<()> {
    if is_json {
        if !reports.is_empty() {
            tell(tables(reports));
        }
        return print(line);
    }
    if reports.is_empty() { Ok(()) } else { print(tables(reports)) }
}

/// Runs the task with a seed. If the run folder of the seed holds the finished run, only reads its report.
fn train(
    seed: u64,
    flags: &ArgMatches,
    process_flags: &'static ProcessFlags,
    task: impl Fn(&ArgMatches) -> Result<()>,
) -> Result<SeedRun> {
    let mut run = SeedRun::default();
    if let Some(folder) = flags.get_one::<PathBuf>("run").map(RunFolder::new) {
        run.report = folder.finished(&process_flags.flags)?;
        run.is_read = run.report.is_some();
    }
    if run.is_read || is_interrupted() {
        return Ok(run);
    }
    set_prefix(format!("seed {seed}: "));
    task_flags::set_for_thread(process_flags);
    SEED_RUN.set(Some(run));
    let done = task(flags);
    let run = SEED_RUN.take().unwrap_or_default();
    done.map(|()| run)
}

/// Returns the flags of a seed's run. They are parsed from the arguments of this process and further
/// arguments, which take precedence.
fn command_of_seed(
    program: &Command,
    flags: &ArgMatches,
    seed: u64,
) -> Result<(ArgMatches, &'static ProcessFlags)> {
    let name = format!("seed-{seed}");
    let mut args: Vec<OsString> = std::env::args_os().collect();
    args.extend(
        [format!("--seed={seed}"), "--seeds=1".to_owned(), "--threads=1".to_owned()].map(OsString::from),
    );
    for flag in FOLDERS {
        if let Some(folder) = flags.get_one::<PathBuf>(flag) {
            args.extend([format!("--{flag}").into(), folder.join(&name).into_os_string()]);
        }
    }
    if let Some(path) = flags.get_one::<PathBuf>("metrics") {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let extension = path.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
        args.extend(["--metrics".into(), path.with_file_name(format!("{stem}.{name}{extension}")).into()]);
    }
    let program = program.clone().mut_subcommands(|task| task.args_override_self(true));
    let mut matches = config_file::matches(&program, args)
        .map_err(|error| Error::config("the flags", error, "flags that `--help` lists"))?;
    let process_flags = ProcessFlags::from_matches(&program, &matches);
    let (process_flags, (_, flags)) = process_flags
        .zip(matches.remove_subcommand())
        .ok_or_else(|| Error::missing("--seeds", "the name of a task", "begin the arguments with a task"))?;
    Ok((flags, Box::leak(Box::new(process_flags))))
}

/// Returns a table with a row for each seed, and a table with the mean and the spread of each metric.
fn tables(reports: &[&Value]) -> String {
    let metrics = spread(reports);
    let columns: Vec<&str> = COLUMNS.into_iter().filter(|name| metrics.contains_key(*name)).collect();
    let mut seeds = Table::new(std::iter::once("seed").chain(columns.iter().copied()));
    for report in reports {
        let seed = Cell::from(report["seed"].as_u64());
        let cells = columns.iter().map(|name| Cell::from(report[*name].as_f64()));
        seeds.push(std::iter::once(seed).chain(cells));
    }
    let moments = ["mean", "sd", "min", "max"];
    let mut spreads = Table::new(std::iter::once("metric").chain(moments));
    for (name, metric) in &metrics {
        let cells = moments.iter().map(|moment| Cell::from(metric[*moment].as_f64()));
        spreads.push(std::iter::once(Cell::from(name.clone())).chain(cells));
    }
    format!("{seeds}\n{spreads}")
}
