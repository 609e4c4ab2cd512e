//! Several trainers that train as one: each draws its share of every batch, and all make the same update.

use rand::RngCore;
use tch::{Kind, Tensor};

use super::gradients::SAME;
use super::{Context, Trainer};
use crate::collective::{Collective, Shares, hash};
use crate::distribution::Exploration;
use crate::env::{Env, Rows, check_count};
use crate::nn::Parameters;
use crate::policy::Policy;
use crate::rollout::{Container, ReplayEnv, Sampler};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Numbers added to the exit's logit, tried in turn until walks are short enough.
const EXIT_BIASES: [f64; 4] = [0.0, 4.0, 8.0, 12.0];

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Trains as one of several replicas, each with a trainer that was built like this one (with the same optimizer, too: it isn't compared). [`TrainerConfig::batch`](super::TrainerConfig::batch)
    /// is that of all replicas together; each draws its [share](Context::share) by a random stream of its own, from its own buffer, if there is
    /// one. The gradient is that of the whole batch, for every objective, so the replicas stay equal.
    ///
    /// Loss, log Z, gradients and what is counted of a batch are of all replicas; the
    /// [latest](Self::latest) trajectories are this replica's own. [`Fit`](super::Fit) shows the first replica alone to observers, saves its checkpoints, and ends all together; the others wait meanwhile, so a group of processes needs a timeout that is longer than that takes. With as many replicas, a run gives the same bits again, also resumed.
    ///
    /// ```
    /// use gfn::collective::replicate;
    /// use gfn::{env::{Rows, VectorStates}, objective::TrajectoryBalance, testing::Words, Rng};
    /// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{Fit, Trainer, TrainerConfig};
    /// let trainer = replicate(2, |replica| {
    ///     let env = Words::new(2, 2);
    ///     let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float)?;
    ///     let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    ///     let config = TrainerConfig { batch: 9, ..TrainerConfig::default() };
    ///     let mut trainer =
    ///         Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?.with_collective(replica)?;
    ///     Fit::new(5).run(&mut trainer)?;
    ///     Ok(trainer)
    /// })?;
    /// assert_eq!((trainer.context().share(), trainer.steps_done()), (4, 5));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a batch of fewer trajectories than replicas; [`Error::Contract`] for replicas that aren't equal: they are to be
    /// built from one seed, for one environment; [`Error::Peer`] if another replica has ended. The first step asks each replica's reward (but where trajectories come [from elsewhere](Self::with_fresh)) about a few random
    /// objects, which [`reward_calls`](Self::reward_calls) doesn't count, and refuses rewards that differ. It also refuses what isn't agreed on between replicas:
    /// an adaptive teacher, Thompson sampling, intrinsic rewards.
    pub fn with_collective(mut self, collective: impl Collective + 'static) -> Result<Self> {
        self.join(Box::new(collective))?;
        Ok(self)
    }

    /// The same for a trainer that stays where it is.
    ///
    /// # Errors
    /// As for [`with_collective`](Self::with_collective).
    pub fn join(&mut self, collective: Box<dyn Collective>) -> Result<()> {
        let (batch, size) = (self.context.config.batch, collective.size());
        if batch < size {
            let got = format!("{batch} trajectories for {size} replicas");
            return Err(Error::config("batch", got, "at least one trajectory per replica"));
        }
        if collective.rank() > 0 {
            // What is there already was counted once.
            self.sources.reward_calls = 0;
        }
        self.context.collective = Some(collective);
        self.check_equal_replicas()
    }

    /// Compares the trainers of all replicas: in parameters, objective, description, settings, step and place of the random stream.
    ///
    /// # Errors
    /// [`Error::Contract`] where two differ; [`Error::Peer`] if another replica has ended.
    pub(super) fn check_equal_replicas(&self) -> Result<()> {
        Shares::of(self.context.replicas()).check_same(SAME, || {
            let mut parts = self.fingerprint();
            parts.push(("description", hash_text(&self.description.to_string())));
            Ok(parts)
        })
    }

    /// Compares the environments of all replicas, and lets each ask its own reward about a few objects, the same for all.
    ///
    /// # Errors
    /// [`Error::Contract`] for environments, rewards or conditions that differ; [`Error::Peer`] if another replica has ended; those of the reward.
    fn check_equal_tasks(&self) -> Result<()> {
        let Some(replicas) = self.context.replicas() else { return Ok(()) };
        let environment = || Ok(vec![("environment", hash_text(&self.context.env.fingerprint()?))]);
        Shares::of(Some(replicas)).check_same(SAME, environment)?;
        if self.sources.elsewhere.is_some() {
            // What comes from elsewhere brings its log-rewards: this trainer may not be able to ask a reward itself.
            return Ok(());
        }
        let Some(mine) = Judged::of(&self.context)? else { return Ok(()) };
        for (other, said) in replicas.all_gather(&Tensor::from_slice(&mine.said))?.iter().enumerate() {
            if let Some(difference) = mine.difference(&Vec::<f64>::try_from(said)?) {
                let detail = format!("replica {other} has {difference} at replica {}", replicas.rank());
                return Err(Error::contract(SAME, detail));
            }
        }
        Ok(())
    }

    /// Adds up over all replicas how often the reward was asked.
    pub(super) fn count_reward_calls(&mut self) -> Result<()> {
        let Some(replicas) = self.context.replicas() else { return Ok(()) };
        let calls = replicas.all_gather(&Tensor::from_slice(&[self.sources.reward_calls as f64]))?;
        self.all_reward_calls = Some(calls.iter().map(|calls| calls.double_value(&[0]) as u64).sum());
        Ok(())
    }

    /// Numbers that differ where two trainers do, by the name of what they are of. A schedule of one's own can't be compared.
    fn fingerprint(&self) -> Vec<(&'static str, u64)> {
        let Context { config, conditions, objective, step, .. } = &self.context;
        let settings = serde_json::to_string(config).unwrap_or_default();
        let parameters = self.context.policy.parameters().into_iter().flat_map(Parameters::iter);
        let sums = parameters.map(|one| one.tensor.detach().sum(Kind::Double).double_value(&[]).to_bits());
        vec![
            ("objective", hash_text(&format!("{} {}", objective.name(), objective.settings()))),
            ("set of settings", hash_text(&settings)),
            ("source of conditions", u64::from(conditions.is_some())),
            ("number of steps made", *step as u64),
            ("seed, or place of its random stream,", self.rng.clone().next_u64()),
            ("set of parameters", hash(sums)),
        ]
    }

    /// How many trainers train as one; 1 for a trainer by itself.
    #[must_use]
    pub fn n_replicas(&self) -> usize {
        self.context.replicas().map_or(1, Collective::size)
    }

    /// The number of this one among them, from 0.
    #[must_use]
    pub fn replica(&self) -> usize {
        self.context.replicas().map_or(0, Collective::rank)
    }

    /// For an observer that must see every trajectory: the first replica, which alone has observers, sees its own share of each batch.
    ///
    /// # Errors
    /// [`Error::Missing`] where several trainers train as one, and where fresh trajectories come from elsewhere into a replay buffer.
    pub fn check_sees_all(&self, needed_by: &'static str) -> Result<()> {
        if self.sources.elsewhere.is_some() && self.sources.replay.is_some() {
            let remedy = "train without a replay buffer, or look at samples of the trained policy";
            return Err(Error::missing(
                needed_by,
                "all fresh trajectories: some go into the replay buffer alone",
                remedy,
            ));
        }
        match self.n_replicas() {
            1 => Ok(()),
            _ => Err(Error::missing(
                needed_by,
                "all trajectories of a batch, of which each replica sees its share",
                "train with one replica, or look at samples of the trained policy",
            )),
        }
    }

    /// What replicas don't agree on, so that they would drift apart or learn something else than one trainer. Before the first step their
    /// environments and rewards are compared, too.
    pub(super) fn check_replicas(&self) -> Result<()> {
        if self.n_replicas() == 1 {
            return Ok(());
        }
        let on_policy = &self.sources.on_policy;
        let parts = [
            (on_policy.teacher.is_some(), "an adaptive teacher"),
            (on_policy.thompson.is_some(), "Thompson sampling"),
            (self.companions.intrinsic.is_some(), "an intrinsic reward"),
        ];
        match parts.into_iter().find(|(there, _)| *there) {
            Some((_, part)) => Err(Error::missing(
                part,
                "one trainer that sees every trajectory: each replica sees its share alone",
                "train it with one replica, on more threads of libtorch's (`Runtime::new`)",
            )),
            None if self.latest.is_none() => self.check_equal_tasks(),
            None => Ok(()),
        }
    }
}

