use std::cell::Cell;

use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::StateFeatures;
use super::torso::{Torso, VectorTorso};
use super::vectors::{EncodedVectors, HostNetwork, Inputs, Network};
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Masks, Rows, Slots};
use crate::nn::{BackwardPolicy, Estimators, EstimatorsConfig, Linear, MlpConfig, NetworkOutput, Parameters, Scope};
use crate::policy::{Evaluation, HostPolicy, MultiHead, Policy};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result, Rng};

/// The architecture and size of an [`MlpPolicy`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MlpPolicyConfig {
    /// The hidden layers.
    pub mlp: MlpConfig,
    /// The kind of backward policy.
    pub backward: BackwardPolicy,
    /// The state-flow head, log Z, and conditions.
    pub estimators: EstimatorsConfig,
    /// `true` if there is a head for the number of paths to a state, for the maximum-entropy backward policy.
    pub paths: bool,
    /// A network for the conditions, whose outputs are added to the first layer in place of a linear map of
    /// the conditions. Its output has the width of the first layer.
    #[serde(default)]
    pub condition_mlp: Option<MlpConfig>,
    /// Heads of P_F on the one torso; one is in use at a time ([`MlpPolicy::choose_head`]).
    #[serde(default = "one")]
    pub heads: usize,
}

fn one() -> usize {
    1
}

impl Default for MlpPolicyConfig {
    /// Two hidden layers of 256 with ReLU, P_F and P_B on one torso, one head of P_F, no flow head, no
    /// conditions, log Z from 0.
    fn default() -> Self {
        Self {
            mlp: MlpConfig::default(),
            backward: BackwardPolicy::SharedTorso,
            estimators: EstimatorsConfig::default(),
            paths: false,
            condition_mlp: None,
            heads: 1,
        }
    }
}

/// A multi-layer perceptron as the policy of an environment which has the same number of actions in every
/// state: one of vectors, or of graphs on labelled nodes that stay the same, whose states are given to it as
/// vectors of one length.
///
/// The heads of one torso are the columns of its last layer: logits of P_F (head by head), logits of P_B if
/// it shares the torso, log F, log n. There is one copy to the device per call.
///
/// ```
/// use gfn::{objective::Quantities, policy::{Features, MlpPolicy, MlpPolicyConfig, Policy, StateFeatures}};
/// use gfn::{Rng, env::{Env, Rows}, testing::Chain};
/// # struct Plain;
/// # impl<S: Rows> StateFeatures<S> for Plain {
/// #     fn width(&self) -> usize { 1 }
/// #     fn encode(&self, states: &S) -> Features { Features::Dense(vec![0.0; states.len()]) }
/// # }
/// let env = Chain::new(3);
/// let config = MlpPolicyConfig::default();
/// let policy = MlpPolicy::new(&env, Plain, config, tch::Device::Cpu, tch::Kind::Float, &mut Rng::seeded(0))?;
/// let evaluation = policy.evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MlpPolicy<F> {
    features: F,
    config: MlpPolicyConfig,
    /// Numbers of P_F and P_B logits.
    widths: (i64, i64),
    /// The head of P_F that is in use.
    head: Cell<usize>,
    torso: Torso,
    backward: Option<Torso>,
    estimators: Estimators,
    parameters: Parameters,
}

