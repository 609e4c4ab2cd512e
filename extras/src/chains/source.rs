//! Chains as a source of training trajectories.

use gfn::env::EnumerableEnv;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Trajectories;
use gfn::train::{BatchRequest, Context, Persist, Source, SourceTraits, TrainEnv};
use gfn::{Error, Result, Rng};
use tch::Tensor;

use super::saved::{below_prefix, numbers, with_prefix};
use super::start::{StartDraw, draw_starts};
use super::{ChainSourceConfig, Chains, ScoredObjects, Starts};

/// A source whose trajectories lead to objects that Markov chains found. The chains search near high rewards,
/// and the policy learns from what they find; the policy in turn gives them starts, and may propose objects
/// ([`Proposal::Policy`](super::Proposal::Policy)). A source changes which trajectories the policy learns
/// from, but not the target.
///
/// Before each draw the chains make some rounds ([`ChainSourceConfig::rounds`]). The source stores each
/// distinct object whose reward is known: all objects that the chains scored, and all new objects of the
/// trainer, whose rewards cost nothing. It draws stored objects in proportion to R^a
/// ([`ChainSourceConfig::exponent`]), so that objects which chains visit too often are drawn as often as R
/// demands, and returns backward trajectories to them. With several instances the objects of all instances
/// are drawn by one distribution.
///
/// With [`ChainSourceConfig::restart`] the chains are a search without a stationary distribution. Without it
/// they are [`Chains`] that sample the target, unless the policy proposes: it learns from the chains, so that
/// proposals depend on the past of the chains, and no distribution is exact. The source needs an objective
/// for off-policy trajectories and a trainer without conditions. Checkpoints store the chains and the
/// objects, so that a resumed run continues bit for bit. The settings of the chains and the number of ladders
/// must then be the same.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{Rng, env::{Rows, VectorStates}, examples::word_env, objective::TrajectoryBalance};
/// use gfn_extras::chains::{ChainSource, ChainSourceConfig};
/// let (env, rng) = (word_env(2, 2), Rng::seeded(0));
/// let config = MlpPolicyConfig::default();
/// let policy =
///     MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
/// let chains = ChainSource::new(ChainSourceConfig { ladders: 4, ..ChainSourceConfig::default() })?;
/// let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), rng)?
///     .with_source(0.5, chains)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct ChainSource<E: EnumerableEnv> {
    config: ChainSourceConfig,
    /// The distinct objects whose rewards are known.
    memory: ReplayBuffer<E>,
    search: Option<Search<E>>,
    /// Chains of power 0, and the buffer of their objects; `None` before they are needed.
    explorers: Option<(Chains<E>, ReplayBuffer<E>)>,
    /// The objects of new trajectories of this step; `None` before the first one, and after the draw.
    fresh: Option<ScoredObjects<E::States>>,
    /// The step of the last draw. Later trajectories of this step are no starts, because a checkpoint
    /// wouldn't store them.
    last_step: Option<usize>,
    last_calls: u64,
    total_calls: u64,
}

/// The chains of a source, and the progress of each ladder.
struct Search<E: EnumerableEnv> {
    chains: Chains<E>,
    /// The buffer of the chains' objects, for checkpoints.
    buffer: ReplayBuffer<E>,
    /// The largest log-reward of each ladder since its start.
    best: Vec<f64>,
    /// The number of rounds since each ladder reached its largest log-reward.
    rounds_without_progress: Vec<i64>,
}

impl<E: EnumerableEnv> Search<E> {
    /// Returns the largest known log-reward of each ladder.
    fn largest(&self) -> Vec<f64> {
        let ladders = self.chains.log_rewards().chunks(self.chains.config().powers.len());
        ladders.map(|ladder| ladder.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max)).collect()
    }

    fn note_progress(&mut self) {
        for (ladder, log_reward) in self.largest().into_iter().enumerate() {
            self.rounds_without_progress[ladder] += 1;
            if log_reward > self.best[ladder] {
                self.best[ladder] = log_reward;
                self.rounds_without_progress[ladder] = 0;
            }
        }
    }

    /// Starts ladders at other objects, one object per ladder.
    fn restart(&mut self, env: &E, ladders: &[usize], starts: &ScoredObjects<E::States>) -> Result<()> {
        let n_powers = self.chains.config().powers.len();
        let rows: Vec<usize> =
            ladders.iter().flat_map(|ladder| ladder * n_powers..(ladder + 1) * n_powers).collect();
        self.chains.replace(env, &rows, starts.repeated(n_powers))?;
        for (&ladder, &log_reward) in ladders.iter().zip(&starts.log_rewards) {
            self.best[ladder] = log_reward;
            self.rounds_without_progress[ladder] = 0;
        }
        Ok(())
    }
}

