//! Torsos, which compute embeddings of graphs and nodes for the heads.

use tch::{Kind, Tensor};

use super::engine::{Engine, HeadEngine, HostGraphs, HostRows, TensorGraphs};
use crate::graph::GraphBatch;
use crate::{Error, Result};

/// The output of a [`Torso`]: embeddings of nodes and of graphs.
#[derive(Debug)]
pub struct Embeddings<R = Tensor> {
    /// The embedding of each node, `[N, D]`.
    pub nodes: R,
    /// The embedding of each graph, `[B, G]`.
    pub graphs: R,
}

/// The part of a network that computes embeddings of nodes and graphs from a batch of graphs.
/// [`GraphNet::with_torso`](super::GraphNet::with_torso) adds heads for all action types, the state flow and
/// log Z to a custom torso.
///
/// A torso is written in the operations of an [`Engine`], and is therefore fast in roll-outs, too. If the
/// layers of a torso need tensors, implement [`TensorTorso`] instead. Build the layers in the scope that
/// `with_torso` passes. `examples/custom_network.rs` has a torso with custom node features.
pub trait Torso: std::fmt::Debug {
    /// The widths of node embeddings, `D`, and of graph embeddings, `G`.
    fn widths(&self) -> (i64, i64);

    /// Computes the embeddings of a batch. If the network takes conditions, `conditions` is `[B, C]`, in the
    /// kind (data type) of the parameters.
    ///
    /// # Errors
    /// Returns any error of the torso.
    fn embed<E: Engine>(&self, engine: &E, conditions: Option<&E::Rows>) -> Result<Embeddings<E::Rows>>;
}

/// A variant of [`Torso`] whose layers compute on tensors.
/// [`GraphNet::with_tensor_torso`](super::GraphNet::with_tensor_torso) adds heads to a custom torso of this
/// type. With such a torso roll-outs use tensors, too, which is slower for small batches.
pub trait TensorTorso: std::fmt::Debug {
    /// The widths of node embeddings, `D`, and of graph embeddings, `G`.
    fn widths(&self) -> (i64, i64);

    /// Computes the embeddings of a batch. If the network takes conditions, `conditions` is `[B, C]`, in the
    /// kind (data type) of the parameters.
    ///
    /// # Errors
    /// Returns any error of the torso.
    fn embed(&self, batch: &GraphBatch<'_>, conditions: Option<&Tensor>) -> Result<Embeddings>;
}

/// An object-safe interface of a [`Torso`] or a [`TensorTorso`]. The methods check the shapes of the
/// embeddings.
pub(super) trait ErasedTorso: std::fmt::Debug + Send {
    fn widths(&self) -> (i64, i64);
    fn embed_tensors(&self, graphs: &TensorGraphs<'_>, conditions: Option<&Tensor>) -> Result<Embeddings>;
    /// Returns the torso for evaluation on the host, without conditions; `None` for a [`TensorTorso`].
    fn on_host(&self) -> Option<&dyn HostTorso>;
}

/// A [`Torso`] that is evaluated on the host.
pub(super) trait HostTorso {
    fn embed_host(&self, graphs: &HostGraphs<'_>) -> Result<Embeddings<HostRows>>;
}

impl<T: Torso + Send> ErasedTorso for T {
    fn widths(&self) -> (i64, i64) {
        Torso::widths(self)
    }

    fn embed_tensors(&self, graphs: &TensorGraphs<'_>, conditions: Option<&Tensor>) -> Result<Embeddings> {
        check_shapes(graphs, self.embed(graphs, conditions)?, Torso::widths(self))
    }

    fn on_host(&self) -> Option<&dyn HostTorso> {
        Some(self)
    }
}

impl<T: Torso> HostTorso for T {
    fn embed_host(&self, graphs: &HostGraphs<'_>) -> Result<Embeddings<HostRows>> {
        check_shapes(graphs, self.embed(graphs, None)?, Torso::widths(self))
    }
}

/// A wrapper that makes a [`TensorTorso`] an [`ErasedTorso`].
#[derive(Debug)]
pub(super) struct InTensors<T>(pub(super) T);

impl<T: TensorTorso + Send> ErasedTorso for InTensors<T> {
    fn widths(&self) -> (i64, i64) {
        self.0.widths()
    }

    fn embed_tensors(&self, graphs: &TensorGraphs<'_>, conditions: Option<&Tensor>) -> Result<Embeddings> {
        check_shapes(graphs, self.0.embed(graphs.batch, conditions)?, self.0.widths())
    }

