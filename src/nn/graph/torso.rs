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

impl Embedded {
    /// Checks what a torso of these widths gave of a batch.
    pub(in crate::nn) fn checked(self, arrays: &GraphArrays, (of_node, of_graph): (i64, i64)) -> Result<Self> {
        let sizes = [
            (self.nodes.size(), [arrays.nodes.len() as i64, of_node]),
            (self.graphs.size(), [arrays.len() as i64, of_graph]),
        ];
        sizes.into_iter().try_for_each(|(got, expected)| check(got, &expected)).map(|()| self)
    }
}

fn check(got: Vec<i64>, expected: &[i64]) -> Result<()> {
    const REMEDY: &str = "give a row per node and one per graph, as wide as `Torso::widths` says";
    if got == expected { Ok(()) } else { Err(Error::shape("what a torso embeds", expected, got, REMEDY)) }
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

impl HostEmbedded {
    /// Checks what a torso of these widths gave of some graphs.
    pub(in crate::nn) fn checked(self, arrays: &GraphArrays, (of_node, of_graph): (i64, i64)) -> Result<Self> {
        check(vec![self.nodes.len() as i64], &[arrays.nodes.len() as i64 * of_node])?;
        check(vec![self.graphs.len() as i64], &[arrays.len() as i64 * of_graph])?;
        Ok(self)
    }
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

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::Rng;
    use crate::env::{Direction, Env};
    use crate::nn::{GraphNet, GraphNetConfig, GraphNetwork};
    use crate::quantity::Quantities;
    use crate::testing::Triangles;

    /// Zeros of width 2, whatever it says of its widths.
    #[derive(Debug)]
    struct Says(i64, i64);

    impl Torso for Says {
        fn widths(&self) -> (i64, i64) {
            (self.0, self.1)
        }
        fn embed(&self, batch: &GraphBatch<'_>, _: Option<&Tensor>) -> Result<Embedded> {
            let zeros = |rows: usize| Tensor::zeros([rows as i64, 2], (Kind::Float, batch.device()));
            Ok(Embedded { nodes: zeros(batch.arrays.nodes.len()), graphs: zeros(batch.len()) })
        }
        fn on_host(&self) -> Option<Box<dyn HostTorso>> {
            Some(Box::new(Self(self.0, self.1)))
        }
    }

    impl HostTorso for Says {
        fn embed(&self, arrays: &GraphArrays) -> HostEmbedded {
            HostEmbedded { nodes: vec![0.0; 2 * arrays.nodes.len()], graphs: vec![0.0; 2 * arrays.len()] }
        }
    }

    #[test]
    fn embeddings_of_other_widths_than_the_torso_says_are_refused() {
        for (nodes, graphs) in [(2, 2), (3, 2), (2, 1)] {
            let (env, rng) = (Triangles::new(), &mut Rng::seeded(0));
            let torso = |_: &mut crate::nn::Scope<'_>| Says(nodes, graphs);
            let config = GraphNetConfig::default();
            let net = GraphNet::with_torso(&env, torso, config, Device::Cpu, Kind::Float, rng).unwrap();
            let states = env.initial(&[0; 2]);
            let batch = GraphBatch::new(env.schema(), states.arrays(), None, Device::Cpu).unwrap();
            let on_host = net.on_host(Direction::Forward).unwrap().forward(states.arrays(), None).map(|_| ());
            for outcome in [net.forward(&batch, Quantities::PF).map(|_| ()), on_host] {
                match (nodes, graphs) {
                    (2, 2) => outcome.unwrap(),
                    _ => assert!(outcome.unwrap_err().to_string().contains("Torso::widths")),
                }
            }
        }
    }
}
