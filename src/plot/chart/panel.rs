//! One panel of a figure: curves or dots over a pair of axes.

use super::axis::Axis;
use super::frame::{Frame, LABEL, pieces, thinned};
use super::heat_map::HeatMap;
use super::{Curve, Scale};
use crate::plot::canvas::{Point, Shape, fitted, palette, text_width};
use crate::plot::{Canvas, Colour, TextAnchor};

/// The width and height of a panel, in units.
pub(in crate::plot) const PANEL: (f64, f64) = (440.0, 310.0);
const TITLE: f64 = 15.0;
const LEGEND_ROW: f64 = 17.0;
/// Number of dots from which they are drawn small.
const MANY_DOTS: usize = 400;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Marks {
    Lines,
    Dots,
}

/// One panel of a [`Figure`](super::Figure): curves, dots or a heat map.
#[derive(Clone, Debug)]
pub struct Panel {
    title: String,
    x_label: String,
    y_label: String,
    x_scale: Scale,
    y_scale: Scale,
    marks: Marks,
    curves: Vec<Curve>,
    /// A horizontal line and its name in the legend.
    reference: Option<(f64, String)>,
    /// Values that the y axis includes, whatever is drawn.
    y_includes: Vec<f64>,
    diagonal: bool,
    /// Whether both axes have the same scale.
    equal_aspect: bool,
    /// Thin lines under the data, such as contours.
    outlines: Vec<Vec<(f64, f64)>>,
    /// A heat map in place of axes and curves.
    heat_map: Option<HeatMap>,
}

