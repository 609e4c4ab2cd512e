use gfn::env::Reals;
use gfn::nn::{Activation, BackwardPolicy, EstimatorsConfig, MlpConfig, Parameters};
use gfn::objective::Quantities;
use gfn::policy::{Evaluation, Policy};
use gfn::tensor::from_host;
use gfn::{Result, Rng};
use tch::{Device, Kind, Tensor};

use super::{Line, LineDist, NormalMixtures};
use crate::continuous::{MixturePolicyConfig, Perceptrons, check_no_conditions, check_width};

/// A policy of Gaussian steps in both directions, without parameters: see [`LineDist::uniform`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LineUniform;

impl Policy<Line> for LineUniform {
    fn evaluate(
        &self,
        env: &Line,
        states: &Reals,
        _: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<LineDist>> {
        let uniform = |direction| LineDist::uniform(*env, direction, states.clone());
        Ok(Evaluation::from_directions(wants, uniform))
    }
}

/// Settings of a [`LinePolicy`].
pub type LinePolicyConfig = MixturePolicyConfig<NormalMixtures>;

impl Default for LinePolicyConfig {
    /// Returns settings with three hidden layers of width 64 with ELU, one torso for P_F and P_B, mixtures of
    /// two Gaussians with standard deviations from 0.1 to 2, no state-flow head, and an initial log Z of 0.
    fn default() -> Self {
        Self {
            mlp: MlpConfig { hidden: vec![64; 3], activation: Activation::Elu, ..MlpConfig::default() },
            mixtures: NormalMixtures { components: 2, min_std: 0.1, max_std: 2.0 },
            backward: BackwardPolicy::SharedTorso,
            estimators: EstimatorsConfig::default(),
        }
    }
}

/// A policy of the [line](Line): a perceptron whose inputs are the position and the share of the steps
/// already made.
///
/// ```
/// use gfn::{
///     Rng,
///     objective::TrajectoryBalance,
///     train::{Trainer, TrainerConfig},
/// };
/// use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward};
/// let (env, mut rng) = (Line::new(5)?, Rng::seeded(0));
/// let policy =
///     LinePolicy::new(&env, LinePolicyConfig::default(), tch::Device::Cpu, tch::Kind::Float, &mut rng)?;
/// let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
/// let mut trainer = Trainer::new(env, LineReward::default(), policy, TrajectoryBalance, config, rng)?;
/// assert!(trainer.step()?.loss.is_finite());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct LinePolicy {
    mixtures: NormalMixtures,
    networks: Perceptrons,
}

impl LinePolicy {
    /// Builds a policy for the line, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`gfn::Error::Config`] for invalid settings.
    pub fn new(
        _: &Line,
        config: LinePolicyConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self> {
        config.mixtures.check()?;
        let networks = Perceptrons::new(2, 3 * config.mixtures.components, &config, device, kind, rng)?;
        Ok(Self { mixtures: config.mixtures, networks })
    }

    /// Returns the network's inputs, `[states, 2]`: the position, and the fraction of the steps that the
    /// state has made.
    fn inputs(&self, env: &Line, states: &Reals) -> Tensor {
        let scale = 1.0 / env.n_steps() as f64;
        let values: Vec<f64> = states.rows().flat_map(|state| [state[0], state[1] * scale]).collect();
        let parameters = self.networks.parameters();
        from_host(&values, parameters.kind(), parameters.device()).view([-1, 2])
    }
}

impl Policy<Line> for LinePolicy {
    fn evaluate(
        &self,
        env: &Line,
        states: &Reals,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<LineDist>> {
        check_no_conditions(conditions)?;
        check_width(states, 2)?;
        let is_source = states.rows().map(|state| state[1] == 0.0);
        self.networks.evaluate(&self.inputs(env, states), is_source, wants, None, |direction, outputs| {
            match outputs {
                Some(outputs) => {
                    LineDist::new(*env, direction, states.clone(), self.mixtures, outputs.values)
                }
                None => Ok(LineDist::uniform(*env, direction, states.clone())),
            }
        })
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.networks.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.networks.parameters())
    }
}
