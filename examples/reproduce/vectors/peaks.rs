//! A task about narrow peaks on a grid of many dimensions. The task compares how many peaks a policy, Markov
//! chains, and both together find with an equal number of reward calls, and measures how the trained policy's
//! samples are distributed over the peaks.

use std::cell::RefCell;

use gfn::metrics::ModeTracker;
use gfn::objective::MaximumLikelihood;
use gfn::optim::Schedule;
use gfn::train::Persist;
use gfn_extras::chains::{ChainConfig, ChainSource, ChainSourceConfig, Chains, Proposal, Restart, Starts};

use super::peak_reward::Peaks;
use crate::prelude::*;

/// Train a perceptron on a grid with a few narrow peaks, with or without Markov chains, or run chains alone
#[derive(Args)]
pub(crate) struct PeakSearch {
    /// Method that searches for peaks. A policy, and chains alone, may compute --steps times --batch rewards
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
    /// Number of rewards that the chains of --by chains-and-policy may compute, beside --steps times --fresh
    #[arg(long, default_value_t = 26_000)]
    chain_calls: u64,
    /// Number of new samples of the policy in each batch with --by chains-and-policy. The others lead to
    /// points that were found before
    #[arg(long, default_value_t = 4, value_parser = at_least_one)]
    fresh: usize,
    /// Number of uniform points from which the start of each chain is chosen with --by chains-and-policy
    #[arg(long, default_value_t = 128, value_parser = at_least_one)]
    candidates: usize,
    /// Number of proposals without a larger reward after which a chain of --by chains-and-policy restarts
    #[arg(long, default_value_t = 24, value_parser = at_least_one)]
    patience: usize,
    /// Powers of R that the chains of each ladder sample with --by chains-and-policy. Chains of power 1
    /// rarely reach the top of a wide peak of many dimensions
    #[arg(long, value_delimiter = ',', default_value = "8")]
    powers: Vec<f64>,
    /// Exponent of R by which points that were found are drawn with --by chains-and-policy
    #[arg(long, default_value_t = 1.0)]
    draw_exponent: f64,
    /// Number of steps of --by chains-and-policy in which the policy learns by maximum likelihood from points
    /// that chains found, before it learns by --objective
    #[arg(long, default_value_t = 2_500, value_parser = at_least_one)]
    warm_up: usize,
    #[command(flatten)]
    common: Common,
}

/// A method that searches for peaks.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Policy,
    /// A policy that learns from what Markov chains find. The chains restart at uniform points.
    ChainsAndPolicy,
    /// Markov chains, in ladders of this number of chains. Each chain of a ladder has a different
    /// temperature, and neighbours on a ladder exchange points.
    Chains(usize),
}

/// The flags of [`Method::ChainsAndPolicy`], which have no effect on other methods.
const MIXED_FLAGS: &[&str] =
    &["--chain-calls", "--fresh", "--candidates", "--patience", "--powers", "--draw-exponent", "--warm-up"];

const METHODS: &[Choice<Method>] = &[
    ("policy", Method::Policy, "A policy that is trained"),
    ("chains-and-policy", Method::ChainsAndPolicy, "A policy that learns from what Markov chains find"),
    ("metropolis", Method::Chains(1), "Metropolis-Hastings chains"),
    ("tempering", Method::Chains(8), "Replica exchange: each next chain samples by a lower power of R"),
];

/// The total number of Markov chains. They are divided into ladders: groups of chains that have different
/// temperatures.
const CHAINS: usize = 16;
/// The learning rate of maximum likelihood, relative to that of the objective. Maximum likelihood has no
/// large residuals, so it takes larger steps.
const WARM_UP_RATE: f64 = 3.0;
/// The number of rounds of chains before each training step.
const ROUNDS: usize = 4;
/// The number of moves of uniform chains between candidates, several times the number of dimensions.
const UNIFORM_ROUNDS: usize = 100;
/// The number of training steps after which the points found by chains are searched for peaks.
const SEARCHED_EVERY: usize = 20;
/// The number of samples of the trained policy whose distribution over the peaks is measured.
const SAMPLES: usize = 20_000;
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
        if self.by.value != Method::ChainsAndPolicy {
            refuse(MIXED_FLAGS, "a command without this flag, or with --by chains-and-policy")?;
        }
        let grid = HyperGrid::new(self.ndim, self.height)?;
        let peaks = Peaks::new(grid, self.peaks, self.width, self.floor)?;
        let recipe = match self.by.value {
            Method::ChainsAndPolicy => Recipe { steps: 1_200, epsilon: 0.0, ..Recipe::default() },
            _ => Recipe { steps: 500, ..Recipe::default() },
        };
        let run =
            Run::begin(&self.common, Recipe { lr: 1e-3, exact_up_to: EXACT_LIMIT, samples: 0, ..recipe })?;
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
        match self.by.value {
            Method::Chains(n_powers) => self.search(&run, &peaks, n_powers),
            _ => self.train(&run, &peaks),
        }
    }
}

