//! What a network is told of |Aut|.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::env::Direction;
use crate::graph::{GraphArrays, GraphBatch, GraphEnv, GraphRules, MoveSymmetries, Semantics};
use crate::nn::graph::torso::{Embedded, HostEmbedded};
use crate::nn::{HostLinear, Linear, Scope};
use crate::{Error, Result};

/// Automorphisms of larger graphs take longer to count than the default may cost.
const MAX_NODES: usize = 8;
/// So do those of what the moves of graphs lead to that have more slots.
const MAX_SLOTS: usize = 256;

/// Whether a network is told how symmetric graphs are, and how each move changes that ([`MoveSymmetries`]).
///
/// Up to isomorphism P_F and P_B of a move depend on |Aut| of both graphs, which message passing can't see. Without it a network
/// has to learn graphs by heart. It costs the automorphisms of each graph that a legal move leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Symmetry {
    /// Up to isomorphism, in environments whose graphs have at most 8 nodes and 256 slots of forward moves. The default.
    #[default]
    Auto,
    /// Yes, whatever the size.
    Seen,
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

    /// [`Seen`](Self::Seen) or [`Unseen`](Self::Unseen).
    pub(in crate::nn) fn chosen<R: GraphRules>(self, env: &GraphEnv<R>) -> Result<Self> {
        let labelled = env.actions().semantics() == Semantics::Labelled;
        match self {
            Self::Seen if labelled => Err(Error::config(
                "symmetry",
                "Seen, in an environment of labelled graphs",
                "`Auto` or `Unseen`: where labels tell graphs apart, no policy depends on automorphisms",
            )),
            Self::Auto if labelled || is_dear(env) => Ok(Self::Unseen),
            Self::Auto => Ok(Self::Seen),
            chosen => Ok(chosen),
        }
    }
}

/// Whether counting automorphisms after each move would cost more than a default may.
fn is_dear<R: GraphRules>(env: &GraphEnv<R>) -> bool {
    let (kind, max_nodes) = (env.schema().kind, env.schema().max_nodes);
    max_nodes > MAX_NODES || env.actions().most_slots(Direction::Forward, kind, max_nodes) > MAX_SLOTS
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
    pub(in crate::nn) fn tell(
        &self,
        batch: &GraphBatch<'_>,
        direction: Direction,
        embedded: Embedded,
    ) -> Result<Embedded> {
        let symmetries = counted(batch.symmetries(direction))?;
        let (kind, device) = (embedded.graphs.kind(), embedded.graphs.device());
        let own = crate::tensor::from_host(&symmetries.of_graphs, kind, device).unsqueeze(1);
        Ok(Embedded { graphs: embedded.graphs + self.0.forward(&own), ..embedded })
    }

    pub(in crate::nn) fn on_host(&self, direction: Direction) -> HostSymmetry {
        HostSymmetry { layer: HostLinear::of(&self.0), direction }
    }
}

/// A copy of [`SymmetryLayer`] on the host.
#[derive(Debug)]
pub(in crate::nn) struct HostSymmetry {
    layer: HostLinear,
    direction: Direction,
}

impl HostSymmetry {
    pub(in crate::nn) fn tell<'a>(
        &self,
        arrays: &GraphArrays,
        symmetries: Option<&'a MoveSymmetries>,
        embedded: &mut HostEmbedded,
    ) -> Result<&'a MoveSymmetries> {
        let symmetries = counted(symmetries.filter(|counted| counted.direction == self.direction))?;
        symmetries.check(arrays.len())?;
        let own: Vec<f32> = symmetries.of_graphs.iter().map(|&log| log as f32).collect();
        add(&mut embedded.graphs, &self.layer.rows(&own, arrays.len()));
        Ok(symmetries)
    }
}

fn add(to: &mut [f32], more: &[f32]) {
    to.iter_mut().zip(more).for_each(|(x, &a)| *x += a);
}

/// Factor on the initial weights of gates: an untrained policy is near the uniform one.
const GATE_SCALE: f64 = 0.05;

/// What a change of ln |Aut| counts for among the slots of one action type: a number per graph.
#[derive(Debug)]
pub(in crate::nn) struct Gate(Linear);

impl Gate {
    pub(in crate::nn) fn new(scope: &mut Scope<'_>, of_graph: i64, factor: f64) -> Self {
        let layer = Linear::new(scope, of_graph, 1);
        layer.scale(GATE_SCALE * factor);
        Self(layer)
    }

    /// Logits of block `k` with it.
    pub(in crate::nn) fn forward(
        &self,
        logits: &Tensor,
        k: usize,
        symmetries: &MoveSymmetries,
        graphs: &Tensor,
    ) -> Result<Tensor> {
        let (kind, device) = (logits.kind(), logits.device());
        let (block, changes) = symmetries.of_block(k, logits.numel())?;
        let changes = crate::tensor::from_host(changes, kind, device).view_as(logits);
        let of_rows: Vec<i64> = rows(&block.row_ptr).map(|graph| graph as i64).collect();
        let of_rows = Tensor::from_slice(&of_rows).to_device(device);
        Ok(logits + changes * self.0.forward(graphs).index_select(0, &of_rows))
    }

    pub(in crate::nn) fn on_host(&self) -> HostGate {
        HostGate(HostLinear::of(&self.0))
    }
}

/// The graph of each row.
fn rows(row_ptr: &[usize]) -> impl Iterator<Item = usize> + '_ {
    row_ptr.windows(2).enumerate().flat_map(|(graph, ends)| std::iter::repeat_n(graph, ends[1] - ends[0]))
}

/// A copy of [`Gate`] on the host.
#[derive(Debug)]
pub(in crate::nn) struct HostGate(HostLinear);

impl HostGate {
    pub(in crate::nn) fn add_to(
        &self,
        logits: &mut [f32],
        k: usize,
        symmetries: &MoveSymmetries,
        graphs: &[f32],
    ) -> Result<()> {
        let (block, changes) = symmetries.of_block(k, logits.len())?;
        let weights = self.0.rows(graphs, symmetries.of_graphs.len());
        let changes = changes.chunks(block.width.max(1));
        let logits = logits.chunks_mut(block.width.max(1));
        for ((graph, changes), logits) in rows(&block.row_ptr).zip(changes).zip(logits) {
            changes.iter().zip(logits).for_each(|(&change, x)| *x += weights[graph] * change as f32);
        }
        Ok(())
    }
}
