//! Causal networks over sequences, and the interface that they share.

mod causal;
mod recurrent;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::nn::Scope;
use crate::{Error, Result};
use causal::CausalTransformer;
use recurrent::{Cell, Recurrent};

/// The architecture of a sequence network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceKind {
    /// A network of long short-term memory (Hochreiter and Schmidhuber, 1997).
    Lstm,
    /// A network of gated recurrent units (Cho et al., 2014).
    Gru,
    /// A causal transformer (Vaswani et al., 2017). Each block begins with a layer norm (Xiong et al., 2020),
    /// and positions have learned vectors.
    Transformer {
        /// The number of attention heads, which must divide the width.
        heads: i64,
    },
}

/// The architecture and size of a sequence network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceNetConfig {
    /// The architecture of the network.
    pub kind: SequenceKind,
    /// The width of embeddings and of hidden states, at least 1.
    pub width: i64,
    /// The number of stacked layers, at least 1.
    pub layers: i64,
}

impl Default for SequenceNetConfig {
    /// The default settings: a transformer of width 64 with 2 layers and 4 heads.
    fn default() -> Self {
        Self { kind: SequenceKind::Transformer { heads: 4 }, width: 64, layers: 2 }
    }
}

impl SequenceNetConfig {
    /// Builds the network for sequences of up to `n_positions` inputs, each of which is one of `n_inputs`
    /// tokens.
    ///
    /// # Errors
    /// [`Error::Config`] for a width or a number of layers below 1, and for heads that don't divide the
    /// width.
    pub(crate) fn build(
        &self,
        scope: &mut Scope<'_>,
        n_inputs: i64,
        n_positions: i64,
    ) -> Result<Box<dyn SequenceNet>> {
        let width = self.width;
        let layers = self.layers;
        let refuse = |setting, got: String, expected| Err(Error::config(setting, got, expected));
        if width < 1 || layers < 1 {
            let got = format!("{width} wide with {layers} layers");
            return refuse(
                "the size of the sequence network",
                got,
                "a width and a number of layers of at least 1",
            );
        }
        let recurrent =
            |scope: &mut Scope<'_>, cell| Box::new(Recurrent::new(scope, cell, n_inputs, width, layers));
        Ok(match self.kind {
            SequenceKind::Lstm => recurrent(scope, Cell::Lstm),
            SequenceKind::Gru => recurrent(scope, Cell::Gru),
            SequenceKind::Transformer { heads } if heads < 1 || width % heads != 0 => {
                return refuse(
                    "heads",
                    heads.to_string(),
                    "at least 1 head, and a number of heads that divides the width",
                );
            }
            SequenceKind::Transformer { heads } => {
                Box::new(CausalTransformer::new(scope, n_inputs, n_positions, width, layers, heads))
            }
        })
    }
}

/// A causal network: its output at a position depends on the inputs up to and including this position.
///
/// The network can process whole sequences at once, or one input per step. Each input results in a *row* of
/// numbers, which is stored for later steps. A step uses the rows of as many preceding inputs as it needs.
pub(crate) trait SequenceNet: Debug + Send {
    /// Computes the outputs of whole sequences: inputs `[B, T]` (i64) to outputs `[B, T, width]`. If
    /// `context`, `[B, width]`, is given, it is added to the embedding of each input of its sequence.
    fn forward(&self, inputs: &Tensor, context: Option<&Tensor>) -> Tensor;

    /// Processes the input at `position` of each of `n` sequences, `[n]`, without context. Returns a row of
    /// numbers for each of them, `[n, row_width]`, which later steps use. `memory` holds the rows of the
    /// `reach(position)` preceding inputs, `[n, reach, row_width]`, with the most recent input last.
    fn step(&self, inputs: &Tensor, position: usize, memory: &Tensor) -> Tensor;

    /// Returns the number of preceding inputs whose results (rows of numbers) a step at `position` uses.
    fn reach(&self, position: usize) -> usize;

