//! The blocks of logits that action types owe, and where a state's slots lie in them.

use tch::Tensor;

use crate::env::Masks;
use crate::{Error, Result};

/// Checks that there is a block per action type, each of the shape that it owes.
pub(super) fn check_blocks(masks: &Masks, blocks: &[Tensor]) -> Result<()> {
    if blocks.len() != masks.blocks.len() {
        return Err(Error::Shape {
            what: "the list of logit blocks".into(),
            expected: vec![masks.blocks.len() as i64],
            got: vec![blocks.len() as i64],
            remedy: "a network gives one block per action type of the direction, in the action set's order",
        });
    }
    for (tensor, block) in blocks.iter().zip(&masks.blocks) {
        let expected = vec![block.rows() as i64, block.width as i64];
        if tensor.size() != expected {
            return Err(Error::Shape {
                what: format!("the logit block of {} ({})", block.name, masks.direction),
                expected,
                got: tensor.size(),
                remedy: "a network gives one row per anchor (graph, node, edge or node pair) of the whole batch",
            });
        }
    }
    Ok(())
}

/// Checks that there is a factor for each state's logits.
pub(super) fn check_scale(masks: &Masks, scale: &Tensor) -> Result<()> {
    match scale.size() == [masks.len() as i64] {
        true => Ok(()),
        false => Err(Error::Shape {
            what: "the scale of logits".into(),
            expected: vec![masks.len() as i64],
            got: scale.size(),
            remedy: "give one number per state",
        }),
    }
}

/// Where each legal slot lies in the concatenation of all blocks.
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
            let (mine, tail) = rest.split_at(rows.len() * block.width);
            let first = base + rows.start * block.width;
            let found = mine.iter().enumerate().filter(|(_, legal)| **legal);
            out.extend(found.map(|(k, _)| (first + k) as i64));
            rest = tail;
        }
    }
    out
}
