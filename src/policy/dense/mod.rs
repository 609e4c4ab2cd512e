mod config;
mod forms;
mod stacked;

use std::cell::Cell;

use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

pub use config::MlpPolicyConfig;
use forms::HostMlpPolicy;
pub(super) use stacked::StackedNetwork;

use super::estimators::checked_conditions;
use super::torso::{Torso, VectorTorso};
use super::vectors::{EncodedVectors, Inputs, Network};
use super::{StateFeatures, TensorFeatures};
use crate::distribution::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Masks, Rows, Slots, TensorForm};
use crate::nn::{BackwardPolicy, Estimators, Linear, NetworkOutput, Parameters, Scope};
use crate::policy::{Evaluation, HostPolicy, MultiHead, Policy, TensorPolicy};
use crate::quantity::{Quantities, Quantity};
use crate::{Error, Result, Rng};

/// A multi-layer perceptron as the policy of an environment with the same number of actions in every state.
/// States may be vectors, or graphs on a fixed set of labelled nodes. [`StateFeatures`] encode the states as
/// vectors of equal length.
///
/// The columns of the last layer are the logits of P_F (one block per head of P_F), the logits of P_B if it
/// shares the torso, log F if `flow` is set, and log n (n is the number of paths to a state) if `paths` is
/// set, in this order.
///
/// ```
/// use gfn::{objective::Quantities, policy::{Features, MlpPolicy, MlpPolicyConfig, Policy, StateFeatures}};
/// use gfn::{Rng, env::{Env, Rows}, examples::Chain};
/// # struct Plain;
/// # impl<S: Rows> StateFeatures<S> for Plain {
/// #     fn width(&self) -> usize { 1 }
/// #     fn encode(&self, states: &S) -> Features { Features::Dense(vec![0.0; states.len()]) }
/// # }
/// let env = Chain::new(3);
/// let config = MlpPolicyConfig::default();
/// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
/// let policy = MlpPolicy::new(&env, Plain, config, device, kind, &mut Rng::seeded(0))?;
/// let evaluation = policy.evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.unwrap().len(), 2);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MlpPolicy<F> {
    features: F,
    config: MlpPolicyConfig,
    /// The number of logits of P_F per head, and the number of logits of P_B, per state.
    widths: (i64, i64),
    /// The index of the head of P_F that is in use.
    pub(super) head: Cell<usize>,
    torso: Torso,
    /// The network of P_B; `None` unless P_B is [`BackwardPolicy::Separate`].
    backward: Option<Torso>,
    estimators: Estimators,
    parameters: Parameters,
}

