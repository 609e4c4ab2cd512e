//! Peaks on a grid of many dimensions: how many a policy finds, beside Markov chains, by the number of rewards that were computed.

mod chains;
mod target;

use std::ops::ControlFlow;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use gfn::env::VectorEnv;
use gfn::metrics::ModeTracker;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn::run::{Observer, Record};
use gfn::train::Trainer;
use gfn::{Error, Result};
use gfn_gym::hypergrid::HyperGrid;
use serde_json::json;

use self::chains::Chains;
use self::target::Peaks;
use super::perceptron;
use crate::flags::{Common, refuse, words};
use crate::plot::{Curve, Panel};
use crate::run::{Recipe, Report, Run, Trained, members};

/// Train a perceptron on a grid with a few peaks, or run the Markov chains that it is compared with
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Search for peaks, by as many rewards as the steps times the batch
    #[arg(long, value_enum, default_value = "policy")]
    by: Method,
    /// Dimensions
    #[arg(long, default_value_t = 8)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 10)]
    height: usize,
    /// Peaks, whose places are the same for all seeds
    #[arg(long, default_value_t = 16)]
    peaks: usize,
    /// Standard deviation of each peak
    #[arg(long, default_value_t = 0.5)]
    width: f64,
    /// Reward far from all peaks; a peak's top has 1
    #[arg(long, default_value_t = 1e-9)]
    floor: f64,
    /// Markov chains in all
    #[arg(long, default_value_t = 16)]
    chains: usize,
    /// Chains that exchange points: each next one samples in proportion to a lower power of R, down to about 1 / -log floor
    #[arg(long, default_value_t = 8)]
    ladder: usize,
    #[command(flatten)]
    common: Common,
}

/// A search for peaks.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    /// By a policy that is trained
    Policy,
    /// By Metropolis-Hastings chains
    Metropolis,
    /// By replica exchange
    Tempering,
}

/// Points up to which a policy's distribution is exact, and chains are held against the target.
const EXACT_LIMIT: usize = 4_096;
/// Parts of the budget after which peaks are counted.
const PARTS: [(u64, &str); 4] =
    [(8, "found_by_eighth"), (4, "found_by_quarter"), (2, "found_by_half"), (1, "modes_found")];

/// The peaks that were found, by reward calls.
type Found = ModeTracker<usize>;

pub(crate) fn run(args: &Args) -> Result<()> {
    let grid = HyperGrid::new(args.ndim, args.height)?;
    let env = grid.env();
    let peaks = Peaks::new(grid, args.peaks, args.width, args.floor)?;
    let title = format!("{} peaks of width {} on a grid of {}^{}", args.peaks, args.width, args.height, args.ndim);
    let recipe = Recipe { steps: 500, batch: 64, lr: 1e-3, exact_up_to: EXACT_LIMIT, samples: 0, ..Recipe::default() };
    let run = Run::begin(&args.common, "peaks", title, recipe)?;
    // Peaks are counted by the one that draws all points, and checkpoints don't hold them.
    if !members::sees_all() {
        return Err(Error::config("the members of `peaks`", members::count(), "one: leave out what makes several"));
    }
    if args.common.resume().is_some() {
        let expected = "a run from its beginning, as the peaks found before aren't in checkpoints";
        return Err(Error::config("a checkpoint to go on from", "given", expected));
    }
    match args.by {
        Method::Policy => {
            refuse(&["--chains", "--ladder"], "no such flag without chains")?;
            train(args, &run, env, &peaks)
        }
        Method::Metropolis => {
            refuse(&["--ladder"], "--by tempering")?;
            search(args, &run, &peaks, &[1.0])
        }
        Method::Tempering => search(args, &run, &peaks, &powers(args)?),
    }
}