/// Adds the peaks among all points whose rewards are known to a trainer's chains.
fn add_found(trainer: &Trainer<VectorEnv>, peaks: &Peaks, found: &mut ModeTracker<usize>, calls: u64) {
    let source = trainer.source::<ChainSource<VectorEnv>>();
    if let Some(walks) = source.and_then(|source| source.memory().walks()) {
        peaks.add_tops(found, trainer.steps_done(), calls, &walks.terminal);
    }
}

impl PeakSearch {
    /// Trains a policy, and counts the peaks among all points whose rewards were computed.
    fn train(&self, run: &Run<'_>, peaks: &Peaks) -> Result<()> {
        let found = RefCell::new(ModeTracker::new());
        let mut warm_up = (0, 0.0);
        let trainer = if self.by.value == Method::ChainsAndPolicy {
            let started = Instant::now();
            let (trainer, calls) = self.warm_up(run, peaks, &mut found.borrow_mut())?;
            warm_up = (calls, started.elapsed().as_secs_f64());
            trainer
        } else {
            let network = self.common.perceptron(BackwardPolicy::SharedTorso);
            run.perceptron(peaks.grid().env(), peaks.clone(), network, self.description())?
        };
        let mut watch = |trainer: &Trainer<VectorEnv>, record: &mut Record| {
            let mut found = found.borrow_mut();
            let calls = warm_up.0 + record.reward_calls;
            if let Some(latest) = trainer.latest() {
                peaks.add_tops(&mut found, record.step, calls, latest.terminal_states());
            }
            if record.step.is_multiple_of(SEARCHED_EVERY) || record.step == run.steps() {
                add_found(trainer, peaks, &mut found, calls);
            }
            record.metrics.insert("modes_found".to_owned(), found.n_modes() as f64);
            Ok(ControlFlow::Continue(()))
        };
        run.learn(trainer, "points", vec![&mut watch], |report, trainer, _| {
            let samples = evaluated(trainer, SAMPLES)?;
            report.extend(peaks.report_samples(&samples));
            if let Some(source) = trainer.source::<ChainSource<VectorEnv>>() {
                report.set("objects_found", source.memory().len());
            }
            report.set("reward_calls", warm_up.0 + trainer.reward_calls());
            report.set("warm_up_s", warm_up.1);
            self.report(run, peaks, &found.borrow(), report);
            Ok(())
        })
    }