    fn on_host(&self) -> Option<&dyn HostTorso> {
        None
    }
}

/// Checks the embeddings that a torso computed, and returns them. `widths` holds the widths of the embeddings
/// of nodes and of graphs.
///
/// # Errors
/// [`Error::Shape`] if the embeddings have other widths, or other numbers of rows than there are nodes and
/// graphs.
fn check_shapes<E: HeadEngine>(
    engine: &E,
    embeddings: Embeddings<E::Rows>,
    widths: (i64, i64),
) -> Result<Embeddings<E::Rows>> {
    const REMEDY: &str = "let the torso return one row per node and one row per graph, of the widths that \
        `Torso::widths` returns";
    let arrays = engine.arrays();
    let (node_width, graph_width) = widths;
    let sizes = [
        (&embeddings.nodes, [arrays.nodes.len() as i64, node_width]),
        (&embeddings.graphs, [arrays.len() as i64, graph_width]),
    ];
    for (rows, expected) in sizes {
        let got = engine.shape(rows);
        if got != expected {
            return Err(Error::shape("the embeddings of a torso", expected, got, REMEDY));
        }
    }
    Ok(embeddings)
}

/// Checks and returns the conditions of a batch, `[B, n_conditions]`, converted to `kind`; `None` if the
/// network takes no conditions (`n_conditions` is 0).
///
/// # Errors
/// [`Error::Shape`] for conditions of another shape; [`Error::Missing`] if conditions are given to a network
/// that takes none, or are missing for a network that takes some.
pub(in crate::nn) fn checked_conditions(
    batch: &GraphBatch<'_>,
    n_conditions: i64,
    kind: Kind,
) -> Result<Option<Tensor>> {
    match (&batch.conditions, n_conditions) {
        (None, 0) => Ok(None),
        // Condition vectors of width 0 are equivalent to no conditions.
        (Some(conditions), 0) if conditions.size() == [batch.len() as i64, 0] => Ok(None),
        (Some(conditions), n) if n > 0 => {
            let expected = vec![batch.len() as i64, n];
            if conditions.size() == expected {
                Ok(Some(conditions.to_kind(kind)))
            } else {
                Err(Error::shape(
                    "the tensor of conditions",
                    expected,
                    conditions.size(),
                    "give one row of `n_conditions` numbers per graph",
                ))
            }
        }
        (conditions, _) => Err(Error::missing(
            "the graph network",
            if conditions.is_none() { "condition vectors" } else { "a network built for conditions" },
            "set `n_conditions` to the width of the condition vectors and sample with conditions, or set it \
             to 0 and sample without",
        )),
    }
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;
    use crate::Rng;
    use crate::env::{Direction, Env};
    use crate::examples::Triangles;
    use crate::nn::{GraphNet, GraphNetConfig, GraphNetwork};
    use crate::quantity::Quantities;

    /// A torso whose embeddings have width 2, although [`Torso::widths`] returns the two numbers of this
    /// struct.
    #[derive(Debug)]
    struct WrongWidths(i64, i64);

    impl Torso for WrongWidths {
        fn widths(&self) -> (i64, i64) {
            (self.0, self.1)
        }
        fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> Result<Embeddings<E::Rows>> {
            let zeros = |rows: usize| engine.rows(&vec![0.0; 2 * rows], 2);
            Ok(Embeddings { nodes: zeros(engine.arrays().nodes.len()), graphs: zeros(engine.arrays().len()) })
        }
    }

    #[test]
    fn embeddings_of_wrong_widths_are_refused() {
        for (nodes, graphs) in [(2, 2), (3, 2), (2, 1)] {
            let env = Triangles::env();
            let rng = &mut Rng::seeded(0);
            let torso = |_: &mut crate::nn::Scope<'_>| WrongWidths(nodes, graphs);
            let config = GraphNetConfig::default();
            let net = GraphNet::with_torso(&env, torso, config, Device::Cpu, Kind::Float, rng).unwrap();
            let states = env.initial(&[0; 2]);
            let batch = GraphBatch::new(env.schema(), states.arrays(), None, Device::Cpu).unwrap();
            let on_host = net.on_host(Direction::Forward).unwrap().distribution(&env, &states).map(|_| ());
            for outcome in [net.forward(&batch, Quantities::PF).map(|_| ()), on_host] {
                match (nodes, graphs) {
                    (2, 2) => outcome.unwrap(),
                    _ => assert!(outcome.unwrap_err().to_string().contains("Torso::widths")),
                }
            }
        }
    }
}
