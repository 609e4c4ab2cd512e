//! The tasks on environments whose states are vectors of small integers: a policy, trained and compared with the target.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{DiscreteEnv, EnumerableEnv, Reward, Slots, VectorStates};
use gfn::nn::{BackwardPolicy, MlpConfig, SequenceKind, SequenceNetConfig};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig, Policy, SequenceLayout, SequencePolicy, SequencePolicyConfig};
use gfn::replay::{Diversity, ReplayBuffer};
use gfn::train::{CountModes, Observer, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_plot::Panel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tch::Device;

use super::{
    Common, Defaults, Distance, Exact, Report, SAMPLES, members, products, refuse, sampled, train_with_actors,
};

/// Which of these objects are modes.
pub(crate) type IsMode<'a> = Box<dyn Fn(&VectorStates) -> Vec<bool> + 'a>;

/// What differs between them.
pub(crate) struct VectorTask<'a, E, R> {
    pub(crate) example: &'static str,
    pub(crate) title: String,
    pub(crate) env: E,
    pub(crate) reward: R,
    pub(crate) features: KHot,
    pub(crate) defaults: Defaults,
    /// States up to which the distribution is exact.
    pub(crate) exact_limit: usize,
    pub(crate) log_z_true: Option<f64>,
    /// What the run is, for its checkpoints.
    pub(crate) description: Value,
    /// Changes what the flags say of training.
    pub(crate) adjust: Box<dyn Fn(TrainerConfig) -> TrainerConfig + 'a>,
    /// Objects of the replay buffer are this far apart, as the sum of differences of their k-hot vectors, where it is to be diverse.
    pub(crate) diverse: Option<f64>,
    /// Which objects are modes, to count those that are seen in training.
    pub(crate) is_mode: Option<IsMode<'a>>,
}