impl<F> MlpPolicy<F> {
    /// Builds a network for the actions of an environment on these features, with initial weights drawn from
    /// `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] if the features have no entries, for sizes below 1, and for an environment whose
    /// states don't all have the same number of slots. A state with another number of actions than the
    /// initial state is refused when it is evaluated.
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
        Self::with_parameters(env, features, config, false, Parameters::new(device, kind), rng)
    }

    /// Builds a table, if `is_table`, as [`tabular`](Self::tabular) does, or a network as [`new`](Self::new)
    /// does, in an empty list of parameters. A table draws no random numbers.
    pub(crate) fn with_parameters<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        features: F,
        config: MlpPolicyConfig,
        is_table: bool,
        parameters: Parameters,
        rng: &mut Rng,
    ) -> Result<Self>
    where
        F: StateFeatures<E::States>,
    {
        let inputs = features.width() as i64;
        let n_conditions = config.estimators.n_conditions;
        if is_table && n_conditions != 0 {
            let expected = "0, because a tabular policy takes no conditions: use `MlpPolicy::new`";
            return Err(Error::config("n_conditions", n_conditions, expected));
        }
        let mlp = config.mlp.clone();
        let condition_mlp = config.condition_mlp.clone();
        let network = |scope: &mut Scope<'_>, name: &str, outputs| {
            let scope = &mut scope.sub(name);
            Torso::Layers(Box::new(if is_table {
                Network::table(scope, inputs, outputs)
            } else {
                Network::new(scope, inputs, n_conditions, outputs, &mlp, condition_mlp.as_ref())
            }))
        };
        Self::assemble(env, features, config, parameters, rng, network)
    }

    /// Builds a policy with a custom torso instead of the hidden layers. The function `torso` builds the
    /// torso in the scope that it receives. With [`BackwardPolicy::Separate`] `torso` is called a second
    /// time, for P_B. The setting `condition_mlp` is ignored, and `mlp` is used only for the network of log Z
    /// if there are conditions.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
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
            Torso::Custom(Box::new(torso), heads)
        };
        Self::assemble(env, features, config, Parameters::new(device, kind), rng, network)
    }

    /// Builds a table with a row of outputs (logits, log F) per state, initially 0. `features` must number
    /// the states: [`ByNumber`](super::ByNumber) or [`ByIndex`](super::ByIndex). The network settings in
    /// `config` are ignored.
    ///
    /// ```
    /// use gfn::{nn::EstimatorsConfig, policy::{ByNumber, MlpPolicy, MlpPolicyConfig}};
    /// use gfn::examples::word_env;
    /// let env = word_env(2, 2);
    /// let estimators = EstimatorsConfig::with_flow(true);
    /// let config = MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() };
    /// let (device, kind) = (tch::Device::Cpu, tch::Kind::Float);
    /// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, device, kind)?;
    /// // Three logits of P_F, one of P_B and log F for each of 9 keys, and log Z.
    /// assert_eq!(policy.parameters().count(), 9 * 5 + 1);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); [`Error::Config`] if there are conditions, because the table has no
    /// input for them.
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
        let parameters = Parameters::new(device, kind);
        Self::with_parameters(env, features, config, true, parameters, &mut Rng::seeded(0))
    }

    /// Builds the policy. The function `network` builds one network of the policy. It is called for each
    /// network, with the scope, the name and the number of outputs of this network.
    fn assemble<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        features: F,
        config: MlpPolicyConfig,
        mut parameters: Parameters,
        rng: &mut Rng,
        mut network: impl FnMut(&mut Scope<'_>, &str, i64) -> Torso,
    ) -> Result<Self> {
        // The slots are counted in two states, the initial state and the state after its first legal action,
        // so that an environment in which the two numbers differ is refused.
        let mut states = env.initial(&[0]);
        let first = env.masks(Direction::Forward, &states);
        if let Some(slot) = first.legal_slots(0).find(|&slot| !first.is_exit(0, slot)) {
            let mut next = states.clone();
            env.step(Direction::Forward, &mut next, &Slots(vec![slot]))?;
            states.append(next);
        }
        let pf = count_actions(&masks(env, Direction::Forward, &states)?)?;
        let pb = count_actions(&masks(env, Direction::Backward, &states)?)?;
        config.check()?;
        let shared_pb = if config.backward == BackwardPolicy::SharedTorso { pb } else { 0 };
        let outputs = config.heads as i64 * pf
            + shared_pb
            + i64::from(config.estimators.flow)
            + i64::from(config.paths);
        let mut scope = parameters.scope(rng);
        let torso = network(&mut scope, "torso", outputs);
        let backward = (config.backward == BackwardPolicy::Separate).then(|| network(&mut scope, "pb", pb));
        let estimators = Estimators::new(&mut scope, &config.estimators, Some(&config.mlp))?;
        parameters.check()?;
        Ok(Self {
            features,
            config,
            widths: (pf, pb),
            head: Cell::new(0),
            torso,
            backward,
            estimators,
            parameters,
        })
    }

    /// Switches to a head of P_F that is drawn uniformly, and returns its index. This is Thompson sampling
    /// (Rector-Brooks et al., *Thompson Sampling for Improved Exploration in GFlowNets*, 2023), which
    /// explores states in which the heads' probabilities differ.
    ///
    /// Call this method before each batch, or use `Thompson` in the package `gfn-extras`, which draws a head
    /// for each trajectory and trains every head on a random share of the batch.
    pub fn choose_head(&self, rng: &mut Rng) -> usize {
        self.head.set(rng.below(self.config.heads));
        self.head.get()
    }

    /// The trained parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the policy's configuration.
    #[must_use]
    pub fn config(&self) -> &MlpPolicyConfig {
        &self.config
    }

    /// Computes the quantities in `wants`. The function `inputs` encodes the states; it is called only if the
    /// quantities need a network.
    fn output(&self, inputs: impl FnOnce() -> Result<Inputs>, wants: Quantities) -> Result<NetworkOutput> {
        let (pf_width, pb_width) = self.widths;
        let shared_pb = self.config.backward == BackwardPolicy::SharedTorso;
        let learned_pb = self.config.backward != BackwardPolicy::Uniform;
        let log_flow = wants.has(Quantity::LogFlow) && self.config.estimators.flow;
        let log_paths = wants.has(Quantity::LogPaths) && self.config.paths;
        let needs_network =
            wants.has(Quantity::LogPf) || log_flow || log_paths || (wants.has(Quantity::LogPb) && learned_pb);
        let x = needs_network.then(inputs).transpose()?;
        let shared = match &x {
            Some(x) if wants.has(Quantity::LogPf) || log_flow || log_paths || shared_pb => {
                Some(self.torso.forward(x)?)
            }
            _ => None,
        };
        // The first columns of the output are the logits of P_F, `pf_width` columns for each head.
        let start = |block: i64| block * pf_width;
        let pf = shared.as_ref().filter(|_| wants.has(Quantity::LogPf));
        let pf = pf.map(|out| vec![out.narrow(1, start(self.head.get() as i64), pf_width)]);
        let pb = match (&self.backward, &x, &shared) {
            _ if !wants.has(Quantity::LogPb) => None,
            (Some(network), Some(x), _) => Some(vec![network.forward(x)?]),
            (None, _, Some(out)) if shared_pb => {
                Some(vec![out.narrow(1, start(self.config.heads as i64), pb_width)])
            }
            _ => None,
        };
        // If the policy has both log F and log n (the log of the number of paths to a state), they are the
        // last two columns of the output, in this order. If it has only one of them, this is the last column.
        let log_flow_column = if self.config.paths { -2 } else { -1 };
        let columns = [(Quantity::LogPaths, log_paths, -1), (Quantity::LogFlow, log_flow, log_flow_column)];
        let requested = columns.into_iter().filter(|(_, is_requested, _)| *is_requested);
        let values = requested.flat_map(|(quantity, _, column)| {
            shared.iter().map(move |out| (quantity, out.select(1, column)))
        });
        let values = values.collect();
        let pf_scale =
            pf.as_ref().zip(x.as_ref()).and_then(|(_, x)| self.estimators.pf_scale(x.conditions.as_ref()));
        Ok(NetworkOutput { pf, pb, values, pf_scale })
    }

    /// Encodes states, and copies their vectors and the conditions to the device of the parameters.
    fn inputs<S: Rows>(&self, states: &S, conditions: Option<&Tensor>) -> Result<Inputs>
    where
        F: StateFeatures<S>,
    {
        let kind = self.parameters.kind();
        let device = self.parameters.device();
        let vectors = EncodedVectors::new(
            self.features.encode(states),
            states.len(),
            self.features.width(),
            kind,
            device,
        )?;
        let n_conditions = self.config.estimators.n_conditions;
        let conditions = checked_conditions(conditions, states.len(), n_conditions, &self.parameters)?;
        Ok(Inputs { vectors, conditions })
    }
}