impl Panel {
    /// A panel of curves with linear axes; it has no curves yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_label: "step".to_owned(),
            y_label: String::new(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            marks: Marks::Lines,
            curves: Vec::new(),
            reference: None,
            y_includes: Vec::new(),
            diagonal: false,
            equal_aspect: false,
            outlines: Vec::new(),
            heat_map: None,
        }
    }

    /// A heat map of a table of numbers: `columns` to a row, the first row at the bottom, coloured from 0 to `max`. Use
    /// the same `max` for panels that are to be compared. Rows and columns are described by [`labels`](Self::labels)
    /// and [`names`](Self::names).
    pub fn heat_map(title: impl Into<String>, columns: usize, values: impl IntoIterator<Item = f64>, max: f64) -> Self {
        let heat_map = HeatMap { columns, values: values.into_iter().collect(), max, names: None, unit: String::new() };
        Self { heat_map: Some(heat_map), ..Self::new(title).labels("", "") }
    }

    /// Sets the names of a heat map's rows, from the bottom, and of its columns. They are left out if cells are too
    /// small for text.
    #[must_use]
    pub fn names(mut self, rows: impl IntoIterator<Item = String>, columns: impl IntoIterator<Item = String>) -> Self {
        if let Some(heat_map) = &mut self.heat_map {
            heat_map.names = Some((rows.into_iter().collect(), columns.into_iter().collect()));
        }
        self
    }

    /// Says beside a heat map's colour bar what the numbers are, such as `probability`.
    #[must_use]
    pub fn colour_label(mut self, text: impl Into<String>) -> Self {
        if let Some(heat_map) = &mut self.heat_map {
            heat_map.unit = text.into();
        }
        self
    }

    /// A panel with one dot per point.
    pub fn scatter(title: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let panel = Self { marks: Marks::Dots, ..Self::new(title).labels("", "") };
        panel.curve(Curve::new("points", points))
    }

    /// Adds thin grey lines under the data, such as the [contours](super::contours) of the target density of sampled
    /// points.
    #[must_use]
    pub fn outlines(mut self, lines: impl IntoIterator<Item = Vec<(f64, f64)>>) -> Self {
        self.outlines.extend(lines);
        self
    }

    /// Gives both axes the same scale, so that circles in a plane look like circles.
    #[must_use]
    pub fn equal_aspect(mut self) -> Self {
        self.equal_aspect = true;
        self
    }

    /// A panel with one dot per object, its target probability on x and its learned one on y, both on log axes, and the
    /// line on which the two are equal, from corner to corner of a square. Objects of probability 0 can't be shown; the
    /// title gives their number.
    pub fn learned_against_target(
        title: impl Into<String>,
        target_and_learned: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let mut panel = Self::new(title)
            .labels("target probability", "learned probability")
            .curve(Curve::new("objects", target_and_learned));
        let points = &mut panel.curves[0].points;
        let before = points.len();
        points.retain(|&(x, y)| x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite());
        let left_out = before - points.len();
        if left_out > 0 {
            panel.title += &format!(" ({left_out} of {before} without mass)");
        }
        panel.x_scale = Scale::Log;
        panel.y_scale = Scale::Log;
        panel.marks = Marks::Dots;
        panel.diagonal = true;
        panel.equal_aspect()
    }

    /// Sets the labels of the axes (default: `step` and nothing).
    #[must_use]
    pub fn labels(mut self, x: impl Into<String>, y: impl Into<String>) -> Self {
        self.x_label = x.into();
        self.y_label = y.into();
        self
    }

    /// Sets the scale of the x axis (default: linear).
    #[must_use]
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x_scale = scale;
        self
    }

    /// Sets the scale of the y axis (default: linear).
    #[must_use]
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y_scale = scale;
        self
    }

    /// Makes the y axis include these values: panels that are to be compared get the same scale by the same ones.
    #[must_use]
    pub fn y_includes(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.y_includes.extend(values);
        self
    }

    /// Adds a curve. Colours repeat after eight, then dashed: up to 32 curves differ.
    #[must_use]
    pub fn curve(mut self, curve: Curve) -> Self {
        self.curves.push(curve);
        self
    }

    /// Adds a dashed horizontal line at the value that curves should reach, such as the true log Z.
    #[must_use]
    pub fn reference(mut self, value: f64, name: impl Into<String>) -> Self {
        self.reference = Some((value, name.into()));
        self
    }

    /// Draws the panel with its top left corner at `corner`.
    pub(in crate::plot) fn draw(&self, canvas: &mut Canvas, corner: Point) {
        let (left, top) = corner;
        let middle = left + PANEL.0 / 2.0;
        let at = (middle, top + 14.0);
        canvas.text(at, &fitted(&self.title, TITLE, PANEL.0 - 20.0), TITLE, Colour::INK, TextAnchor::Middle);
        if let Some(heat_map) = &self.heat_map {
            return heat_map.draw(canvas, corner, (&self.x_label, &self.y_label));
        }
        let rows = self.legend();
        for (i, row) in rows.iter().enumerate() {
            draw_legend_row(canvas, (middle, top + 34.0 + LEGEND_ROW * i as f64), row);
        }
        let data = || self.curves.iter().flat_map(|curve| &curve.points).copied();
        let points = || data().chain(self.outlines.iter().flatten().copied());
        // A point that one axis can't show must not extend the other.
        let shown = || points().filter(|&(x, y)| shows(self.x_scale, x) && shows(self.y_scale, y));
        let reference = self.reference.iter().map(|(value, _)| *value).chain(self.y_includes.iter().copied());
        let (x, y) = if self.diagonal {
            let both = Axis::over(self.x_scale, shown().flat_map(|(x, y)| [x, y]), true);
            (both, both)
        } else {
            let ys = shown().map(|(_, y)| y).chain(reference);
            let x = Axis::over(self.x_scale, shown().map(|(x, _)| x), self.marks == Marks::Dots);
            (x, Axis::over(self.y_scale, ys, true))
        };
        let y_ticks = y.ticks();
        let labels = y_ticks.iter().filter_map(|tick| tick.label.as_deref());
        let widest = labels.map(|label| text_width(label, LABEL)).fold(0.0, f64::max);
        let y_label = if self.y_label.is_empty() { 0.0 } else { 18.0 };
        let frame = Frame {
            left: left + 18.0 + y_label + widest,
            right: left + PANEL.0 - 22.0,
            top: top + 30.0 + LEGEND_ROW * rows.len() as f64,
            bottom: top + PANEL.1 - 46.0,
            x,
            y,
        };
        let frame = if self.equal_aspect { frame.equally_scaled() } else { frame };
        frame.draw_axes(canvas, &y_ticks);
        let centre = f64::midpoint(frame.left, frame.right);
        canvas.text((centre, frame.bottom + 34.0), &self.x_label, LABEL, Colour::INK, TextAnchor::Middle);
        let beside = (frame.left - widest - 24.0, f64::midpoint(frame.top, frame.bottom));
        canvas.turned_text(beside, &self.y_label, LABEL, TextAnchor::Middle);
        self.draw_data(canvas, &frame);
    }

    fn draw_data(&self, canvas: &mut Canvas, frame: &Frame) {
        let guide = |points| Shape::Line { points, colour: Colour::INK, width: 1.5, dash: Some(6.0) };
        if self.diagonal {
            canvas.push(guide(vec![(frame.left, frame.bottom), (frame.right, frame.top)]));
        }
        for line in &self.outlines {
            let points = line.iter().map(|&point| frame.place(point));
            pieces(points).into_iter().for_each(|piece| canvas.line(piece, Colour::GREY, 0.7));
        }
        // Many dots are drawn small, so that they don't hide each other.
        let radius =
            if self.curves.iter().map(|curve| curve.points.len()).sum::<usize>() > MANY_DOTS { 1.2 } else { 3.0 };
        for (k, curve) in self.curves.iter().enumerate() {
            let (colour, dash) = (palette::line(k), palette::dash(k));
            let points = curve.points.iter().map(|&point| frame.place(point));
            match self.marks {
                Marks::Dots => points.flatten().for_each(|at| canvas.disc(at, radius, colour)),
                Marks::Lines => {
                    for piece in pieces(points) {
                        match piece.as_slice() {
                            // A single point between two gaps would be an invisible line.
                            &[at] => canvas.disc(at, 1.5, colour),
                            _ => canvas.push(Shape::Line { points: thinned(piece, frame), colour, width: 1.5, dash }),
                        }
                    }
                }
            }
        }
        // Drawn over the curves, because they are compared with it.
        if let Some(y) = self.reference.as_ref().and_then(|(value, _)| frame.y.place(*value)) {
            let height = frame.height(y);
            canvas.push(guide(vec![(frame.left, height), (frame.right, height)]));
        }
    }

    /// The entries of the legend in rows that fit; none if there is only one series.
    fn legend(&self) -> Vec<Vec<Entry<'_>>> {
        let mut entries = Vec::new();
        if self.marks == Marks::Lines && (self.curves.len() > 1 || self.reference.is_some()) {
            let curves = self.curves.iter().enumerate();
            entries.extend(curves.map(|(k, curve)| Entry::new(&curve.name, palette::line(k), palette::dash(k))));
        }
        if let Some((_, name)) = &self.reference {
            entries.push(Entry::new(name, Colour::INK, Some(5.0)));
        }
        let mut rows: Vec<Vec<Entry<'_>>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in entries {
            if used + entry.width > PANEL.0 - 30.0 {
                rows.push(Vec::new());
                used = 0.0;
            }
            used += entry.width;
            if let Some(row) = rows.last_mut() {
                row.push(entry);
            }
        }
        rows
    }
}