impl<E: EnumerableEnv> std::fmt::Debug for ChainSource<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("ChainSource");
        out.field("config", &self.config).field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl<E: EnumerableEnv> ChainSource<E> {
    /// Creates a source. The chains start in the first draw.
    ///
    /// # Errors
    /// [`Error::Config`] for bad settings.
    pub fn new(config: ChainSourceConfig) -> Result<Self> {
        config.check()?;
        let memory = ReplayConfig {
            capacity: config.capacity,
            eviction: Eviction::BestReward,
            draw: Draw::RewardPrioritised { exponent: config.exponent },
        };
        Ok(Self {
            memory: ReplayBuffer::distinct(memory)?.terminal_only(),
            config,
            search: None,
            explorers: None,
            fresh: None,
            last_step: None,
            last_calls: 0,
            total_calls: 0,
        })
    }

    /// Returns the distinct objects that were found, with their log-rewards.
    #[must_use]
    pub fn memory(&self) -> &ReplayBuffer<E> {
        &self.memory
    }

    fn store(&mut self, env: &E, found: &ScoredObjects<E::States>) -> Result<()> {
        if !found.log_rewards.is_empty() {
            self.memory.add_objects(env, found.objects.clone(), &found.log_rewards)?;
        }
        Ok(())
    }
}

impl<E: EnumerableEnv + TrainEnv> ChainSource<E> {
    /// Draws `n` starts, stores all objects whose rewards were computed for them, and counts these rewards,
    /// also if it fails.
    fn starts(&mut self, n: usize, context: &Context<E>, rng: &mut Rng) -> Result<ScoredObjects<E::States>> {
        let env = &context.env;
        let none = ScoredObjects::empty(&env.initial(&[]));
        let mut drawn = StartDraw { starts: none.clone(), evaluations: none.clone(), reward_calls: 0 };
        let fresh = self.fresh.as_ref().unwrap_or(&none);
        let mut explorers = self.explorers.take().map(|(chains, _)| chains);
        let outcome = draw_starts(&self.config, n, fresh, &mut explorers, &mut drawn, context, rng);
        if let Some(mut chains) = explorers {
            let buffer = chains.canonicalise_objects(env)?;
            self.explorers = Some((chains, buffer));
        }
        self.last_calls += drawn.reward_calls;
        self.store(env, &drawn.evaluations)?;
        outcome.map(|()| drawn.starts)
    }

    /// Starts the chains in the first draw, and restarts ladders without progress.
    fn begin(&mut self, search: &mut Option<Search<E>>, context: &Context<E>, rng: &mut Rng) -> Result<()> {
        let env = &context.env;
        let Some(search) = search else {
            let starts = self.starts(self.config.ladders, context, rng)?;
            let best = starts.log_rewards.clone();
            let ScoredObjects { objects, log_rewards } = starts.repeated(self.config.chains.powers.len());
            let mut chains = Chains::new(env, self.config.chains.clone(), objects, Some(log_rewards))?;
            let buffer = chains.canonicalise_objects(env)?;
            let rounds_without_progress = vec![0; best.len()];
            *search = Some(Search { chains, buffer, best, rounds_without_progress });
            return Ok(());
        };
        let Some(restart) = self.config.restart else { return Ok(()) };
        let is_idle = |ladder: &usize| search.rounds_without_progress[*ladder] >= restart.patience as i64;
        let ladders: Vec<usize> = (0..self.config.ladders).filter(is_idle).collect();
        if !ladders.is_empty() {
            let starts = self.starts(ladders.len(), context, rng)?;
            search.restart(env, &ladders, &starts)?;
        }
        Ok(())
    }

    /// Runs the chains for the rounds of a draw. After an error the source keeps its chains, and what they
    /// found and counted before it.
    fn run(&mut self, context: &Context<E>, rng: &mut Rng) -> Result<()> {
        if self.total_calls >= self.max_calls() {
            return Ok(());
        }
        let mut search = self.search.take();
        let mut outcome = self.begin(&mut search, context, rng);
        if let Some(search) = &mut search {
            outcome = outcome.and_then(|()| self.make_rounds(search, context, rng));
            let buffer = search.chains.canonicalise_objects(&context.env);
            outcome = outcome.and(buffer.map(|buffer| search.buffer = buffer));
        }
        self.search = search;
        self.total_calls += self.last_calls;
        outcome
    }

    fn max_calls(&self) -> u64 {
        self.config.max_reward_calls.unwrap_or(u64::MAX)
    }

