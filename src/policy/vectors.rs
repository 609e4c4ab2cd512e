//! State vectors on a device, and the perceptron that takes such vectors as inputs.

use std::ops::Range;

use tch::{Device, Kind, Tensor};

use super::{Features, TensorFeatures};
use crate::nn::{
    Activation, HostLinear, HostMlp, LayerInputs, LayerNorm, Linear, Mlp, MlpConfig, Scope, WeightNoise,
};
use crate::tensor::upload;
use crate::{Error, Result};

/// The vectors of a batch of states, on a device and with valid shapes.
#[derive(Debug)]
pub(crate) enum EncodedVectors {
    /// The entries of all vectors, `[states, width]`.
    Dense(Tensor),
    /// The vectors whose entries are all 0 or 1. `columns` holds the indices of the entries that are 1, k per
    /// state, `[states * k]`. `offsets` holds the start of each state's indices in `columns`, `[states]`.
    Active { columns: Tensor, offsets: Tensor },
}

impl EncodedVectors {
    /// Copies the vectors of `n` states, with `width` entries each, to a device. The entries of
    /// [dense](Features::Dense) vectors are converted to the dtype `kind`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of values (entries, or indices of entries that are 1);
    /// [`Error::Config`] for an index that isn't below `width`.
    pub(crate) fn new(
        features: Features,
        n: usize,
        width: usize,
        kind: Kind,
        device: Device,
    ) -> Result<Self> {
        let k = features.check(n, width)?;
        Ok(match features {
            Features::Dense(values) => {
                Self::Dense(upload(&values, device).view([n as i64, width as i64]).to_kind(kind))
            }
            Features::Active(columns) => {
                let offsets: Vec<i64> = (0..n).map(|i| (i * k) as i64).collect();
                Self::Active { columns: upload(&columns, device), offsets: upload(&offsets, device) }
            }
        })
    }
}

impl EncodedVectors {
    /// Converts vectors that were computed on the device of the parameters. The entries of dense vectors are
    /// converted to the dtype `kind`.
    pub(crate) fn from_tensors(features: TensorFeatures, kind: Kind) -> Self {
        match features {
            TensorFeatures::Dense(values) => Self::Dense(values.to_kind(kind)),
            TensorFeatures::Active(columns) => {
                let n = columns.size()[0];
                let k = columns.size()[1];
                let offsets = Tensor::arange(n, (Kind::Int64, columns.device())) * k;
                Self::Active { columns: columns.reshape([-1]), offsets }
            }
        }
    }
}

impl Features {
    /// Checks that these are the vectors of `n` states with `width` entries. Returns the number of stored
    /// values (entries, or indices of entries that are 1) per state.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of values; [`Error::Config`] for an index that isn't below
    /// `width`.
    fn check(&self, n: usize, width: usize) -> Result<usize> {
        let wrong = |expected: usize, got: usize, remedy| {
            Error::shape("the states' features", [n as i64, expected as i64], [got as i64], remedy)
        };
        match self {
            Self::Dense(values) if values.len() == n * width => Ok(width),
            Self::Dense(values) => Err(wrong(
                width,
                values.len(),
                "let `Features::Dense` hold `width()` numbers for each state, row by row",
            )),
            Self::Active(columns) => {
                let k = columns.len().checked_div(n).unwrap_or(0);
                if k * n != columns.len() {
                    let remedy =
                        "let `Features::Active` hold the same number of columns for each state, row by row";
                    return Err(wrong(k, columns.len(), remedy));
                }
                if let Some(column) = columns.iter().find(|column| !(0..width as i64).contains(*column)) {
                    return Err(Error::config(
                        "an active column of the states' features",
                        format!("{column} of {width} columns"),
                        "columns from 0 to below `StateFeatures::width()`; `KHot` returns -1 for a state \
                         that is outside of its limits: give `KHot::new(entries, values)` the number of \
                         entries of a state and the number of values of an entry, or take both from the \
                         environment by `KHot::from_env`",
                    ));
                }
                Ok(k)
            }
        }
    }
}

/// The inputs of a [`Network`].
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) vectors: EncodedVectors,
    /// The condition of each state, `[states, C]`; `None` without conditions.
    pub(crate) conditions: Option<Tensor>,
}

