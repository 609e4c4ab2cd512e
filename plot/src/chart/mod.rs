//! Figures with curves, dots and heat maps.

mod axis;
mod figure;
mod frame;
mod heat_map;
mod panel;

pub use axis::Scale;
pub use figure::{Curve, Figure};
pub use panel::Panel;
