//! Random network distillation: novelty measured by a network's prediction error.

use gfn::env::Rows;
use gfn::nn::{Activation, Mlp, MlpConfig, Parameter, Parameters};
use gfn::optim::{Adam, AdamConfig, Optimizer};
use gfn::policy::{Features, StateFeatures};
use gfn::runtime::backward;
use gfn::tensor::{from_host, to_host};
use gfn::{Error, Result, Rng};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor, no_grad};

use super::Novelty;

/// The settings of [`RandomDistillation`]: the sizes of its networks, and its optimizer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DistillationConfig {
    /// The hidden layers of the predictor and of the target network.
    pub mlp: MlpConfig,
    /// The number of outputs of the predictor and of the target network.
    pub outputs: i64,
    /// The settings of the predictor's optimizer.
    pub adam: AdamConfig,
}

impl Default for DistillationConfig {
    /// Returns the settings of torchgfn: two hidden layers of 256 units with leaky ReLU, 128 outputs, and a
    /// learning rate of 1e-3.
    fn default() -> Self {
        let mlp = MlpConfig { activation: Activation::LeakyRelu, ..MlpConfig::default() };
        Self { mlp, outputs: 128, adam: AdamConfig::default() }
    }
}

/// Random network distillation (Burda et al., *Exploration by Random Network Distillation*, 2019). A
/// predictor network learns the outputs of a target network on visited states. The target network has
/// random weights, which don't change. The novelty of a state is the prediction error.
///
/// The novelty is `r(s) = |predictor(s) - target(s)|_2`. After each batch, the predictor takes one gradient
/// step on the mean of `r^2` over the visited states. The novelty therefore shrinks at visited states and,
/// more slowly, at similar states.
///
/// ```
/// use gfn::policy::{ByNumber, Enumeration};
/// use gfn_extras::explore::{DistillationConfig, Novelty, RandomDistillation};
/// use gfn::{env::Env, examples::word_env, Rng};
/// let env = word_env(2, 2);
/// let config = DistillationConfig { outputs: 8, ..DistillationConfig::default() };
/// let (cpu, float) = (tch::Device::Cpu, tch::Kind::Float);
/// let mut novelty = RandomDistillation::new(ByNumber::new(2, 3), config, cpu, float, &mut Rng::seeded(0))?;
/// let seen = env.initial(&[0]);
/// let before = novelty.rewards(&seen)?[0];
/// for _ in 0..50 {
///     novelty.learn(&seen)?;
/// }
/// assert!(novelty.rewards(&seen)?[0] < 0.1 * before);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct RandomDistillation<F> {
    features: F,
    target: Mlp,
    predictor: Mlp,
    parameters: Parameters,
    adam: Adam,
}

impl<F> RandomDistillation<F> {
    /// Creates the predictor and the target network, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Config`] for sizes below 1, and for invalid settings of the optimizer.
    pub fn new<S>(
        features: F,
        config: DistillationConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
    ) -> Result<Self>
    where
        F: StateFeatures<S>,
    {
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let inputs = features.width() as i64;
        let mut network = |name| Mlp::new(&mut scope.sub(name), inputs, config.outputs, &config.mlp);
        let target = network("target");
        let predictor = network("predictor");
        parameters.check()?;
        for fixed in parameters.iter().filter(|p| p.name.starts_with("target.")) {
            // `fixed` shares its tensor with a weight of the target network, so this weight doesn't get
            // gradients either.
            let _ = fixed.tensor.set_requires_grad(false);
        }
        let adam = Adam::new(&parameters, config.adam)?;
        Ok(Self { features, target, predictor, parameters, adam })
    }

    /// Returns the squared prediction error of each state, of shape `[states]`. Gradients flow through the
    /// result.
    fn squared<S: Rows>(&self, states: &S) -> Result<Tensor>
    where
        F: StateFeatures<S>,
    {
        let kind = self.parameters.kind();
        let inputs = self.encode(states)?;
        let off = self.predictor.forward(&inputs) - self.target.forward(&inputs);
        Ok(off.square().sum_dim_intlist([1i64].as_slice(), false, kind))
    }
}

