//! What moves do to the symmetry of graphs, for policies up to isomorphism.

use crate::env::{Block, Direction, DiscreteEnv, Masks, Rows};
use crate::graph::{GraphEnv, GraphRules, GraphState, GraphStates};
use crate::{Result, parallel};

use super::MIN_PER_THREAD;

/// How symmetric some graphs are, and how their moves change that.
///
/// Up to isomorphism, with F(G) the flow through a class of graphs, the probabilities of a slot from G to G' satisfy
/// `P_F / P_B = F(G') |Aut(G')| / (F(G) |Aut(G)|)`. So a policy must know the ratio of the two |Aut|, and message passing can't
/// see it: it gives nodes that are nearly alike nearly the same embeddings, where |Aut| jumps by a factor of 2.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveSymmetries {
    /// ln |Aut(G)| of each graph, `[B]`.
    pub of_graphs: Vec<f64>,
    /// The blocks of logits that slots belong to.
    pub blocks: Vec<Block>,
    /// For each block, ln (|Aut(G')| / |Aut(G)|) of each slot, `[rows, width]` row by row, where the slot leads from G to G'; 0
    /// for the exit and for what isn't legal.
    pub of_slots: Vec<Vec<f64>>,
}

impl MoveSymmetries {
    fn of<R: GraphRules>(env: &GraphEnv<R>, masks: &Masks, states: &GraphStates) -> Result<Self> {
        let of_row = |row: usize| {
            let graph = &states.graphs()[row];
            let own = env.log_automorphisms(graph)?;
            let mut slots = vec![0.0; masks.slot_ptr[row + 1] - masks.slot_ptr[row]];
            for slot in masks.legal_slots(row) {
                if let Some(child) = after(env, masks.direction, graph, slot)? {
                    slots[slot as usize] = env.log_automorphisms(&child)? - own;
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
        Ok(Self { of_graphs, blocks: masks.blocks.clone(), of_slots })
    }
}

/// The graph that a legal slot leads to; `None` for the exit.
fn after<R: GraphRules>(
    env: &GraphEnv<R>,
    direction: Direction,
    graph: &GraphState,
    slot: u32,
) -> Result<Option<GraphState>> {
    let (_, action_type, action) = env.actions().decode(direction, graph, slot)?;
    if action_type.is_exit() {
        return Ok(None);
    }
    let mut child = graph.clone();
    action_type.apply(direction, &mut child, action)?;
    Ok(Some(child))
}

impl<R: GraphRules> GraphEnv<R> {
    /// Counts the automorphisms of graphs and of what their legal moves lead to, and keeps them with the graphs' arrays, where
    /// [`GraphArrays::symmetries`](crate::graph::GraphArrays::symmetries) gives them. What is there already isn't counted again.
    ///
    /// [`GraphPolicy`](crate::policy::GraphPolicy) does it for networks that
    /// [see symmetry](crate::nn::GraphNetwork::sees_symmetry).
    ///
    /// ```
    /// use gfn::env::{Direction, Env};
    /// use gfn::graph::*;
    /// // Three alike nodes, 3! automorphisms; any edge leaves 2 of them.
    /// let actions = ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 3)).with(AddEdge::new(1));
    /// let kind = GraphKind::Undirected;
    /// let env = GraphEnv::new(Free, actions, GraphSchema::plain(kind, 3), GraphState::new(kind))?;
    /// let states = GraphStates::from(vec![GraphState::with_nodes(kind, 3)]);
    /// env.count_symmetries(Direction::Forward, &states)?;
    /// let counted = states.arrays().symmetries(Direction::Forward).ok_or("counted")?;
    /// assert!((counted.of_graphs[0] - 6_f64.ln()).abs() < 1e-12);
    /// let fewest = counted.of_slots.concat().into_iter().fold(0.0, f64::min);
    /// assert!((fewest - (2.0_f64 / 6.0).ln()).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`log_automorphisms`](Self::log_automorphisms).
    pub fn count_symmetries(&self, direction: Direction, states: &GraphStates) -> Result<()> {
        match states.arrays().symmetries(direction) {
            Some(_) => Ok(()),
            None => self.count_symmetries_of(&self.masks(direction, states), states),
        }
    }

    /// The same, given the masks.
    pub(crate) fn count_symmetries_of(&self, masks: &Masks, states: &GraphStates) -> Result<()> {
        let arrays = states.arrays();
        if arrays.symmetries(masks.direction).is_none() {
            arrays.keep_symmetries(masks.direction, MoveSymmetries::of(self, masks, states)?);
        }
        Ok(())
    }
}
