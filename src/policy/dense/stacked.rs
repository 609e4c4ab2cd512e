//! Several perceptrons whose parameters are stacked, so that each layer of all of them is one product.

use tch::{Device, Kind, Tensor};

use super::{MlpPolicy, MlpPolicyConfig};
use crate::env::{DiscreteEnv, Slots};
use crate::nn::{Activation, BackwardPolicy, Estimators, Parameter, Parameters};
use crate::policy::StateFeatures;
use crate::policy::torso::Torso;
use crate::policy::vectors::{EncodedVectors, Inputs, multi_hot};
use crate::tensor::{index_tensor, to_host};
use crate::{Error, Result, Rng};

impl<F> MlpPolicy<F> {
    /// Builds a policy for each generator of `rngs` (a seed), and stacks their parameters. One trainer trains
    /// all of them by the same tensor operations. The parameters of seed k are those that
    /// [`new`](Self::new) draws from the generator k. On a device, where an update of a perceptron costs its
    /// number of operations, S seeds take little more time than one. On a CPU,
    /// [`train_seeds`](crate::run::train_seeds) is faster.
    ///
    /// The condition of a state, `[n, 1]`, is the index of its seed. A [`Trainer`](crate::train::Trainer)
    /// with this policy draws the conditions by itself: each seed gets an equal share of
    /// [`TrainerConfig::batch`](crate::train::TrainerConfig::batch), in the order of the seeds. The loss is
    /// the sum of the losses of all shares, so that each seed is updated as if it were trained alone. Sources
    /// that break the equal shares (replay, given data, several replicas) are refused.
    ///
    /// ```
    /// use gfn::{examples::word_env, prelude::*};
    /// let env = word_env(2, 2);
    /// let mut rngs: Vec<Rng> = (0..3).map(Rng::seeded).collect();
    /// let (features, config) = (KHot::from_env(&env), MlpPolicyConfig::default());
    /// let policy = MlpPolicy::stacked(&env, features, config, Device::Cpu, Kind::Float, &mut rngs)?;
    /// let reward = PerVector(|word: &[u16]| word.iter().filter(|&&letter| letter == 2).count() as f64);
    /// // Eight trajectories per seed and step.
    /// let config = TrainerConfig { batch: 3 * 8, ..TrainerConfig::default() };
    /// let (rng, objective) = (Rng::seeded(0), TrajectoryBalance);
    /// let mut trainer = Trainer::new(env.clone(), reward, policy, objective, config, rng)?;
    /// Fit::new(100).run(&mut trainer)?;
    /// // The distribution of the words that the policy of seed 1 samples.
    /// let graph = StateGraph::build(&env, 100)?;
    /// let seed = Tensor::from_slice(&[1.0]);
    /// let words = graph.terminating_distribution(&env, trainer.policy(), Some(&seed))?;
    /// // The rewards of seven words are 1, 1, 1, e, e, e and e^2.
    /// assert_eq!(words.probs.len(), 7);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); [`Error::Config`] without a seed, and for a configuration with
    /// conditions, several heads, layer norm or noise.
    pub fn stacked<E: DiscreteEnv<Actions = Slots>>(
        env: &E,
        mut features: F,
        mut config: MlpPolicyConfig,
        device: Device,
        kind: Kind,
        rngs: &mut [Rng],
    ) -> Result<Self>
    where
        F: StateFeatures<E::States>,
    {
        config.check_stacked()?;
        let mut policies = Vec::with_capacity(rngs.len());
        let mut widths = (0, 0);
        for rng in rngs {
            let policy = Self::new(env, features, config.clone(), device, kind, rng)?;
            (features, widths) = (policy.features, policy.widths);
            policies.push(policy.parameters);
        }
        let parameters = Parameters::stack(&policies)?;
        let network = |name: &str| {
            let layers = parameters.iter().filter(|parameter| parameter.name.starts_with(name));
            Torso::Stacked(StackedNetwork::new(layers, config.mlp.activation))
        };
        let torso = network("torso.");
        let backward = (config.backward == BackwardPolicy::Separate).then(|| network("pb."));
        let estimators = Estimators::stacked(&parameters);
        config.estimators.n_conditions = 1;
        Ok(Self { features, config, widths, head: 0.into(), torso, backward, estimators, parameters })
    }
}

