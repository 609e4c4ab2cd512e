//! Training on what local search makes of the policy's samples.

use gfn::env::{Env, Rows};
use gfn::graph::{GraphEnv, GraphStates};
use gfn::policy::UniformPolicy;
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::train::{BatchRequest, Context, Persist, Source, SourceTraits};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_problems::Problem;
use rayon::prelude::*;

use crate::SolutionSearch;

/// A source of trajectories to better solutions than the policy's: its samples, drawn without exploration, each after so many rounds of
/// [`SolutionSearch`] on its graph. The way to a solution is drawn backwards from it, by uniform steps or by P_B.
///
/// After Kim et al., *Ant Colony Sampling with GFlowNets for Combinatorial Optimization*, 2024. The trajectories are those of no
/// policy, so the objective must be one that learns from any; its target stays the same.
///
/// ```
/// use gfn::nn::{BackwardPolicy, GraphNet, GraphNetConfig};
/// use gfn::objective::{RelativeTrajectoryBalance, TrajectoryBalance};
/// use gfn::{Rng, policy::GraphPolicy, train::{Trainer, TrainerConfig}};
/// use gfn_gym::graph_problems::{GraphProblem, Instances, Problem, SizeReward, erdos_renyi};
/// use gfn_solver::Improving;
/// use tch::{Device, Kind};
/// let mut rng = Rng::seeded(0);
/// let graph = Instances::new(vec![erdos_renyi(12, 0.3, &mut rng)?])?;
/// let env = GraphProblem::new(Problem::IndependentSet, &graph)?.into_env();
/// let net = GraphNet::new(&env, GraphNetConfig::default(), Device::Cpu, Kind::Float, &mut rng)?;
/// let reward = SizeReward::new(Problem::IndependentSet, 1.0)?;
/// let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?
///     .with_source(0.5, Improving::new(Problem::IndependentSet, 20)?)?;
/// trainer.step()?;
/// assert_eq!(trainer.n_fresh(), 4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Improving {
    problem: Problem,
    rounds: usize,
    back_by_policy: bool,
}

impl Improving {
    /// `rounds` of search for each sample of this problem, which must be the environment's (a step fails otherwise), and uniform steps
    /// back.
    ///
    /// # Errors
    /// [`Error::Config`] for no round.
    pub fn new(problem: Problem, rounds: usize) -> Result<Self> {
        if rounds == 0 {
            return Err(Error::config("rounds of local search", rounds, "at least one for each sample"));
        }
        Ok(Self { problem, rounds, back_by_policy: false })
    }

    /// The same with steps back by P_B: what objectives that train it ask for.
    #[must_use]
    pub fn back_by_policy(mut self) -> Self {
        self.back_by_policy = true;
        self
    }

    /// The finished states that local search finds from these.
    fn improved(&self, env: &GraphEnv, found: &GraphStates, rng: &mut Rng) -> Result<GraphStates> {
        let (problem, instances) = (self.problem, env.instances(found));
        // A stream for each, so that threads have no say.
        let streams: Vec<Rng> = (0..found.len()).map(|_| rng.split()).collect();
        let each = found.graphs().par_iter().zip(instances).zip(streams);
        let improved = each.map(|((state, instance), mut rng)| {
            let start = &env.initial_graphs()[instance as usize];
            let mut search = SolutionSearch::starting_at(problem, start, &problem.solution(state), &mut rng)?;
            search.run(self.rounds, &mut rng);
            let end = problem.state(start, search.best())?;
            if env.rules().is_reachable(&end) {
                return Ok(end);
            }
            let rule = "a source of improved solutions is for the problem of the environment";
            Err(Error::contract(rule, format!("a solution of {problem} isn't a state of it")))
        });
        Ok(improved.collect::<Result<Vec<_>>>()?.into())
    }
}

impl Persist<GraphEnv> for Improving {
    fn name(&self) -> &str {
        "improving"
    }
    fn describe(&self) -> String {
        "local search from samples".into()
    }
}

impl Source<GraphEnv> for Improving {
    fn traits(&self, _: &Context<GraphEnv>) -> SourceTraits {
        SourceTraits { keeps_paths: self.back_by_policy, is_external: false, ..SourceTraits::default() }
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<GraphEnv>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<GraphEnv>>> {
        let (env, max_steps) = (&context.env, context.config.max_steps);
        let sampler = Sampler::new(env, context.policy()).max_steps(max_steps);
        let conditions = context.conditions.as_ref().map(|one| one.draw(request.max, rng)).transpose()?;
        let sampled = match &conditions {
            Some(conditions) => sampler.walks_conditional(conditions, rng)?,
            None => sampler.walks(request.max, rng)?,
        };
        let found = self.improved(env, &sampled.terminal, rng)?;
        let back = match (&conditions, self.back_by_policy) {
            (None, true) => sampler.backward(&found, rng)?,
            (Some(conditions), true) => sampler.backward_conditional(&found, conditions, rng)?,
            (_, false) => Sampler::new(env, &UniformPolicy).max_steps(max_steps).backward(&found, rng)?,
        };
        match conditions {
            Some(conditions) => back.with_conditions(conditions).map(Some),
            None => Ok(Some(back)),
        }
    }
}
