//! Pictures and tables: figures ([`Figure`]), drawings of graphs ([`GraphDrawing`]), sheets of pictures
//! ([`PictureSheet`]), and text tables of results ([`Table`]).
//!
//! Pictures are written as SVG, which needs neither fonts nor a display, or with the feature `png` as PNG,
//! chosen by the path's extension. The colours, by Okabe and Ito, can be told apart with a colour vision
//! deficiency.

mod canvas;
mod chart;
mod graph;
mod table;

pub use canvas::{Canvas, Colour, PictureSheet, TextAnchor};
pub use chart::{Curve, Figure, Panel, Scale};
pub use graph::{GraphDrawing, Layout, NodeLabels};
pub use table::{Cell, Table, number};
