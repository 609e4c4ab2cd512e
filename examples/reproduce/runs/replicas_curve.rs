//! How fast N replicas on as many cores would be, from what one of them does, timed on one core.
//!
//! One of N replicas draws and scores an N-th of the batch, computes the loss of all of it, and takes its part in the sum of gradients:
//! `--as-one-of N` does that alone, and says what a processor worked for each step, and how many states it evaluated. A step of all is as
//! long as the slowest of N: that of the most states among N drawn at random, each of which takes what the line through the means of all
//! sizes says. What isn't in it: how long replicas take to notice that all are there, and what cores share.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Parser;
use gfn::{Error, Result, Rng};
use gfn_plot::{Cell, Table};
use gfn_plot::{Curve, Figure, Panel};
use serde_json::{Value, json};

use super::spread::Spread;
use crate::cli::at_least_one;

/// Predict how fast replicas of four tasks train on up to 16 cores, beside what two threads make here
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Rounds, each of all runs one after the other
    #[arg(long, default_value_t = 3, value_parser = at_least_one)]
    rounds: usize,
    /// Steps of a run
    #[arg(long, default_value_t = 80, value_parser = at_least_one)]
    steps: usize,
    /// A figure, as SVG or PNG
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one line of JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// What is predicted; all with frozen policies.
const TASKS: [(&str, &str); 4] = [
    ("rings of 5", "ring --nodes 5 --prefill 2000 --batch 128"),
    ("structures", "bayesian-structure --batch 128"),
    ("molecules of 6", "molecule --max-atoms 6 --batch 128"),
    ("grid 16^4", "hypergrid --ndim 4 --height 16 --batch 128"),
];
const REPLICAS: [usize; 5] = [1, 2, 4, 8, 16];
/// Draws of N steps each.
const DRAWS: usize = 20_000;
/// What was timed of one task.
#[derive(Default)]
struct Timed {
    /// Milliseconds of processor time of each step of one of N replicas.
    steps: [Vec<f64>; REPLICAS.len()],
    /// States that each evaluated.
    states: [Vec<f64>; REPLICAS.len()],
    /// Steps per second of one and of two threads.
    speeds: [Vec<f64>; 2],
}

impl Timed {
    /// Milliseconds of a step of N replicas: the mean of one's, and what the most states of N take more than the mean number.
    fn predicted(&self, k: usize, rng: &mut Rng) -> f64 {
        let states = &self.states[k];
        let mut most = || (0..REPLICAS[k]).map(|_| states[rng.below(states.len())]).fold(0.0, f64::max);
        let slowest = (0..DRAWS).map(|_| most()).sum::<f64>() / DRAWS as f64;
        mean(&self.steps[k]) + self.ms_per_state() * (slowest - mean(states)).max(0.0)
    }

    /// The slope of the line through the means, by least squares.
    fn ms_per_state(&self) -> f64 {
        let (ms, states) = (self.steps.each_ref().map(|steps| mean(steps)), self.states.each_ref().map(|n| mean(n)));
        let (centre_ms, centre) = (mean(&ms), mean(&states));
        let spread: f64 = states.iter().map(|n| (n - centre).powi(2)).sum();
        let common: f64 = states.iter().zip(ms).map(|(n, ms)| (n - centre) * (ms - centre_ms)).sum();
        if spread > 0.0 { (common / spread).max(0.0) } else { 0.0 }
    }

    /// Speed against one replica's.
    fn speed_ups(&self) -> [f64; REPLICAS.len()] {
        let rng = &mut Rng::seeded(0);
        let predicted: [f64; REPLICAS.len()] = std::array::from_fn(|k| self.predicted(k, rng));
        predicted.map(|ms| predicted[0] / ms)
    }

    /// That of two threads as it was measured, round by round.
    fn measured(&self) -> Option<Spread> {
        Spread::of(self.speeds[1].iter().zip(&self.speeds[0]).map(|(two, one)| two / one))
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut timed: [Timed; TASKS.len()] = Default::default();
    for round in 1..=args.rounds {
        for ((name, task), timed) in TASKS.iter().zip(&mut timed) {
            eprintln!("round {round} of {}: {name}", args.rounds);
            for (k, replicas) in REPLICAS.iter().enumerate() {
                let line = result_of(task, &["--as-one-of", &replicas.to_string()], args.steps)?;
                let list = |name: &str| line[name].as_array().into_iter().flatten().filter_map(Value::as_f64);
                timed.steps[k].extend(list("steps_ms"));
                timed.states[k].extend(list("states"));
            }
            for (k, threads) in ["1", "2"].iter().enumerate() {
                let flags = ["--threads", threads, "--threads-for", "replicas"];
                let line = result_of(task, &flags, args.steps)?;
                timed.speeds[k].extend(line["its_per_s"].as_f64());
            }
        }
    }
    if timed.iter().any(|timed| timed.steps.iter().chain(&timed.states).any(Vec::is_empty)) {
        return Err(Error::missing("a prediction", "the time of a step", "give --steps, one at least"));
    }
    report(args, &timed)
}

/// The line of JSON of a run.
fn result_of(task: &str, flags: &[&str], steps: usize) -> Result<Value> {
    let refuse = |why: String| Error::config("a run of `reproduce`", format!("{task}: {why}"), "one with a result");
    let program = std::env::current_exe().map_err(|error| refuse(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(task.split(' ')).args(["--lr", "0", "--json", "--steps", &steps.to_string()]).args(flags);
    let output = command.stderr(Stdio::piped()).output().map_err(|error| refuse(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    line.filter(|_| output.status.success()).ok_or_else(|| refuse(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn report(args: &Args, timed: &[Timed]) -> Result<()> {
    let mut table = Table::new(["", "ms a step", "2", "4", "8", "16", "2 threads measured"]);
    let (mut lines, mut panel) = (Vec::new(), Panel::new("steps per second against one replica's"));
    let all: Vec<f64> = REPLICAS.iter().map(|&n| n as f64).collect();
    for ((name, task), timed) in TASKS.iter().zip(timed) {
        let (speed_ups, measured) = (timed.speed_ups(), timed.measured());
        let mean = mean(&timed.steps[0]);
        let mut row: Vec<Cell> = vec![(*name).into(), mean.into()];
        row.extend(speed_ups[1..].iter().map(|&speed| Cell::from(speed)));
        row.push(measured.map_or(Cell::Missing, |spread| spread.median.into()));
        table = table.row(row);
        lines.push(json!({ "task": task, "step_ms": mean, "replicas": REPLICAS, "predicted": speed_ups, "two_threads": measured }));
        panel = panel.curve(Curve::new(*name, all.iter().copied().zip(speed_ups)));
    }
    let measured = TASKS.iter().zip(timed).filter_map(|((name, _), timed)| Some((*name, timed.measured()?)));
    if args.json {
        println!("{}", json!({ "rounds": args.rounds, "steps": args.steps, "tasks": lines }));
    } else {
        print!("{table}");
        measured.for_each(|(name, spread)| {
            println!("{name}: two threads made {:.2} ({:.2} to {:.2}) of one", spread.median, spread.min, spread.max);
        });
    }
    let Some(path) = &args.out else { return Ok(()) };
    panel = panel.labels("replicas, each on a core of its own", "").reference(1.0, "one trainer");
    Figure::new("Replicas on up to 16 cores").panel(panel).write(path)
}
