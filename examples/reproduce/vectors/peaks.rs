//! A task about narrow peaks on a grid of many dimensions. The task compares how many peaks a policy and
//! Markov chains find with an equal number of reward calls.

use std::cell::RefCell;
use std::f64::consts::PI;

use gfn::metrics::ModeTracker;

use crate::prelude::*;

/// Train a perceptron on a grid with a few narrow peaks, or run Markov chains for comparison
#[derive(Args)]
pub(crate) struct PeakSearch {
    /// Method that searches for peaks. Each method may compute --steps times --batch rewards
    #[arg(long, value_parser = choice(METHODS), default_value = "policy")]
    by: Selection<Method>,
    /// Number of dimensions
    #[arg(long, default_value_t = 8)]
    ndim: usize,
    /// Number of points along each dimension
    #[arg(long, default_value_t = 10)]
    height: usize,
    /// Number of peaks. The positions of peaks don't depend on --seed
    #[arg(long, default_value_t = 16)]
    peaks: usize,
    /// Standard deviation of each peak
    #[arg(long, default_value_t = 0.5)]
    width: f64,
    /// Reward of points far from all peaks; the reward at the top of a peak is about 1
    #[arg(long, default_value_t = 1e-9)]
    floor: f64,
    #[command(flatten)]
    common: Common,
}

/// A method that searches for peaks.
#[derive(Clone, Copy)]
enum Method {
    Policy,
    /// Markov chains, in ladders of this number of chains. Each chain of a ladder has a different
    /// temperature, and neighbours on a ladder exchange points.
    Chains(usize),
}

const METHODS: &[Choice<Method>] = &[
    ("policy", Method::Policy, "A policy that is trained"),
    ("metropolis", Method::Chains(1), "Metropolis-Hastings chains"),
    ("tempering", Method::Chains(8), "Replica exchange: each next chain samples by a lower power of R"),
];

/// The total number of Markov chains. They are divided into ladders: groups of chains that have different
/// temperatures.
const CHAINS: usize = 16;
/// The largest number of points for which a policy's exact probabilities are computed. On grids of more
/// points, the points visited by Markov chains aren't compared with the target, either.
const EXACT_LIMIT: usize = 4_096;
/// The parts of the budget (the number of rewards that a method may compute) after which the peaks found so
/// far are counted. An entry holds the number by which the budget is divided, and the name of the count in
/// the report.
const PARTS: [(u64, &str); 4] =
    [(8, "found_by_eighth"), (4, "found_by_quarter"), (2, "found_by_half"), (1, "modes_found")];

impl Task for PeakSearch {
    fn run(&self) -> Result<()> {
        let grid = HyperGrid::new(self.ndim, self.height)?;
        let peaks = Peaks::new(grid, self.peaks, self.width, self.floor)?;
        let recipe =
            Recipe { steps: 500, lr: 1e-3, exact_up_to: EXACT_LIMIT, samples: 0, ..Recipe::default() };
        let run = Run::begin(&self.common, recipe)?;
        // Only one thread or process may train: peaks are counted among all sampled points, but each of
        // several threads or processes would have only a share of the points. Resuming isn't allowed, because
        // checkpoints don't contain the peaks found so far.
        if members::count() > 1 {
            return Err(Error::config(
                "the number of processes or replicas of `peaks`",
                members::count(),
                "1: leave out --dist and --threads-for replicas",
            ));
        }
        if self.common.resume().is_some() {
            let expected = "a new run, because checkpoints don't have the peaks that were found before";
            return Err(Error::config("--resume", "given", expected));
        }
        let found = ModeTracker::new();
        if let Method::Chains(n_powers) = self.by.value {
            return self.search(&run, &peaks, n_powers, found);
        }
        let task = json!({ "ndim": self.ndim, "height": self.height, "peaks": self.peaks, "width": self.width,
            "floor": self.floor });
        let network = self.common.perceptron(BackwardPolicy::SharedTorso);
        let trainer = run.perceptron(peaks.grid.env(), peaks.clone(), network, task)?;
        let found = RefCell::new(found);
        let mut watch = |trainer: &Trainer<VectorEnv>, record: &mut Record| {
            let latest = trainer.latest().into_iter().flat_map(|latest| latest.terminal_states().rows());
            let mut found = found.borrow_mut();
            found.add(record.step, record.reward_calls, latest.filter_map(|point| peaks.peak_at(point)));
            record.metrics.insert("modes_found".to_owned(), found.n_modes() as f64);
            Ok(ControlFlow::Continue(()))
        };
        run.learn(trainer, "points", vec![&mut watch], |report, _, _| {
            self.report(&run, &peaks, &found.borrow(), report);
            Ok(())
        })
    }
}

