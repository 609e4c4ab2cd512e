//! The hyper-grid, also with local search around what is found.

use gfn::metrics::modes_covered;
use gfn::replay::Diversity;
use gfn::rollout::{Acceptance, LocalSearch};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward, RewardKind};

use crate::prelude::*;

/// Train a perceptron to sample the points of a grid
#[derive(Args)]
pub(crate) struct Grid {
    /// Dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Points along each dimension
    #[arg(long, default_value_t = 8)]
    height: usize,
    /// The reward: original, cosine, sparse, deceptive, bitwise-xor, multiplicative-coprime,
    /// conditional-multiscale, uniform-random or corrupted
    #[arg(long, default_value_t = RewardKind::Original)]
    reward: RewardKind,
    /// Smallest reward of the original one, instead of 0.1
    #[arg(long)]
    r0: Option<f64>,
    /// Least distance of points in the replay buffer, 2 for each coordinate in which they differ; by default
    /// any are kept
    #[arg(long)]
    diverse: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// States up to which the distribution is exact: 20^4.
pub(super) const EXACT_LIMIT: usize = 160_000;
/// Final samples from which modes are counted if probabilities aren't known.
const SAMPLES: usize = 10_000;

impl Task for Grid {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let grid = HyperGrid::new(self.ndim, self.height)?;
        let reward = match self.r0 {
            None => self.reward.standard(&grid)?,
            Some(r0) if self.reward == RewardKind::Original => {
                OriginalReward::new(&grid, r0, 0.5, 2.0)?.grid_reward().clone()
            }
            Some(_) => {
                return Err(Error::config("--r0", format!("with --reward {}", self.reward), "--reward original"));
            }
        };
        // In closed form, or the sum over all points.
        let totals = reward.totals(EXACT_LIMIT as u64).ok();
        let recipe = Recipe {
            steps: if self.ndim <= 2 { 2_000 } else { 5_000 },
            batch: 16,
            buffer: NEWEST,
            epsilon: 0.0,
            lr: if ["db", "subtb"].contains(&common.objective.name) { 2e-3 } else { 1e-3 },
            exact_up_to: EXACT_LIMIT,
            ..Recipe::default()
        };
        let title = format!("grid of {}^{}, {} reward", self.height, self.ndim, self.reward);
        let run = Run::begin(common, "hypergrid", title, recipe)?;
        let task = json!({ "ndim": self.ndim, "height": self.height, "reward": self.reward, "r0": self.r0 });
        let features = KHot::new(self.ndim, self.height);
        let mut trainer = run.perceptron(grid.env(), features, reward.clone(), BackwardPolicy::SharedTorso, task)?;
        if let (Some(apart), Some(config)) = (self.diverse, common.replay(&run.recipe)) {
            let buffer = ReplayBuffer::new(config)?.diverse(Diversity::new(apart, 1.0, features)?);
            trainer = trainer.with_replay(buffer);
        } else if trainer.replay().is_none() {
            refuse(&["--diverse"], "no such flag without a replay buffer: give --replay, too")?;
        }
        let is_mode = |points: &VectorStates| reward.is_mode(points);
        learn_counting_modes(&run, trainer, "objects", is_mode, |report, trainer, exact| {
            if let Some(exact) = exact {
                let is_mode = reward.is_mode(exact.graph.states());
                report.set("modes_found", modes_covered(&exact.probs, &exact.target.probs, &is_mode)?);
                if self.ndim == 2 {
                    // States are listed as they are reached.
                    let cells = |values: &[f64]| {
                        let mut cells = vec![0.0; values.len()];
                        for (point, &value) in exact.graph.states().rows().zip(values) {
                            cells[grid.index(point) as usize] = value;
                        }
                        cells
                    };
                    let maps = [("target", cells(&exact.target.probs)), ("learned", cells(&exact.probs))];
                    report.panels.extend(heat_maps(self.height, maps));
                }
            } else {
                let points = sample(trainer.env(), trainer.policy(), SAMPLES, &mut trainer.evaluation_rng())?;
                let is_mode = reward.is_mode(&points);
                let modes: Vec<usize> = (0..SAMPLES).filter(|&k| is_mode[k]).collect();
                report.set("modes_found", points.select(&modes).group().first.len());
            }
            report.set("modes_total", totals.map(|totals| totals.n_modes));
            report.set_log_z(totals.map(|totals| totals.log_z));
            Ok(())
        })
    }
}

/// Trains, and counts the modes that training sees, unless each of several members sees a part of them.
pub(super) fn learn_counting_modes(
    run: &Run<'_>,
    trainer: Trainer<VectorEnv>,
    objects: &str,
    is_mode: impl FnMut(&VectorStates) -> Vec<bool>,
    add: impl FnOnce(&mut Report, &Trainer<VectorEnv>, Option<&Exact<VectorEnv>>) -> Result<()>,
) -> Result<()> {
    let mut modes = CountModes::new(is_mode);
    let mut observers: Vec<&mut dyn Observer<VectorEnv>> = Vec::new();
    if members::count() == 1 {
        observers.push(&mut modes);
    }
    run.learn(trainer, objects, observers, add)
}

/// Train a perceptron on a grid, with local search around what it finds
#[derive(Args)]
pub(crate) struct LocallySearched {
    #[command(flatten)]
    common: Common,
}

/// Points along each of two dimensions.
const SEARCHED_HEIGHT: usize = 16;
/// Four proposals per object, of at most eight steps back.
const SEARCH: LocalSearch = LocalSearch { rounds: 4, max_back: 8, acceptance: Acceptance::MetropolisHastings };

impl Task for LocallySearched {
    fn run(&self) -> Result<()> {
        let grid = HyperGrid::new(2, SEARCHED_HEIGHT)?;
        let reward = OriginalReward::new(&grid, 1e-2, 0.5, 2.0)?;
        let recipe =
            Recipe { steps: 1_000, batch: 16, buffer: NEWEST, lr: 2e-3, exact_up_to: EXACT_LIMIT, ..Recipe::default() };
        let title = format!("grid of {SEARCHED_HEIGHT}^2 with local search");
        let mut run = Run::begin(&self.common, "local_search", title, recipe)?;
        run.config.local_search = Some(SEARCH);
        let task = json!({ "search": SEARCH });
        let features = KHot::new(2, SEARCHED_HEIGHT);
        let trainer = run.perceptron(grid.env(), features, reward.clone(), BackwardPolicy::Uniform, task)?;
        let is_mode = |points: &VectorStates| reward.is_mode(points);
        learn_counting_modes(&run, trainer, "objects", is_mode, |report, _, _| {
            report.set_log_z(Some(reward.log_z()));
            report.set("local_search", SEARCH);
            Ok(())
        })
    }
}
