use gfn::env::{Direction, Reals, Rows};
use gfn::nn::{Activation, BackwardPolicy, EstimatorsConfig, HostMlp, MlpConfig, Parameters};
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, HostPolicy, Policy};
use gfn::tensor::{from_host, to_host};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

use super::chart::{Axes, is_source};
use super::dist::{BetaMixtures, BoxDist, Coupling};
use super::heads::{Head, Heads};
use super::{BoxEnv, Geometry};
use crate::continuous::{MixturePolicyConfig, Perceptrons, check_no_conditions, check_width};

/// A policy of uniform actions in both directions, without parameters: see [`BoxDist::uniform`].
///
/// ```
/// use gfn::{rollout::Sampler, Rng};
/// use gfn_gym::boxes::{BoxEnv, BoxUniform};
/// let env = BoxEnv::polar(0.2)?;
/// let walks = Sampler::new(&env, &BoxUniform).forward(10, &mut Rng::seeded(0))?;
/// let back = Sampler::new(&env, &BoxUniform).backward(walks.terminal_states(), &mut Rng::seeded(1))?;
/// assert_eq!(back.len(), 10);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BoxUniform;

impl Policy<BoxEnv> for BoxUniform {
    fn evaluate(
        &self,
        env: &BoxEnv,
        states: &Reals,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<BoxDist>> {
        let uniform = |direction| BoxDist::uniform(*env, direction, states.clone());
        Ok(Evaluation::from_directions(wants, uniform))
    }
}

/// Settings of a [`BoxPolicy`].
pub type BoxPolicyConfig = MixturePolicyConfig<BetaMixtures>;

impl Default for BoxPolicyConfig {
    /// Returns settings with four hidden layers of width 128 with ReLU, one torso for P_F and P_B, 32 joint
    /// components with concentrations from 0.6 to 1000, no state-flow head, and an initial log Z of 0.
    fn default() -> Self {
        Self {
            mlp: MlpConfig { hidden: vec![128; 4], activation: Activation::Relu, ..MlpConfig::default() },
            mixtures: BetaMixtures {
                coupling: Coupling::Joint,
                components: 32,
                min_concentration: 0.6,
                max_concentration: 1000.0,
            },
            backward: BackwardPolicy::SharedTorso,
            estimators: EstimatorsConfig::default(),
        }
    }
}

/// A policy of the [box](BoxEnv): a perceptron on the coordinates.
///
/// Initially the components of each mixture lie side by side and cover each axis, and the exit has
/// probability about one half. (In torchgfn all components start in the middle of the box, with
/// concentrations half-way between the minimum and the maximum.)
///
/// ```
/// use gfn::{
///     Rng,
///     objective::TrajectoryBalance,
///     train::{Trainer, TrainerConfig},
/// };
/// use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward};
/// let (env, mut rng) = (BoxEnv::cartesian(2, 0.25)?, Rng::seeded(0));
/// let policy =
///     BoxPolicy::new(&env, BoxPolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
/// let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, BoxReward::default(), policy, TrajectoryBalance, config, rng)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct BoxPolicy {
    config: BoxPolicyConfig,
    ndim: usize,
    geometry: Geometry,
    networks: Perceptrons,
    /// The initial values of the outputs from which the mixtures' parameters are computed. They are added to
    /// the network's outputs.
    start: Vec<f64>,
    /// The axes that steps from states other than the source (the origin) use. Outputs for the remaining axes
    /// are computed for the source only.
    axes: Axes,
    /// The indices of the network outputs that belong to `axes`.
    columns: Vec<i64>,
}

impl BoxPolicy {
    /// Builds a policy for the box, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for invalid settings.
    pub fn new(
        env: &BoxEnv,
        config: BoxPolicyConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        config.mixtures.check()?;
        let ndim = env.ndim();
        let networks = Perceptrons::new(ndim, config.mixtures.width(ndim), &config, device, kind, rng)?;
        let geometry = env.geometry();
        let axes = match geometry {
            Geometry::Cartesian => 0..ndim,
            Geometry::Polar => 1..2,
        };
        let start = start(&config.mixtures, ndim);
        let columns = config.mixtures.columns(axes.clone(), ndim);
        Ok(Self { config, ndim, geometry, networks, start, axes, columns })
    }

    fn check(&self, env: &BoxEnv, states: &Reals) -> Result<()> {
        if (env.ndim(), env.geometry()) != (self.ndim, self.geometry) {
            return Err(Error::config(
                "the box",
                format!(
                    "{:?} with {} axes, but the network was built for {:?} with {} axes",
                    env.geometry(),
                    env.ndim(),
                    self.geometry,
                    self.ndim
                ),
                "the geometry and the number of axes that the network was built for",
            ));
        }
        check_width(states, self.ndim)
    }

    /// Adds the initial values to the network's outputs. `columns` lists the indices of the outputs that the
    /// tensor `outputs` holds; `None` means all outputs.
    fn with_start(&self, outputs: &Tensor, columns: Option<&[i64]>) -> Tensor {
        let start = match columns {
            Some(columns) => columns.iter().map(|&column| self.start[column as usize]).collect(),
            None => self.start.clone(),
        };
        outputs + from_host(&start, outputs.kind(), outputs.device())
    }

    /// Returns the indices of the outputs that are computed for every state. Returns `None` if all outputs
    /// are computed for every state.
    fn some_columns(&self) -> Option<&[i64]> {
        (self.axes.len() < self.ndim).then_some(self.columns.as_slice())
    }