/// A multi-layer perceptron whose first layer is a table with one row of weights per input. If the inputs are
/// given by the indices of the entries that are 1, the rows with these indices are summed, without a matrix
/// product.
#[derive(Debug)]
pub(crate) struct Network {
    /// The weights of the first layer, `[inputs, outputs]`. This is the transpose of a linear layer's
    /// weights, so that the weights of one input are adjacent in memory.
    table: Tensor,
    bias: Option<Tensor>,
    noise: Option<WeightNoise>,
    conditions: Option<ConditionInput>,
    norm: Option<LayerNorm>,
    /// The activation of the first layer, and the layers after the first; `None` if the network has a single
    /// layer.
    later_layers: Option<(Activation, Mlp)>,
}

/// The map from conditions to numbers that are added to the output of the first layer's table.
#[derive(Debug)]
enum ConditionInput {
    Linear(Linear),
    Mlp(Mlp),
}

impl Network {
    /// Builds a network from `inputs` features and `n_conditions` conditions to `outputs` numbers. Initial
    /// weights are distributed as in [`Linear`]. Conditions are mapped to the width of the first layer by a
    /// linear map, or by a perceptron with the settings `condition_mlp` if they are given.
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        inputs: i64,
        n_conditions: i64,
        outputs: i64,
        config: &MlpConfig,
        condition_mlp: Option<&MlpConfig>,
    ) -> Self {
        let first = config.hidden.first().copied();
        let width = first.unwrap_or(outputs);
        let bound = 1.0 / ((inputs + n_conditions).max(1) as f64).sqrt();
        let mut layer = scope.sub("first");
        let table = layer.uniform("table", &[inputs, width], bound);
        let bias = Some(layer.uniform("bias", &[width], bound));
        let noise = config.noise.map(|sigma| WeightNoise::new(&mut layer, [inputs, width], false, sigma));
        let conditions = (n_conditions > 0).then(|| {
            let mut scope = layer.sub("conditions");
            match condition_mlp {
                None => ConditionInput::Linear(Linear::without_bias(&mut scope, n_conditions, width)),
                Some(config) => ConditionInput::Mlp(Mlp::new(&mut scope, n_conditions, width, config)),
            }
        });
        let norm =
            (first.is_some() && config.layer_norm).then(|| LayerNorm::new(&mut layer.sub("norm"), width));
        let rest = first.map(|width| {
            let config = MlpConfig { hidden: config.hidden[1..].to_vec(), ..config.clone() };
            (config.activation, Mlp::new(&mut scope.sub("rest"), width, outputs, &config))
        });
        Self { table, bias, noise, conditions, norm, later_layers: rest }
    }

    /// Builds a network of a single layer without bias: a table with one row of `outputs` numbers per input,
    /// initially 0.
    pub(super) fn table(scope: &mut Scope<'_>, inputs: i64, outputs: i64) -> Self {
        let table = scope.constant("table", &[inputs, outputs], 0.0);
        Self { table, bias: None, noise: None, conditions: None, norm: None, later_layers: None }
    }

    /// Returns `true` if the network was built by [`table`](Self::table).
    pub(super) fn is_table(&self) -> bool {
        self.bias.is_none()
    }

    /// Returns the table and the bias of the first layer, with the current noise added if the layer is noisy.
    fn noisy_first_layer(&self) -> (Tensor, Option<Tensor>) {
        match &self.noise {
            None => (self.table.shallow_clone(), self.bias.as_ref().map(Tensor::shallow_clone)),
            Some(noise) => (noise.weight(&self.table), self.bias.as_ref().map(|bias| noise.bias(bias))),
        }
    }

    /// Copies the network to the host, restricted to a range of outputs. Returns `None` for a network with
    /// conditions, for a table without further layers (libtorch evaluates such a table faster), and for a
    /// first layer that is so large that copying it would take more time than a roll-out on the host saves.
    pub(super) fn on_host(&self, outputs: Range<i64>) -> Option<HostNetwork> {
        const MAX_TABLE_WEIGHTS: usize = 1 << 20;
        let (_, mlp) = self.later_layers.as_ref()?;
        if self.conditions.is_some() || self.table.numel() > MAX_TABLE_WEIGHTS {
            return None;
        }
        let rest = HostMlp::some_outputs(mlp, &outputs.collect::<Vec<i64>>())?;
        let (table, bias) = self.noisy_first_layer();
        let first = HostLinear::from_table(&table, bias.as_ref());
        Some(HostNetwork(rest.behind_layer(first, self.norm.as_ref())))
    }

    /// Returns the multi-hot vectors of states if a product with them is faster than a sum of the table's
    /// rows per state; otherwise `None`. The gradient of such a sum sorts all indices and adds one row at a
    /// time. It takes 13 times as long as the gradient of a product for 100 ones among 300 entries, and as
    /// long as it for 1 in 8.
    fn multi_hot(&self, columns: &Tensor, n_states: i64) -> Option<Tensor> {
        const MAX_ENTRIES_PER_ONE: i64 = 6;
        let width = self.table.size()[0];
        let k = columns.numel() as i64 / n_states.max(1);
        if k == 0 || width > MAX_ENTRIES_PER_ONE * k {
            return None;
        }
        let columns = columns.view([n_states, k]);
        Some(multi_hot(&columns, width, self.table.kind()))
    }

    /// Computes the products of the first layer's table with the states' vectors, plus the bias, `[states,
    /// outputs of the table]`.
    fn first_layer(&self, vectors: &EncodedVectors) -> Tensor {
        let (table, bias) = self.noisy_first_layer();
        let product = |values: &Tensor| match &bias {
            Some(bias) => bias.addmm(values, &table),
            None => values.matmul(&table),
        };
        let (columns, offsets) = match vectors {
            EncodedVectors::Dense(values) => return product(values),
            EncodedVectors::Active { columns, offsets } => (columns, offsets),
        };
        if let Some(values) = self.multi_hot(columns, offsets.size()[0]) {
            return product(&values);
        }
        // libtorch calls a list of row indices a bag. Here a bag is the list of one state's entries that are
        // 1. The mode 0 sums the rows of the table that are in the bag.
        let (bags, ..) =
            Tensor::embedding_bag(&table, columns, offsets, false, 0, false, None::<&Tensor>, false);
        match bias {
            Some(bias) => bags + bias,
            None => bags,
        }
    }

    /// Computes the outputs of the network, `[states, outputs]`.
    pub(crate) fn forward(&self, inputs: &Inputs) -> Tensor {
        let mut x = self.first_layer(&inputs.vectors);
        match (&self.conditions, &inputs.conditions) {
            (Some(ConditionInput::Linear(layer)), Some(conditions)) => x += layer.forward(conditions),
            (Some(ConditionInput::Mlp(mlp)), Some(conditions)) => x += mlp.forward(conditions),
            _ => {}
        }
        if let Some(norm) = &self.norm {
            x = norm.forward(&x);
        }
        match &self.later_layers {
            Some((activation, mlp)) => mlp.forward(&activation.apply(&x)),
            None => x,
        }
    }
}

