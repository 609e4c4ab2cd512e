//! A source of training trajectories that end in solutions improved by local search.

use gfn::env::{Env, Rows};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::policy::UniformPolicy;
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, SourceTraits};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::Problem;
use rayon::prelude::*;

use crate::SolutionSearch;

/// A source of training trajectories whose objects are better than samples of the policy. The source samples
/// the policy without exploration, and improves each sample by a number of rounds of [`SolutionSearch`]. A
/// backward trajectory is drawn from each improved solution, uniformly or by P_B.
///
/// After Kim et al., *Ant Colony Sampling with GFlowNets for Combinatorial Optimization*, 2024. The
/// trajectories are off-policy, so use an objective that allows such trajectories. The target distribution
/// stays the same.
///
/// ```
/// use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig};
/// use gfn::objective::{RelativeTrajectoryBalance, TrajectoryBalance};
/// use gfn::{Rng, policy::GraphPolicy, train::{Trainer, TrainerConfig}};
/// use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward, erdos_renyi};
/// use gfn_solver::SearchSource;
/// use tch::{Device, Kind};
/// let mut rng = Rng::seeded(0);
/// let graph = Instances::new(vec![erdos_renyi(12, 0.3, &mut rng)?])?;
/// let env = GraphProblem::new(Problem::IndependentSet, &graph)?.into_env();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut rng)?;
/// let reward = SizeReward::new(Problem::IndependentSet, 1.0)?;
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?
///     .with_source(0.5, SearchSource::new(Problem::IndependentSet, 20)?)?;
/// trainer.step()?;
/// assert_eq!(trainer.n_fresh(), 4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchSource {
    problem: Problem,
    rounds: usize,
    backward_by_policy: bool,
}

impl SearchSource {
    /// Builds a source that improves each sample by `rounds` rounds of local search. `problem` must be the
    /// problem of the environment; otherwise a training step fails. Backward trajectories are uniform by
    /// default.
    ///
    /// # Errors
    /// [`Error::Config`] if `rounds` is 0.
    pub fn new(problem: Problem, rounds: usize) -> Result<Self> {
        if rounds == 0 {
            return Err(Error::config(
                "rounds of local search",
                rounds,
                "at least one round for each sample",
            ));
        }
        Ok(Self { problem, rounds, backward_by_policy: false })
    }

    /// Draws backward trajectories by P_B instead of uniformly. Use this for objectives that train P_B.
    #[must_use]
    pub fn backward_by_policy(mut self) -> Self {
        self.backward_by_policy = true;
        self
    }

    /// Improves each state by local search, and returns the terminal states of the improved solutions.
    fn improve(&self, env: &GraphEnv, samples: &GraphStates, rng: &mut Rng) -> Result<GraphStates> {
        let problem = self.problem;
        let instances = env.instances(samples);
        // Each sample gets a separate random stream, so that results don't depend on the number of threads.
        let streams: Vec<Rng> = (0..samples.len()).map(|_| rng.split()).collect();
        let each = samples.graphs().par_iter().zip(instances).zip(streams);
        let solutions = each.map(|((state, instance), mut rng)| {
            let start = &env.initial_graphs()[instance as usize];
            let mut search = SolutionSearch::starting_at(problem, start, &problem.solution(state), &mut rng)?;
            search.run(self.rounds, &mut rng);
            let end = problem.state(start, search.best())?;
            if env.rules().is_reachable(&end) {
                return Ok(end);
            }
            let rule = "a SearchSource must have the same problem as the environment";
            Err(Error::contract(rule, format!("a solution of {problem} isn't a state of the environment")))
        });
        Ok(solutions.collect::<Result<Vec<_>>>()?.into())
    }
}

impl Persist<GraphEnv> for SearchSource {
    fn name(&self) -> &str {
        "improving"
    }
    fn describe(&self) -> String {
        "local search from samples".into()
    }
}

impl Source<GraphEnv> for SearchSource {
    fn traits(&self, _: &Context<GraphEnv>) -> SourceTraits {
        SourceTraits { keeps_paths: self.backward_by_policy, is_external: false, ..SourceTraits::default() }
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<GraphEnv>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<GraphEnv>>> {
        let env = &context.env;
        let max_steps = context.config.max_steps;
        let sampler = Sampler::new(env, context.policy()).max_steps(max_steps);
        let conditions = context.conditions.as_ref().map(|one| one.draw(request.max, rng)).transpose()?;
        let sampled = match &conditions {
            Some(conditions) => sampler.walks_conditional(conditions, rng)?,
            None => sampler.walks(request.max, rng)?,
        };
        let solutions = self.improve(env, &sampled.terminal, rng)?;
        let back = match (&conditions, self.backward_by_policy) {
            (None, true) => sampler.backward(&solutions, rng)?,
            (Some(conditions), true) => sampler.backward_conditional(&solutions, conditions, rng)?,
            (_, false) => Sampler::new(env, &UniformPolicy).max_steps(max_steps).backward(&solutions, rng)?,
        };
        match conditions {
            Some(conditions) => back.with_conditions(conditions).map(Some),
            None => Ok(Some(back)),
        }
    }
}