/// Objects that each replica's reward is asked about before the first step.
const ASKED: usize = 8;
/// Allowed difference of two replicas' log-rewards, per unit of their size if that is above 1: machines round differently.
const TOLERANCE: f64 = 1e-4;

/// What a trainer's reward says of a few objects, those of random walks that all trainers of an environment draw alike.
struct Judged<S> {
    objects: S,
    /// Log-rewards, and the conditions that they were asked under.
    said: Vec<f64>,
}

impl<S: Rows> Judged<S> {
    /// `None` where no random walk ends.
    fn of<E: ReplayEnv<States = S>, P>(context: &Context<E, P>) -> Result<Option<Self>> {
        let Context { env, reward, config, conditions, .. } = context;
        let draw = |sampler: Sampler<'_, E, E::Uniform>, rng: &mut Rng| sampler.walks(ASKED, rng);
        let Some(mut walks) = random_walks(env, config.max_steps, draw)? else { return Ok(None) };
        if let Some(source) = conditions {
            walks = walks.with_conditions(source.draw(ASKED, &mut Rng::seeded(0))?)?;
        }
        let mut said = reward.log_reward(&walks.terminal, walks.conditions())?;
        check_count(&said, ASKED)?;
        said.extend(walks.conditions().map_or_else(Vec::new, to_host));
        Ok(Some(Self { objects: walks.terminal, said }))
    }