impl MlpPolicyConfig {
    /// Checks that the policies of several seeds can be stacked.
    fn check_stacked(&self) -> Result<()> {
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if self.heads != 1 {
            return refuse("heads", self.heads.to_string(), "1 head of P_F in a policy of several seeds");
        }
        if self.estimators.n_conditions != 0 {
            let expected = "0 in a policy of several seeds, in which a condition is the index of a seed";
            return refuse("n_conditions", self.estimators.n_conditions.to_string(), expected);
        }
        if self.mlp.layer_norm || self.mlp.noise.is_some() {
            let expected = "no layer norm and no noise in a policy of several seeds";
            return refuse("mlp", format!("{:?}", self.mlp), expected);
        }
        Ok(())
    }
}

/// The perceptrons of several seeds, with stacked parameters.
#[derive(Debug)]
pub(in crate::policy) struct StackedNetwork {
    /// The weight and the bias of each layer. The weight of the first layer is `[seeds, inputs, outputs]`,
    /// and that of each other layer is `[seeds, outputs, inputs]`. A bias is `[seeds, outputs]`.
    layers: Vec<(Tensor, Tensor)>,
    activation: Activation,
}

impl StackedNetwork {
    /// Creates the network from its parameters, in the order in which a perceptron builds them.
    fn new<'a>(parameters: impl Iterator<Item = &'a Parameter>, activation: Activation) -> Self {
        let mut tensors = parameters.map(|parameter| parameter.tensor.shallow_clone());
        let mut layers = Vec::new();
        while let (Some(weight), Some(bias)) = (tensors.next(), tensors.next()) {
            layers.push((weight, bias));
        }
        Self { layers, activation }
    }

    /// Computes the outputs for each state, `[states, outputs]`, by the perceptron of the state's seed.
    ///
    /// # Errors
    /// [`Error::Config`] for a condition that isn't the index of a seed.
    pub(in crate::policy) fn forward(&self, inputs: &Inputs) -> Result<Tensor> {
        let table = &self.layers[0].0;
        let n_seeds = table.size()[0];
        let vectors = match &inputs.vectors {
            EncodedVectors::Dense(values) => values.shallow_clone(),
            EncodedVectors::Active { columns, offsets } => {
                let n = offsets.size()[0];
                multi_hot(&columns.view([n, columns.size()[0] / n.max(1)]), table.size()[1], table.kind())
            }
        };
        let seeds = inputs.conditions.as_ref().map_or_else(Vec::new, to_host);
        let order = SeedOrder::new(&seeds, n_seeds as usize, table.device())?;
        let rows = match &order.places {
            Some((rows, _)) => vectors.index_select(0, rows),
            None => vectors,
        };
        let mut x = rows.view([n_seeds, order.n_rows, table.size()[1]]);
        for (i, (weight, bias)) in self.layers.iter().enumerate() {
            let bias = bias.unsqueeze(1);
            x = if i == 0 {
                bias.baddbmm(&x, weight, 1.0, 1.0)
            } else {
                bias.baddbmm(&self.activation.apply(&x), &weight.transpose(1, 2), 1.0, 1.0)
            };
        }
        let outputs = x.flatten(0, 1);
        Ok(match &order.places {
            Some((_, places)) => outputs.index_select(0, places),
            None => outputs,
        })
    }
}

/// The places of states in a table with the same number of rows for each seed, `[seeds, rows]`.
struct SeedOrder {
    /// The number of rows per seed: the largest number of states that a seed has.
    n_rows: i64,
    /// The state in each row of the table (state 0 in rows that no state has), and the row of each state;
    /// `None` if the states fill the table in their order.
    places: Option<(Tensor, Tensor)>,
}