    /// Runs chains, and trains a new policy on what they find by maximum likelihood. Returns a trainer of
    /// this policy that goes on by the objective of the flags with the same chains, and the number of rewards
    /// that were computed.
    ///
    /// Trajectory balance alone first balances its log Z between points on the floor, which the policy
    /// samples, and peaks, which it doesn't, and then learns for long.
    fn warm_up(
        &self,
        run: &Run<'_>,
        peaks: &Peaks,
        found: &mut ModeTracker<usize>,
    ) -> Result<(Trainer<VectorEnv>, u64)> {
        let batch = run.config.batch;
        if self.fresh >= batch {
            return Err(Error::config("--fresh", self.fresh, "a number below --batch"));
        }
        let network = self.common.perceptron(BackwardPolicy::Uniform);
        let description = run.describe(self.description(), &network);
        let mut rng = run.rng();
        let env = peaks.grid().env();
        let policy = MlpPolicy::new(&env, KHot::from_env(&env), network, run.device, Kind::Float, &mut rng)?;
        let AdamConfig { lr, .. } = run.config.adam;
        let config = TrainerConfig {
            adam: AdamConfig { lr: lr * WARM_UP_RATE, ..run.config.adam },
            lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: self.warm_up },
            ..run.config.clone()
        };
        let chains = ChainSource::new(self.chains())?;
        let mut trainer =
            Trainer::new(env.clone(), peaks.clone(), policy, MaximumLikelihood, config, rng.split())?
                .with_source(1.0, chains)?;
        for step in 1..=self.warm_up {
            trainer.step()?;
            if step.is_multiple_of(SEARCHED_EVERY) || step == self.warm_up {
                add_found(&trainer, peaks, found, trainer.reward_calls());
            }
        }
        let calls = trainer.reward_calls();
        let mut chains = ChainSource::new(self.chains())?;
        if let Some(source) = trainer.source::<ChainSource<VectorEnv>>() {
            chains.load_state(&env, &source.state(&env)?)?;
        }
        let share = 1.0 - self.fresh as f64 / batch as f64;
        let trainer = run.trainer(env, peaks.clone(), trainer.into_policy(), rng, &description)?;
        Ok((trainer.with_source(share, chains)?, calls))
    }

    fn description(&self) -> Value {
        json!({ "ndim": self.ndim, "height": self.height, "peaks": self.peaks, "width": self.width,
            "floor": self.floor })
    }

    /// Returns the settings of the chains from which a policy learns.
    fn chains(&self) -> ChainSourceConfig {
        let starts = Starts::Uniform { candidates: self.candidates, rounds: UNIFORM_ROUNDS };
        ChainSourceConfig {
            chains: ChainConfig { powers: self.powers.clone(), ..ChainConfig::default() },
            ladders: (CHAINS / self.powers.len().max(1)).max(1),
            exponent: self.draw_exponent,
            rounds: ROUNDS,
            max_reward_calls: Some(self.chain_calls),
            restart: Some(Restart { patience: self.patience, starts }),
            ..ChainSourceConfig::default()
        }
    }

    /// Runs Markov chains until they have computed as many rewards as training would. The chains are divided
    /// into ladders; the chains of a ladder sample falling powers of R. In each round every chain makes a
    /// proposal, and then every second pair of neighbours on a ladder exchanges points.
    fn search(&self, run: &Run<'_>, peaks: &Peaks, n_powers: usize) -> Result<()> {
        // The chains use a separate random stream. With seed 0 the run's stream has the random numbers that
        // placed the peaks, so chains would start at the tops of the peaks.
        let budget = self.budget(run);
        let rng = &mut run.rng().split();
        // Chain `k` of a ladder (a group of `n_powers` chains) samples R to the power `power(k)`. This
        // exponent falls from 1 to 1 / hottest by a constant factor. `hottest` is -log of the smallest
        // reward, and at least 2.
        let hottest = (-self.floor.ln()).max(2.0);
        let power = |k: usize| hottest.powf(-(k as f64) / (n_powers.max(2) - 1) as f64);
        let config = ChainConfig {
            powers: (0..n_powers).map(power).collect(),
            proposals: vec![(1.0, Proposal::OneMove)],
            ..ChainConfig::default()
        };
        let n_counted = Some(peaks.grid().n_states()).filter(|&n| n <= EXACT_LIMIT as u64).unwrap_or(0);
        let mut visits = vec![0u64; n_counted as usize];
        let mut found = ModeTracker::new();
        let mut reward_calls = 0;
        let mut report = run.search(|| {
            let env = peaks.grid().env();
            let start = peaks.uniform(CHAINS / n_powers * n_powers, rng)?;
            let mut chains = Chains::new(&env, config, start, None)?;
            loop {
                let scored = chains.round(&env, peaks, None, rng)?;
                let counts = chains.counts();
                let n_rounds = counts.rounds as usize;
                peaks.add_tops(&mut found, n_rounds, counts.reward_calls, &scored.objects);
                // Visits are counted only in the second half of the search, and only in rounds that are far
                // apart, because successive points of a chain depend on each other. Only the first chain of
                // each ladder is counted, because the others sample smaller powers of R.
                if 2 * counts.reward_calls > budget && n_rounds.is_multiple_of(self.height.pow(2)) {
                    for point in chains.objects().rows().step_by(n_powers) {
                        if let Some(visits) = visits.get_mut(peaks.grid().index(point) as usize) {
                            *visits += 1;
                        }
                    }
                }
                if counts.reward_calls >= budget {
                    reward_calls = counts.reward_calls;
                    return Ok(());
                }
            }
        })?;
        report.set("reward_calls", reward_calls);
        report.set("why_not_exact", "chains have no distribution that could be listed");
        peaks.report_visits(&visits, &mut report)?;
        self.report(run, peaks, &found, &mut report);
        run.print(report)
    }

    /// Returns the number of rewards that the method may compute.
    fn budget(&self, run: &Run<'_>) -> u64 {
        match self.by.value {
            Method::ChainsAndPolicy => self.chain_calls + (run.steps() * self.fresh) as u64,
            _ => (run.steps() * run.config.batch) as u64,
        }
    }

    /// Reports how many peaks were found after each of the `PARTS` of the budget of reward calls, and adds a
    /// panel of these numbers.
    fn report(&self, run: &Run<'_>, peaks: &Peaks, found: &ModeTracker<usize>, report: &mut Report) {
        let budget = self.budget(run);
        let mut points = Vec::new();
        for (part, name) in PARTS {
            // The last part of the budget includes the last step, which may exceed the budget.
            let calls = if part == 1 { u64::MAX } else { budget / part };
            let last = found.curve().iter().take_while(|point| point.reward_calls <= calls).last();
            let modes = last.map_or(0, |point| point.modes);
            report.set(name, modes);
            points.push(((budget / part) as f64, modes as f64));
        }
        report.extend(json!({ "by": self.by.name, "budget": budget, "log_z_true": peaks.log_z(),
            "modes_total": self.peaks, "width": self.width, "floor": self.floor }));
        report.panels.push(Panel::new("peaks").labels("reward calls", "").curve(Curve::new("found", points)));
    }
}
