//! Tasks on grids. The tasks compare rewards, use local search that starts from sampled points, use several
//! methods of exploration for a reward that is tiny almost everywhere, and train one policy for a family of
//! rewards.

use gfn::metrics::modes_covered;
use gfn::objective::{AugmentedDetailedBalance, AugmentedTrajectoryBalance};
use gfn::replay::Diversity;
use gfn::rollout::{Acceptance, LocalSearch};
use gfn_extras::explore::{
    DistillationConfig, Intrinsic, IntrinsicConfig, RandomDistillation, Teacher, TeacherConfig, Thompson,
};
use gfn_gym::hypergrid::{ConditionalReward, GridReward};

use crate::prelude::*;

/// Train a perceptron to sample the points of a grid
#[derive(Args)]
pub(crate) struct Grid {
    /// Number of dimensions
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Number of points along each dimension
    #[arg(long, default_value_t = 8)]
    height: usize,
    /// Reward of a point: original, cosine, sparse, deceptive, bitwise-xor, multiplicative-coprime,
    /// conditional-multiscale, uniform-random or corrupted
    #[arg(long, default_value_t = RewardKind::Original)]
    reward: RewardKind,
    /// Smallest reward of a point with --reward original; the default is 0.1
    #[arg(long)]
    r0: Option<f64>,
    /// Smallest distance between two points in the replay buffer. Points have a distance of 2 for each
    /// coordinate in which they differ. By default the replay buffer accepts points at any distance
    #[arg(long)]
    diverse: Option<f64>,
    #[command(flatten)]
    common: Common,
}