    /// Returns the settings with which the policy was built.
    #[must_use]
    pub fn config(&self) -> &BoxPolicyConfig {
        &self.config
    }
}

/// Returns the initial values of the outputs from which the mixtures' parameters are computed. With these
/// values the components lie side by side, and each component is as wide as its share of the axis.
fn start(mixtures: &BetaMixtures, ndim: usize) -> Vec<f64> {
    let k = mixtures.components;
    let mut values = vec![0.0; mixtures.width(ndim)];
    let per_axis = match mixtures.coupling {
        Coupling::Joint => (k as f64).powf(1.0 / ndim as f64),
        Coupling::PerAxis => k as f64,
    };
    let narrow = 2.0 + 2.0 * per_axis * per_axis;
    let min = mixtures.min_concentration;
    let max = mixtures.max_concentration;
    // The concentrations are kept away from both ends of their range, because the sigmoid would have almost
    // no gradient there.
    let least = min + 1e-3 * (max - min);
    let most = min + 0.9 * (max - min);
    for (axis, step) in spread(ndim).into_iter().enumerate() {
        for component in 0..k {
            let mean = match mixtures.coupling {
                Coupling::Joint => (0.5 + step * (component + 1) as f64).fract(),
                Coupling::PerAxis => (component as f64 + 0.5) / k as f64,
            };
            for (part, share) in [mean, 1.0 - mean].into_iter().enumerate() {
                values[mixtures.raw_at(part, axis, ndim) + component] =
                    mixtures.raw((narrow * share).clamp(least, most));
            }
        }
    }
    values
}

/// Returns a step length for each axis. The initial means of joint components are multiples of these steps,
/// modulo 1, and fill the box evenly. The step of axis k, counted from 1, is r^-k. Here r is the positive
/// solution of r^(n + 1) = r + 1 for n axes.
fn spread(ndim: usize) -> Vec<f64> {
    let root = (0..64).fold(2f64, |x, _| (1.0 + x).powf(1.0 / (ndim + 1) as f64));
    (1..=ndim).map(|axis| root.powi(-(axis as i32))).collect()
}

impl Policy<BoxEnv> for BoxPolicy {
    fn evaluate(
        &self,
        env: &BoxEnv,
        states: &Reals,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<BoxDist>> {
        check_no_conditions(conditions)?;
        self.check(env, states)?;
        let parameters = self.networks.parameters();
        let x = states.to_tensor(parameters.kind(), parameters.device()) * 2.0 - 1.0;
        let columns = self.some_columns();
        self.networks.evaluate(&x, states.rows().map(is_source), wants, columns, |direction, outputs| {
            let Some(outputs) = outputs else { return Ok(BoxDist::uniform(*env, direction, states.clone())) };
            let each = Head::on_device(self.axes.clone(), self.with_start(&outputs.values, columns));
            let lacks = columns.is_some() && direction == Direction::Forward;
            let source = states.rows().position(is_source).filter(|_| lacks);
            let source =
                source.map(|row| Head::on_device(0..self.ndim, self.with_start(&outputs.row(row), None)));
            let heads = Heads { mixtures: self.config.mixtures, each, source };
            Ok(BoxDist::from_heads(*env, direction, states.clone(), heads))
        })
    }

    fn on_host(&self, direction: Direction) -> Option<Box<dyn HostPolicy<BoxEnv> + '_>> {
        let network = self.networks.on_host(direction, &self.columns)?;
        let start = self.columns.iter().map(|&column| self.start[column as usize]).collect();
        let source = self.some_columns().filter(|_| direction == Direction::Forward).map(|_| {
            let parameters = self.networks.parameters();
            let x = Tensor::full([1, self.ndim as i64], -1.0, (parameters.kind(), parameters.device()));
            to_host(&tch::no_grad(|| self.with_start(&self.networks.forward(&x), None)))
        });
        Some(Box::new(FrozenBox { policy: self, direction, network, start, source }))
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.networks.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.networks.parameters())
    }
}

/// A [`BoxPolicy`] whose network is copied to the host, for a roll-out.
struct FrozenBox<'a> {
    policy: &'a BoxPolicy,
    direction: Direction,
    network: HostMlp,
    /// The initial values that are added to the network's outputs.
    start: Vec<f64>,
    /// All outputs for the source. `None` if `network` computes all outputs, those for the source included.
    source: Option<Vec<f64>>,
}

impl HostPolicy<BoxEnv> for FrozenBox<'_> {
    fn distribution(&self, env: &BoxEnv, states: &Reals) -> Result<BoxDist> {
        let policy = self.policy;
        let direction = self.direction;
        policy.check(env, states)?;
        let x: Vec<f32> = states.values().iter().map(|&x| x as f32 * 2.0 - 1.0).collect();
        let outputs = self.network.forward(&x, states.len());
        let starts = self.start.iter().cycle();
        let numbers = outputs.iter().zip(starts).map(|(&output, start)| f64::from(output) + start).collect();
        let each = Head::on_host(policy.axes.clone(), numbers);
        let numbers = self.source.as_ref().filter(|_| states.rows().any(is_source)).cloned();
        let source = numbers.map(|numbers| Head::on_host(0..policy.ndim, numbers));
        let heads = Heads { mixtures: policy.config.mixtures, each, source };
        Ok(BoxDist::from_heads(*env, direction, states.clone(), heads))
    }
}