    /// The number of elements in the row of numbers that a step returns for each input.
    fn row_width(&self) -> i64;

    /// Extracts the outputs from the rows of numbers that a step returned for `n` inputs: `[n, row_width]` to
    /// `[n, width]`.
    fn output(&self, rows: &Tensor) -> Tensor;
}

/// Adds a vector per sequence, `[B, width]`, to the embeddings of the sequence's inputs, `[B, T, width]`.
fn add_context(embedded: Tensor, context: Option<&Tensor>) -> Tensor {
    match context {
        Some(context) => embedded + context.unsqueeze(1),
        None => embedded,
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::nn::Parameters;

    const KINDS: [SequenceKind; 3] =
        [SequenceKind::Lstm, SequenceKind::Gru, SequenceKind::Transformer { heads: 2 }];

    fn net(kind: SequenceKind, layers: i64) -> (Box<dyn SequenceNet>, Parameters) {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Double);
        let config = SequenceNetConfig { kind, width: 6, layers };
        let net = config.build(&mut parameters.scope(&mut Rng::seeded(1)), 4, 7).unwrap();
        parameters.check().unwrap();
        (net, parameters)
    }

    /// Checks that steps by one input give the same outputs as a pass over whole sequences, for any number of
    /// layers.
    #[test]
    fn steps_agree_with_whole_sequences() {
        let inputs = Tensor::from_slice(&[3i64, 0, 1, 2, 2, 1, 0, 3, 3, 3, 0, 1]).view([2, 6]);
        for kind in KINDS {
            for layers in [1, 3] {
                let (net, _parameters) = net(kind, layers);
                let whole = net.forward(&inputs, None);
                assert_eq!(whole.size(), [2, 6, 6]);
                let mut rows: Vec<Tensor> = Vec::new();
                for position in 0..6usize {
                    let reach = net.reach(position);
                    let memory = match reach {
                        0 => Tensor::zeros([2, 0, net.row_width()], (Kind::Double, Device::Cpu)),
                        _ => Tensor::stack(&rows[position - reach..], 1),
                    };
                    let row = net.step(&inputs.select(1, position as i64), position, &memory);
                    assert_eq!(row.size(), [2, net.row_width()]);
                    let difference = net.output(&row) - whole.select(1, position as i64);
                    let largest = difference.abs().max().double_value(&[]);
                    assert!(largest < 1e-12, "{kind:?} at {position}: {largest}");
                    rows.push(row);
                }
            }
        }
    }

    /// Checks that an input changes the outputs at its position and at later positions, but no earlier
    /// output.
    #[test]
    fn outputs_do_not_depend_on_later_inputs() {
        let inputs = Tensor::from_slice(&[3i64, 0, 1, 2, 2]).view([1, 5]);
        let other = Tensor::from_slice(&[3i64, 0, 1, 0, 2]).view([1, 5]);
        for kind in KINDS {
            let (net, _parameters) = net(kind, 2);
            let difference = (net.forward(&inputs, None) - net.forward(&other, None))
                .abs()
                .amax([0i64, 2].as_slice(), false);
            let difference = Vec::<f64>::try_from(difference).unwrap();
            assert!(difference[..3].iter().all(|&d| d < 1e-14), "{kind:?}: {difference:?}");
            assert!(difference[3..].iter().all(|&d| d > 1e-6), "{kind:?}: {difference:?}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
        let mut rng = Rng::seeded(0);
        let mut build = |config: SequenceNetConfig| {
            config.build(&mut parameters.scope(&mut rng), 2, 2).map(|_| ()).unwrap_err().to_string()
        };
        let config = SequenceNetConfig::default();
        assert!(build(SequenceNetConfig { width: 0, ..config }).contains("0 wide"));
        assert!(build(SequenceNetConfig { layers: 0, ..config }).contains("0 layers"));
        for heads in [0, 5] {
            let kind = SequenceKind::Transformer { heads };
            assert!(build(SequenceNetConfig { kind, ..config }).starts_with(&format!("heads is {heads}")));
        }
    }
}