impl PeakSearch {
    /// Runs Markov chains until they have computed as many rewards as training would. The chains are divided
    /// into ladders; the chains of a ladder sample falling powers of R. In each round every chain makes a
    /// proposal, and then every second pair of neighbours on a ladder exchanges points.
    fn search(
        &self,
        run: &Run<'_>,
        peaks: &Peaks,
        n_powers: usize,
        mut found: ModeTracker<usize>,
    ) -> Result<()> {
        // The chains use a separate random stream. With seed 0 the run's stream has the random numbers that
        // placed the peaks, so chains would start at the tops of the peaks.
        let budget = budget(run);
        let rng = &mut run.rng().split();
        // Chain `k` of a ladder (a group of `n_powers` chains) samples R to the power `power(k)`. This
        // exponent falls from 1 to 1 / hottest by a constant factor. `hottest` is -log of the smallest
        // reward, and at least 2.
        let hottest = (-self.floor.ln()).max(2.0);
        let power = |k: usize| hottest.powf(-(k as f64) / (n_powers.max(2) - 1) as f64);
        let n_counted = Some(peaks.grid.n_states()).filter(|&n| n <= EXACT_LIMIT as u64).unwrap_or(0);
        let mut visits = vec![0u64; n_counted as usize];
        let mut report = run.search(|| {
            let mut ladder = |_| (0..n_powers).map(|k| Chain::new(peaks, power(k), rng)).collect();
            let mut ladders: Vec<Vec<Chain>> = (0..CHAINS / n_powers).map(&mut ladder).collect();
            let mut n_rounds = 0;
            let mut reward_calls = (ladders.len() * n_powers) as u64;
            loop {
                for ladder in &mut ladders {
                    for chain in ladder.iter_mut() {
                        reward_calls += u64::from(chain.propose(peaks, rng));
                    }
                    for pair in ladder[n_rounds % 2..].chunks_exact_mut(2) {
                        exchange(pair, rng);
                    }
                }
                n_rounds += 1;
                let modes = ladders.iter().flatten().filter_map(|chain| peaks.peak_at(&chain.point));
                found.add(n_rounds, reward_calls, modes);
                // Visits are counted only in the second half of the search, and only in rounds that are far
                // apart, because successive points of a chain depend on each other. Only the first chain of
                // each ladder is counted, because the others sample smaller powers of R.
                if 2 * reward_calls > budget && n_rounds.is_multiple_of(self.height.pow(2)) {
                    for chain in ladders.iter().filter_map(|ladder| ladder.first()) {
                        if let Some(visits) = visits.get_mut(peaks.grid.index(&chain.point) as usize) {
                            *visits += 1;
                        }
                    }
                }
                if reward_calls >= budget {
                    return Ok(());
                }
            }
        })?;
        report.set("why_not_exact", "chains have no distribution that could be listed");
        peaks.report_visits(&visits, &mut report)?;
        self.report(run, peaks, &found, &mut report);
        run.print(report)
    }

    /// Reports how many peaks were found after each of the `PARTS` of the budget of reward calls, and adds a
    /// panel of these numbers.
    fn report(&self, run: &Run<'_>, peaks: &Peaks, found: &ModeTracker<usize>, report: &mut Report) {
        let mut points = Vec::new();
        for (part, name) in PARTS {
            let calls = budget(run) / part;
            let last = found.curve().iter().take_while(|point| point.reward_calls <= calls).last();
            let modes = last.map_or(0, |point| point.modes);
            report.set(name, modes);
            points.push((calls as f64, modes as f64));
        }
        report.extend(json!({ "by": self.by.name, "budget": budget(run), "log_z_true": peaks.log_z(),
            "modes_total": peaks.tops.len(), "width": self.width, "floor": self.floor }));
        report.panels.push(Panel::new("peaks").labels("reward calls", "").curve(Curve::new("found", points)));
    }
}

fn budget(run: &Run<'_>) -> u64 {
    (run.steps() * run.config.batch) as u64
}

/// The seed that places the peaks. The seed is fixed, so that all runs have the same peaks.
const PLACES_SEED: u64 = 0;
/// The smallest distance between the tops of two peaks, in standard deviations of a peak.
const MIN_DISTANCE: f64 = 4.0;
/// The largest number of random points that are tried as the top of a peak.
const MAX_TRIES: usize = 10_000;

/// A sum of Gaussian peaks far apart: R(x) = floor + the sum over peaks of exp(-|x - top|^2 / (2 width^2)).
#[derive(Clone)]
struct Peaks {
    grid: HyperGrid,
    tops: Vec<Vec<u16>>,
    width: f64,
    floor: f64,
}