/// Returns vectors of `width` entries, `[states, width]`, each with ones at the indices in a row of
/// `columns`, `[states, k]`. An index that occurs twice gives a 2.
pub(super) fn multi_hot(columns: &Tensor, width: i64, kind: Kind) -> Tensor {
    let options = (kind, columns.device());
    let ones = Tensor::ones([1, 1], options).expand_as(columns);
    Tensor::zeros([columns.size()[0], width], options).scatter_add(1, columns, &ones)
}

/// A copy of a [`Network`] on the host in single precision, for the small batches of a roll-out.
#[derive(Debug)]
pub(super) struct HostNetwork(HostMlp);

impl HostNetwork {
    /// Computes the outputs of `n` states, `[n, outputs]`, row by row.
    ///
    /// # Errors
    /// The errors of [`EncodedVectors::new`] for features with a wrong number of values, or with an index of
    /// an entry that is out of range.
    pub(super) fn forward(&self, features: &Features, n: usize) -> Result<Vec<f32>> {
        let k = features.check(n, self.0.inputs())?;
        let inputs = match features {
            Features::Dense(values) => LayerInputs::Dense(values),
            Features::Active(columns) => LayerInputs::Active { columns, k },
        };
        Ok(self.0.forward_inputs(inputs, n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::nn::Parameters;

    fn network(inputs: i64, hidden: &[i64], layer_norm: bool, n_conditions: i64) -> (Network, Parameters) {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let noise = layer_norm.then_some(0.5);
        let config = MlpConfig { hidden: hidden.to_vec(), layer_norm, noise, ..MlpConfig::default() };
        let condition_mlp = layer_norm.then(|| MlpConfig { hidden: vec![4], ..MlpConfig::default() });
        let mut rng = Rng::seeded(0);
        let mut scope = parameters.scope(&mut rng);
        let network = Network::new(&mut scope, inputs, n_conditions, 3, &config, condition_mlp.as_ref());
        parameters.check().unwrap();
        (network, parameters)
    }

    /// Checks that the indices of entries that are 1 give the same outputs and gradients as the equivalent
    /// dense vectors, for short vectors (a product) and for long ones (a sum of rows). A repeated index
    /// counts twice.
    #[test]
    fn active_columns_are_ones() {
        let conditions = Tensor::from_slice(&[0.3, -1.0, 2.0, 0.5]).view([2, 2]);
        for (inputs, hidden, norm, n_conditions) in
            [(5, vec![], false, 0), (5, vec![8], true, 2), (5, vec![8, 4], false, 2), (13, vec![8], false, 0)]
        {
            let (network, parameters) = network(inputs, &hidden, norm, n_conditions);
            let conditions = (n_conditions > 0).then(|| conditions.shallow_clone());
            let is_long = network.multi_hot(&Tensor::from_slice(&[1i64, 4, 0, 0]), 2).is_none();
            assert_eq!(is_long, inputs == 13);
            let run = |features| {
                let width = inputs as usize;
                let vectors = EncodedVectors::new(features, 2, width, Kind::Double, Device::Cpu).unwrap();
                let out = network
                    .forward(&Inputs { vectors, conditions: conditions.as_ref().map(Tensor::shallow_clone) });
                assert_eq!(out.size(), [2, 3]);
                let tensors = parameters.iter().map(|p| &p.tensor).filter(|t| t.requires_grad());
                let tensors: Vec<&Tensor> = tensors.collect();
                let grads = Tensor::run_backward(&[out.square().sum(Kind::Double)], &tensors, false, false);
                (out, grads)
            };
            let (out, grads) = run(Features::Active(vec![1, 4, 0, 0]));
            let mut ones = vec![0.0; 2 * inputs as usize];
            (ones[1], ones[4], ones[inputs as usize]) = (1.0, 1.0, 2.0);
            let (expected, expected_grads) = run(Features::Dense(ones));
            assert!((out - expected).abs().max().double_value(&[]) < 1e-12);
            for (a, b) in grads.iter().zip(&expected_grads) {
                assert!((a - b).abs().max().double_value(&[]) < 1e-12);
            }
        }
    }

    #[test]
    fn a_table_is_a_row_per_input() {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let network = Network::table(&mut parameters.scope(&mut Rng::seeded(0)), 3, 2);
        let values = Tensor::from_slice(&[1., 2., 3., 4., 5., 6.]).view([3, 2]);
        tch::no_grad(|| network.table.shallow_clone().copy_(&values));
        for features in [Features::Active(vec![2, 0]), Features::Dense(vec![0., 0., 1., 1., 0., 0.])] {
            let vectors = EncodedVectors::new(features, 2, 3, Kind::Double, Device::Cpu).unwrap();
            let out = network.forward(&Inputs { vectors, conditions: None });
            assert_eq!(Vec::<f64>::try_from(out.reshape([-1])).unwrap(), [5., 6., 1., 2.]);
        }
        assert_eq!(parameters.count(), 6);
    }

    #[test]
    fn features_that_do_not_fit_are_refused() {
        let message = |features| {
            EncodedVectors::new(features, 2, 3, Kind::Double, Device::Cpu).unwrap_err().to_string()
        };
        assert!(message(Features::Dense(vec![0.0; 5])).contains("expected [2, 3]"));
        assert!(message(Features::Active(vec![0; 5])).contains("same number of columns"));
        assert!(message(Features::Active(vec![0, 3])).contains("3 of 3 columns"));
        assert!(message(Features::Active(vec![0, -1])).contains("-1 of 3 columns"));
    }

    #[test]
    fn states_that_do_not_fit_their_features_are_refused_with_a_remedy() {
        use crate::env::VectorStates;
        use crate::policy::{KHot, StateFeatures};
        // Both encodings of the state [0, 6] must be refused. The first one accepts only values below 5, and
        // the second one is for states of three entries.
        for features in [KHot::new(2, 5), KHot::new(3, 8)] {
            let width = StateFeatures::<VectorStates>::width(&features);
            let error =
                features.encode(&VectorStates::from_rows([[0, 6]])).check(1, width).unwrap_err().to_string();
            assert!(error.contains("KHot::new(entries, values)"), "{error}");
        }
        assert_eq!(KHot::new(2, 7).encode(&VectorStates::from_rows([[0, 6]])).check(1, 14).unwrap(), 2);
    }
}
