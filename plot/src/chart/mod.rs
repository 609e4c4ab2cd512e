//! Figures of curves, dots, contours and heat maps.

mod axis;
mod contour;
mod figure;
mod frame;
mod heat_map;
mod panel;

pub use axis::Scale;
pub use contour::contours;
pub use figure::{Curve, Figure};
pub use panel::Panel;