/// The largest number of states for which exact probabilities are computed: 160,000 = 20^4.
const EXACT_LIMIT: usize = 160_000;
/// The number of final samples in which modes are counted, if the policy's exact probabilities aren't
/// computed.
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
                return Err(Error::config(
                    "--r0",
                    format!("given with --reward {}", self.reward),
                    "--reward original",
                ));
            }
        };
        // `totals` holds the number of modes among all points, and the target's log Z. Both numbers have a
        // closed form for some rewards, and are sums over all points for other rewards.
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
        let run = Run::begin(common, recipe)?;
        let task = json!({ "ndim": self.ndim, "height": self.height, "reward": self.reward, "r0": self.r0 });
        let network = common.perceptron(BackwardPolicy::SharedTorso);
        let mut trainer = run.perceptron(grid.env(), reward.clone(), network, task)?;
        if let (Some(apart), Some(config)) = (self.diverse, common.replay(&run.recipe)) {
            let buffer = ReplayBuffer::new(config)?.diverse(Diversity::new(
                apart,
                1.0,
                KHot::new(self.ndim, self.height),
            )?);
            trainer = trainer.with_replay(buffer);
        } else if trainer.replay().is_none() {
            refuse(
                &["--diverse"],
                "a command without this flag, or with --replay, because it selects objects of the replay \
                 buffer",
            )?;
        }
        learn_counting_modes(&run, trainer, "objects", &reward, |report, trainer, exact| {
            if let Some(exact) = exact {
                let is_mode = reward.is_mode(exact.graph.states());
                report.set("modes_found", modes_covered(&exact.probs, &exact.target.probs, &is_mode)?);
                if self.ndim == 2 {
                    // The states aren't listed in the order of the cells of a heat map, so their values are
                    // sorted into the cells.
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
                let points = evaluated(trainer, SAMPLES)?;
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

/// Trains the policy, prints the report, and counts the modes that training finds. If several threads or
/// processes train together, no modes are counted, because each of them finds only some of the modes.
fn learn_counting_modes(
    run: &Run<'_>,
    trainer: Trainer<VectorEnv>,
    objects: &str,
    reward: &GridReward,
    add: impl FnOnce(&mut Report, &Trainer<VectorEnv>, Option<&Exact<VectorEnv>>) -> Result<()>,
) -> Result<()> {
    let mut modes = CountModes::new(|points: &VectorStates| reward.is_mode(points));
    let mut observers: Vec<&mut dyn Observer<VectorEnv>> = Vec::new();
    if members::count() == 1 {
        observers.push(&mut modes);
    }
    run.learn(trainer, objects, observers, add)
}

/// Train a perceptron on a grid, with local search that starts from the sampled points
#[derive(Args)]
pub(crate) struct LocallySearched {
    #[command(flatten)]
    common: Common,
}

/// The number of points along each of the grid's two dimensions.
const SEARCHED_HEIGHT: usize = 16;
/// The settings of local search: it makes four proposals for each object, and a proposal takes at most eight
/// steps back.
const SEARCH: LocalSearch =
    LocalSearch { rounds: 4, max_back: 8, acceptance: Acceptance::MetropolisHastings };

impl Task for LocallySearched {
    fn run(&self) -> Result<()> {
        let grid = HyperGrid::new(2, SEARCHED_HEIGHT)?;
        let reward = OriginalReward::new(&grid, 1e-2, 0.5, 2.0)?;
        let recipe = Recipe {
            steps: 1_000,
            batch: 16,
            buffer: NEWEST,
            lr: 2e-3,
            exact_up_to: EXACT_LIMIT,
            ..Recipe::default()
        };
        let mut run = Run::begin(&self.common, recipe)?;
        run.config.local_search = Some(SEARCH);
        let task = json!({ "search": SEARCH, "ndim": 2, "height": SEARCHED_HEIGHT });
        let network = self.common.perceptron(BackwardPolicy::Uniform);
        let trainer = run.perceptron(grid.env(), reward.clone(), network, task)?;
        learn_counting_modes(&run, trainer, "objects", reward.grid_reward(), |report, _, _| {
            report.set_log_z(Some(reward.log_z()));
            report.set("local_search", SEARCH);
            Ok(())
        })
    }
}

/// Train a perceptron on a grid with few modes, with one of several methods of exploration
#[derive(Args)]
pub(crate) struct Exploration {
    /// Method of exploration, in addition to --epsilon
    #[arg(long, value_parser = choice(MEANS), default_value = "joint")]
    means: Selection<Means>,
    #[command(flatten)]
    common: Common,
}

/// A method of exploration.
#[derive(Clone, Copy)]
enum Means {
    None,
    /// Intrinsic rewards, which are additional rewards for new states. The function builds their settings
    /// from a schedule of their coefficient.
    Intrinsic(fn(Schedule) -> IntrinsicConfig),
    Teacher,
    Thompson,
}

const MEANS: &[Choice<Means>] = &[
    ("none", Means::None, "Nothing else"),
    ("edges", Means::Intrinsic(IntrinsicConfig::edge_based), "Intrinsic rewards on edges"),
    ("states", Means::Intrinsic(IntrinsicConfig::state_based), "Intrinsic rewards of terminal states"),
    ("joint", Means::Intrinsic(IntrinsicConfig::joint), "Intrinsic rewards on both"),
    ("teacher", Means::Teacher, "An adaptive teacher"),
    ("thompson", Means::Thompson, "Thompson heads"),
];

/// The number of points along each of the grid's two dimensions.
const SPARSE_HEIGHT: usize = 16;
/// The coefficient of intrinsic rewards in the first step. The coefficient falls to 0 over the first two
/// thirds of the steps.
const COEFFICIENT: f64 = 0.1;
/// The share of each batch that a teacher (a second policy) draws. With Thompson sampling, the same number is
/// the share of a batch that each head of the policy learns from.
const SHARE: f64 = 0.5;
/// The number of heads of P_F for Thompson sampling, in which each trajectory follows one head.
const HEADS: usize = 8;

impl Task for Exploration {
    fn run(&self) -> Result<()> {
        let common = &self.common;
        let recipe = Recipe {
            steps: 2_000,
            batch: 16,
            epsilon: 0.0,
            lr: 1e-3,
            exact_up_to: EXACT_LIMIT,
            ..Recipe::default()
        };
        let mut run = Run::begin(common, recipe)?;
        let grid = HyperGrid::new(2, SPARSE_HEIGHT)?;
        let env = grid.env();
        let reward = RewardKind::Sparse.standard(&grid)?;
        let mut rng = run.rng();
        let device = run.device;
        let float = Kind::Float;
        let features = KHot::new(2, SPARSE_HEIGHT);
        let is_intrinsic = matches!(self.means.value, Means::Intrinsic(_));
        let mut network = common.perceptron(BackwardPolicy::Uniform);
        network.heads = if matches!(self.means.value, Means::Thompson) { HEADS } else { 1 };
        network.estimators.flow |= is_intrinsic;
        let task = json!({ "means": self.means.name, "ndim": 2, "height": SPARSE_HEIGHT });
        let description = run.describe(task, &network);
        let policy = MlpPolicy::new(&env, features, network.clone(), device, float, &mut rng)?;
        let novelty =
            RandomDistillation::new(features, DistillationConfig::default(), device, float, &mut rng)?;
        let teacher = MlpPolicy::new(&env, features, network, device, float, &mut rng)?;
        if is_intrinsic {
            run.objective = match common.objective.name {
                "tb" => || Ok(Box::new(AugmentedTrajectoryBalance)),
                "db" => || Ok(Box::new(AugmentedDetailedBalance)),
                other => return Err(Error::config("--objective with intrinsic rewards", other, "tb or db")),
            };
        }
        let trainer = run.trainer(env, reward.clone(), policy, rng, &description)?;
        let trainer = match self.means.value {
            Means::None => trainer,
            Means::Intrinsic(config) => {
                let steps = (run.steps() * 2 / 3).max(1);
                let coefficient = Schedule::Linear { from: COEFFICIENT, to: 0.0, steps };
                trainer.with_companion(Intrinsic::new(novelty, config(coefficient))?)?
            }
            Means::Teacher => {
                let adam = AdamConfig { max_norm: Some(1.0), ..run.config.adam };
                let config = TeacherConfig { adam, ..TeacherConfig::default() };
                let teacher = Teacher::new(trainer.env(), teacher, config)?;
                trainer.with_source(SHARE, teacher)?
            }
            Means::Thompson => {
                let thompson = Thompson::new(trainer.policy(), SHARE)?;
                trainer.with_fresh(thompson)?
            }
        };
        learn_counting_modes(&run, trainer, "points", &reward, |report, _, exact| {
            report.set("means", self.means.name);
            if exact.is_none() {
                // If --lr is 0, the policy isn't trained, and the report has no exact distances. The target's
                // log Z is known nevertheless.
                report.set("log_z_true", reward.totals(EXACT_LIMIT as u64).ok().map(|totals| totals.log_z));
            }
            Ok(())
        })
    }
}

/// Train a perceptron on a grid for a family of rewards; the condition that selects a reward is an input
#[derive(Args)]
pub(crate) struct ConditionalGrid {
    #[command(flatten)]
    common: Common,
}

/// The number of points along each of the grid's two dimensions.
const CONDITIONAL_HEIGHT: usize = 8;
/// The conditions under which the trained policy is compared with the target.
const CONDITIONS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

impl Task for ConditionalGrid {
    fn run(&self) -> Result<()> {
        let recipe = Recipe { steps: 2_000, exact_up_to: 10_000, ..Recipe::default() };
        let run = Run::begin(&self.common, recipe)?;
        let grid = HyperGrid::new(2, CONDITIONAL_HEIGHT)?;
        let env = grid.env();
        let reward = ConditionalReward::new(OriginalReward::standard(&grid)?);
        let mut network = self.common.perceptron(BackwardPolicy::Uniform);
        network.estimators.n_conditions = 1;
        let graph = list_states(run.recipe.exact_up_to, &env)?;
        let conditions = reward.clone();
        let trainer = run
            .perceptron(env, reward.clone(), network, json!({}))?
            .with_conditions(move |n: usize, rng: &mut Rng| Ok(conditions.sample_conditions(n, rng)));
        let condition = |c: f64| Tensor::from_slice(&[c as f32]).view([1, 1]);
        let exact = |trainer: &Trainer<VectorEnv>, c: f64| -> Result<Option<Distances>> {
            let Some(graph) = &graph else { return Ok(None) };
            let compared = compare(graph, trainer.env(), trainer.policy(), &reward, Some(&condition(c)))?;
            Ok(Some(compared.0))
        };
        let measure =
            |trainer: &Trainer<VectorEnv>| Ok(jsd(exact(trainer, 1.0)?.map(|distances| distances.jsd)));
        run.finish(trainer, measure, Vec::new(), |trainer, report| {
            let mut rows = Vec::new();
            let mut all = Vec::new();
            let mut learned = Vec::new();
            let mut truth = Vec::new();
            for c in CONDITIONS {
                let distances = exact(trainer, c)?;
                let log_z_true = reward.log_z(c)?;
                let log_z = log_z(trainer, &condition(c));
                learned.push((c, log_z.unwrap_or(f64::NAN)));
                truth.push((c, log_z_true));
                let l1 = distances.map(|d| d.l1);
                rows.push(json!({ "condition": c, "l1": l1, "log_z": log_z, "log_z_true": log_z_true }));
                all.extend(distances);
            }
            let panel = Panel::new("log Z by condition").labels("condition", "");
            report.panels.push(panel.curve(Curve::new("learned", learned)).curve(Curve::new("true", truth)));
            if all.is_empty() {
                report.not_listed(&run);
            } else {
                report.exact_mean(&all);
            }
            report.set("conditions", rows);
            Ok(())
        })
    }
}