/// Returns the masks of states, merged into a single table of slots with one row per state. An environment
/// whose states don't all have the same number of slots is refused.
fn masks<E: DiscreteEnv<Actions = Slots>>(
    env: &E,
    direction: Direction,
    states: &E::States,
) -> Result<Masks> {
    let masks = env.masks(direction, states).in_one_block();
    count_actions(&masks)?;
    Ok(masks)
}

/// Returns the number of actions per state.
///
/// # Errors
/// [`Error::Config`] unless the masks have a single table of slots (block), with one row per state.
pub(super) fn count_actions(masks: &Masks) -> Result<i64> {
    match masks.blocks.as_slice() {
        [block] if block.rows() == masks.len() => Ok(block.width as i64),
        blocks => Err(Error::config(
            "the environment of a policy on vectors",
            format!("an environment with {} blocks of actions", blocks.len()),
            "an environment with the same number of actions in every state; use a `GraphPolicy` for graphs \
             of different sizes",
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
        let output = self.output(|| self.inputs(states, conditions), wants)?;
        Evaluation::from_masks(|direction| masks(env, direction, states), wants, output)
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

    fn on_tensors(&self, form: &TensorForm<E::States>) -> Option<&dyn TensorPolicy<E>> {
        // Features for other states than those of the form are refused. On a device, an index that is out of
        // range would end the process.
        let largest = form.env().initial(1, Device::Cpu).full_like(form.env().n_values() as i64 - 1);
        let is_valid = match self.features.encode_tensor(&largest)? {
            TensorFeatures::Dense(values) => values.size()[1] == self.features.width() as i64,
            TensorFeatures::Active(columns) => {
                columns.lt(self.features.width() as i64).all().int64_value(&[]) != 0
            }
        };
        is_valid.then_some(self as &dyn TensorPolicy<E>)
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }

    fn settings(&self) -> Value {
        match (self.features.settings(), self.torso.is_table()) {
            (Value::Null, _) | (_, None) => Value::Null,
            (features, Some(is_table)) => {
                json!({ "MlpPolicy": { "features": features, "config": self.config, "is_table": is_table } })
            }
        }
    }

    fn heads(&self) -> Option<&dyn MultiHead> {
        Some(self)
    }
}
