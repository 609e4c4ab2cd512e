//! Torsos, which compute embeddings of graphs and nodes for the heads.

use tch::{Kind, Tensor};

use super::engine::{Engine, HostGraphs, HostRows, TensorGraphs};
use crate::graph::GraphBatch;
use crate::{Error, Result};

/// The output of a [`Torso`].
#[derive(Debug)]
pub struct Embedded<R = Tensor> {
    /// Embeddings of nodes, `[N, D]`.
    pub nodes: R,
    /// Embeddings of graphs, `[B, G]`.
    pub graphs: R,
}

/// A network from a batch of graphs to embeddings of nodes and graphs.
/// [`GraphNet::with_torso`](super::GraphNet::with_torso) adds heads for all action types, the state flow and
/// log Z to a custom torso.
///
/// Build its layers in the scope that `with_torso` passes. `examples/custom_network.rs` has a torso with
/// custom node features.
pub trait Torso: std::fmt::Debug {
    /// The widths of node and graph embeddings, `D` and `G`.
    fn widths(&self) -> (i64, i64);

    /// Computes the embeddings of a batch. `conditions` is `[B, C]`, in the parameters' kind, if the network
    /// takes conditions. A torso written in the operations of an [`Engine`] is fast in roll-outs, too.
    ///
    /// # Errors
    /// Any error of the torso.
    fn embed<E: Engine>(&self, engine: &E, conditions: Option<&E::Rows>) -> Result<Embedded<E::Rows>>;

    /// Returns `false` for a torso that needs tensors ([`Engine::batch`]), so that roll-outs also use
    /// tensors. Defaults to `true`.
    fn on_host(&self) -> bool {
        true
    }
}

/// An object-safe [`Torso`], with a method per engine. The methods check the shapes of the embeddings.
pub(super) trait ErasedTorso: std::fmt::Debug + Send {
    fn widths(&self) -> (i64, i64);
    fn on_host(&self) -> bool;
    fn embed_tensors(&self, graphs: &TensorGraphs<'_>, conditions: Option<&Tensor>) -> Result<Embedded>;
    fn embed_host(&self, graphs: &HostGraphs<'_>) -> Result<Embedded<HostRows>>;
}

impl<T: Torso + Send> ErasedTorso for T {
    fn widths(&self) -> (i64, i64) {
        Torso::widths(self)
    }

    fn on_host(&self) -> bool {
        Torso::on_host(self)
    }

    fn embed_tensors(&self, graphs: &TensorGraphs<'_>, conditions: Option<&Tensor>) -> Result<Embedded> {
        checked_embeddings(self, graphs, conditions)
    }

    fn embed_host(&self, graphs: &HostGraphs<'_>) -> Result<Embedded<HostRows>> {
        checked_embeddings(self, graphs, None)
    }
}

/// Computes the embeddings of a batch and checks their shapes.
///
/// # Errors
/// [`Error::Shape`] for embeddings of other widths than [`Torso::widths`], and the errors of the torso.
fn checked_embeddings<T: Torso, E: Engine>(
    torso: &T,
    engine: &E,
    conditions: Option<&E::Rows>,
) -> Result<Embedded<E::Rows>> {
    const REMEDY: &str = "give a row per node and one per graph, as wide as `Torso::widths` says";
    let embedded = torso.embed(engine, conditions)?;
    let (node_width, graph_width) = Torso::widths(torso);
    let arrays = engine.arrays();
    let sizes = [
        (&embedded.nodes, [arrays.nodes.len() as i64, node_width]),
        (&embedded.graphs, [arrays.len() as i64, graph_width]),
    ];
    for (rows, expected) in sizes {
        let got = engine.shape(rows);
        if got != expected {
            return Err(Error::shape("what a torso embeds", expected, got, REMEDY));
        }
    }
    Ok(embedded)
}

/// Returns the conditions of a batch for a network that takes `n_conditions` numbers per graph,
/// `[B, n_conditions]`, in this kind; `None` if it takes no conditions.
///
/// # Errors
/// [`Error::Shape`] for conditions of another shape; [`Error::Missing`] for a network without conditions that
/// gets some, and a network with conditions that gets none.
pub(in crate::nn) fn checked_conditions(
    batch: &GraphBatch<'_>,
    n_conditions: i64,
    kind: Kind,
) -> Result<Option<Tensor>> {
    match (&batch.conditions, n_conditions) {
        (None, 0) => Ok(None),
        // Constant conditions have no columns, so they are equivalent to no conditions.
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
            "set n_conditions to the width of the condition vectors, and sample with conditions",
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

    /// A torso whose embeddings have width 2, while [`Torso::widths`] returns these widths.
    #[derive(Debug)]
    struct WrongWidths(i64, i64);

    impl Torso for WrongWidths {
        fn widths(&self) -> (i64, i64) {
            (self.0, self.1)
        }
        fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> Result<Embedded<E::Rows>> {
            let zeros = |rows: usize| engine.rows(&vec![0.0; 2 * rows], 2);
            Ok(Embedded { nodes: zeros(engine.arrays().nodes.len()), graphs: zeros(engine.arrays().len()) })
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