impl SeedOrder {
    /// Sorts states by their seeds. `seeds` holds the index of each state's seed.
    ///
    /// # Errors
    /// [`Error::Config`] for a number that isn't the index of one of `n_seeds` seeds.
    fn new(seeds: &[f64], n_seeds: usize, device: Device) -> Result<Self> {
        let mut states_of = vec![Vec::new(); n_seeds];
        for (state, &seed) in seeds.iter().enumerate() {
            if seed.fract() != 0.0 || !(0.0..n_seeds as f64).contains(&seed) {
                return Err(Error::config(
                    "the condition of a policy of several seeds",
                    format!("{seed}, with {n_seeds} seeds"),
                    "the index of a seed, from 0 to below the number of seeds",
                ));
            }
            states_of[seed as usize].push(state);
        }
        let n_rows = states_of.iter().map(Vec::len).max().unwrap_or(0);
        let mut states = vec![0; n_seeds * n_rows];
        let mut rows = vec![0; seeds.len()];
        for (seed, of_seed) in states_of.iter().enumerate() {
            for (i, &state) in of_seed.iter().enumerate() {
                rows[state] = seed * n_rows + i;
                states[rows[state]] = state;
            }
        }
        let is_sorted = states.len() == rows.len() && rows.is_sorted();
        let places = (!is_sorted).then(|| (index_tensor(&states, device), index_tensor(&rows, device)));
        Ok(Self { n_rows: n_rows as i64, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Env, Rows, VectorEnv, VectorStates};
    use crate::examples::word_env;
    use crate::nn::{EstimatorsConfig, MlpConfig};
    use crate::policy::{KHot, Policy, ScaledEntries};
    use crate::quantity::{Quantities, Quantity};

    const SEEDS: usize = 3;

    impl MlpPolicyConfig {
        /// Returns the settings of a small perceptron with all estimators, whose policies can be stacked.
        pub(crate) fn stackable(backward: BackwardPolicy, hidden: &[i64]) -> Self {
            let hidden = hidden.to_vec();
            Self {
                mlp: MlpConfig { hidden, activation: Activation::Tanh, ..MlpConfig::default() },
                backward,
                estimators: EstimatorsConfig {
                    flow: true,
                    initial_log_z: Some(0.5),
                    ..EstimatorsConfig::default()
                },
                paths: true,
                ..Self::default()
            }
        }
    }

    fn rngs() -> Vec<Rng> {
        (0..SEEDS as u64).map(Rng::seeded).collect()
    }

    fn singles<F: StateFeatures<VectorStates>>(
        env: &VectorEnv,
        features: impl Fn() -> F,
        config: &MlpPolicyConfig,
    ) -> Vec<MlpPolicy<F>> {
        let build = |mut rng| {
            MlpPolicy::new(env, features(), config.clone(), Device::Cpu, Kind::Float, &mut rng).unwrap()
        };
        rngs().into_iter().map(build).collect()
    }

    fn stack<F: StateFeatures<VectorStates>>(
        env: &VectorEnv,
        features: F,
        config: &MlpPolicyConfig,
    ) -> Result<MlpPolicy<F>> {
        MlpPolicy::stacked(env, features, config.clone(), Device::Cpu, Kind::Float, &mut rngs())
    }

    fn conditions(seeds: &[f32]) -> Tensor {
        Tensor::from_slice(seeds).view([-1, 1])
    }

    /// Returns the log-probabilities, log F and log n of states, in one list per quantity.
    fn values<F: StateFeatures<VectorStates>>(
        env: &VectorEnv,
        policy: &MlpPolicy<F>,
        states: &VectorStates,
        conditions: Option<&Tensor>,
    ) -> Vec<Vec<f64>> {
        let wants = Quantities::PF | Quantity::LogPb | Quantity::LogFlow | Quantity::LogPaths;
        let out = policy.evaluate(env, states, conditions, wants).unwrap();
        let mut values: Vec<Vec<f64>> = Vec::new();
        for dist in [out.pf.unwrap(), out.pb.unwrap()] {
            values.push(dist.host_log_probs().unwrap().to_vec());
        }
        values.extend(out.values.iter().map(|(_, tensor)| to_host(tensor)));
        values
    }

    fn largest_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
        let pairs = a.iter().zip(b).flat_map(|(a, b)| {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b)
        });
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    /// Compares a stacked policy with single policies, one state and seed at a time.
    fn compare<F: StateFeatures<VectorStates>>(features: impl Fn() -> F, config: &MlpPolicyConfig) {
        let env = word_env(2, 3);
        let singles = singles(&env, &features, config);
        let stacked = stack(&env, features(), config).unwrap();
        let states =
            VectorStates::from_rows([[0u16, 0, 0], [2, 1, 0], [1, 0, 0], [2, 0, 0], [1, 1, 1], [1, 2, 0]]);
        for seeds in [[2, 0, 0, 2, 0, 2], [0, 0, 1, 1, 2, 2], [1, 0, 1, 2, 1, 1]] {
            let chosen = conditions(&seeds.map(|seed| seed as f32));
            let got = values(&env, &stacked, &states, Some(&chosen));
            let expect = |seeds: [usize; 6]| {
                let mut expected = vec![Vec::new(); got.len()];
                for (i, seed) in seeds.into_iter().enumerate() {
                    let alone = values(&env, &singles[seed], &states.select(&[i]), None);
                    expected.iter_mut().zip(alone).for_each(|(all, one)| all.extend(one));
                }
                largest_difference(&got, &expected)
            };
            assert!(expect(seeds) < 1e-5, "{config:?}, {seeds:?}");
            assert!(expect(seeds.map(|seed| (seed + 1) % SEEDS)) > 1e-2, "no control: {config:?}, {seeds:?}");
        }
        let none = conditions(&[]);
        assert_eq!(values(&env, &stacked, &env.initial(&[]), Some(&none)), vec![Vec::<f64>::new(); 4]);
    }

    #[test]
    fn states_are_evaluated_by_the_policy_of_their_seed() {
        for backward in [BackwardPolicy::Uniform, BackwardPolicy::SharedTorso, BackwardPolicy::Separate] {
            for hidden in [[].as_slice(), &[8], &[8, 6]] {
                compare(|| KHot::new(3, 3), &MlpPolicyConfig::stackable(backward, hidden));
            }
        }
        compare(|| ScaledEntries::new(3, 3), &MlpPolicyConfig::stackable(BackwardPolicy::SharedTorso, &[8]));
    }

    #[test]
    fn policies_that_cannot_be_stacked_are_refused() {
        let env = word_env(2, 3);
        let plain = || MlpPolicyConfig::stackable(BackwardPolicy::SharedTorso, &[8]);
        let mlp = |layer_norm, noise| MlpConfig { layer_norm, noise, ..plain().mlp };
        let refused = [
            MlpPolicyConfig { heads: 2, ..plain() },
            MlpPolicyConfig { mlp: mlp(true, None), ..plain() },
            MlpPolicyConfig { mlp: mlp(false, Some(0.5)), ..plain() },
            MlpPolicyConfig { estimators: EstimatorsConfig::conditional(1), ..plain() },
        ];
        for config in refused {
            assert!(matches!(stack(&env, KHot::new(3, 3), &config), Err(Error::Config { .. })), "{config:?}");
        }
        let none = MlpPolicy::stacked(&env, KHot::new(3, 3), plain(), Device::Cpu, Kind::Float, &mut []);
        assert!(none.unwrap_err().to_string().contains("at least one seed"));
        let stacked = stack(&env, KHot::new(3, 3), &plain()).unwrap();
        let without = stacked.evaluate(&env, &env.initial(&[0]), None, Quantities::PF);
        assert!(matches!(without, Err(Error::Shape { .. })));
    }
}
