//! What a run shows for itself: pictures ([`Figure`], [`GraphSheet`], [`PictureSheet`]), tables ([`Table`]) and progress ([`Progress`]).
//!
//! Pictures are written as SVG or PNG by the path's extension. Both are drawn from one list of shapes and with an embedded font
//! (DejaVu Sans), so a machine needs neither fonts nor a display.

mod axis;
mod canvas;
mod contour;
mod edges;
mod frame;
mod graphs;
mod grid;
mod heat_map;
mod layout;
mod lettering;
mod palette;
mod panel;
mod plot;
mod progress;
mod render;
mod table;

pub use axis::Scale;
pub use canvas::{Anchor, Canvas, Colour};
pub use contour::contours;
pub use graphs::{GraphSheet, NodeLabels};
pub use grid::PictureSheet;
pub use layout::Layout;
pub use panel::Panel;
pub use plot::{Curve, Figure};
pub use progress::Progress;
pub use table::{Cell, Table, number};
