//! Panels of a figure: curves, dots or a heat map over a pair of axes.

use super::axis::Axis;
use super::frame::{FONT, Frame, split_at_gaps, thin};
use super::heat_map::HeatMap;
use super::{Curve, Scale};
use crate::canvas::{LegendEntry, cut_to_width, draw_legend, palette, text_width};
use crate::{Canvas, Colour, TextAnchor};

/// The width of a panel, in units of the canvas.
pub(crate) const WIDTH: f64 = 440.0;
/// The height of a panel, in units of the canvas.
pub(crate) const HEIGHT: f64 = 310.0;
/// The font size of a panel's title.
const TITLE: f64 = 15.0;
/// The height of the legend's row.
const LEGEND_ROW: f64 = 17.0;
/// The number of dots above which dots are drawn small, so that they don't hide each other.
const MANY_DOTS: usize = 400;
/// The length of the dashes in reference lines.
const GUIDE: Option<f64> = Some(6.0);

/// A panel of a [`Figure`](super::Figure): curves, dots or a heat map.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    title: String,
    x_label: String,
    y_label: String,
    x_scale: Scale,
    y_scale: Scale,
    /// `true` to draw a dot at each point instead of lines.
    dots: bool,
    curves: Vec<Curve>,
    /// The height of a horizontal line, and its name in the legend.
    reference: Option<(f64, String)>,
    diagonal: bool,
    /// `true` if a unit has the same length on both axes.
    equal_aspect: bool,
    /// Thin lines that are drawn under the data.
    outlines: Vec<Vec<(f64, f64)>>,
    /// The heat map that is drawn instead of axes and curves.
    heat_map: Option<HeatMap>,
}

