//! From a batch of graphs to embeddings, which heads read.

use tch::{Kind, Tensor};

use crate::graph::{GraphArrays, GraphBatch};
use crate::{Error, Result};

/// What a [`Torso`] gives.
#[derive(Debug)]
pub struct Embedded {
    /// Embeddings of nodes, `[N, D]`.
    pub nodes: Tensor,
    /// Embeddings of graphs, `[B, G]`.
    pub graphs: Tensor,
}

/// From a batch of graphs to embeddings of nodes and graphs: bring your own to a [`GraphNet`](super::GraphNet), which adds
/// heads for all action types, the state flow and log Z.
///
/// Build its layers in the scope that [`GraphNet::with_torso`](super::GraphNet::with_torso) gives. `examples/custom_network.rs`
/// has one with node features of its own.
pub trait Torso: std::fmt::Debug {
    /// The widths of node and graph embeddings, `D` and `G`.
    fn widths(&self) -> (i64, i64);

    /// The embeddings of a batch, under conditions `[B, C]` in the parameters' kind, if the network takes any.
    ///
    /// # Errors
    /// Whatever the torso finds wrong.
    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embedded>;

    /// A copy on the host for roll-outs without conditions, which gives the same embeddings up to rounding. It is asked for
    /// where parameters are on the host in single precision. `None` (the default) if there is no such form: roll-outs then go
    /// through [`embed`](Self::embed).
    fn on_host(&self) -> Option<Box<dyn HostTorso>> {
        None
    }
}

/// What a [`HostTorso`] gives.
#[derive(Debug)]
pub struct HostEmbedded {
    /// Embeddings of nodes, `[N, D]` row by row.
    pub nodes: Vec<f32>,
    /// Embeddings of graphs, `[B, G]` row by row.
    pub graphs: Vec<f32>,
}

/// A copy of a [`Torso`] on the host, without gradients.
///
/// A roll-out step holds so few graphs that tensor operations cost more than the computation in them.
/// [`HostMlp`](crate::nn::HostMlp) is a perceptron in that form.
pub trait HostTorso: std::fmt::Debug {
    /// The embeddings of some graphs.
    fn embed(&self, arrays: &GraphArrays) -> HostEmbedded;
}

/// The conditions for a network that takes `n_conditions` numbers per graph, `[B, n_conditions]`; `None` if it takes
/// none.
pub(in crate::nn) fn checked_conditions(
    batch: &GraphBatch<'_>,
    n_conditions: i64,
    kind: Kind,
) -> Result<Option<Tensor>> {
    match (&batch.conditions, n_conditions) {
        (None, 0) => Ok(None),
        // Constant conditions have no columns.
        (Some(conditions), 0) if conditions.size() == [batch.len() as i64, 0] => Ok(None),
        (Some(conditions), n) if n > 0 => {
            let expected = vec![batch.len() as i64, n];
            match conditions.size() == expected {
                true => Ok(Some(conditions.to_kind(kind))),
                false => Err(Error::shape(
                    "the tensor of conditions",
                    expected,
                    conditions.size(),
                    "give one row of `n_conditions` numbers per graph",
                )),
            }
        }
        (given, _) => Err(Error::missing(
            "the graph network",
            if given.is_none() { "condition vectors" } else { "a network built for conditions" },
            "set n_conditions to the width of the condition vectors, and sample with conditions",
        )),
    }
}
