//! Recurrent networks over sequences: LSTM and GRU.

use tch::Tensor;

use super::{SequenceNet, add_context};
use crate::nn::{Embedding, Scope};

/// The kind of recurrent cell: LSTM or GRU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Lstm,
    Gru,
}

impl Cell {
    /// Returns the number of gates of the cell. Each weight of a layer is a stack of one matrix per gate.
    fn gates(self) -> i64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Returns the number of state vectors per layer: the hidden state and, in an LSTM, the cell state.
    fn n_states(self) -> i64 {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }
}

/// A recurrent network. The network has an embedding of the inputs, and layers of one kind of cell. Weights
/// have PyTorch's layout and initialisation.
///
/// If the network processes one input per step, it returns a row of numbers for each input, which later steps
/// use. The row holds the hidden states of all layers, followed in an LSTM by their cell states.
#[derive(Debug)]
pub(crate) struct Recurrent {
    cell: Cell,
    embedding: Embedding,
    /// The weights of all layers. A layer has four tensors: the weights of the input and of the hidden state,
    /// and the bias of each.
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

    /// Computes the outputs, `[B, T, width]`, and the states of the cells after the last input, from the
    /// embedded inputs `[B, T, width]` and the initial states `states`. States consist of
    /// [`Cell::n_states`] tensors `[layers, B, width]`.
    fn run(&self, x: &Tensor, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        // Training mode is on, because gradients on a GPU need it. Training mode has no other effect, because
        // dropout is 0.
        match self.cell {
            Cell::Lstm => {
                let (out, hidden, cell) =
                    x.lstm(states, &self.weights, true, self.layers, 0.0, true, false, true);
                (out, vec![hidden, cell])
            }
            Cell::Gru => {
                let (out, hidden) =
                    x.gru(&states[0], &self.weights, true, self.layers, 0.0, true, false, true);
                (out, vec![hidden])
            }
        }
    }

    /// Returns the initial states of `n` sequences, which are 0.
    fn zeros(&self, n: i64) -> Vec<Tensor> {
        let options = (self.weights[0].kind(), self.weights[0].device());
        (0..self.cell.n_states()).map(|_| Tensor::zeros([self.layers, n, self.width], options)).collect()
    }
}

impl SequenceNet for Recurrent {
    fn forward(&self, inputs: &Tensor, context: Option<&Tensor>) -> Tensor {
        let embedded = add_context(self.embedding.forward(inputs), context);
        self.run(&embedded, &self.zeros(inputs.size()[0])).0
    }

    fn step(&self, inputs: &Tensor, position: usize, memory: &Tensor) -> Tensor {
        let n = inputs.size()[0];
        let states = match position {
            0 => self.zeros(n),
            _ => {
                let rows = memory.select(1, 0).view([n, self.cell.n_states(), self.layers, self.width]);
                (0..self.cell.n_states()).map(|k| rows.select(1, k).transpose(0, 1).contiguous()).collect()
            }
        };
        let (_, states) = self.run(&self.embedding.forward(&inputs.unsqueeze(1)), &states);
        let rows: Vec<Tensor> = states.iter().map(|x| x.transpose(0, 1).reshape([n, -1])).collect();
        Tensor::cat(&rows, 1)
    }

    fn reach(&self, position: usize) -> usize {
        position.min(1)
    }

    fn row_width(&self) -> i64 {
        self.cell.n_states() * self.layers * self.width
    }

    fn output(&self, rows: &Tensor) -> Tensor {
        rows.narrow(1, (self.layers - 1) * self.width, self.width)
    }
}