impl Panel {
    /// Creates a panel with linear axes and without curves.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), x_label: "step".to_owned(), ..Self::default() }
    }

    /// Creates a heat map from a table of numbers. `values` are listed row by row, with `columns` numbers in
    /// each row, beginning with the bottom row. They are coloured from 0 to `max`; use the same `max` for
    /// panels that are to be compared. [`labels`](Self::labels) sets the labels of the axes, and
    /// [`names`](Self::names) the names of rows and columns.
    pub fn heat_map(
        title: impl Into<String>,
        columns: usize,
        values: impl IntoIterator<Item = f64>,
        max: f64,
    ) -> Self {
        let heat_map = HeatMap { columns, values: values.into_iter().collect(), max, ..HeatMap::default() };
        Self { title: title.into(), heat_map: Some(heat_map), ..Self::default() }
    }

    /// Sets the names of a heat map's rows, from the bottom, and of its columns. Names aren't drawn if the
    /// cells are too small for text.
    #[must_use]
    pub fn names(
        mut self,
        rows: impl IntoIterator<Item = String>,
        columns: impl IntoIterator<Item = String>,
    ) -> Self {
        if let Some(heat_map) = &mut self.heat_map {
            heat_map.row_names = rows.into_iter().collect();
            heat_map.column_names = columns.into_iter().collect();
        }
        self
    }

    /// Sets the label of a heat map's colour bar, for example `probability`.
    #[must_use]
    pub fn colour_label(mut self, text: impl Into<String>) -> Self {
        if let Some(heat_map) = &mut self.heat_map {
            heat_map.unit = text.into();
        }
        self
    }

    /// Creates a panel with one dot for each point.
    pub fn scatter(title: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { title: title.into(), dots: true, ..Self::default() }.curve(Curve::new("points", points))
    }

    /// Adds thin grey lines under the data, such as the best front of two objectives.
    #[must_use]
    pub fn outlines(mut self, lines: impl IntoIterator<Item = Vec<(f64, f64)>>) -> Self {
        self.outlines.extend(lines);
        self
    }

    /// Gives a unit the same length on both axes, so that circles in a plane look like circles.
    #[must_use]
    pub fn equal_aspect(mut self) -> Self {
        self.equal_aspect = true;
        self
    }

    /// Creates a panel with one dot per object. The x axis is the target probability and the y axis the
    /// learned one. Both axes are logarithmic and form a square with the line of equality. Objects with a
    /// probability of 0 can't be shown; their number is added to the title.
    pub fn learned_against_target(
        title: impl Into<String>,
        target_and_learned: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let mut title = title.into();
        let mut points: Vec<(f64, f64)> = target_and_learned.into_iter().collect();
        let before = points.len();
        points.retain(|p| shows(Scale::Log, p.0) && shows(Scale::Log, p.1));
        if points.len() < before {
            title += &format!(" ({} of {before} without mass)", before - points.len());
        }
        let panel = Self::scatter(title, points).labels("target probability", "learned probability");
        Self { diagonal: true, x_scale: Scale::Log, y_scale: Scale::Log, equal_aspect: true, ..panel }
    }

    /// Sets the labels of the axes. The default is `step` for the x axis and no label for the y axis.
    #[must_use]
    pub fn labels(mut self, x: impl Into<String>, y: impl Into<String>) -> Self {
        self.x_label = x.into();
        self.y_label = y.into();
        self
    }

    /// Sets the scale of the y axis (default: linear).
    #[must_use]
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y_scale = scale;
        self
    }

    /// Adds a curve. Colours repeat after eight curves, with other dashes, so that up to 32 curves can be
    /// told apart.
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

    pub(crate) fn canvas(&self) -> Canvas {
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        let title = cut_to_width(&self.title, TITLE, WIDTH - 20.0);
        canvas.text((WIDTH / 2.0, 14.0), &title, TITLE, Colour::INK, TextAnchor::Middle);
        if let Some(heat_map) = &self.heat_map {
            heat_map.draw(&mut canvas, &self.x_label, &self.y_label);
            return canvas;
        }
        let entries = self.legend();
        draw_legend(&mut canvas, (WIDTH / 2.0, 34.0), WIDTH - 14.0, &entries);
        let frame = self.frame(if entries.is_empty() { 30.0 } else { 30.0 + LEGEND_ROW });
        frame.draw_axes(&mut canvas);
        let (centre, middle) =
            (f64::midpoint(frame.left, frame.right), f64::midpoint(frame.top, frame.bottom));
        canvas.text((centre, frame.bottom + 34.0), &self.x_label, FONT, Colour::INK, TextAnchor::Middle);
        canvas.turned_text(
            (frame.left - widest(&frame.y) - 24.0, middle),
            &self.y_label,
            FONT,
            TextAnchor::Middle,
        );
        self.draw_data(&mut canvas, &frame);
        canvas
    }

    /// Computes the data area of the panel. It starts `top` units below the panel's upper edge.
    fn frame(&self, top: f64) -> Frame {
        let points = self.curves.iter().flat_map(|curve| &curve.points).chain(self.outlines.iter().flatten());
        // A point that one axis can't show must not extend the range of the other axis.
        let shown: Vec<_> = points.filter(|p| shows(self.x_scale, p.0) && shows(self.y_scale, p.1)).collect();
        let (xs, ys) = (shown.iter().map(|p| p.0), shown.iter().map(|p| p.1));
        let (x, y) = if self.diagonal {
            let both = Axis::over(self.x_scale, xs.chain(ys), true);
            (both, both)
        } else {
            let reference = self.reference.iter().map(|(value, _)| *value);
            (Axis::over(self.x_scale, xs, self.dots), Axis::over(self.y_scale, ys.chain(reference), true))
        };
        let left = 18.0 + if self.y_label.is_empty() { 0.0 } else { 18.0 } + widest(&y);
        let frame = Frame { left, right: WIDTH - 22.0, top, bottom: HEIGHT - 46.0, x, y };
        if self.equal_aspect { frame.with_equal_scales() } else { frame }
    }

    fn draw_data(&self, canvas: &mut Canvas, frame: &Frame) {
        if self.diagonal {
            let ends = vec![(frame.left, frame.bottom), (frame.right, frame.top)];
            canvas.dashed_line(ends, Colour::INK, 1.5, GUIDE);
        }
        for line in &self.outlines {
            let points = line.iter().map(|&point| frame.place(point));
            split_at_gaps(points).into_iter().for_each(|piece| canvas.line(piece, Colour::GREY, 0.7));
        }
        let many = self.curves.iter().map(|curve| curve.points.len()).sum::<usize>() > MANY_DOTS;
        for (k, curve) in self.curves.iter().enumerate() {
            let (colour, dash) = palette::curve(k);
            let points = curve.points.iter().map(|&point| frame.place(point));
            if self.dots {
                points.flatten().for_each(|at| canvas.disc(at, if many { 1.2 } else { 3.0 }, colour));
                continue;
            }
            for piece in split_at_gaps(points) {
                match piece[..] {
                    // A line through a single point would be invisible, so a dot is drawn.
                    [at] => canvas.disc(at, 1.5, colour),
                    _ => canvas.dashed_line(thin(piece), colour, 1.5, dash),
                }
            }
        }
        // The reference line is drawn last, so that no curve hides it.
        if let Some(y) = self.reference.as_ref().and_then(|(value, _)| frame.y.place(*value)) {
            let height = frame.height(y);
            canvas.dashed_line(vec![(frame.left, height), (frame.right, height)], Colour::INK, 1.5, GUIDE);
        }
    }

    /// Returns the entries of the legend. There are none if the panel has only one curve, or dots.
    fn legend(&self) -> Vec<LegendEntry<'_>> {
        let mut entries = Vec::new();
        if !self.dots && (self.curves.len() > 1 || self.reference.is_some()) {
            entries.extend(self.curves.iter().enumerate().map(|(k, curve)| {
                let (colour, dash) = palette::curve(k);
                LegendEntry { name: &curve.name, colour, dash }
            }));
        }
        let reference = self.reference.iter();
        entries.extend(reference.map(|(_, name)| LegendEntry { name, colour: Colour::INK, dash: GUIDE }));
        entries
    }
}

/// Returns `true` if a scale can show a value.
fn shows(scale: Scale, value: f64) -> bool {
    scale.coordinate(value).is_some()
}

/// Returns the width of the widest tick label of an axis.
fn widest(axis: &Axis) -> f64 {
    axis.ticks().iter().map(|tick| text_width(&tick.label, FONT)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::Shape;

    /// Returns the dashes of all curves that a panel draws in this colour.
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
        let canvas = (0..21).map(curve).fold(Panel::new("many"), Panel::curve).canvas();
        assert_eq!(dashes(&canvas, palette::curve(0).0), [None, Some(3.0), Some(8.0)]);
        assert_eq!(dashes(&canvas, palette::curve(7).0), [None, Some(3.0)]);
    }

    /// Tests that the line of equality is at 45 degrees.
    #[test]
    fn the_diagonal_is_one_of_a_square() {
        let canvas = Panel::learned_against_target("rings", [(1e-6, 2e-3), (0.3, 0.1)]).canvas();
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
