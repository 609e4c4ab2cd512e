//! Pictures: figures ([`Figure`]), drawn graphs ([`GraphSheet`]) and sheets of other pictures ([`PictureSheet`]).
//!
//! They are written as SVG or PNG by the path's extension. Both are drawn from one list of shapes and with an embedded
//! font (DejaVu Sans), so a machine needs neither fonts nor a display.

mod canvas;
mod chart;
mod graph;

pub use canvas::{Canvas, Colour, PictureSheet, TextAnchor};
pub use chart::{Curve, Figure, Panel, Scale, contours};
pub use graph::{GraphSheet, Layout, NodeLabels, majorise};
