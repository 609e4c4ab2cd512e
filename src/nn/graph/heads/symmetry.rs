//! Numbers of automorphisms as an input of a graph network.

use serde::{Deserialize, Serialize};

use crate::env::Direction;
use crate::graph::{GraphEnv, MoveSymmetries, Semantics, SymmetryCount};
use crate::nn::graph::engine::{Engine, HeadEngine};
use crate::nn::graph::torso::Embeddings;
use crate::nn::{Linear, Scope};
use crate::{Error, Result};

/// The largest number of nodes for which [`SymmetryInput::Auto`] chooses exact counts. Exact counts take too
/// long for some larger graphs.
const MAX_NODES_COUNTED: usize = 8;
/// The largest number of slots of forward moves for which [`SymmetryInput::Auto`] makes numbers of
/// automorphisms an input of the network. Automorphisms are counted for the graph after each slot's move,
/// which takes too long for more slots.
const MAX_SLOTS: usize = 256;

/// The settings for numbers of automorphisms as an input of a network. The input holds the number of
/// automorphisms of each graph, and the change of this number by each move ([`MoveSymmetries`]).
///
/// Up to isomorphism P_F and P_B of a move depend on the numbers of automorphisms |Aut| of the graphs before
/// and after the move, which message passing can't compute. Without this input a network has to memorise the
/// effect for each graph. The input costs time: automorphisms are counted for each graph to which a legal
/// move leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SymmetryInput {
    /// Chooses another setting that suits the environment (the default). If states are graphs up to
    /// isomorphism with at most 256 slots of forward moves, the setting is [`Exact`](Self::Exact) for up to 8
    /// nodes, and [`Refined`](Self::Refined) for more nodes. For other environments the setting is
    /// [`Ignored`](Self::Ignored).
    #[default]
    Auto,
    /// The network uses the exact number of automorphisms, [`SymmetryCount::Exact`], for graphs of any size.
    Exact,
    /// The network uses an upper bound of the number of automorphisms by colour refinement,
    /// [`SymmetryCount::Refined`], for graphs of any size.
    Refined,
    /// The network doesn't use numbers of automorphisms.
    Ignored,
}

impl SymmetryInput {
    /// Returns the method by which automorphisms are counted; `None` if they aren't counted, or if
    /// [`Auto`](Self::Auto) hasn't been resolved.
    pub(in crate::nn) fn count(self) -> Option<SymmetryCount> {
        match self {
            Self::Exact => Some(SymmetryCount::Exact),
            Self::Refined => Some(SymmetryCount::Refined),
            Self::Auto | Self::Ignored => None,
        }
    }

    /// Replaces [`Auto`](Self::Auto) by the setting that it chooses for an environment.
    ///
    /// # Errors
    /// [`Error::Config`] if numbers of automorphisms are requested in an environment of labelled graphs.
    pub(in crate::nn) fn resolve(self, env: &GraphEnv) -> Result<Self> {
        let is_labelled = env.actions().semantics() == Semantics::Labelled;
        match self {
            Self::Exact | Self::Refined if is_labelled => Err(Error::config(
                "symmetry",
                format!("{self:?}, in an environment of labelled graphs"),
                "`Auto` or `Ignored`, because policies of labelled graphs never depend on automorphisms",
            )),
            Self::Auto if is_labelled || is_expensive(env) => Ok(Self::Ignored),
            Self::Auto if env.schema().max_nodes > MAX_NODES_COUNTED => Ok(Self::Refined),
            Self::Auto => Ok(Self::Exact),
            resolved => Ok(resolved),
        }
    }
}

/// Returns `true` if an environment has too many slots to count automorphisms by default.
fn is_expensive(env: &GraphEnv) -> bool {
    env.actions().most_slots(Direction::Forward, env.schema().kind, env.schema().max_nodes) > MAX_SLOTS
}

/// Returns the numbers of automorphisms, which must have been counted.
///
/// # Errors
/// [`Error::Missing`] if automorphisms weren't counted.
pub(in crate::nn) fn require_symmetries(symmetries: Option<&MoveSymmetries>) -> Result<&MoveSymmetries> {
    symmetries.ok_or_else(|| {
        Error::missing(
            "a graph network that reads symmetries",
            "the numbers of automorphisms of these graphs and of the graphs that their moves lead to",
            "pass the result of `GraphEnv::move_symmetries` to `GraphBatch::with_symmetries`, as \
             `GraphPolicy` does, or build the network with `SymmetryInput::Ignored`",
        )
    })
}

/// A layer that adds a linear map of ln |Aut(G)| to the embedding of each graph G.
#[derive(Debug)]
pub(in crate::nn) struct SymmetryLayer(Linear);

impl SymmetryLayer {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, graph_width: i64) -> Self {
        Self(Linear::new(scope, 1, graph_width))
    }

    /// Adds the layer's output to the embeddings of graphs.
    ///
    /// # Errors
    /// [`Error::Missing`] if automorphisms weren't counted.
    pub(in crate::nn) fn add_to<E: Engine>(
        &self,
        engine: &E,
        symmetries: Option<&MoveSymmetries>,
        embeddings: Embeddings<E::Rows>,
    ) -> Result<Embeddings<E::Rows>> {
        let log_automorphisms = engine.rows(&require_symmetries(symmetries)?.of_graphs, 1);
        let added = engine.linear(&self.0, &log_automorphisms);
        Ok(Embeddings { graphs: engine.add(embeddings.graphs, &added), ..embeddings })
    }
}

/// The factor on the initial weights of gates. This factor keeps an untrained policy close to the uniform
/// policy.
const GATE_SCALE: f64 = 0.05;

/// A layer that computes a weight for each graph. The product of this weight and the change of ln |Aut| by a
/// move of one action type is added to the move's logit.
#[derive(Debug)]
pub(in crate::nn) struct Gate(Linear);

impl Gate {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, graph_width: i64, factor: f64) -> Self {
        let layer = Linear::new(scope, graph_width, 1);
        layer.scale(GATE_SCALE * factor);
        Self(layer)
    }

    /// Adds the weighted changes of ln |Aut| to block `k`, the logits of the action type with the index `k`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `symmetries` belong to another block or to other graphs.
    pub(in crate::nn) fn add_to<E: HeadEngine>(
        &self,
        engine: &E,
        logits: E::Rows,
        k: usize,
        symmetries: &MoveSymmetries,
        graphs: &E::Rows,
    ) -> Result<E::Rows> {
        let (block, changes) = symmetries.block(k, engine.shape(&logits).iter().product::<i64>() as usize)?;
        if changes.is_empty() {
            return Ok(logits);
        }
        let rows = block.row_ptr.windows(2).enumerate();
        let graph_of_row =
            rows.flat_map(|(graph, ends)| std::iter::repeat_n(graph as i64, ends[1] - ends[0])).collect();
        let weights = engine.gather(&engine.linear(&self.0, graphs), Some(&engine.index(graph_of_row)));
        Ok(engine.add(logits, &engine.scale(engine.rows(changes, block.width), &weights)))
    }
}
