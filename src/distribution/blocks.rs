//! Blocks of logits. A block is the tensor or list of logits of one action type, for all states of a batch.
//! The functions check the blocks' shapes, and find the positions of slots in the blocks.

use tch::Tensor;

use crate::error::check_len;
use crate::rows::{Block, Masks};
use crate::{Error, Result};

/// Checks that there is one block of logits per action type, in the shape that the masks require.
///
/// # Errors
/// [`Error::Shape`] if a block is missing or has another shape.
pub(super) fn check_blocks(masks: &Masks, blocks: &[Tensor]) -> Result<()> {
    check_count(masks, blocks.len())?;
    let expected = |block: &Block| vec![block.rows() as i64, block.width as i64];
    blocks
        .iter()
        .zip(&masks.blocks)
        .try_for_each(|(tensor, block)| check_shape(masks, block, expected(block), tensor.size()))
}

fn check_count(masks: &Masks, n: usize) -> Result<()> {
    let remedy = "let the network return one block per action type of the direction, in the order of the \
        action set";
    check_len("the list of logit blocks", masks.blocks.len(), n, remedy)
}

fn check_shape(masks: &Masks, block: &Block, expected: Vec<i64>, got: Vec<i64>) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    let remedy = "let the network return one row per anchor (graph, node, edge or node pair) of the whole \
        batch";
    Err(Error::shape(
        format!("the logit block of {} ({})", block.name, masks.direction),
        expected,
        got,
        remedy,
    ))
}

/// Returns the logits of all slots on the host, `[slots]`, one state after another. The argument `blocks` has
/// the same logits in another order: one list per action type, for all states.
///
/// # Errors
/// [`Error::Shape`] if a block is missing or has another length than the masks require.
pub(super) fn state_by_state(masks: &Masks, blocks: &[Vec<f32>]) -> Result<Vec<f32>> {
    check_count(masks, blocks.len())?;
    for (values, block) in blocks.iter().zip(&masks.blocks) {
        check_shape(masks, block, vec![(block.rows() * block.width) as i64], vec![values.len() as i64])?;
    }
    let mut out = Vec::with_capacity(masks.legal.len());
    for state in 0..masks.len() {
        for (block, values) in masks.blocks.iter().zip(blocks) {
            out.extend_from_slice(
                &values[block.row_ptr[state] * block.width..block.row_ptr[state + 1] * block.width],
            );
        }
    }
    Ok(out)
}

/// Checks that there is one factor of the logits per state.
///
/// # Errors
/// [`Error::Shape`] if `scale` has another shape than `[states]`.
pub(super) fn check_scale(n: usize, scale: &Tensor) -> Result<()> {
    if scale.size() == [n as i64] {
        return Ok(());
    }
    Err(Error::shape("the scale of logits", [n as i64], scale.size(), "give one number per state"))
}

/// Returns the position of each legal slot, state by state, in the concatenation of all blocks of logits.
pub(super) fn positions(masks: &Masks) -> Vec<i64> {
    let mut base = 0;
    let bases: Vec<usize> = masks
        .blocks
        .iter()
        .map(|block| {
            let start = base;
            base += block.rows() * block.width;
            start
        })
        .collect();
    let mut out = Vec::with_capacity(masks.legal.len());
    for row in 0..masks.len() {
        let legal = masks.row(row);
        let mut rest = legal;
        for (block, base) in masks.blocks.iter().zip(&bases) {
            let rows = block.row_ptr[row]..block.row_ptr[row + 1];
            let (slots, tail) = rest.split_at(rows.len() * block.width);
            let first = base + rows.start * block.width;
            let legal_slots = slots.iter().enumerate().filter(|(_, legal)| **legal);
            out.extend(legal_slots.map(|(k, _)| (first + k) as i64));
            rest = tail;
        }
    }
    out
}
