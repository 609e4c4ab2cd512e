//! Colours that readers with a colour vision deficiency can tell apart (Okabe and Ito, 2008).

use crate::plot::Colour;

/// Colours dark enough for a thin line on white; yellow isn't.
const LINES: [Colour; 8] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(86, 180, 233),
    Colour(230, 159, 0),
    Colour(0, 0, 0),
    Colour(120, 120, 120),
];

const NODES: [Colour; 8] = [
    Colour(200, 220, 238),
    Colour(230, 159, 0),
    Colour(0, 158, 115),
    Colour(240, 228, 66),
    Colour(204, 121, 167),
    Colour(213, 94, 0),
    Colour(0, 114, 178),
    Colour(120, 120, 120),
];

/// How the curves of each round through the colours are drawn: whole, then by dashes of these lengths.
const DASHES: [Option<f64>; 4] = [None, Some(3.0), Some(8.0), Some(1.5)];

/// The colour of curve `k`; colours repeat after eight, [dashed](dash).
pub(in crate::plot) fn line(k: usize) -> Colour {
    LINES[k % LINES.len()]
}

/// The dashes of curve `k`, if it has any: curves of one colour differ by them, up to 32 curves.
pub(in crate::plot) fn dash(k: usize) -> Option<f64> {
    DASHES[k / LINES.len() % DASHES.len()]
}

/// The fill of a node of class `k`; colours repeat after eight.
pub(in crate::plot) fn node(k: usize) -> Colour {
    NODES[k % NODES.len()]
}

/// The colour of an edge of class `k`: ink for class 0, then the colours of curves.
pub(in crate::plot) fn edge(k: usize) -> Colour {
    match k {
        0 => Colour::INK,
        _ => line((k - 1) % 6),
    }
}