fn train(args: &Args, run: &Run<'_>, env: VectorEnv, peaks: &Peaks) -> Result<()> {
    let task = json!({ "ndim": args.ndim, "height": args.height, "peaks": args.peaks, "width": args.width,
        "floor": args.floor });
    let features = KHot::new(args.ndim, args.height);
    let trainer = perceptron(run, env, features, peaks.clone(), BackwardPolicy::SharedTorso, &task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let mut found = Found::new();
    let mut watch = |trainer: &Trainer<VectorEnv>, record: &mut Record| {
        let latest = trainer.latest().into_iter().flat_map(|latest| latest.terminal_states().rows());
        found.add(record.step, record.reward_calls, latest.filter_map(|point| peaks.peak_at(point)));
        record.metrics.insert("modes_found".to_owned(), found.found() as f64);
        Ok(ControlFlow::Continue(()))
    };
    let Some(mut learned) = run.learn(trainer, "points", vec![&mut watch as &mut dyn Observer<_>])? else {
        return Ok(());
    };
    report(args, run, peaks, &found, &mut learned.report);
    learned.print()
}

/// The powers of a ladder, in equal ratios.
fn powers(args: &Args) -> Result<Vec<f64>> {
    if args.ladder < 2 || !args.chains.is_multiple_of(args.ladder) {
        return Err(Error::config("--ladder", args.ladder, "at least 2, a divisor of --chains"));
    }
    let hottest = (-args.floor.ln()).max(2.0);
    Ok((0..args.ladder).map(|k| hottest.powf(-(k as f64) / (args.ladder - 1) as f64)).collect())
}

/// Runs chains until as many rewards are computed as training would.
fn search(args: &Args, run: &Run<'_>, peaks: &Peaks, betas: &[f64]) -> Result<()> {
    if args.chains < betas.len() {
        return Err(Error::config("--chains", args.chains, "at least 1"));
    }
    // A stream of its own: with seed 0 the run's begins as the one that the peaks were placed by, and chains would begin at their tops.
    let (budget, mut rng, started) = (budget(run), run.rng().split(), Instant::now());
    let mut chains = Chains::new(peaks, args.chains / betas.len(), betas, &mut rng);
    let (mut found, mut visits) = (Found::new(), Visits::new(peaks.grid()));
    for round in 1.. {
        chains.round(&mut rng);
        found.add(round, chains.reward_calls(), chains.points().filter_map(|point| peaks.peak_at(point)));
        // Some way apart; how much visits depend on each other isn't known.
        if 2 * chains.reward_calls() > budget && round.is_multiple_of(args.height.pow(2)) {
            chains.samples().for_each(|point| visits.add(peaks.grid(), point));
        }
        if chains.reward_calls() >= budget {
            break;
        }
    }
    let mut figures = Report::default();
    figures.set("why_not_exact", "chains have no distribution that could be listed");
    visits.report(peaks, &mut figures)?;
    report(args, run, peaks, &found, &mut figures);
    run.print(&Trained::without_steps(run.config.batch, started.elapsed().as_secs_f64()), figures)
}

fn budget(run: &Run<'_>) -> u64 {
    (run.steps() * run.config.batch) as u64
}

/// Figures and curve of what was found.
fn report(args: &Args, run: &Run<'_>, peaks: &Peaks, found: &Found, report: &mut Report) {
    let after = |calls: u64| found.curve().iter().take_while(|point| point.reward_calls <= calls).count();
    let modes = |calls: u64| after(calls).checked_sub(1).map_or(0, |last| found.curve()[last].modes);
    let curve = PARTS.map(|(part, name)| (budget(run) / part, name, modes(budget(run) / part)));
    report.extend(curve.map(|(_, name, modes)| (name, json!(modes))));
    report.extend([
        ("by", json!(words(&args.by))),
        ("budget", json!(budget(run))),
        ("log_z_true", json!(peaks.log_z())),
        ("modes_total", json!(peaks.len())),
        ("width", json!(args.width)),
        ("floor", json!(args.floor)),
    ]);
    let points = curve.iter().map(|&(calls, _, modes)| (calls as f64, modes as f64));
    report.panels.push(Panel::new("peaks").labels("reward calls", "").curve(Curve::new("found", points)));
}

/// The number of times that chains came to each point of a small grid, for a check of the chains themselves.
struct Visits {
    of: Vec<u64>,
    all: u64,
}

impl Visits {
    /// None yet; for good where there are too many points.
    fn new(grid: &HyperGrid) -> Self {
        let few = Some(grid.n_states()).filter(|&n| n <= EXACT_LIMIT as u64);
        Self { of: vec![0; few.unwrap_or(0) as usize], all: 0 }
    }

    fn add(&mut self, grid: &HyperGrid, point: &[u16]) {
        if let Some(visits) = self.of.get_mut(grid.index(point) as usize) {
            *visits += 1;
            self.all += 1;
        }
    }

    /// The TV of the visits from the target, and that of as many independent samples on average.
    fn report(&self, peaks: &Peaks, report: &mut Report) -> Result<()> {
        let (n, mut off, mut noise) = (self.all as f64, 0.0, 0.0);
        if self.all == 0 {
            return Ok(());
        }
        for (point, &visits) in peaks.grid().states_of(0..self.of.len() as u64)?.rows().zip(&self.of) {
            let p = (peaks.log_value(point) - peaks.log_z()).exp();
            off += (visits as f64 / n - p).abs() / 2.0;
            noise += (p * (1.0 - p) / (2.0 * std::f64::consts::PI * n)).sqrt();
        }
        report.extend([("visits", json!(self.all)), ("tv_visits", json!(off)), ("tv_visits_perfect", json!(noise))]);
        Ok(())
    }
}
