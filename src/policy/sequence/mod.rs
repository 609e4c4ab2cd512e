//! Policies that evaluate a partial sequence by a recurrent network or a transformer.

mod cache;
mod prefixes;

pub use prefixes::SequenceLayout;

use std::cell::{Cell, RefCell};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor, no_grad};

use super::dense::count_actions;
use super::estimators::checked_conditions;
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Reals, Rows, Slots, VectorStates};
use crate::nn::{
    Estimators, EstimatorsConfig, Linear, MlpConfig, NetworkOutput, Parameters, SequenceNet,
    SequenceNetConfig,
};
use crate::policy::{Evaluation, HostPolicy, Policy};
use crate::quantity::{Quantities, Quantity};
use crate::tensor::select_rows;
use crate::{Error, Result, Rng};
use cache::PrefixCache;
use prefixes::Prefixes;

/// The architecture and size of a [`SequencePolicy`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequencePolicyConfig {
    /// The network whose input is the sequence.
    pub net: SequenceNetConfig,
    /// The settings of the state-flow head, of log Z and of conditions. A linear map of a state's condition
    /// is added to the embedding of each input. With conditions roll-outs have no cache: each step evaluates
    /// its sequences from their start.
    pub estimators: EstimatorsConfig,
    /// The maximum size in bytes of the cache that holds the network's results for prefixes during sampling.
    /// If a batch of trajectories needs a larger cache, every step evaluates its sequences from their start,
    /// which is slower but gives the same results.
    pub cache_bytes: usize,
}

impl Default for SequencePolicyConfig {
    /// Returns the default network, without state-flow head; a log Z that is set from the first batch; and
    /// 256 MiB for the cache.
    fn default() -> Self {
        Self {
            net: SequenceNetConfig::default(),
            estimators: EstimatorsConfig::default(),
            cache_bytes: 256 << 20,
        }
    }
}

/// Counters of the network evaluations of a [`SequencePolicy`] since it was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceWork {
    /// The number of network evaluations whose input was a batch of whole sequences.
    pub passes: u64,
    /// The number of sequences in the batches that `passes` counts.
    pub sequences: u64,
    /// The number of evaluations of a batch of prefixes in which the network takes only the last input of
    /// each prefix, because the cache holds the results for the earlier inputs.
    pub steps: u64,
    /// The number of prefixes in the evaluations that `steps` counts.
    pub prefixes: u64,
}

/// A recurrent network or a transformer as the policy of an environment that writes sequences from left to
/// right.
///
/// A state is a prefix, and the network's input is a start symbol followed by the prefix.
/// [`Policy::evaluate`] runs the network once, over the sequences of the batch that aren't a prefix of
/// another one, and takes the outputs for all prefixes from this run (teacher forcing). In a roll-out
/// ([`Policy::on_host`]) each step gives the network only the newest input of each prefix. Hidden states, or
/// keys and values, of earlier inputs are cached until the roll-out ends. Both methods give the same results,
/// for any states in any order.
///
/// P_B is uniform over the legal backward actions. If only the last entry of a sequence can be removed, each
/// state has a single backward action, so a learned P_B would be the same.
///
/// Unlike torchgfn's recurrent policies, this policy supports batches of sequences of different lengths,
/// detailed balance and state flows.
///
/// ```
/// use gfn::{objective::Quantities, policy::{Policy, SequenceLayout, SequencePolicy, SequencePolicyConfig}};
/// use gfn::{env::Env, rollout::Sampler, examples::word_env, Rng};
/// let env = word_env(2, 5);
/// let layout = SequenceLayout { values: 3, length: 5, unset: 0 };
/// let (device, kind, mut rng) = (tch::Device::Cpu, tch::Kind::Float, Rng::seeded(0));
/// let policy = SequencePolicy::new(&env, layout, SequencePolicyConfig::default(), device, kind, &mut rng)?;
/// let words = Sampler::new(&env, &policy).forward(8, &mut rng)?;
/// assert!(policy.work().passes == 0 && policy.work().steps <= 6);
/// policy.evaluate(&env, words.states(), None, Quantities::PF)?;
/// assert_eq!(policy.work().passes, 1);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct SequencePolicy {
    layout: SequenceLayout,
    config: SequencePolicyConfig,
    n_actions: i64,
    net: Box<dyn SequenceNet>,
    /// The map from a condition to the vector that is added to the embedding of each input of a sequence;
    /// `None` without conditions.
    conditions: Option<Linear>,
    head: Linear,
    estimators: Estimators,
    parameters: Parameters,
    work: Cell<SequenceWork>,
}

impl SequencePolicy {
    /// The trained parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Builds a network for the actions of an environment with states of this layout, with initial weights
    /// drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for an environment whose states don't all have the same number of slots, or whose
    /// initial state isn't the empty sequence, and for invalid sizes of the network.
    pub fn new<E: DiscreteEnv<Actions = Slots, States = VectorStates>>(
        env: &E,
        layout: SequenceLayout,
        config: SequencePolicyConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::with_parameters(env, layout, config, Parameters::new(device, kind), rng)
    }

