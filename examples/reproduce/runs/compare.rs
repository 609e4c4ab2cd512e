//! Runs side by side: what they were asked for, what came of it, and their curves in one picture for each figure.

use std::path::PathBuf;

use clap::Parser;
use gfn::Result;
use gfn_plot::{Cell, Table};
use serde_json::{Map, Value, json};

use super::pictures;
use super::recorded::{OF_RUN, Recorded, labels};
use crate::cli::{Written, cell, try_folder, words};

/// Draw runs together and put their results side by side
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Folders that `--run` wrote
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Folder for pictures: one for each figure that was recorded
    #[arg(long, default_value = "out/compare")]
    out: PathBuf,
    /// Print one line of JSON in place of tables
    #[arg(long)]
    json: bool,
}

/// Runs in one table, which has a column for each.
const COLUMNS: usize = 5;
/// Results that every task has, in the order in which they are read.
const RESULTS: [&str; 8] = ["loss", "log_z", "log_z_true", "l1", "tv", "jsd", "its_per_s", "train_s"];

pub(crate) fn run(args: &Args) -> Result<()> {
    let runs: Vec<Recorded> = args.runs.iter().map(|path| Recorded::read(path)).collect::<Result<_>>()?;
    try_folder(&args.out)?;
    let written = Written::default();
    let drawn = pictures::draw(&runs, &args.out, &written)?;
    if args.json {
        let (pictures, differ) = (written.paths(), differing(&runs));
        println!(
            "{}",
            json!({ "example": "compare", "runs": runs.iter().map(line).collect::<Vec<_>>(), "differ_in": differ,
                "figures": drawn, "pictures": pictures })
        );
        return Ok(());
    }
    let names = labels(&args.runs);
    for (runs, names) in runs.chunks(COLUMNS).zip(names.chunks(COLUMNS)) {
        print!("{}", tables(runs, names));
    }
    if drawn.is_empty() {
        println!("Nothing was recorded that could be drawn.");
    }
    print!("{}", written.lines());
    Ok(())
}

/// One run for programs.
fn line(run: &Recorded) -> Value {
    json!({ "run": run.path, "task": run.asked.task, "flags": run.asked.flags, "steps": run.steps_made(),
        "finished": run.result.is_some(), "result": run.result })
}

/// The flags that aren't the same in all runs.
fn differing(runs: &[Recorded]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs.iter().skip(1) {
        let differ = runs[0].asked.differences(&run.asked);
        names.extend(differ.into_iter().map(|(name, _, _)| name.to_owned()));
    }
    names.sort();
    names.dedup();
    names
}

/// What was asked for where that differs, and what came of it: a row for each figure, a column for each run.
fn tables(runs: &[Recorded], names: &[String]) -> String {
    let table = |heading: &str| Table::new(std::iter::once(heading.to_owned()).chain(names.iter().cloned()));
    let mut settings = table("settings that differ");
    let row = |name: &str, of: &dyn Fn(&Recorded) -> Cell| -> Vec<Cell> {
        std::iter::once(name.into()).chain(runs.iter().map(of)).collect()
    };
    let differ = differing(runs);
    if runs.iter().any(|run| run.asked.task != runs[0].asked.task) {
        settings.push(row("task", &|run| run.asked.task.as_str().into()));
    }
    for name in &differ {
        settings.push(row(&format!("--{name}"), &|run| setting(run.asked.flags.get(name))));
    }
    let mut results = table("results");
    results.push(row("steps made", &|run| run.steps_made().into()));
    results.push(row("finished", &|run| if run.result.is_some() { "yes" } else { "no" }.into()));
    let known = |name: &str| runs.iter().any(|run| run.figure(name).is_some());
    for name in RESULTS.into_iter().filter(|name| known(name)) {
        results.push(row(&words(name), &|run| result(run, name)));
    }
    if known("tv") || known("jsd") {
        results.push(row("these distances are exact", &|run| result(run, "exact")));
    }
    for name in own_figures(runs) {
        results.push(row(&words(&name), &|run| result(run, &name)));
    }
    let same = differ.is_empty() && runs.iter().all(|run| run.asked.task == runs[0].asked.task);
    if same { format!("{results}\n") } else { format!("{settings}\n{results}\n") }
}

/// Figures of the tasks' own, numbers all of them.
pub(super) fn own_figures(runs: &[Recorded]) -> Vec<String> {
    let results = runs.iter().filter_map(|run| run.result.as_ref());
    let common = [&RESULTS[..], &OF_RUN[..], &["mean_len", "states_per_s", "reward_calls", "distinct_share"]].concat();
    let own = |(name, value): (&String, &Value)| {
        (value.is_number() && !common.contains(&name.as_str())).then(|| name.clone())
    };
    let mut names: Vec<String> = results.flat_map(Map::iter).filter_map(own).collect();
    names.sort();
    names.dedup();
    names
}

fn result(run: &Recorded, name: &str) -> Cell {
    run.result.as_ref().and_then(|result| result.get(name)).and_then(|value| cell(name, value)).unwrap_or(Cell::Missing)
}

/// A flag as it was given; numbers with all their digits.
fn setting(value: Option<&Value>) -> Cell {
    match value {
        None | Some(Value::Null) => Cell::Missing,
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Bool(on)) => (if *on { "yes" } else { "no" }).into(),
        Some(other) => other.to_string().into(),
    }
}
