//! The changes of the number of automorphisms |Aut| by moves, which are an input of policies on graphs up to
//! isomorphism.

use crate::env::{Block, Direction, DiscreteEnv, Masks, Rows};
use crate::graph::{GraphEnv, GraphState, GraphStates};
use crate::{Error, Result, parallel};

use super::MIN_SEARCHES_PER_THREAD;
use super::refinement::log_refined;

/// The method by which the automorphisms of graphs are counted for a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymmetryCount {
    /// Counts by an exact search, [`GraphEnv::log_automorphisms`]. The search is nearly always fast, but for
    /// some graphs it exceeds its limit, and an error is returned.
    Exact,
    /// Estimates by colour refinement (the one-dimensional Weisfeiler-Leman test). Nodes get separate colours
    /// one after another, and each time the colours of the other nodes are refined. The result is an upper
    /// bound of |Aut|, computed in polynomial time.
    ///
    /// The bound equals |Aut| if nodes that refinement can't distinguish are interchangeable, as in all
    /// graphs of at most 7 nodes. The bound concerns the automorphisms of the graph itself, even if
    /// [`GraphRules::log_automorphisms`](crate::graph::GraphRules::log_automorphisms) returns another number.
    Refined,
}

/// The numbers of automorphisms of some graphs, and the changes of these numbers by each move.
///
/// Up to isomorphism, the probabilities of a slot that leads from G to G' satisfy `P_F / P_B = F(G')
/// |Aut(G')| / (F(G) |Aut(G)|)`, where F(G) is the flow through the isomorphism class of G. So a policy must
/// know the ratio of |Aut(G')| to |Aut(G)|. Message passing can't compute this ratio: nodes that are nearly
/// interchangeable have nearly the same embeddings as interchangeable ones, while |Aut| differs by a factor
/// of 2.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveSymmetries {
    /// The direction of the moves.
    pub direction: Direction,
    /// The value ln |Aut(G)| of each graph G, `[B]`, exact or an upper bound.
    pub of_graphs: Vec<f64>,
    /// The blocks of logits, one per action type, whose slots `of_slots` describes.
    pub blocks: Vec<Block>,
    /// The value ln (|Aut(G')| / |Aut(G)|) of each slot of each block of logits, `[rows, width]` row by row,
    /// where the slot leads from G to G'. The value is 0 for the exit and for slots that aren't legal.
    pub of_slots: Vec<Vec<f64>>,
}