    fn make_rounds(&mut self, search: &mut Search<E>, context: &Context<E>, rng: &mut Rng) -> Result<()> {
        let env = &context.env;
        let sampler = context.sampler(env, context.policy());
        let policy = self.config.chains.needs_policy().then_some(&sampler);
        for _ in 0..self.config.rounds {
            if self.total_calls + self.last_calls >= self.max_calls() {
                break;
            }
            let before = search.chains.counts().reward_calls;
            let outcome = search.chains.round(env, context.reward.as_ref(), policy, rng);
            self.last_calls += search.chains.counts().reward_calls - before;
            self.store(env, &outcome?)?;
            search.note_progress();
        }
        Ok(())
    }
}

impl<E: EnumerableEnv> Persist<E> for ChainSource<E> {
    fn name(&self) -> &str {
        "chains"
    }

    fn describe(&self) -> String {
        "Markov chains".into()
    }

    fn state(&self, env: &E) -> Result<Vec<(String, Tensor)>> {
        let mut out = with_prefix("memory/", self.memory.state(env)?);
        let flags = [self.total_calls as i64, self.search.is_some().into(), self.explorers.is_some().into()];
        out.push(("flags".into(), Tensor::from_slice(&flags)));
        if let Some(search) = &self.search {
            out.extend(with_prefix("chains/", search.chains.state(env, &search.buffer)?));
            out.push(("best".into(), Tensor::from_slice(&search.best)));
            out.push(("rounds_without_progress".into(), Tensor::from_slice(&search.rounds_without_progress)));
        }
        if let Some((explorers, buffer)) = &self.explorers {
            out.extend(with_prefix("explorers/", explorers.state(env, buffer)?));
        }
        Ok(out)
    }

    fn load_state(&mut self, env: &E, state: &[(String, Tensor)]) -> Result<()> {
        let mut out = Self::new(self.config.clone())?;
        out.memory.load_state(env, &below_prefix("memory/", state))?;
        let flags: Vec<i64> = numbers(state, "flags", 3)?;
        out.total_calls = flags[0] as u64;
        if flags[1] != 0 {
            let n = self.config.ladders;
            let chains = &self.config.chains;
            let below = below_prefix("chains/", state);
            let (chains, buffer) = Chains::from_state(env, chains.clone(), n * chains.powers.len(), &below)?;
            let best = numbers(state, "best", n)?;
            let rounds_without_progress = numbers(state, "rounds_without_progress", n)?;
            out.search = Some(Search { chains, buffer, best, rounds_without_progress });
        }
        if let Some(Starts::Uniform { candidates, .. }) = self.config.restart.map(|restart| restart.starts)
            && flags[2] != 0
        {
            let below = below_prefix("explorers/", state);
            out.explorers =
                Some(Chains::from_state(env, self.config.chains.explorers(), candidates, &below)?);
        }
        *self = out;
        Ok(())
    }
}

impl<E: EnumerableEnv + TrainEnv> Source<E> for ChainSource<E> {
    fn traits(&self, _: &Context<E>) -> SourceTraits {
        SourceTraits {
            keeps_paths: self.config.backward_by_policy,
            is_external: false,
            ..SourceTraits::default()
        }
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        if context.conditions.is_some() {
            let remedy = "train without chains, because the policy has conditions";
            return Err(Error::missing("chains as a source", "objects without conditions", remedy));
        }
        self.last_calls = 0;
        let outcome = self.run(context, rng);
        self.fresh = None;
        outcome?;
        self.last_step = Some(context.step);
        let drawn = self.memory.draw_entries(request.max, rng)?;
        let uniform = context.env.uniform();
        let policy = if self.config.backward_by_policy { context.policy() } else { &uniform };
        let sampler = context.sampler(&context.env, policy);
        sampler.backward(&drawn.walks.terminal, rng)?.with_log_rewards(drawn.log_rewards).map(Some)
    }

    fn remember(&mut self, new: &Trajectories<E>, context: &Context<E>) -> Result<()> {
        let Some(log_rewards) = new.recorded_log_rewards() else { return Ok(()) };
        let objects = new.terminal_states();
        let mut found = ScoredObjects::empty(objects);
        found.append(objects.clone(), log_rewards);
        self.store(&context.env, &found)?;
        if self.last_step != Some(context.step) {
            match &mut self.fresh {
                Some(fresh) => fresh.append(found.objects, &found.log_rewards),
                None => self.fresh = Some(found),
            }
        }
        Ok(())
    }

    fn reward_calls(&self) -> u64 {
        self.last_calls
    }
}