/// What a task adds to the report.
pub(crate) type Extra = (Vec<(&'static str, Value)>, Vec<Panel>);

/// A policy that is to be trained, and what it is for checkpoints; its layers where it is a perceptron.
struct Built<P> {
    policy: P,
    network: Value,
    perceptron: Option<MlpPolicyConfig>,
}

/// A trained task: what the task adds to the report is read off it.
pub(crate) struct VectorRun<E: EnumerableEnv + DiscreteEnv<Actions = Slots>, P> {
    pub(crate) trainer: Trainer<E, P>,
    /// All states and the probability of ending in each, where they are known.
    pub(crate) exact: Option<(Exact<E>, Vec<f64>)>,
}

impl<E, R> VectorTask<'_, E, R>
where
    E: EnumerableEnv + DiscreteEnv<States = VectorStates, Actions = Slots> + Clone + 'static,
    E::Key: Serialize + DeserializeOwned + 'static,
    R: Reward<VectorStates> + Clone + 'static,
{
    /// Trains a perceptron and reports; `extra` gives the task's own keys and panels.
    pub(crate) fn run(
        self,
        common: &Common,
        extra: impl FnOnce(&VectorRun<E, MlpPolicy<KHot>>) -> Result<Extra>,
    ) -> Result<()> {
        let runtime = common.runtime()?;
        let mut rng = Rng::seeded(common.seed);
        let hidden = vec![common.embedding.unwrap_or(256); common.layers.unwrap_or(2)];
        let backward =
            if common.objective.trains_backward() { BackwardPolicy::Separate } else { self.defaults.backward };
        let network = MlpPolicyConfig {
            mlp: MlpConfig { hidden, ..MlpConfig::default() },
            backward: common.backward.map_or(backward, Into::into),
            estimators: common.objective.estimators(),
            paths: common.objective.needs_paths(),
            ..MlpPolicyConfig::default()
        };
        let (features, device, kind) = (self.features, runtime.device(), tch::Kind::Float);
        let policy = MlpPolicy::new(&self.env, features, network.clone(), device, kind, &mut rng)?;
        self.train(common, Built { policy, network: json!(network), perceptron: Some(network) }, (device, rng), extra)
    }

    /// The same with a network that reads what is written so far, where that is done from left to right.
    pub(crate) fn run_reading(
        self,
        common: &Common,
        (layout, kind): (SequenceLayout, SequenceKind),
        extra: impl FnOnce(&VectorRun<E, SequencePolicy>) -> Result<Extra>,
    ) -> Result<()> {
        refuse("--backward", common.backward.is_some(), "no such flag: a sequence has one parent, without its end")?;
        let runtime = common.runtime()?;
        let mut rng = Rng::seeded(common.seed);
        let net = SequenceNetConfig {
            kind,
            width: common.embedding.unwrap_or(64),
            layers: common.layers.unwrap_or(2) as i64,
        };
        let config =
            SequencePolicyConfig { net, estimators: common.objective.estimators(), ..SequencePolicyConfig::default() };
        let device = runtime.device();
        let policy = SequencePolicy::new(&self.env, layout, config.clone(), device, tch::Kind::Float, &mut rng)?;
        self.train(common, Built { policy, network: json!(config), perceptron: None }, (device, rng), extra)
    }

    fn train<P: Policy<E, Dist = GraphActionCategorical> + Send + 'static>(
        self,
        common: &Common,
        Built { policy, network, perceptron }: Built<P>,
        (device, rng): (Device, Rng),
        extra: impl FnOnce(&VectorRun<E, P>) -> Result<Extra>,
    ) -> Result<()> {
        let description = json!({ "example": self.example, "task": self.description, "network": network });
        let exact = Exact::up_to(self.exact_limit, common, &self.env, &self.reward)?;
        let config = (self.adjust)(common.trainer(&self.defaults));
        let (reward, objective) = (self.reward.clone(), common.objective.build()?);
        let trainer =
            Trainer::new(self.env.clone(), reward, policy, objective, config, rng)?.described_by(&description)?;
        let trainer = common.replayed(trainer, &self.defaults, |config| match self.diverse {
            Some(apart) => Ok(ReplayBuffer::new(config)?.diverse(Diversity::new(apart, 1.0, self.features)?)),
            None => ReplayBuffer::new(config),
        })?;
        let undone = self.diverse.is_some() && trainer.replay().is_none();
        refuse("--diverse", undone, "no such flag without a replay buffer: give --replay, too")?;
        let look = |trainer: &Trainer<E, P>| Exact::look(exact.as_ref(), trainer);
        let mut modes = self.is_mode.filter(|_| members::sees_all()).map(CountModes::new);
        let observers = modes.iter_mut().map(|modes| modes as &mut dyn Observer<_, _>).collect();
        let Some((trainer, trained)) =
            train_with_actors(trainer, common, (self.example, &self.defaults), look, observers)?
        else {
            return Ok(());
        };

        let mut distance = Distance::not_listed(common, self.exact_limit);
        let mut panels = Vec::new();
        let exact = match exact {
            Some(exact) => {
                let (learned, probs) = exact.learned(&trainer)?;
                distance = learned;
                panels.push(exact.panel("objects", &probs));
                Some((exact, probs))
            }
            None => None,
        };
        let log_z_true = self.log_z_true.or_else(|| exact.as_ref().map(|(exact, _)| exact.target.log_z));
        let run = VectorRun { trainer, exact };
        let (mut extra, more) = extra(&run)?;
        // The task may have said the same of samples of its own.
        let said = extra.iter().any(|(name, _)| *name == "log_z_importance");
        if run.exact.is_none() && !common.is_frozen() && !said {
            extra.extend(sampled(&run.trainer, SAMPLES)?);
        }
        // Replayed trajectories aren't sampled: the products of such an iteration are others. They are timed by one member alone.
        let latest = run.trainer.latest().filter(|_| run.trainer.replay().is_none() && members::is_first());
        let floor = latest.zip(perceptron.as_ref());
        let floor = floor.map(|(latest, network)| products::of_iteration(&self.env, latest, network, device));
        extra.push(("products_ms", json!(floor.map(|seconds| 1e3 * seconds))));
        extra.push(("products_share", json!(floor.map(|seconds| seconds * trained.its_per_s))));
        panels.extend(more);
        Report { title: self.title, log_z_true, distance, extra, panels }.print(common, &trained)
    }
}

impl<E: EnumerableEnv + DiscreteEnv<Actions = Slots>, P> VectorRun<E, P> {
    /// Modes found and in all, where the distribution is known.
    pub(crate) fn modes(&self) -> Result<Vec<(&'static str, Value)>> {
        match &self.exact {
            Some((exact, probs)) => Ok(exact.modes(probs)?.to_vec()),
            None => Ok(vec![("modes_found", json!(null)), ("modes_total", json!(null))]),
        }
    }
}