    /// What differs in what another's reward says, in words.
    fn difference(&self, theirs: &[f64]) -> Option<String> {
        let close = |mine: f64, theirs: f64| {
            mine == theirs
                || (mine - theirs).abs() <= TOLERANCE * (1.0 + mine.abs())
                || (mine.is_nan() && theirs.is_nan())
        };
        let n = self.objects.len();
        if theirs.len() != self.said.len() || (n..theirs.len()).any(|i| !close(self.said[i], theirs[i])) {
            return Some("other conditions, drawn by the same stream, than those".to_owned());
        }
        let row = (0..n).find(|&row| !close(self.said[row], theirs[row]))?;
        let object = self.objects.describe(row).unwrap_or_else(|| format!("object {row} of random walks"));
        Some(format!("another reward: log R of {object} is {} there and {}", theirs[row], self.said[row]))
    }
}

fn hash_text(text: &str) -> u64 {
    hash(text.bytes().map(u64::from))
}

/// The random streams of one step: what all replicas draw alike, and what each draws for itself.
///
/// Both come from one stream, which all replicas keep at the same place. So a checkpoint needs no more than that one.
pub(super) struct Streams<'a> {
    agreed: &'a mut Rng,
    own: Option<Rng>,
}

impl<'a> Streams<'a> {
    pub(super) fn of<E: Env, P>(context: &Context<E, P>, agreed: &'a mut Rng) -> Self {
        let own = context.replicas().map(|replicas| {
            let mut streams = agreed.split();
            let mut own = streams.split();
            (0..replicas.rank()).for_each(|_| own = streams.split());
            own
        });
        Self { agreed, own }
    }

    /// The stream of this replica.
    pub(super) fn own(&mut self) -> &mut Rng {
        self.own.as_mut().unwrap_or(self.agreed)
    }
}

/// A number of the first replica's, for all.
pub(super) fn agree<E: Env, P>(context: &Context<E, P>, value: f64) -> Result<f64> {
    let Some(replicas) = context.replicas() else { return Ok(value) };
    // Cheaper than to make sure that tensors are alike, which sums and broadcasts need.
    let all = replicas.all_gather(&Tensor::from_slice(&[value]))?;
    Ok(all.first().map_or(value, |first| first.double_value(&[0])))
}

/// What `draw` makes of the uniform policy and a random stream of its own, with an exit that is made likelier until walks are short enough; `None`
/// if there are no short ones.
fn random_walks<E: ReplayEnv, T>(
    env: &E,
    max_steps: usize,
    draw: impl Fn(Sampler<'_, E, E::Uniform>, &mut Rng) -> Result<T>,
) -> Result<Option<T>> {
    let uniform = env.uniform();
    let short = |bias: &f64| {
        let exploration = match Exploration::none().with_exit_bias(*bias) {
            Ok(exploration) => exploration,
            Err(error) => return Some(Err(error)),
        };
        let sampler = Sampler::new(env, &uniform).max_steps(max_steps).exploration(exploration);
        match draw(sampler, &mut Rng::seeded(0)) {
            Err(Error::StepLimit { .. }) => None,
            // There is no exit to be more likely.
            Err(Error::Config { .. }) if *bias > 0.0 => None,
            drawn => Some(drawn),
        }
    };
    EXIT_BIASES.iter().find_map(short).transpose()
}
