//! A number for each node and each edge, whose sums tell states apart: an edit changes a sum by what it edits, and no state is read
//! through to be hashed.

use super::{Attributes, Edge, Node};

/// The finalizer of splitmix64 (Steele, Lea and Flood, 2014): each bit of the result depends on each bit of `x`.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn of_weight(class: u16, attributes: Attributes) -> u64 {
    let [a, b, c, d, e, f, g] = *attributes.values();
    mix(mix(u64::from_le_bytes([1, a, b, c, d, e, f, g])) ^ u64::from(class))
}

pub(super) fn of_node(label: u32, node: Node) -> u64 {
    let weight = if node == Node::default() { 0 } else { of_weight(node.class, node.attributes) };
    mix(u64::from(label) ^ weight)
}

pub(super) fn of_edge(a: u32, b: u32, edge: Edge) -> u64 {
    let weight = if edge.is_plain() { 0 } else { of_weight(edge.class, edge.attributes) };
    mix((u64::from(a) << 32 | u64::from(b)) ^ weight)
}
