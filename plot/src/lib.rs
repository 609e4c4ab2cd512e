//! Pictures and tables: figures ([`Figure`]), drawings of graphs ([`GraphDrawing`]), sheets of pictures
//! ([`PictureSheet`]), text tables of results ([`Table`]), and reports with all of them ([`Page`]).
//!
//! Pictures are written as SVG, which needs neither fonts nor a display, or as PNG, which needs the feature
//! `png`. The extension of the path selects the format. Readers with a colour vision deficiency can
//! distinguish the colours, which are those of Okabe and Ito.

mod canvas;
mod chart;
mod graph;
mod page;
mod table;

pub use canvas::{Canvas, Colour, PictureSheet, TextAnchor};
pub use chart::{Curve, Figure, Panel, Scale};
pub use graph::{GraphDrawing, Layout, NodeLabels};
pub use page::Page;
pub use table::{Cell, Table, number};
