//! Panels of a figure. A panel has curves or dots on a pair of axes, or a heat map.

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
/// The font size of a panel's title, in units of the canvas.
const TITLE: f64 = 15.0;
/// The height of the row with the legend, in units of the canvas.
const LEGEND_ROW: f64 = 17.0;
/// The largest number of dots that are drawn in normal size. If a panel has more dots, all of them are drawn
/// smaller, so that they don't hide each other.
const MANY_DOTS: usize = 400;
/// The length of the dashes of a reference line, in units of the canvas.
const GUIDE: Option<f64> = Some(6.0);

/// A panel of a [`Figure`](super::Figure) with curves, dots or a heat map.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    title: String,
    x_label: String,
    y_label: String,
    x_scale: Scale,
    y_scale: Scale,
    /// `true` to draw a dot at each point of the curves, instead of lines.
    dots: bool,
    curves: Vec<Curve>,
    /// A horizontal reference line: its value on the y axis, and its name in the legend.
    reference: Option<(f64, String)>,
    diagonal: bool,
    /// `true` if a unit has the same length on both axes.
    equal_aspect: bool,
    /// Thin grey lines that are drawn under the curves or dots.
    outlines: Vec<Vec<(f64, f64)>>,
    /// A heat map that is drawn instead of axes and curves.
    heat_map: Option<HeatMap>,
}

impl Panel {
    /// Creates a panel with linear axes, to which curves can be added.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), x_label: "step".to_owned(), ..Self::default() }
    }

    /// Creates a panel with a heat map, which is a table of numbers. `values` lists the numbers row by row,
    /// beginning with the bottom row, with `columns` numbers per row. The cells are coloured from 0 to `max`;
    /// use the same `max` for panels that are compared with each other. [`labels`](Self::labels) sets the
    /// labels of the axes, and [`names`](Self::names) the names of rows and columns.
    pub fn heat_map(
        title: impl Into<String>,
        columns: usize,
        values: impl IntoIterator<Item = f64>,
        max: f64,
    ) -> Self {
        let heat_map = HeatMap { columns, values: values.into_iter().collect(), max, ..HeatMap::default() };
        Self { title: title.into(), heat_map: Some(heat_map), ..Self::default() }
    }

    /// Sets the names of a heat map's rows, from the bottom row, and of its columns. The names aren't drawn
    /// if the cells are too small for them.
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

    /// Adds thin grey lines under the data, for example the best Pareto front.
    #[must_use]
    pub fn outlines(mut self, lines: impl IntoIterator<Item = Vec<(f64, f64)>>) -> Self {
        self.outlines.extend(lines);
        self
    }

    /// Makes a unit equally long on both axes, so that a circle looks like a circle.
    #[must_use]
    pub fn equal_aspect(mut self) -> Self {
        self.equal_aspect = true;
        self
    }

    /// Creates a panel that compares learned with target probabilities, with one dot per object. The x axis
    /// is the target probability, and the y axis the learned probability. Both axes are logarithmic with
    /// equal scales, and a diagonal marks equal probabilities. An object with a probability of 0 can't be
    /// shown. The number of such objects is added to the title.
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

    /// Sets the scale of the y axis. The default is linear.
    #[must_use]
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y_scale = scale;
        self
    }

    /// Adds a curve. After eight curves the colours repeat with other dashes, so that up to 32 curves can be
    /// distinguished.
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
        let centre = f64::midpoint(frame.left, frame.right);
        let middle = f64::midpoint(frame.top, frame.bottom);
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

    /// Computes the data area of the panel. `top` is the distance in units from the panel's upper edge to the
    /// data area.
    fn frame(&self, top: f64) -> Frame {
        let points = self.curves.iter().flat_map(|curve| &curve.points).chain(self.outlines.iter().flatten());
        // A point that only one axis can show isn't drawn. It is left out here, too, so that it doesn't
        // extend the range of this axis.
        let shown: Vec<_> = points.filter(|p| shows(self.x_scale, p.0) && shows(self.y_scale, p.1)).collect();
        let xs = shown.iter().map(|p| p.0);
        let ys = shown.iter().map(|p| p.1);
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
            for piece in split_at_gaps(points).into_iter() {
                canvas.line(piece, Colour::GREY, 0.7);
            }
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
                    // A line that consists of a single point would be invisible. A dot is drawn instead.
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

    /// Returns the entries of the legend. The reference line has an entry. Curves have entries if there are
    /// several curves or a reference line. Dots have no entries.
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

/// Returns `true` if an axis with this scale can show the value.
fn shows(scale: Scale, value: f64) -> bool {
    scale.coordinate(value).is_some()
}

/// Returns the width of the widest label of an axis's ticks.
fn widest(axis: &Axis) -> f64 {
    axis.ticks().iter().map(|tick| text_width(&tick.label, FONT)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::Shape;

    /// Returns the dashes of all lines on a canvas that have this colour.
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

    /// Checks that the diagonal, which marks equal learned and target probabilities, runs at 45 degrees even
    /// if these probabilities have different ranges.
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
