//! Heat maps, which are tables of numbers drawn as coloured cells.

use super::axis::{Axis, Scale};
use super::frame::{FONT, label_ticks};
use super::panel::{HEIGHT, WIDTH};
use crate::canvas::{Point, cut_to_width, text_width};
use crate::{Canvas, Colour, TextAnchor};

/// The colours of low to high values, after matplotlib's viridis. The colours are perceptually uniform, and
/// readable with a colour vision deficiency.
const COLOURS: [Colour; 5] =
    [Colour(68, 1, 84), Colour(59, 82, 139), Colour(33, 145, 140), Colour(94, 201, 98), Colour(253, 231, 37)];
/// The number of coloured steps of which the colour bar consists.
const BAR_STEPS: usize = 48;
/// The largest width of the space for the names of rows, in units of the canvas.
const MAX_BESIDE: f64 = 90.0;
/// The largest height of the space for the names of columns, in units of the canvas.
const MAX_BELOW: f64 = 80.0;
/// The smallest readable font size, in units of the canvas.
const MIN_FONT: f64 = 6.0;

/// A table of numbers, which is drawn as coloured cells. Numbers are listed row by row from the bottom row,
/// and coloured from 0 to `max`.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeatMap {
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
    pub(crate) max: f64,
    /// The names of the rows, from the bottom row to the top row.
    pub(crate) row_names: Vec<String>,
    /// The names of the columns, from left to right.
    pub(crate) column_names: Vec<String>,
    /// The label of the colour bar, which may be empty.
    pub(crate) unit: String,
}