impl<F> RandomDistillation<F> {
    /// Returns the feature vectors of states, of shape `[states, width]`.
    fn encode<S: Rows>(&self, states: &S) -> Result<Tensor>
    where
        F: StateFeatures<S>,
    {
        let n = states.len();
        let width = self.features.width();
        let values = match self.features.encode(states) {
            Features::Dense(values) => values,
            Features::Active(columns) => {
                let mut values = vec![0.0; n * width];
                let per_state = columns.len().checked_div(n).unwrap_or(0);
                if per_state * n != columns.len() {
                    let remedy =
                        "let `Features::Active` hold the same number of columns for each state, row by row";
                    let expected = [n as i64, per_state as i64];
                    return Err(Error::shape(
                        "the states' features",
                        expected,
                        [columns.len() as i64],
                        remedy,
                    ));
                }
                for (k, &column) in columns.iter().enumerate() {
                    let fits = usize::try_from(column).ok().filter(|&column| column < width);
                    let expected = "columns from 0 to below `StateFeatures::width()`";
                    let column = fits.ok_or_else(|| {
                        Error::config("an active column of the states' features", column, expected)
                    })?;
                    values[k / per_state * width + column] += 1.0;
                }
                values
            }
        };
        if values.len() != n * width {
            let remedy = "let `StateFeatures::encode` return `width()` numbers for each state, row by row";
            return Err(Error::shape(
                "the states' features",
                [n as i64, width as i64],
                [values.len() as i64],
                remedy,
            ));
        }
        let values = Tensor::from_slice(&values).view([n as i64, width as i64]);
        Ok(values.to_device(self.parameters.device()).to_kind(self.parameters.kind()))
    }
}

impl<S: Rows, F: StateFeatures<S>> Novelty<S> for RandomDistillation<F> {
    fn rewards(&self, states: &S) -> Result<Vec<f64>> {
        no_grad(|| Ok(to_host(&self.squared(states)?.sqrt())))
    }

    fn learn(&mut self, visited: &S) -> Result<()> {
        if visited.is_empty() {
            return Ok(());
        }
        let grouping = visited.group();
        let mut weights = vec![0.0; grouping.first.len()];
        for &group in &grouping.group_of {
            weights[group] += 1.0 / visited.len() as f64;
        }
        let squared = self.squared(&visited.select(&grouping.first))?;
        let weights = from_host(&weights, squared.kind(), squared.device());
        self.parameters.clear_gradients();
        backward(&(squared * weights).sum(self.parameters.kind()))?;
        self.adam.step()?;
        Ok(())
    }

    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        network_state(&self.parameters, &self.adam)
    }

    fn load_state(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        load_network_state(&self.parameters, &mut self.adam, state)
    }
}

/// Returns the parameters of an auxiliary network and the state of its optimizer, for a checkpoint.
pub(super) fn network_state(parameters: &Parameters, adam: &Adam) -> Result<Vec<(String, Tensor)>> {
    let values = parameters.iter().map(|p| (format!("network/{}", p.name), p.tensor.detach().copy()));
    let moments = adam.state()?.into_iter().map(|(name, tensor)| (format!("adam/{name}"), tensor));
    Ok(values.chain(moments).collect())
}

/// Loads the tensors that [`network_state`] returned. If a tensor is missing or doesn't fit, nothing is
/// changed.
pub(super) fn load_network_state(
    parameters: &Parameters,
    adam: &mut Adam,
    state: &[(String, Tensor)],
) -> Result<()> {
    let mut found = Vec::new();
    for Parameter { name, tensor, .. } in parameters {
        let fits = |(other, value): &&(String, Tensor)| {
            other.strip_prefix("network/") == Some(name)
                && (value.size(), value.kind()) == (tensor.size(), tensor.kind())
        };
        let lacking = || format!("a state without a tensor that fits `{name}`");
        let value = state.iter().find(fits);
        let value = value.ok_or_else(|| {
            Error::config("the saved state of a network", lacking(), "the saved state of the same network")
        })?;
        found.push((tensor.shallow_clone(), &value.1));
    }
    let moments = state.iter().filter_map(|(name, value)| Some((name.strip_prefix("adam/")?, value)));
    adam.load_state(
        &moments.map(|(name, value)| (name.to_owned(), value.shallow_clone())).collect::<Vec<_>>(),
    )?;
    no_grad(|| found.into_iter().try_for_each(|(mut tensor, value)| tensor.f_copy_(value).map(drop)))?;
    Ok(())
}
