//! Torsos, which compute embeddings of graphs and nodes for the heads.

use tch::{Kind, Tensor};

use super::engine::{Engine, HeadEngine, HostGraphs, HostRows, TensorGraphs};
use crate::graph::GraphBatch;
use crate::tensor::catch_tch;
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
/// `with_torso` passes. `examples/custom_torso.rs` is a GraphSAGE torso.
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
///
/// Operations of tch panic if the shapes of tensors don't fit, and each of them has a fallible form whose
/// name begins with `f_`, for example [`f_matmul`](Tensor::f_matmul). A panic of tch in `embed` is printed,
/// and becomes an error that names the torso.
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
        let embed = || self.0.embed(graphs.batch, conditions);
        let embeddings = catch_tch("`TensorTorso::embed`, the torso of a network", embed)?;
        for rows in [&embeddings.nodes, &embeddings.graphs] {
            if rows.kind() != graphs.kind || rows.device() != graphs.batch.device() {
                return Err(Error::config(
                    "the embeddings of a torso",
                    format!("{:?} numbers on {:?}", rows.kind(), rows.device()),
                    "the data type and the device of the network's parameters: convert with `to_kind` and \
                     `to_device`",
                ));
            }
        }
        check_shapes(graphs, embeddings, self.0.widths())
    }

    fn on_host(&self) -> Option<&dyn HostTorso> {
        None
    }
}

