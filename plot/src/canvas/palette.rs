//! Palettes of colours that readers with a colour vision deficiency can distinguish (Okabe and Ito 2008).

use crate::Colour;

/// The colours of curves and edges. Yellow is left out, because a thin yellow line is hard to see on white.
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

/// The fill colours of a graph's nodes.
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

/// Returns the colour and the length of the dashes of curve `k`; `None` for a solid line. After eight curves
/// the colours repeat with other dashes. Up to 32 curves can be distinguished.
pub(crate) fn curve(k: usize) -> (Colour, Option<f64>) {
    (LINES[k % 8], [None, Some(3.0), Some(8.0), Some(1.5)][k / 8 % 4])
}

/// Returns the fill colour of a node of class `k`. Colours repeat after eight classes.
pub(crate) fn node(k: usize) -> Colour {
    NODES[k % 8]
}

/// Returns the colour and the length of the dashes of an edge of class `k`; `None` for a solid line. Class 0
/// is black, and other classes have the colours of curves. The lines of successive classes are solid, with
/// long dashes, and with short dashes in turn.
pub(crate) fn edge(k: usize) -> (Colour, Option<f64>) {
    let colour = if k == 0 { Colour::INK } else { LINES[(k - 1) % 6] };
    (colour, [None, Some(6.0), Some(2.5)][k % 3])
}