impl Peaks {
    /// Draws `n` peaks at random points of the grid, which are at least `MIN_DISTANCE` widths apart.
    fn new(grid: HyperGrid, n: usize, width: f64, floor: f64) -> Result<Self> {
        for (flag, value) in [("--width", width), ("--floor", floor)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::config(flag, value, "a finite number above 0"));
            }
        }
        let mut rng = Rng::seeded(PLACES_SEED);
        let mut tops = Vec::<Vec<u16>>::new();
        for _ in 0..n {
            let place = || (0..grid.ndim()).map(|_| rng.below(grid.height()) as u16).collect();
            let is_apart = |point: &Vec<u16>| {
                tops.iter().all(|top| squared(top, point) >= (MIN_DISTANCE * width).powi(2))
            };
            let point = std::iter::repeat_with(place).take(MAX_TRIES).find(is_apart);
            tops.push(point.ok_or(Error::config(
                "--peaks",
                n,
                "a number of peaks that fit on the grid at a distance from each other; give fewer or \
                 narrower peaks, or a larger grid",
            ))?);
        }
        Ok(Self { grid, tops, width, floor })
    }

    /// Returns the value of each peak's Gaussian at a point.
    fn heights(&self, point: &[u16]) -> impl Iterator<Item = f64> {
        self.tops.iter().map(move |top| (-0.5 * squared(top, point) / self.width.powi(2)).exp())
    }

    fn log_value(&self, point: &[u16]) -> f64 {
        (self.floor + self.heights(point).sum::<f64>()).ln()
    }

    /// Returns the index of the peak whose Gaussian is at least 0.5 at a point; `None` if there is no such
    /// peak.
    fn peak_at(&self, point: &[u16]) -> Option<usize> {
        self.heights(point).position(|height| height >= 0.5)
    }

    /// Returns the exact log Z. The sum of a peak's Gaussian over the grid is a product of sums over single
    /// dimensions.
    fn log_z(&self) -> f64 {
        let along = |&top: &u16| {
            let height = |x: usize| (-0.5 * ((x as f64 - f64::from(top)) / self.width).powi(2)).exp();
            (0..self.grid.height()).map(height).sum::<f64>()
        };
        let peak = |top: &Vec<u16>| top.iter().map(along).product::<f64>();
        (self.floor * self.grid.n_states() as f64 + self.tops.iter().map(peak).sum::<f64>()).ln()
    }

    /// Reports the TV between the target and the distribution of the chains' visits over the points, if the
    /// grid is small. For comparison, also reports the expected TV if the visits were independent samples
    /// from the target.
    fn report_visits(&self, visits: &[u64], report: &mut Report) -> Result<()> {
        let n = visits.iter().sum::<u64>();
        if n == 0 {
            return Ok(());
        }
        let n_visits = n as f64;
        let mut tv = 0.0;
        let mut perfect = 0.0;
        for (point, &visits) in self.grid.states_of(0..visits.len() as u64)?.rows().zip(visits) {
            let p = (self.log_value(point) - self.log_z()).exp();
            tv += (visits as f64 / n_visits - p).abs() / 2.0;
            perfect += (p * (1.0 - p) / (2.0 * PI * n_visits)).sqrt();
        }
        report.extend(json!({ "visits": n, "tv_visits": tv, "tv_visits_perfect": perfect }));
        Ok(())
    }
}

impl Reward<VectorStates> for Peaks {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|point| self.log_value(point)).collect())
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, None).map(Some)
    }
}

/// Returns the squared distance between two points.
fn squared(one: &[u16], other: &[u16]) -> f64 {
    one.iter().zip(other).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}

/// A Markov chain whose stationary distribution is proportional to R to the power `beta`.
struct Chain {
    point: Vec<u16>,
    log_reward: f64,
    beta: f64,
}

impl Chain {
    /// Builds a chain that starts at a random point.
    fn new(peaks: &Peaks, beta: f64, rng: &mut Rng) -> Self {
        let point: Vec<u16> = (0..peaks.grid.ndim()).map(|_| rng.below(peaks.grid.height()) as u16).collect();
        Self { log_reward: peaks.log_value(&point), point, beta }
    }

    /// Proposes a step up or down along a random axis, and accepts or rejects it by the Metropolis rule.
    /// Returns `true` if a reward was computed. No reward is needed for a step that would leave the grid,
    /// which is rejected.
    fn propose(&mut self, peaks: &Peaks, rng: &mut Rng) -> bool {
        let axis = rng.below(self.point.len());
        let up = rng.uniform() < 0.5;
        let before = self.point[axis];
        let after = if up { before.checked_add(1) } else { before.checked_sub(1) };
        let Some(after) = after.filter(|&x| usize::from(x) < peaks.grid.height()) else { return false };
        self.point[axis] = after;
        let log_reward = peaks.log_value(&self.point);
        if rng.uniform() < (self.beta * (log_reward - self.log_reward)).exp() {
            self.log_reward = log_reward;
        } else {
            self.point[axis] = before;
        }
        true
    }
}

/// Exchanges the points of two chains with the Metropolis acceptance probability.
fn exchange(pair: &mut [Chain], rng: &mut Rng) {
    let [one, other] = pair else { return };
    let gain = (one.beta - other.beta) * (other.log_reward - one.log_reward);
    if rng.uniform() < gain.exp() {
        std::mem::swap(&mut one.point, &mut other.point);
        std::mem::swap(&mut one.log_reward, &mut other.log_reward);
    }
}
