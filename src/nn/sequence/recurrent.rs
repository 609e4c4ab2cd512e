//! Recurrent networks over sequences: LSTM and GRU.

use tch::Tensor;

use super::SequenceNet;
use crate::nn::{Embedding, Scope};

/// The kind of recurrent cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Lstm,
    Gru,
}

impl Cell {
    /// Number of gates, each with a block of weights.
    fn gates(self) -> i64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Number of state vectors per layer: hidden state and, in an LSTM, cell state.
    fn carried(self) -> i64 {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }
}

/// Embedded inputs through layers of one recurrent cell. Weights have PyTorch's layout and initialisation.
///
/// A row holds the hidden states of all layers, then, in an LSTM, their cell states.
#[derive(Debug)]
pub(crate) struct Recurrent {
    cell: Cell,
    embedding: Embedding,
    /// Four tensors per layer: weights from the input and from the hidden state, and a bias for each.
    weights: Vec<Tensor>,
    width: i64,
    layers: i64,
}

impl Recurrent {
    pub(crate) fn new(scope: &mut Scope<'_>, cell: Cell, n_inputs: i64, width: i64, layers: i64) -> Self {
        let embedding = Embedding::new(&mut scope.sub("embedding"), n_inputs, width);
        let bound = 1.0 / (width as f64).sqrt();
        let mut weights = Vec::with_capacity(4 * layers as usize);
        for k in 0..layers {
            let mut layer = scope.sub(&format!("layer{k}"));
            weights.push(layer.uniform("weight_input", &[cell.gates() * width, width], bound));
            weights.push(layer.uniform("weight_hidden", &[cell.gates() * width, width], bound));
            weights.push(layer.uniform("bias_input", &[cell.gates() * width], bound));
            weights.push(layer.uniform("bias_hidden", &[cell.gates() * width], bound));
        }
        Self { cell, embedding, weights, width, layers }
    }

    /// Outputs `[B, T, width]` and final states: `carried` tensors `[layers, B, width]`.
    fn run(&self, inputs: &Tensor, carried: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        let x = self.embedding.forward(inputs);
        // Training mode without dropout: on a GPU gradients need training mode.
        match self.cell {
            Cell::Lstm => {
                let (out, hidden, cell) = x.lstm(carried, &self.weights, true, self.layers, 0.0, true, false, true);
                (out, vec![hidden, cell])
            }
            Cell::Gru => {
                let (out, hidden) = x.gru(&carried[0], &self.weights, true, self.layers, 0.0, true, false, true);
                (out, vec![hidden])
            }
        }
    }

    fn zeros(&self, n: i64) -> Vec<Tensor> {
        let options = (self.weights[0].kind(), self.weights[0].device());
        (0..self.cell.carried()).map(|_| Tensor::zeros([self.layers, n, self.width], options)).collect()
    }
}

impl SequenceNet for Recurrent {
    fn forward(&self, inputs: &Tensor) -> Tensor {
        self.run(inputs, &self.zeros(inputs.size()[0])).0
    }

    fn step(&self, inputs: &Tensor, position: usize, memory: &Tensor) -> Tensor {
        let n = inputs.size()[0];
        let carried = match position {
            0 => self.zeros(n),
            _ => {
                let rows = memory.select(1, 0).view([n, self.cell.carried(), self.layers, self.width]);
                (0..self.cell.carried()).map(|k| rows.select(1, k).transpose(0, 1).contiguous()).collect()
            }
        };
        let (_, carried) = self.run(&inputs.unsqueeze(1), &carried);
        let rows: Vec<Tensor> = carried.iter().map(|x| x.transpose(0, 1).reshape([n, -1])).collect();
        Tensor::cat(&rows, 1)
    }

    fn reach(&self, position: usize) -> usize {
        position.min(1)
    }

    fn row_width(&self) -> i64 {
        self.cell.carried() * self.layers * self.width
    }

    fn output(&self, rows: &Tensor) -> Tensor {
        rows.narrow(1, (self.layers - 1) * self.width, self.width)
    }
}
