//! |Aut| as an input of a network.

use serde::{Deserialize, Serialize};

use crate::env::Direction;
use crate::graph::{GraphEnv, MoveSymmetries, Semantics, SymmetryCount};
use crate::nn::graph::engine::Engine;
use crate::nn::graph::torso::Embedded;
use crate::nn::{Linear, Scope};
use crate::{Error, Result};

/// Automorphisms of larger graphs aren't counted by default, which for some takes for ever.
const MAX_COUNTED: usize = 8;
/// Most slots of forward moves whose graphs are looked at by default: each costs a count.
const MAX_SLOTS: usize = 256;

/// The choice of telling a network how symmetric graphs are, and how each move changes that
/// ([`MoveSymmetries`]).
///
/// Up to isomorphism P_F and P_B of a move depend on |Aut| of both graphs, which message passing can't see.
/// Without it a network has to learn graphs by heart. It costs the automorphisms of each graph that a legal
/// move leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Symmetry {
    /// Up to isomorphism, in environments whose graphs have at most 256 slots of forward moves:
    /// [`Seen`](Self::Seen) up to 8 nodes, [`Refined`](Self::Refined) beyond. The default.
    #[default]
    Auto,
    /// Yes, whatever the size.
    Seen,
    /// An estimate by colour refinement, [`SymmetryCount::Refined`], whatever the size.
    Refined,
    /// No.
    Unseen,
}

impl Symmetry {
    pub(in crate::nn) fn of_files_without() -> Self {
        Self::Unseen
    }

    /// Then it isn't written, so that settings of before the setting are written as they were.
    pub(in crate::nn) fn is_unseen(&self) -> bool {
        *self == Self::Unseen
    }

    /// The way in which symmetry is counted; `None` before it was chosen, too.
    pub(in crate::nn) fn count(self) -> Option<SymmetryCount> {
        match self {
            Self::Seen => Some(SymmetryCount::Exact),
            Self::Refined => Some(SymmetryCount::Refined),
            Self::Auto | Self::Unseen => None,
        }
    }

    /// The choice in an environment, which is never [`Auto`](Self::Auto).
    pub(in crate::nn) fn chosen(self, env: &GraphEnv) -> Result<Self> {
        let labelled = env.actions().semantics() == Semantics::Labelled;
        match self {
            Self::Seen | Self::Refined if labelled => Err(Error::config(
                "symmetry",
                format!("{self:?}, in an environment of labelled graphs"),
                "`Auto` or `Unseen`: where labels tell graphs apart, no policy depends on automorphisms",
            )),
            Self::Auto if labelled || is_dear(env) => Ok(Self::Unseen),
            Self::Auto if env.schema().max_nodes > MAX_COUNTED => Ok(Self::Refined),
            Self::Auto => Ok(Self::Seen),
            chosen => Ok(chosen),
        }
    }
}

/// `true` if looking at what each move leads to would cost more than a default may.
fn is_dear(env: &GraphEnv) -> bool {
    env.actions().most_slots(Direction::Forward, env.schema().kind, env.schema().max_nodes) > MAX_SLOTS
}

pub(in crate::nn) fn counted(symmetries: Option<&MoveSymmetries>) -> Result<&MoveSymmetries> {
    symmetries.ok_or_else(|| {
        Error::missing(
            "a graph network that sees symmetry",
            "automorphisms of these graphs and of what their moves lead to",
            "give `GraphBatch::with_symmetries` what `GraphEnv::move_symmetries` counts, as `GraphPolicy` does, or build the \
             network with `Symmetry::Unseen`",
        )
    })
}

/// Adds ln |Aut(G)| to the embeddings of graphs.
#[derive(Debug)]
pub(in crate::nn) struct SymmetryLayer(Linear);

impl SymmetryLayer {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, of_graph: i64) -> Self {
        Self(Linear::new(scope, 1, of_graph))
    }

    /// The embeddings with it.
    pub(in crate::nn) fn tell<E: Engine>(
        &self,
        engine: &E,
        direction: Direction,
        embedded: Embedded<E::Rows>,
    ) -> Result<Embedded<E::Rows>> {
        let own = engine.rows(&counted(engine.symmetries(direction))?.of_graphs, 1);
        Ok(Embedded { graphs: engine.add(embedded.graphs, &engine.linear(&self.0, &own)), ..embedded })
    }
}

/// Factor on the initial weights of gates: an untrained policy is near the uniform one.
const GATE_SCALE: f64 = 0.05;

/// The weight of a change of ln |Aut| among the slots of one action type: a number per graph.
#[derive(Debug)]
pub(in crate::nn) struct Gate(Linear);

impl Gate {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, of_graph: i64, factor: f64) -> Self {
        let layer = Linear::new(scope, of_graph, 1);
        layer.scale(GATE_SCALE * factor);
        Self(layer)
    }

    /// Logits of block `k` with it.
    pub(in crate::nn) fn add_to<E: Engine>(
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
        let of_rows = rows.flat_map(|(graph, ends)| std::iter::repeat_n(graph as i64, ends[1] - ends[0])).collect();
        let weights = engine.gather(&engine.linear(&self.0, graphs), Some(&engine.index(of_rows)));
        Ok(engine.add(logits, &engine.weigh(engine.rows(changes, block.width), &weights)))
    }
}