fn shows(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// An entry of a legend: a sample of the line and a name.
struct Entry<'a> {
    name: &'a str,
    colour: Colour,
    dash: Option<f64>,
    width: f64,
}

impl<'a> Entry<'a> {
    fn new(name: &'a str, colour: Colour, dash: Option<f64>) -> Self {
        let width = 26.0 + text_width(name, LABEL) + 16.0;
        Self { name, colour, dash, width }
    }
}

fn draw_legend_row(canvas: &mut Canvas, (middle, y): Point, row: &[Entry<'_>]) {
    let width: f64 = row.iter().map(|entry| entry.width).sum();
    let mut x = middle - (width - 16.0) / 2.0;
    for entry in row {
        canvas.push(Shape::Line {
            points: vec![(x, y), (x + 20.0, y)],
            colour: entry.colour,
            width: 2.0,
            dash: entry.dash,
        });
        canvas.text((x + 26.0, y), entry.name, LABEL, Colour::INK, TextAnchor::Left);
        x += entry.width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a panel draws as lines of this colour: the dashes of each.
    fn dashes(canvas: &Canvas, colour: Colour) -> Vec<Option<f64>> {
        let lines = canvas.shapes.iter().filter_map(|shape| match shape {
            Shape::Line { colour: of, dash, width, .. } if *of == colour && *width == 1.5 => Some(*dash),
            _ => None,
        });
        lines.collect()
    }

    #[test]
    fn curves_of_one_colour_differ_by_their_dashes() {
        let curve = |k: usize| Curve::new(k.to_string(), [(0.0, k as f64), (1.0, k as f64)]);
        let panel = (0..21).map(curve).fold(Panel::new("many"), Panel::curve);
        let mut canvas = Canvas::new(PANEL.0, PANEL.1);
        panel.draw(&mut canvas, (0.0, 0.0));
        assert_eq!(dashes(&canvas, palette::line(0)), [None, Some(3.0), Some(8.0)]);
        assert_eq!(dashes(&canvas, palette::line(7)), [None, Some(3.0)]);
    }

    #[test]
    fn panels_that_include_the_same_values_have_the_same_scale() {
        let ticks = |high: f64| {
            let panel = Panel::new("").curve(Curve::new("", [(0.0, 1.0), (1.0, high)])).y_includes([0.0, 9.0]);
            let mut canvas = Canvas::new(PANEL.0, PANEL.1);
            panel.draw(&mut canvas, (0.0, 0.0));
            let texts = canvas.shapes.iter().filter_map(|shape| match shape {
                Shape::Text { text, at, anchor: TextAnchor::Right, .. } => Some((text.clone(), at.1)),
                _ => None,
            });
            texts.collect::<Vec<_>>()
        };
        assert_eq!(ticks(2.0), ticks(8.5));
        assert!(ticks(2.0).iter().any(|(label, _)| label == "8"), "{:?}", ticks(2.0));
    }

    /// Learned against target: the line of equality is at 45 degrees.
    #[test]
    fn the_diagonal_is_one_of_a_square() {
        let panel = Panel::learned_against_target("rings", [(1e-6, 2e-3), (0.3, 0.1)]);
        let mut canvas = Canvas::new(PANEL.0, PANEL.1);
        panel.draw(&mut canvas, (0.0, 0.0));
        let diagonal = canvas.shapes.iter().find_map(|shape| match shape {
            Shape::Line { points, dash: Some(_), .. } => Some(points.clone()),
            _ => None,
        });
        let [a, b] = diagonal.unwrap()[..] else { panic!("a line of two points") };
        assert!((b.0 - a.0 - (a.1 - b.1)).abs() < 1e-9, "{a:?} {b:?}");
    }

    #[test]
    fn objects_without_mass_are_counted_in_the_title() {
        let points = [(0.1, 0.2), (0.3, 0.0), (0.0, 0.0), (0.2, f64::NAN)];
        let panel = Panel::learned_against_target("rings", points);
        assert_eq!(panel.title, "rings (3 of 4 without mass)");
        assert_eq!(panel.curves[0].points, [(0.1, 0.2)]);
    }
}