impl<F> MlpPolicy<F> {
    /// A network for the actions of an environment on these features, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for features without a column, and for sizes below 1. States with other numbers of
    /// actions than the initial one are refused when they are evaluated.
    pub fn new<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        features: F,
        config: MlpPolicyConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self>
    where
        F: StateFeatures<E::States>,
    {
        let (inputs, n_conditions) = (features.width() as i64, config.estimators.n_conditions);
        let (mlp, condition_mlp) = (config.mlp.clone(), config.condition_mlp.clone());
        let network = |scope: &mut Scope<'_>, name: &str, outputs| {
            let scope = &mut scope.sub(name);
            Torso::Layers(Box::new(Network::new(scope, inputs, n_conditions, outputs, &mlp, condition_mlp.as_ref())))
        };
        Self::assemble(env, features, config, Parameters::new(device, kind), rng, network)
    }

    /// The same with a torso of your own in place of the hidden layers, built in the scope that `torso` gets;
    /// with [`BackwardPolicy::Separate`] a second one is built for P_B. Of the settings in `config`,
    /// `condition_mlp` doesn't matter, and `mlp` is that of log Z under conditions.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_torso<E: DiscreteEnv<Actions = Slots>, T: VectorTorso + 'static>(
        env: &E,
        features: F,
        mut torso: impl FnMut(&mut Scope<'_>) -> T,
        config: MlpPolicyConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self>
    where
        F: StateFeatures<E::States>,
    {
        let network = |scope: &mut Scope<'_>, name: &str, outputs| {
            let torso = torso(&mut scope.sub(name));
            let heads = Linear::new(&mut scope.sub(&format!("{name}_heads")), torso.width(), outputs);
            Torso::Own(Box::new(torso), heads)
        };
        Self::assemble(env, features, config, Parameters::new(device, kind), rng, network)
    }

    /// A table: a row of logits (and of log F) per state, all 0 at first. `features` numbers the states:
    /// [`ByNumber`](super::ByNumber) or [`ByIndex`](super::ByIndex). The network settings in `config` are
    /// ignored.
    ///
    /// ```
    /// use gfn::{nn::EstimatorsConfig, objective::Quantity, policy::{ByNumber, MlpPolicy, MlpPolicyConfig, Policy}};
    /// use gfn::{env::VectorEnv, testing::word_env};
    /// let env = word_env(2, 2);
    /// let estimators = EstimatorsConfig::with_flow(true);
    /// let config = MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() };
    /// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
    /// // Three logits of P_F, one of P_B and log F for each of 9 keys, and log Z.
    /// assert_eq!(Policy::<VectorEnv>::parameters(&policy).map(|p| p.count()), Some(9 * 5 + 1));
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`new`](Self::new), and [`Error::Config`] with conditions, which a table can't take.
    pub fn tabular<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        features: F,
        config: MlpPolicyConfig,
        device: Device,
        kind: Kind,
    ) -> Result<Self>
    where
        F: StateFeatures<E::States>,
    {
        if config.estimators.n_conditions != 0 {
            return Err(Error::config(
                "n_conditions",
                config.estimators.n_conditions,
                "0 for a tabular policy: use `MlpPolicy::new` with conditions",
            ));
        }
        let inputs = features.width() as i64;
        let network = |scope: &mut Scope<'_>, name: &str, outputs| {
            Torso::Layers(Box::new(Network::table(&mut scope.sub(name), inputs, outputs)))
        };
        // Nothing is drawn from the generator: the entries start at 0.
        Self::assemble(env, features, config, Parameters::new(device, kind), &mut Rng::seeded(0), network)
    }

    fn assemble<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        features: F,
        config: MlpPolicyConfig,
        mut parameters: Parameters,
        rng: &mut Rng,
        mut network: impl FnMut(&mut Scope<'_>, &str, i64) -> Torso,
    ) -> Result<Self> {
        // Where later states have other slots than the first one, a step shows it.
        let mut states = env.initial(&[0]);
        let first = env.masks(Direction::Forward, &states);
        if let Some(slot) = first.legal_slots(0).find(|&slot| !first.is_exit(0, slot)) {
            let mut next = states.clone();
            env.step(Direction::Forward, &mut next, &Slots(vec![slot]))?;
            states.append(next);
        }
        let n_actions = |direction| n_actions(&masks(env, direction, &states)?);
        let (pf, pb) = (n_actions(Direction::Forward)?, n_actions(Direction::Backward)?);
        config.check()?;
        let shared_pb = if config.backward == BackwardPolicy::SharedTorso { pb } else { 0 };
        let outputs =
            config.heads as i64 * pf + shared_pb + i64::from(config.estimators.flow) + i64::from(config.paths);
        let mut scope = parameters.scope(rng);
        let torso = network(&mut scope, "torso", outputs);
        let backward = (config.backward == BackwardPolicy::Separate).then(|| network(&mut scope, "pb", pb));
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&config.mlp))?;
        parameters.check()?;
        let (widths, head) = ((pf, pb), Cell::new(0));
        Ok(Self { features, config, widths, head, torso, backward, estimators, parameters })
    }

    /// The index of the P_F head in use, from 0.
    #[must_use]
    pub fn head(&self) -> usize {
        self.head.get()
    }

    /// Switches to another head of P_F, both for sampling and for training.
    ///
    /// # Errors
    /// [`Error::Config`] for a head that doesn't exist.
    pub fn use_head(&self, head: usize) -> Result<()> {
        if head >= self.config.heads {
            return Err(Error::config(
                "the head of P_F",
                format!("{head} of {}", self.config.heads),
                "a head from 0 to below `MlpPolicyConfig::heads`",
            ));
        }
        self.head.set(head);
        Ok(())
    }

    /// Draws the head of P_F to use from now on and returns its index: Thompson sampling (Rector-Brooks et
    /// al., *Thompson Sampling for Improved Exploration in GFlowNets*, 2023), which explores where the heads
    /// disagree.
    ///
    /// `Thompson` in the package `gfn-extras` draws a head for each trajectory, and trains every head on a
    /// random share of the batch. Without it, call this method before each batch.
    pub fn choose_head(&self, rng: &mut Rng) -> usize {
        self.head.set(rng.below(self.config.heads));
        self.head.get()
    }

    /// The policy's configuration.
    #[must_use]
    pub fn config(&self) -> &MlpPolicyConfig {
        &self.config
    }

    /// The states' vectors and conditions on the parameters' device.
    fn inputs<S: Rows>(&self, states: &S, conditions: Option<&Tensor>) -> Result<Inputs>
    where
        F: StateFeatures<S>,
    {
        let (kind, device) = (self.parameters.kind(), self.parameters.device());
        let vectors =
            EncodedVectors::new(self.features.encode(states), states.len(), self.features.width(), kind, device)?;
        let expected = [states.len() as i64, self.config.estimators.n_conditions];
        let conditions = match conditions {
            None if self.config.estimators.n_conditions == 0 => None,
            Some(c) if c.size() == expected => Some(c.to_device(device).to_kind(kind)),
            given => {
                return Err(Error::shape(
                    "the conditions",
                    expected.to_vec(),
                    given.map_or_else(Vec::new, Tensor::size),
                    "give one row of `n_conditions` numbers per state",
                ));
            }
        };
        Ok(Inputs { vectors, conditions })
    }
}