/// Checks the embeddings that a torso computed, and returns them. `widths` holds the widths of the embeddings
/// of nodes and of graphs.
///
/// # Errors
/// [`Error::Shape`] if an operation of the torso had an argument of a wrong shape, and if the embeddings have
/// other widths, or other numbers of rows than there are nodes and graphs.
fn check_shapes<E: HeadEngine>(
    engine: &E,
    embeddings: Embeddings<E::Rows>,
    widths: (i64, i64),
) -> Result<Embeddings<E::Rows>> {
    const REMEDY: &str = "let the torso return one row per node and one row per graph, of the widths that \
        `Torso::widths` returns";
    if let Some(error) = engine.shape_error().take() {
        return Err(error);
    }
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
    use crate::nn::{GraphNet, GraphNetConfig, GraphNetwork, Linear, Mlp, MlpConfig, Scope};
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
            let torso = |_: &mut Scope<'_>| WrongWidths(nodes, graphs);
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

    /// A mistake in the widths or the data type of a torso.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Mistake {
        None,
        Linear,
        Mlp,
        Add,
        Max,
        AddToNodes,
        RowsOfNodes,
        Tensor,
        DataType,
    }

    /// A torso of width 4 whose layers and operations have rows of width 3 if there is a mistake.
    #[derive(Debug)]
    struct Layers(Linear, Mlp, Mistake);

    impl Torso for Layers {
        fn widths(&self) -> (i64, i64) {
            (4, 8)
        }
        fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> Result<Embeddings<E::Rows>> {
            let n = engine.arrays().nodes.len();
            let rows = |mistake, n: usize| {
                let width = if self.2 == mistake { 3 } else { 4 };
                engine.rows(&vec![0.5; n * width], width)
            };
            let mut nodes = engine.linear(&self.0, &rows(Mistake::Linear, n));
            nodes = engine.add(nodes, &engine.mlp(&self.1, &rows(Mistake::Mlp, n)));
            nodes = engine.add(nodes, &rows(Mistake::Add, n));
            nodes = engine.max(nodes, &rows(Mistake::Max, n));
            nodes = engine.add_to_nodes(nodes, &rows(Mistake::AddToNodes, engine.arrays().len()));
            let extra = usize::from(self.2 == Mistake::RowsOfNodes);
            let most = engine.max_over_neighbours(&engine.rows(&vec![0.5; (n + extra) * 4], 4));
            nodes = if extra == 0 { engine.add(nodes, &most) } else { nodes };
            let graphs = engine.pool(&nodes);
            Ok(Embeddings { nodes, graphs })
        }
    }

    impl TensorTorso for Layers {
        fn widths(&self) -> (i64, i64) {
            (4, 4)
        }
        fn embed(&self, batch: &GraphBatch<'_>, _: Option<&Tensor>) -> Result<Embeddings> {
            let width = if self.2 == Mistake::Tensor { 3 } else { 4 };
            let kind = if self.2 == Mistake::DataType { Kind::Double } else { Kind::Float };
            let rows =
                |n: usize| self.0.forward(&Tensor::ones([n as i64, width], (Kind::Float, Device::Cpu)));
            let nodes = rows(batch.arrays.nodes.len()).to_kind(kind);
            Ok(Embeddings { nodes, graphs: rows(batch.arrays.len()) })
        }
    }

    /// Checks that no wrong width in a torso panics: a trainer returns an error that names torso and shapes.
    #[test]
    fn wrong_widths_inside_a_torso_are_errors() {
        let train = |mistake: Mistake, in_tensors: bool| {
            let env = Triangles::env();
            let rng = &mut Rng::seeded(0);
            let mlp = MlpConfig { hidden: vec![5], ..MlpConfig::default() };
            let torso = |scope: &mut Scope<'_>| {
                let linear = Linear::new(&mut scope.sub("linear"), 4, 4);
                Layers(linear, Mlp::new(&mut scope.sub("mlp"), 4, 4, &mlp), mistake)
            };
            let device = Device::Cpu;
            let kind = Kind::Float;
            let config = GraphNetConfig::default();
            let net = if in_tensors {
                GraphNet::with_tensor_torso(&env, torso, config, device, kind, rng)
            } else {
                GraphNet::with_torso(&env, torso, config, device, kind, rng)
            };
            let states = env.initial(&[0; 2]);
            let net = net.unwrap();
            let on_host = net.on_host(Direction::Forward);
            let on_host = on_host.map(|policy| policy.distribution(&env, &states).map(drop));
            let batch = GraphBatch::new(env.schema(), states.arrays(), None, device).unwrap();
            let in_training = net.forward(&batch, Quantities::PF).map(drop);
            on_host
                .into_iter()
                .chain([in_training])
                .map(|outcome| outcome.map_err(|error| error.to_string()))
                .collect::<Vec<_>>()
        };
        for (mistake, words) in [
            (Mistake::Linear, ["a layer of a torso", "[6, 3]", "[6, 4]"]),
            (Mistake::Mlp, ["a layer of a torso", "[6, 3]", "[6, 4]"]),
            (Mistake::Add, ["`add` or `max` in a torso", "[6, 3]", "[6, 4]"]),
            (Mistake::Max, ["`add` or `max` in a torso", "[6, 3]", "[6, 4]"]),
            (Mistake::AddToNodes, ["`add_to_nodes` of a torso", "[2, 3]", "[2, 4]"]),
            (Mistake::RowsOfNodes, ["the rows of nodes in a torso", "[7, 4]", "[6, 4]"]),
        ] {
            let outcomes = train(mistake, false);
            assert_eq!(outcomes.len(), 2);
            for outcome in outcomes {
                let message = outcome.unwrap_err();
                assert!(words.iter().all(|word| message.contains(word)), "{mistake:?}: {message}");
            }
        }
        for (mistake, word) in
            [(Mistake::Tensor, "cannot be multiplied (6x3 and 4x4)"), (Mistake::DataType, "Double")]
        {
            let message = train(mistake, true).remove(0).unwrap_err();
            assert!(message.contains(word) && message.contains("torso"), "{mistake:?}: {message}");
            assert!(!message.contains("frame #0"), "{message}");
        }
        assert!(
            [false, true]
                .into_iter()
                .flat_map(|in_tensors| train(Mistake::None, in_tensors))
                .all(|one| one.is_ok())
        );
    }
}
