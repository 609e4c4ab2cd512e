//! Pictures and tables: figures ([`Figure`]), drawn graphs ([`GraphDrawing`]) and sheets of pictures ([`PictureSheet`]);
//! results as a table of text ([`Table`]).
//!
//! They are written as SVG, which needs neither fonts nor a display; with the feature `png` as PNG, too, by the path's
//! extension. Colours are those of Okabe and Ito, which readers with a colour vision deficiency can tell apart.

mod canvas;
mod chart;
mod graph;
mod table;

pub use canvas::{Canvas, Colour, PictureSheet, TextAnchor};
pub use chart::{Curve, Figure, Panel, Scale};
pub use graph::{GraphDrawing, Layout, NodeLabels};
pub use table::{Cell, Table, number};
