//! The changes that moves make to the symmetry of graphs, for policies up to isomorphism.

use crate::env::{Block, Direction, DiscreteEnv, Masks, Rows};
use crate::graph::{GraphEnv, GraphState, GraphStates};
use crate::{Error, Result, parallel};

use super::MIN_PER_THREAD;
use super::refined::log_refined;

/// The way in which the automorphisms of a graph are counted for a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymmetryCount {
    /// By a search, as [`GraphEnv::log_automorphisms`] says: nearly always fast, but there are graphs of which it never ends.
    Exact,
    /// By colour refinement (the first Weisfeiler-Leman test), holding one node after the other: an upper bound, in polynomial time.
    /// It is |Aut| wherever nodes that refinement can't tell apart are alike, as in all graphs of at most 7 nodes. It is
    /// of the graph as it stands, whatever [`GraphRules::log_automorphisms`](crate::graph::GraphRules::log_automorphisms) counts.
    Refined,
}

/// The symmetry of some graphs, and the changes that their moves make to it.
///
/// Up to isomorphism, with F(G) the flow through a class of graphs, the probabilities of a slot from G to G' satisfy
/// `P_F / P_B = F(G') |Aut(G')| / (F(G) |Aut(G)|)`. So a policy must know the ratio of the two |Aut|, and message passing can't
/// see it: it gives nodes that are nearly alike nearly the same embeddings, where |Aut| jumps by a factor of 2.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveSymmetries {
    /// Of which moves.
    pub direction: Direction,
    /// ln |Aut(G)| of each graph, as far as it was counted, `[B]`.
    pub of_graphs: Vec<f64>,
    /// The blocks of logits that slots belong to.
    pub blocks: Vec<Block>,
    /// For each block, ln (|Aut(G')| / |Aut(G)|) of each slot, `[rows, width]` row by row, where the slot leads from G to G'; 0
    /// for the exit and for what isn't legal.
    pub of_slots: Vec<Vec<f64>>,
}

impl MoveSymmetries {
    /// What a batch of `n` graphs can be told.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        let of_blocks = self.blocks.iter().map(|block| block.row_ptr.len() - 1);
        match std::iter::once(self.of_graphs.len()).chain(of_blocks).find(|&counted| counted != n) {
            None => Ok(()),
            Some(counted) => Err(Error::shape(
                "symmetries of moves",
                [n as i64],
                [counted as i64],
                "give those that `GraphEnv::move_symmetries` counts of the same graphs",
            )),
        }
    }

    /// The changes of the slots of block `k`, which has this many logits.
    pub(crate) fn of_block(&self, k: usize, logits: usize) -> Result<(&Block, &[f64])> {
        match self.blocks.get(k).zip(self.of_slots.get(k)).filter(|(_, changes)| changes.len() == logits) {
            Some((block, changes)) => Ok((block, changes)),
            None => Err(Error::shape(
                format!("symmetries of moves, block {k}"),
                [logits as i64],
                [self.of_slots.get(k).map_or(0, Vec::len) as i64],
                "give those that the environment counts whose action types the network was built for",
            )),
        }
    }

    /// Given the masks.
    pub(crate) fn of(env: &GraphEnv, count: SymmetryCount, masks: &Masks, states: &GraphStates) -> Result<Self> {
        let classes = env.label_classes();
        let log_automorphisms = |graph: &GraphState| match count {
            SymmetryCount::Exact => env.log_automorphisms(graph),
            SymmetryCount::Refined => Ok(log_refined(graph, env.initial_of(graph), &classes)),
        };
        let of_row = |row: usize| {
            let graph = &states.graphs()[row];
            let own = log_automorphisms(graph)?;
            let mut slots = vec![0.0; masks.slot_ptr[row + 1] - masks.slot_ptr[row]];
            for slot in masks.legal_slots(row) {
                if let Some(child) = after(env, masks.direction, graph, slot)? {
                    slots[slot as usize] = log_automorphisms(&child)? - own;
                }
            }
            Ok((own, slots))
        };
        let rows = parallel::try_map_range(states.len(), MIN_PER_THREAD, of_row)?;
        let mut of_slots: Vec<Vec<f64>> =
            masks.blocks.iter().map(|block| Vec::with_capacity(block.rows() * block.width)).collect();
        for (row, (_, slots)) in rows.iter().enumerate() {
            let mut rest = slots.as_slice();
            for (block, all) in masks.blocks.iter().zip(&mut of_slots) {
                let (here, behind) = rest.split_at((block.row_ptr[row + 1] - block.row_ptr[row]) * block.width);
                all.extend_from_slice(here);
                rest = behind;
            }
        }
        let of_graphs = rows.into_iter().map(|(own, _)| own).collect();
        Ok(Self { direction: masks.direction, of_graphs, blocks: masks.blocks.clone(), of_slots })
    }
}

/// The graph that a legal slot leads to; `None` for the exit.
fn after(env: &GraphEnv, direction: Direction, graph: &GraphState, slot: u32) -> Result<Option<GraphState>> {
    let (_, action_type, action) = env.actions().decode(direction, graph, slot)?;
    if action_type.is_exit() {
        return Ok(None);
    }
    let mut child = graph.clone();
    action_type.apply(direction, &mut child, action)?;
    Ok(Some(child))
}

impl GraphEnv {
    /// Counts the automorphisms of graphs and of what their legal moves lead to, for networks that
    /// [see symmetry](crate::nn::GraphNetwork::sees_symmetry). [`GraphPolicy`](crate::policy::GraphPolicy) does it for them; by hand
    /// it is [`GraphBatch::with_symmetries`](crate::graph::GraphBatch::with_symmetries) that hands it over.
    ///
    /// ```
    /// use gfn::env::{Direction, Env};
    /// use gfn::graph::*;
    /// // Three alike nodes, 3! automorphisms; any edge leaves 2 of them.
    /// let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3)).with(AddEdge::new(1));
    /// let kind = GraphKind::Undirected;
    /// let env = GraphEnv::new(Free, actions, GraphState::new(kind))?;
    /// let states = GraphStates::from(vec![GraphState::with_nodes(kind, 3)]);
    /// let counted = env.move_symmetries(SymmetryCount::Exact, Direction::Forward, &states)?;
    /// assert!((counted.of_graphs[0] - 6_f64.ln()).abs() < 1e-12);
    /// let fewest = counted.of_slots.concat().into_iter().fold(0.0, f64::min);
    /// assert!((fewest - (2.0_f64 / 6.0).ln()).abs() < 1e-12);
    /// let batch = GraphBatch::new(env.schema(), states.arrays(), None, tch::Device::Cpu)?.with_symmetries(counted)?;
    /// assert!(batch.symmetries(Direction::Forward).is_some());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`log_automorphisms`](Self::log_automorphisms).
    pub fn move_symmetries(
        &self,
        count: SymmetryCount,
        direction: Direction,
        states: &GraphStates,
    ) -> Result<MoveSymmetries> {
        MoveSymmetries::of(self, count, &self.masks(direction, states), states)
    }
}