    /// Builds a network as [`new`](Self::new) does, in an empty list of parameters.
    pub(crate) fn with_parameters<E: DiscreteEnv<Actions = Slots, States = VectorStates>>(
        env: &E,
        layout: SequenceLayout,
        config: SequencePolicyConfig,
        mut parameters: Parameters,
        rng: &mut Rng,
    ) -> Result<Self> {
        let start = env.initial(&[0]);
        if Prefixes::new(&layout, &start)?.position(0) > 0 {
            return Err(Error::config(
                "the environment of a `SequencePolicy`",
                format!("an environment that starts with {:?}", start.row(0)),
                "an environment that starts with all entries unset",
            ));
        }
        let n_actions = count_actions(&env.masks(Direction::Forward, &start))?;
        let mut scope = parameters.scope(rng);
        let net = config.net.build(&mut scope.sub("net"), layout.n_inputs(), layout.n_positions())?;
        let head = Linear::new(
            &mut scope.sub("head"),
            config.net.width,
            n_actions + i64::from(config.estimators.flow),
        );
        let width = config.net.width;
        let log_z = MlpConfig { hidden: vec![width], ..MlpConfig::default() };
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&log_z))?;
        let n_conditions = config.estimators.n_conditions;
        let conditions = (n_conditions > 0)
            .then(|| Linear::without_bias(&mut scope.sub("conditions"), n_conditions, width));
        parameters.check()?;
        let work = Cell::default();
        Ok(Self { layout, config, n_actions, net, conditions, head, estimators, parameters, work })
    }

    /// Returns the configuration of the policy.
    #[must_use]
    pub fn config(&self) -> &SequencePolicyConfig {
        &self.config
    }

    /// Returns the layout of states.
    #[must_use]
    pub fn layout(&self) -> &SequenceLayout {
        &self.layout
    }

    /// Returns the counters of network evaluations since the policy was built.
    #[must_use]
    pub fn work(&self) -> SequenceWork {
        self.work.get()
    }

    /// Returns the network's output for each state, `[states, width]`, computed in one evaluation of whole
    /// sequences. `conditions` holds the condition of each state, if the policy has conditions.
    fn hidden(&self, prefixes: &Prefixes<'_>, conditions: Option<&Tensor>) -> Result<Tensor> {
        let kind = self.parameters.kind();
        let device = self.parameters.device();
        if prefixes.len() == 0 {
            return Ok(Tensor::zeros([0, self.config.net.width], (kind, device)));
        }
        let conditions = self.conditions.as_ref().zip(conditions);
        let group = match conditions {
            Some((_, conditions)) => Reals::from_tensor(conditions)?.group().group_of,
            None => vec![0; prefixes.len()],
        };
        let maximal = prefixes.maximal(&group);
        let context = conditions.map(|(map, rows)| map.forward(&select_rows(rows, &maximal.rows)));
        let (inputs, last) = prefixes.batch(&maximal, device);
        let SequenceWork { passes, sequences, .. } = self.work.get();
        let sequences = sequences + inputs.size()[0] as u64;
        self.work.set(SequenceWork { passes: passes + 1, sequences, ..self.work.get() });
        let out = self.net.forward(&inputs, context.as_ref());
        Ok(out.reshape([-1, self.config.net.width]).index_select(0, &last))
    }
}

impl<E: DiscreteEnv<Actions = Slots, States = VectorStates>> Policy<E> for SequencePolicy {
    fn evaluate(
        &self,
        env: &E,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let log_flow = wants.has(Quantity::LogFlow) && self.config.estimators.flow;
        let mut out = None;
        let mut pf_scale = None;
        if wants.has(Quantity::LogPf) || log_flow {
            let n_conditions = self.config.estimators.n_conditions;
            let conditions = checked_conditions(conditions, states.len(), n_conditions, &self.parameters)?;
            let hidden = self.hidden(&Prefixes::new(&self.layout, states)?, conditions.as_ref())?;
            out = Some(self.head.forward(&hidden));
            pf_scale = self.estimators.pf_scale(conditions.as_ref());
        }
        let pf = out.as_ref().map(|out| vec![out.narrow(1, 0, self.n_actions)]);
        let values =
            out.iter().filter(|_| log_flow).map(|out| (Quantity::LogFlow, out.select(1, self.n_actions)));
        let output = NetworkOutput { pf, values: values.collect(), pf_scale, ..NetworkOutput::default() };
        Evaluation::from_masks(|direction| Ok(env.masks(direction, states)), wants, output)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        if direction == Direction::Backward || self.conditions.is_some() {
            return None;
        }
        let options = (self.parameters.kind(), self.parameters.device());
        let row_bytes = self.net.row_width() as usize * options.0.elt_size_in_bytes();
        let cache = RefCell::new(PrefixCache::new(self.config.cache_bytes / row_bytes, options));
        Some(Box::new(SequenceRollout { policy: self, cache }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }

    fn settings(&self) -> Value {
        json!({ "SequencePolicy": { "layout": self.layout, "config": self.config } })
    }
}

/// A [`SequencePolicy`] during one roll-out, with its cache of prefixes. Each roll-out starts with an empty
/// cache, because parameters may change between roll-outs and such a change can't always be detected
/// ([`Parameters::version`]).
struct SequenceRollout<'a> {
    policy: &'a SequencePolicy,
    cache: RefCell<PrefixCache>,
}

impl<E: DiscreteEnv<Actions = Slots, States = VectorStates>> HostPolicy<E> for SequenceRollout<'_> {
    fn distribution(&self, env: &E, states: &VectorStates) -> Result<GraphActionCategorical> {
        let Self { policy, cache } = self;
        let prefixes = Prefixes::new(&policy.layout, states)?;
        let logits = no_grad(|| {
            let mut cache = cache.borrow_mut();
            let read = cache.rows(policy.net.as_ref(), &prefixes).map(|rows| policy.net.output(&rows));
            let (steps, prefixes_read) = std::mem::take(&mut cache.steps);
            let work = policy.work.get();
            policy.work.set(SequenceWork {
                steps: work.steps + steps,
                prefixes: work.prefixes + prefixes_read,
                ..work
            });
            let hidden = read.map_or_else(|| policy.hidden(&prefixes, None), Ok)?;
            Ok::<_, Error>(policy.head.forward(&hidden).narrow(1, 0, policy.n_actions))
        })?;
        GraphActionCategorical::new(env.masks(Direction::Forward, states), &[logits])
    }
}
