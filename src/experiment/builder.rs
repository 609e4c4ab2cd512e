use tch::Device;

use super::{DefaultPolicy, Trained};
use crate::env::Reward;
use crate::objective::{Objective, TrajectoryBalance};
use crate::optim::Schedule;
use crate::quantity::Quantity;
use crate::run::Fit;
use crate::runtime::Runtime;
use crate::train::{Trainer, TrainerConfig};
use crate::{Error, Result, Rng};

/// The training of a policy on an environment, of graphs ([`GraphEnv`](crate::graph::GraphEnv)) or vectors
/// ([`VectorEnv`](crate::env::VectorEnv)), and a reward. All further settings have defaults. The policy is a
/// graph network, or a perceptron on the one-hot entries of a vector ([`DefaultPolicy`]).
///
/// ```
/// use gfn::prelude::*;
/// // The 8 undirected graphs on three labelled nodes, each edge worth a factor of e.
/// let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
/// let env = GraphEnv::free(actions, GraphState::undirected(3))?;
/// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
///
/// let trained = Experiment::new(env, reward)
///     .network(GraphNetConfig { embedding: 32, ..GraphNetConfig::default() })
///     .objective(DetailedBalance::default())
///     .steps(200)
///     .seed(1)
///     .train()?;
/// let exact = trained.exact(100)?;
/// assert!(exact.space.len() == 8 && exact.distances.tv < 0.05);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// An environment of vectors is trained in the same way:
///
/// ```
/// use gfn::{examples::word_env, prelude::*};
/// // Words of at most three letters `a` (1) and `b` (2); each `b` is worth a factor of e.
/// let reward = PerVector(|word: &[u16]| word.iter().filter(|&&letter| letter == 2).count() as f64);
/// let trained = Experiment::new(word_env(2, 3), reward).steps(200).train()?;
/// assert!(trained.exact(100)?.distances.tv < 0.05);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Experiment<E: DefaultPolicy> {
    env: E,
    reward: Box<dyn Reward<E::States>>,
    objective: Box<dyn Objective>,
    network: E::Config,
    training: Option<TrainerConfig>,
    steps: usize,
    seed: u64,
    device: Device,
    progress: bool,
}

impl<E: DefaultPolicy> std::fmt::Debug for Experiment<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { objective, network, training, steps, seed, device, .. } = self;
        let mut out = f.debug_struct("Experiment");
        out.field("objective", objective).field("network", network).field("training", training);
        out.field("steps", steps).field("seed", seed).field("device", device).finish_non_exhaustive()
    }
}

impl<E: DefaultPolicy> Experiment<E> {
    /// Creates an experiment of 1,000 steps of trajectory balance with the default network and seed 0, on the
    /// CPU.
    #[must_use]
    pub fn new(env: E, reward: impl Reward<E::States> + 'static) -> Self {
        Self {
            env,
            reward: Box::new(reward),
            objective: Box::new(TrajectoryBalance),
            network: E::Config::default(),
            training: None,
            steps: 1_000,
            seed: 0,
            device: Device::Cpu,
            progress: true,
        }
    }

    /// Sets the objective. If the objective needs state flows, the network gets a state-flow head.
    #[must_use]
    pub fn objective(mut self, objective: impl Objective + 'static) -> Self {
        self.objective = Box::new(objective);
        self
    }

    /// Sets the architecture and the size of the network:
    /// [`GraphNetConfig`](crate::nn::GraphNetConfig) for graphs,
    /// [`MlpPolicyConfig`](crate::policy::MlpPolicyConfig) for vectors.
    #[must_use]
    pub fn network(mut self, network: E::Config) -> Self {
        self.network = network;
        self
    }

    /// Sets the trainer's settings. By default these are the defaults of `TrainerConfig`, with learning rates
    /// that fall linearly to 0 over the run.
    #[must_use]
    pub fn training(mut self, training: TrainerConfig) -> Self {
        self.training = Some(training);
        self
    }

    /// Sets the number of training steps. The default is 1,000.
    #[must_use]
    pub fn steps(mut self, steps: usize) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the seed of all random numbers: weights, trajectories, samples. The default is 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Shows (`true`, the default) or hides (`false`) the progress line on a terminal during training
    /// ([`Fit::progress`]).
    #[must_use]
    pub fn progress(mut self, shown: bool) -> Self {
        self.progress = shown;
        self
    }

    /// Sets the device on which the network is trained to the device of `runtime`. The default is the CPU.
    #[must_use]
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.device = runtime.device();
        self
    }

    /// Builds the trainer, so that parts can be added that this builder doesn't have.
    /// [`Fit::for_planned_steps`] trains it for the number of steps of this experiment. After training,
    /// [`Trained::new`] converts the trainer to the result that `train` returns.
    ///
    /// ```
    /// use gfn::prelude::*;
    /// use gfn::examples::Triangles;
    /// let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
    /// let best = ReplayConfig { capacity: 100, eviction: Eviction::BestReward, draw: Draw::Uniform };
    /// let mut trainer = Experiment::new(Triangles::env(), reward)
    ///     .steps(10)
    ///     .trainer()?
    ///     .with_replay(ReplayBuffer::distinct(best)?);
    /// Fit::for_planned_steps().run(&mut trainer)?;
    /// assert_eq!(Trained::new(trainer).sample(5)?.graphs().len(), 5);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for 0 steps and for a network with conditions, because an experiment draws no
    /// conditions; the errors of [`DefaultPolicy::build_default_policy`] and [`Trainer::new`].
    pub fn trainer(self) -> Result<Trainer<E>> {
        let Self { env, reward, objective, mut network, training, steps, seed, device, .. } = self;
        if steps == 0 {
            return Err(Error::config("steps", steps, "at least one step of training"));
        }
        let estimators = E::estimators_mut(&mut network);
        let n_conditions = estimators.n_conditions;
        if n_conditions > 0 {
            let expected = "0, because an experiment draws no conditions: build a `Trainer`, and give it \
                conditions by `with_conditions`";
            return Err(Error::config("n_conditions", n_conditions, expected));
        }
        estimators.flow |= objective.needs().has(Quantity::LogFlow);
        let training = training.unwrap_or_else(|| {
            let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps };
            TrainerConfig { lr_scale, ..TrainerConfig::default() }
        });
        let mut rng = Rng::seeded(seed);
        let policy = env.build_default_policy(network, device, &mut rng)?;
        let mut trainer = Trainer::new(env, reward, policy, objective, training, rng)?;
        trainer.planned_steps = Some(steps);
        Ok(trainer)
    }

    /// Trains the network.
    ///
    /// # Errors
    /// The errors of [`trainer`](Self::trainer) and of [`Trainer::step`].
    pub fn train(self) -> Result<Trained<E>> {
        let progress = self.progress;
        let mut trainer = self.trainer()?;
        Fit::for_planned_steps().progress(progress).run(&mut trainer)?;
        Ok(Trained::new(trainer))
    }
}