impl MlpPolicyConfig {
    fn check(&self) -> Result<()> {
        let refuse = |setting, expected| Err(Error::config(setting, 0, expected));
        match self.heads {
            0 => refuse("heads", "at least 1 head of P_F"),
            _ if self.condition_mlp.is_some() && self.estimators.n_conditions == 0 => {
                refuse("n_conditions", "the width of the condition vectors that `condition_mlp` takes")
            }
            _ => self.estimators.check(),
        }
    }
}

/// The masks as one block with one row per state.
fn masks<E: DiscreteEnv<Actions = Slots>>(env: &E, direction: Direction, states: &E::States) -> Result<Masks> {
    let masks = env.masks(direction, states).in_one_block();
    n_actions(&masks)?;
    Ok(masks)
}

/// The number of actions, if they are one block with one row per state.
pub(super) fn n_actions(masks: &Masks) -> Result<i64> {
    match masks.blocks.as_slice() {
        [block] if block.rows() == masks.len() => Ok(block.width as i64),
        blocks => Err(Error::config(
            "the environment of a policy on vectors",
            format!("one with {} blocks of actions", blocks.len()),
            "as many actions in every state; for graphs of different sizes use a `GraphPolicy`",
        )),
    }
}

impl<E: DiscreteEnv<Actions = Slots>, F: StateFeatures<E::States>> Policy<E> for MlpPolicy<F> {
    fn evaluate(
        &self,
        env: &E,
        states: &E::States,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let (pf_width, pb_width) = self.widths;
        let shared_pb = self.config.backward == BackwardPolicy::SharedTorso;
        let learned_pb = self.config.backward != BackwardPolicy::Uniform;
        let log_flow = wants.has(Quantity::LogFlow) && self.config.estimators.flow;
        let log_paths = wants.has(Quantity::LogPaths) && self.config.paths;
        let needs_network =
            wants.has(Quantity::LogPf) || log_flow || log_paths || (wants.has(Quantity::LogPb) && learned_pb);
        let x = needs_network.then(|| self.inputs(states, conditions)).transpose()?;
        let shared = match &x {
            Some(x) if wants.has(Quantity::LogPf) || log_flow || log_paths || shared_pb => Some(self.torso.forward(x)?),
            _ => None,
        };
        let start = |block: i64| block * pf_width;
        let pf = shared.as_ref().filter(|_| wants.has(Quantity::LogPf));
        let pf = pf.map(|out| vec![out.narrow(1, start(self.head.get() as i64), pf_width)]);
        let pb = match (&self.backward, &x, &shared) {
            _ if !wants.has(Quantity::LogPb) => None,
            (Some(network), Some(x), _) => Some(vec![network.forward(x)?]),
            (None, _, Some(out)) if shared_pb => Some(vec![out.narrow(1, start(self.config.heads as i64), pb_width)]),
            _ => None,
        };
        // The last columns are log F and log n.
        let before_last = if self.config.paths { -2 } else { -1 };
        let columns = [(Quantity::LogPaths, log_paths, -1), (Quantity::LogFlow, log_flow, before_last)];
        let wanted = columns.into_iter().filter(|(_, wanted, _)| *wanted);
        let values = wanted.flat_map(|(quantity, _, at)| shared.iter().map(move |out| (quantity, out.select(1, at))));
        let values = values.collect();
        let pf_scale = pf.as_ref().zip(x.as_ref()).and_then(|(_, x)| self.estimators.pf_scale(x.conditions.as_ref()));
        let output = NetworkOutput { pf, pb, values, pf_scale };
        Evaluation::of_masks(|direction| masks(env, direction, states), wants, output)
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<E> + '_>> {
        let (pf, pb) = self.widths;
        let network = match (direction, self.config.backward) {
            (Direction::Forward, _) => {
                let start = self.head.get() as i64 * pf;
                self.torso.on_host(start..start + pf)
            }
            (Direction::Backward, BackwardPolicy::SharedTorso) => {
                let start = self.config.heads as i64 * pf;
                self.torso.on_host(start..start + pb)
            }
            (Direction::Backward, BackwardPolicy::Separate) => self.backward.as_ref()?.on_host(0..pb),
            (Direction::Backward, BackwardPolicy::Uniform) => None,
        };
        Some(Box::new(HostMlpPolicy { features: &self.features, direction, network: network? }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        Some(self)
    }
}

/// A copy of an [`MlpPolicy`] for a roll-out.
struct HostMlpPolicy<'a, F> {
    features: &'a F,
    direction: Direction,
    network: HostNetwork,
}

impl<E, F> HostPolicy<E> for HostMlpPolicy<'_, F>
where
    E: DiscreteEnv<Actions = Slots>,
    F: StateFeatures<E::States>,
{
    fn distribution(&self, env: &E, states: &E::States) -> Result<GraphActionCategorical> {
        let logits = self.network.forward(&self.features.encode(states), states.len())?;
        GraphActionCategorical::on_host(masks(env, self.direction, states)?, logits)
    }
}
