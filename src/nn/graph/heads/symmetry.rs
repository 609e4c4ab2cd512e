//! Numbers of automorphisms as an input of a network.

use serde::{Deserialize, Serialize};

use crate::env::Direction;
use crate::graph::{GraphEnv, MoveSymmetries, Semantics, SymmetryCount};
use crate::nn::graph::engine::{Engine, HeadEngine};
use crate::nn::graph::torso::Embeddings;
use crate::nn::{Linear, Scope};
use crate::{Error, Result};

/// The largest number of nodes for which `Auto` counts automorphisms. Counting them takes too long
/// for some larger graphs.
const MAX_NODES_COUNTED: usize = 8;
/// The largest number of forward slots for which `Auto` reads symmetry, because it is counted once per slot.
const MAX_SLOTS: usize = 256;

/// The choice of a network's input about the symmetry of graphs, and how each move changes it
/// ([`MoveSymmetries`]).
///
/// Up to isomorphism P_F and P_B of a move depend on the numbers of automorphisms |Aut| of both graphs, which
/// message passing can't compute. Without this input a network has to memorise them for each graph. With it,
/// automorphisms are counted for each graph that a legal move leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Symmetry {
    /// Chooses by the environment (the default). For graphs up to isomorphism with at most 256 slots of
    /// forward moves it is [`Seen`](Self::Seen) up to 8 nodes, and [`Refined`](Self::Refined) beyond.
    /// Otherwise it is [`Unseen`](Self::Unseen).
    #[default]
    Auto,
    /// The exact number of automorphisms, [`SymmetryCount::Exact`], for graphs of any size.
    Seen,
    /// An estimate of the number of automorphisms by colour refinement, [`SymmetryCount::Refined`], for
    /// graphs of any size.
    Refined,
    /// No input about symmetry.
    Unseen,
}

impl Symmetry {
    /// The method of counting symmetries; `None` if it isn't, or if [`Auto`](Self::Auto) hasn't been
    /// resolved.
    pub(in crate::nn) fn count(self) -> Option<SymmetryCount> {
        match self {
            Self::Seen => Some(SymmetryCount::Exact),
            Self::Refined => Some(SymmetryCount::Refined),
            Self::Auto | Self::Unseen => None,
        }
    }

    /// Resolves [`Auto`](Self::Auto) for an environment.
    ///
    /// # Errors
    /// [`Error::Config`] if symmetry is requested in an environment of labelled graphs.
    pub(in crate::nn) fn resolve(self, env: &GraphEnv) -> Result<Self> {
        let is_labelled = env.actions().semantics() == Semantics::Labelled;
        match self {
            Self::Seen | Self::Refined if is_labelled => Err(Error::config(
                "symmetry",
                format!("{self:?}, in an environment of labelled graphs"),
                "`Auto` or `Unseen`: where labels tell graphs apart, no policy depends on automorphisms",
            )),
            Self::Auto if is_labelled || is_expensive(env) => Ok(Self::Unseen),
            Self::Auto if env.schema().max_nodes > MAX_NODES_COUNTED => Ok(Self::Refined),
            Self::Auto => Ok(Self::Seen),
            resolved => Ok(resolved),
        }
    }
}

/// Returns `true` if an environment has too many slots to count symmetries by default.
fn is_expensive(env: &GraphEnv) -> bool {
    env.actions().most_slots(Direction::Forward, env.schema().kind, env.schema().max_nodes) > MAX_SLOTS
}

/// Returns the symmetries.
///
/// # Errors
/// [`Error::Missing`] if they weren't counted.
pub(in crate::nn) fn require_symmetries(symmetries: Option<&MoveSymmetries>) -> Result<&MoveSymmetries> {
    symmetries.ok_or_else(|| {
        Error::missing(
            "a graph network that sees symmetry",
            "automorphisms of these graphs and of what their moves lead to",
            "give `GraphBatch::with_symmetries` what `GraphEnv::move_symmetries` counts, as `GraphPolicy` does, or build the \
             network with `Symmetry::Unseen`",
        )
    })
}

/// A layer that adds a linear map of ln |Aut(G)| to the embedding of each graph.
#[derive(Debug)]
pub(in crate::nn) struct SymmetryLayer(Linear);

impl SymmetryLayer {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, graph_width: i64) -> Self {
        Self(Linear::new(scope, 1, graph_width))
    }

    /// Adds the layer's output to the embeddings of graphs.
    ///
    /// # Errors
    /// [`Error::Missing`] if symmetries weren't counted.
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

/// The factor on the initial weights of gates. It keeps an untrained policy close to the uniform policy.
const GATE_SCALE: f64 = 0.05;

/// A learned weight per graph for the change of ln |Aut| by a move of one action type. The product is added
/// to the move's logit.
#[derive(Debug)]
pub(in crate::nn) struct Gate(Linear);

impl Gate {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, graph_width: i64, factor: f64) -> Self {
        let layer = Linear::new(scope, graph_width, 1);
        layer.scale(GATE_SCALE * factor);
        Self(layer)
    }

    /// Adds the weighted changes to the logits of block `k`.
    ///
    /// # Errors
    /// An error if `symmetries` don't fit the block.
    pub(in crate::nn) fn add_to<E: HeadEngine>(
        &self,
        engine: &E,
        logits: E::Rows,
        k: usize,
        symmetries: &MoveSymmetries,
        graphs: &E::Rows,
    ) -> Result<E::Rows> {
        let (block, changes) = symmetries.of_block(k, engine.shape(&logits).iter().product::<i64>() as usize)?;
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