impl MoveSymmetries {
    /// Checks that these are the automorphism counts of exactly `n` graphs.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        let of_blocks = self.blocks.iter().map(|block| block.row_ptr.len() - 1);
        if let Some(counted) =
            std::iter::once(self.of_graphs.len()).chain(of_blocks).find(|&counted| counted != n)
        {
            return Err(Error::shape(
                "symmetries of moves",
                [n as i64],
                [counted as i64],
                "give the result of `GraphEnv::move_symmetries` for the same graphs",
            ));
        }
        Ok(())
    }

    /// Returns the block of logits of the action type with the index `k`, and the change of ln |Aut| by each
    /// slot of this block. An error is returned unless the block has exactly `logits` slots.
    pub(crate) fn block(&self, k: usize, logits: usize) -> Result<(&Block, &[f64])> {
        match self.blocks.get(k).zip(self.of_slots.get(k)).filter(|(_, changes)| changes.len() == logits) {
            Some((block, changes)) => Ok((block, changes)),
            None => Err(Error::shape(
                format!("symmetries of moves, block {k}"),
                [logits as i64],
                [self.of_slots.get(k).map_or(0, Vec::len) as i64],
                "give the result of `GraphEnv::move_symmetries` of the environment that the network was \
                 built for",
            )),
        }
    }

    /// Counts the automorphisms of states and of the states to which their legal moves lead. `masks` must be
    /// the masks of the states.
    pub(crate) fn count(
        env: &GraphEnv,
        count: SymmetryCount,
        masks: &Masks,
        states: &GraphStates,
    ) -> Result<Self> {
        let classes = env.label_classes();
        let log_automorphisms = |graph: &GraphState| match count {
            SymmetryCount::Exact => env.log_automorphisms(graph),
            SymmetryCount::Refined => Ok(log_refined(graph, env.initial_of(graph), &classes)),
        };
        let count_row = |row: usize| {
            let graph = &states.graphs()[row];
            let of_graph = log_automorphisms(graph)?;
            let mut slots = vec![0.0; masks.slot_ptr[row + 1] - masks.slot_ptr[row]];
            for slot in masks.legal_slots(row) {
                let (_, action_type, action) = env.actions().decode(masks.direction, graph, slot)?;
                if !action_type.is_exit() {
                    let mut child = graph.clone();
                    action_type.apply(masks.direction, &mut child, action)?;
                    slots[slot as usize] = log_automorphisms(&child)? - of_graph;
                }
            }
            Ok((of_graph, slots))
        };
        let rows = parallel::try_map_range(states.len(), MIN_SEARCHES_PER_THREAD, count_row)?;
        let mut of_slots: Vec<Vec<f64>> =
            masks.blocks.iter().map(|block| Vec::with_capacity(block.rows() * block.width)).collect();
        for (row, (_, slots)) in rows.iter().enumerate() {
            let mut rest = slots.as_slice();
            for (block, of_block) in masks.blocks.iter().zip(&mut of_slots) {
                let (slots, later) =
                    rest.split_at((block.row_ptr[row + 1] - block.row_ptr[row]) * block.width);
                of_block.extend_from_slice(slots);
                rest = later;
            }
        }
        let of_graphs = rows.into_iter().map(|(of_graph, _)| of_graph).collect();
        Ok(Self { direction: masks.direction, of_graphs, blocks: masks.blocks.clone(), of_slots })
    }
}

impl GraphEnv {
    /// Counts the automorphisms of graphs and of the graphs to which their legal moves lead. The result is
    /// the input of networks that [see symmetry](crate::nn::GraphNetwork::sees_symmetry).
    ///
    /// [`GraphPolicy`](crate::policy::GraphPolicy) calls this method for its network. If you call a network
    /// directly, pass the result to
    /// [`GraphBatch::with_symmetries`](crate::graph::GraphBatch::with_symmetries). Automorphisms are counted
    /// once for each graph and once for each legal move.
    ///
    /// ```
    /// use gfn::env::{Direction, Env};
    /// use gfn::graph::*;
    /// // Three interchangeable nodes have 3! automorphisms, and any edge leaves 2 of them.
    /// let actions = ActionSet::new(Semantics::UpToIsomorphism);
    /// let actions = actions.with(AddNode::free(1, 3)).with(AddEdge::new(1));
    /// let kind = GraphKind::Undirected;
    /// let env = GraphEnv::new(Free, actions, GraphState::new(kind))?;
    /// let states = GraphStates::from(vec![GraphState::with_nodes(kind, 3)]);
    /// let counted = env.move_symmetries(SymmetryCount::Exact, Direction::Forward, &states)?;
    /// assert!((counted.of_graphs[0] - 6_f64.ln()).abs() < 1e-12);
    /// let fewest = counted.of_slots.concat().into_iter().fold(0.0, f64::min);
    /// assert!((fewest - (2.0_f64 / 6.0).ln()).abs() < 1e-12);
    /// let batch = GraphBatch::new(env.schema(), states.arrays(), None, tch::Device::Cpu)?;
    /// let batch = batch.with_symmetries(counted)?;
    /// assert!(batch.symmetries(Direction::Forward).is_some());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`log_automorphisms`](Self::log_automorphisms), if the count is exact.
    pub fn move_symmetries(
        &self,
        count: SymmetryCount,
        direction: Direction,
        states: &GraphStates,
    ) -> Result<MoveSymmetries> {
        MoveSymmetries::count(self, count, &self.masks(direction, states), states)
    }
}
