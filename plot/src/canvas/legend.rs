//! Legends of charts: a short piece of each line with the line's name.

use super::{Point, text_width};
use crate::{Canvas, Colour, TextAnchor};

const SIZE: f64 = 12.0;

/// An entry of a legend: the name, the colour and the dashes of a line.
pub(crate) struct LegendEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: Colour,
    pub(crate) dash: Option<f64>,
}

impl LegendEntry<'_> {
    pub(crate) fn width(&self) -> f64 {
        26.0 + text_width(self.name, SIZE) + 16.0
    }
}

/// Draws the entries of a legend in a row whose centre is at `middle`. If the row is wider than the available
/// width `room`, its entries are drawn smaller and closer together.
pub(crate) fn draw_legend(canvas: &mut Canvas, middle: Point, room: f64, entries: &[LegendEntry<'_>]) {
    let width: f64 = entries.iter().map(LegendEntry::width).sum();
    let squeeze = (room / width).min(1.0);
    let mut x = middle.0 - (width - 16.0) * squeeze / 2.0;
    let y = middle.1;
    for entry in entries {
        canvas.dashed_line(vec![(x, y), (x + 20.0, y)], entry.colour, 2.0, entry.dash);
        canvas.text((x + 26.0, y), entry.name, SIZE * squeeze.max(0.7), Colour::INK, TextAnchor::Left);
        x += entry.width() * squeeze;
    }
}