/// Returns the colour of a number. `share` is the number divided by the largest number of the colour scale.
/// The share is clamped to the range from 0 to 1.
fn colour(share: f64) -> Colour {
    let place = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 } * (COLOURS.len() - 1) as f64;
    let k = (place as usize).min(COLOURS.len() - 2);
    let a = COLOURS[k];
    let b = COLOURS[k + 1];
    let t = place - k as f64;
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * t).round() as u8;
    Colour(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Draws a cell with its top left corner at `at`. The cell is half a unit wider and higher than given, so
/// that no gap is visible between neighbouring cells.
fn draw_cell(canvas: &mut Canvas, at: Point, width: f64, height: f64, colour: Colour) {
    let right = at.0 + width + 0.5;
    let bottom = at.1 + height + 0.5;
    canvas.area(vec![at, (right, at.1), (right, bottom), (at.0, bottom)], colour);
}

impl HeatMap {
    /// Draws the map in the middle of a panel, with square cells. The names of rows are drawn to the left of
    /// the map, the names of columns below it, and the colour bar to its right.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x_label: &str, y_label: &str) {
        let columns = self.columns.max(1);
        let rows = self.values.len().div_ceil(columns).max(1);
        let widest =
            |names: &[String]| names.iter().map(|name| text_width(name, FONT) + 8.0).fold(0.0, f64::max);
        let label = |text: &str| if text.is_empty() { 0.0 } else { 18.0 };
        let beside = widest(&self.row_names).min(MAX_BESIDE) + label(y_label);
        let below = widest(&self.column_names).min(MAX_BELOW) + label(x_label);
        let room = (WIDTH - 130.0 - beside, HEIGHT - 60.0 - below);
        let side = (room.0 / columns as f64).min(room.1 / rows as f64);
        let width = side * columns as f64;
        let height = side * rows as f64;
        let left = 30.0 + beside + (room.0 - width) / 2.0;
        let top = 32.0 + (room.1 - height) / 2.0;
        let bottom = top + height;
        for (k, value) in self.values.iter().enumerate() {
            let row = k / columns;
            let column = k % columns;
            let at = (left + side * column as f64, bottom - side * (row + 1) as f64);
            draw_cell(canvas, at, side, side, colour(value / self.max));
        }
        let size = FONT.min(0.9 * side);
        if size >= MIN_FONT {
            for (k, name) in self.row_names.iter().enumerate() {
                let at = (left - 6.0, bottom - side * (k as f64 + 0.5));
                canvas.text(
                    at,
                    &cut_to_width(name, size, MAX_BESIDE - 8.0),
                    size,
                    Colour::INK,
                    TextAnchor::Right,
                );
            }
            for (k, name) in self.column_names.iter().enumerate() {
                let at = (left + side * (k as f64 + 0.5), bottom + 6.0);
                canvas.turned_text(at, &cut_to_width(name, size, MAX_BELOW - 8.0), size, TextAnchor::Right);
            }
        }
        let middle = (left + width / 2.0, bottom + below - 6.0);
        canvas.text(middle, x_label, FONT, Colour::INK, TextAnchor::Middle);
        canvas.turned_text((left - beside + 6.0, top + height / 2.0), y_label, FONT, TextAnchor::Middle);
        self.draw_bar(canvas, (left + width + 18.0, top), height);
    }

    fn draw_bar(&self, canvas: &mut Canvas, corner: Point, height: f64) {
        let (left, top) = corner;
        let step = height / BAR_STEPS as f64;
        for k in 0..BAR_STEPS {
            let at = (left, top + height - step * (k + 1) as f64);
            draw_cell(canvas, at, 12.0, step, colour((k as f64 + 0.5) / BAR_STEPS as f64));
        }
        if !(self.max > 0.0 && self.max.is_finite()) {
            return;
        }
        let ticks = Axis::over(Scale::Linear, [0.0, self.max].into_iter(), false).ticks();
        let mut widest: f64 = 0.0;
        for (tick, _) in label_ticks(ticks, height, |_| FONT + 2.0).into_iter().filter(|(_, shown)| *shown) {
            let y = top + height * (1.0 - tick.place);
            canvas.line(vec![(left + 12.0, y), (left + 15.0, y)], Colour::GREY, 1.0);
            canvas.text((left + 18.0, y), &tick.label, FONT, Colour::INK, TextAnchor::Left);
            widest = widest.max(text_width(&tick.label, FONT));
        }
        let unit = cut_to_width(&self.unit, FONT, height);
        canvas.turned_text((left + 30.0 + widest, top + height / 2.0), &unit, FONT, TextAnchor::Middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::Shape;

    #[test]
    fn the_colour_bar_has_round_numbers_and_says_what_they_are() {
        let texts = |max: f64| {
            let map = HeatMap {
                columns: 1,
                values: vec![0.5],
                max,
                unit: "probability".into(),
                ..HeatMap::default()
            };
            let mut canvas = Canvas::new(WIDTH, HEIGHT);
            map.draw(&mut canvas, "", "");
            let texts = canvas.shapes.into_iter().filter_map(|shape| match shape {
                Shape::Text { text, .. } if !text.is_empty() => Some(text),
                _ => None,
            });
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts(1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0", "probability"]);
        assert_eq!(
            texts(0.1422),
            ["0", "0.02", "0.04", "0.06", "0.08", "0.10", "0.12", "0.14", "probability"]
        );
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(texts(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn cells_are_named_inside_of_the_panel() {
        let names: Vec<String> = (0..11).map(|k| format!("a long name, number {k}")).collect();
        let map = HeatMap {
            columns: 11,
            values: vec![0.5; 121],
            max: 1.0,
            row_names: names.clone(),
            column_names: names,
            unit: "shares".into(),
        };
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        map.draw(&mut canvas, "to", "from");
        let mut texts = 0;
        for shape in &canvas.shapes {
            let Shape::Text { at, text, size, anchor, turned, .. } = shape else { continue };
            let length = text_width(text, *size);
            let before = match anchor {
                TextAnchor::Left => 0.0,
                TextAnchor::Middle => 0.5,
                TextAnchor::Right => 1.0,
            };
            // `along` is the text's position in the direction in which the text runs. A turned text runs
            // upwards, so its y coordinate is used.
            let (along, limit, start) = if *turned {
                (at.1, HEIGHT, at.1 - (1.0 - before) * length)
            } else {
                (at.0, WIDTH, at.0 - before * length)
            };
            assert!(start >= 0.0 && start + length <= limit, "{text} at {along}");
            texts += 1;
        }
        // There are 11 names of rows, 11 names of columns, two axis labels, the label of the colour bar, and
        // six labels of its ticks.
        assert_eq!(texts, 11 + 11 + 2 + 1 + 6);
    }

    #[test]
    fn colours_run_from_end_to_end() {
        assert_eq!(colour(-1.0), COLOURS[0]);
        assert_eq!(colour(f64::NAN), COLOURS[0]);
        assert_eq!(colour(0.5), COLOURS[2]);
        assert_eq!(colour(7.0), COLOURS[4]);
        assert_eq!(colour(0.125), Colour(64, 42, 112));
    }
}
