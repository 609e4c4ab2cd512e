//! Several trainers that train as one: each draws its share of every batch, and all make the same update.

use rand::RngCore;
use tch::{Kind, Tensor};

use super::gradients::SAME;
use super::{Context, Trainer};
use crate::collective::Collective;
use crate::env::Env;
use crate::metrics::Evaluator;
use crate::nn::Parameters;
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::{Error, Result, Rng};

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Trains as one of several replicas, each with a trainer that was built like this one (with the same optimizer, too: it isn't compared). [`TrainerConfig::batch`](super::TrainerConfig::batch)
    /// is that of all replicas together; each draws its [share](Context::share) by a random stream of its own, from its own buffer, if there is
    /// one. The gradient is that of the whole batch, for every objective, so the replicas stay equal.
    ///
    /// Loss, log Z, gradients and what is counted of a batch are of all replicas; the
    /// [latest](Self::latest) trajectories are this replica's own. [`Fit`](super::Fit) shows the first replica alone to observers (but for those
    /// [of all](super::Observer::on_all_replicas)), saves its checkpoints, and ends all together; the others wait meanwhile, so a group of processes needs a timeout that is longer than that takes. With as many replicas, a run gives the same bits again, also resumed.
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
    /// built from one seed; [`Error::Peer`] if another replica has ended. The first step refuses what isn't agreed on between replicas: an adaptive teacher,
    /// Thompson sampling, intrinsic rewards.
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

    /// Compares the trainers of all replicas: in model, parameters, objective, settings, step and place of the random stream.
    ///
    /// # Errors
    /// [`Error::Contract`] where two differ; [`Error::Peer`] if another replica has ended.
    pub(super) fn check_equal_replicas(&self) -> Result<()> {
        let Some(replicas) = self.context.replicas() else { return Ok(()) };
        let mine = Tensor::from_slice(&self.fingerprint());
        let all = replicas.all_gather(&mine)?;
        match all.iter().position(|theirs| *theirs != mine) {
            Some(other) => {
                let detail = format!("replica {other} is another than replica {}", replicas.rank());
                Err(Error::contract(SAME, detail))
            }
            None => Ok(()),
        }
    }

    /// Compares this trainer with one of another thread, which is to draw for it.
    ///
    /// # Errors
    /// [`Error::Contract`] where the two differ.
    pub(super) fn check_equal(&self, other: &Self) -> Result<()> {
        let conditional = |trainer: &Self| trainer.context.conditions.is_some();
        match self.fingerprint() == other.fingerprint() && conditional(self) == conditional(other) {
            true => Ok(()),
            false => {
                Err(Error::contract(SAME, "the trainer that is to draw is another than the one that it draws for"))
            }
        }
    }

    /// Adds up over all replicas how often the reward was asked.
    pub(super) fn count_reward_calls(&mut self) -> Result<()> {
        let Some(replicas) = self.context.replicas() else { return Ok(()) };
        let calls = replicas.all_gather(&Tensor::from_slice(&[self.sources.reward_calls as f64]))?;
        self.all_reward_calls = Some(calls.iter().map(|calls| calls.double_value(&[0]) as u64).sum());
        Ok(())
    }

    /// Numbers that differ where two trainers do: step, random stream, settings, objective, and sums of each parameter. A schedule of one's
    /// own can't be compared.
    fn fingerprint(&self) -> Vec<f64> {
        let Context { config, objective, step, .. } = &self.context;
        let settings = serde_json::to_string(config).unwrap_or_default();
        let described = format!("{settings} {} {}", objective.name(), objective.settings());
        let hash = described.bytes().fold(0, |hash, byte| Rng::mix64(hash ^ u64::from(byte)));
        let mut out = vec![*step as f64];
        // A double can't hold all of 64 bits.
        out.extend(
            [self.rng.clone().next_u64(), hash]
                .into_iter()
                .flat_map(|bits| [bits >> 32, bits & 0xffff_ffff].map(|half| half as f64)),
        );
        let sums = self.context.policy.parameters().into_iter().flat_map(Parameters::iter);
        out.extend(sums.map(|parameter| parameter.tensor.detach().sum(Kind::Double).double_value(&[])));
        out
    }

    /// How many trainers train as one; 1 for a trainer by itself.
    #[must_use]
    pub fn n_replicas(&self) -> usize {
        self.context.replicas().map_or(1, Collective::size)
    }

    /// What works out the figures of a policy for this trainer: all replicas together, each its share, where several train as one. All of
    /// them must ask it for the same then.
    ///
    /// ```
    /// use gfn::collective::replicate;
    /// use gfn::{env::{Rows, StateGraph, VectorStates}, objective::TrajectoryBalance, testing::Words, Rng};
    /// use gfn::policy::{ByKey, MlpPolicy, MlpPolicyConfig};
    /// use gfn::train::{Fit, Metrics, Trainer, TrainerConfig, Validation};
    /// let probs = replicate(2, |replica| {
    ///     let env = Words::new(2, 2);
    ///     let policy = MlpPolicy::tabular(&env, ByKey::new(env, 9), MlpPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float)?;
    ///     let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
    ///     let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    ///     let mut trainer =
    ///         Trainer::new(env, reward, policy, TrajectoryBalance, config, Rng::seeded(0))?.with_collective(replica)?;
    ///     let space = StateGraph::build(&env, 100)?;
    ///     let mut validation = Validation::every(5, |trainer: &Trainer<_, _>| {
    ///         let learned = trainer.evaluator().terminating_distribution(&space, trainer.policy(), None)?;
    ///         Ok(Metrics::from([("empty".to_owned(), learned.probs[0])]))
    ///     })?
    ///     .shared();
    ///     Fit::new(10).observe(&mut validation).run(&mut trainer)?;
    ///     Ok(trainer.evaluator().terminating_distribution(&space, trainer.policy(), None)?.probs)
    /// })?;
    /// assert!((probs.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    #[must_use]
    pub fn evaluator(&self) -> Evaluator<'_, E> {
        Evaluator::of(&self.context.env).shared_by(self.context.replicas())
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

    /// What replicas don't agree on, so that they would drift apart or learn something else than one trainer.
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
            None => Ok(()),
        }
    }
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
