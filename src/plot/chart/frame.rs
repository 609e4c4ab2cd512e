//! The data area of a panel: its axes, and the conversion of points to lines.

use super::axis::{Axis, Tick};
use crate::plot::canvas::{Point, text_width};
use crate::plot::{Canvas, Colour, TextAnchor};

/// The font size of axes and legends.
pub(in crate::plot) const LABEL: f64 = 12.0;
/// Lines with many more points are thinned to the extremes of this many columns, which look the same.
const COLUMNS: usize = 600;

/// The data area of a panel.
pub(in crate::plot) struct Frame {
    pub(in crate::plot) left: f64,
    pub(in crate::plot) right: f64,
    pub(in crate::plot) top: f64,
    pub(in crate::plot) bottom: f64,
    pub(in crate::plot) x: Axis,
    pub(in crate::plot) y: Axis,
}

impl Frame {
    pub(in crate::plot) fn place(&self, (x, y): (f64, f64)) -> Option<Point> {
        let x = self.left + self.x.place(x)? * (self.right - self.left);
        Some((x, self.height(self.y.place(y)?)))
    }

    pub(in crate::plot) fn height(&self, y: f64) -> f64 {
        self.bottom + y * (self.top - self.bottom)
    }

    /// The frame with equal scales on both axes: the side that is too long is shortened around its middle.
    pub(in crate::plot) fn equally_scaled(self) -> Self {
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        let scale = (width / self.x.length()).min(height / self.y.length());
        let (across, up) = ((width - scale * self.x.length()) / 2.0, (height - scale * self.y.length()) / 2.0);
        let (left, right) = (self.left + across, self.right - across);
        Self { left, right, top: self.top + up, bottom: self.bottom - up, ..self }
    }

    pub(in crate::plot) fn draw_axes(&self, canvas: &mut Canvas, y_ticks: &[Tick]) {
        // Labels must not touch, so if necessary only every second or third one is drawn.
        let x_ticks = self.x.ticks();
        let labels = || x_ticks.iter().filter_map(|tick| tick.label.as_deref());
        let widest = labels().map(|label| text_width(label, LABEL)).fold(0.0, f64::max);
        let room = (self.right - self.left) / labels().count().max(1) as f64;
        let every = ((widest + 8.0) / room).ceil().max(1.0) as usize;
        let mut labelled = 0;
        for tick in &x_ticks {
            let x = self.left + tick.place * (self.right - self.left);
            if let Some(label) = &tick.label {
                canvas.line(vec![(x, self.top), (x, self.bottom)], Colour::FAINT, 0.5);
                if labelled % every == 0 {
                    canvas.text((x, self.bottom + 15.0), label, LABEL, Colour::INK, TextAnchor::Middle);
                }
                labelled += 1;
            }
            let length = if tick.label.is_some() { 5.0 } else { 3.0 };
            canvas.line(vec![(x, self.bottom), (x, self.bottom + length)], Colour::GREY, 1.0);
        }
        for tick in y_ticks {
            let y = self.height(tick.place);
            if let Some(label) = &tick.label {
                canvas.line(vec![(self.left, y), (self.right, y)], Colour::FAINT, 0.5);
                canvas.text((self.left - 8.0, y), label, LABEL, Colour::INK, TextAnchor::Right);
            }
            let length = if tick.label.is_some() { 5.0 } else { 3.0 };
            canvas.line(vec![(self.left - length, y), (self.left, y)], Colour::GREY, 1.0);
        }
        let corners = [
            (self.left, self.top),
            (self.left, self.bottom),
            (self.right, self.bottom),
            (self.right, self.top),
            (self.left, self.top),
        ];
        canvas.line(corners.to_vec(), Colour::GREY, 1.0);
    }
}

/// Splits points into runs without a gap.
pub(in crate::plot) fn pieces(points: impl Iterator<Item = Option<Point>>) -> Vec<Vec<Point>> {
    let mut pieces = vec![Vec::new()];
    for point in points {
        match (point, pieces.last_mut()) {
            (Some(point), Some(piece)) => piece.push(point),
            (None, Some(piece)) if piece.is_empty() => {}
            _ => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Reduces a line of many points to the first, lowest, highest and last of each column of the frame.
pub(in crate::plot) fn thinned(points: Vec<Point>, frame: &Frame) -> Vec<Point> {
    if points.len() <= 4 * COLUMNS {
        return points;
    }
    let column = |x: f64| ((x - frame.left) / (frame.right - frame.left) * COLUMNS as f64) as i64;
    let by_column = points.chunk_by(|a, b| column(a.0) == column(b.0));
    let mut out = Vec::new();
    for run in by_column {
        let by_height = |&a: &usize, &b: &usize| run[a].1.total_cmp(&run[b].1);
        let low = (0..run.len()).min_by(by_height).unwrap_or(0);
        let high = (0..run.len()).max_by(by_height).unwrap_or(0);
        let mut kept = [0, low.min(high), low.max(high), run.len() - 1].to_vec();
        kept.dedup();
        out.extend(kept.into_iter().map(|i| run[i]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;
    use crate::Rng;

    #[test]
    fn an_equally_scaled_frame_shows_squares_as_squares() {
        let axis = |high: f64| Axis::over(Scale::Linear, [0.0, high].into_iter(), false);
        for (x, y) in [(1.0, 1.0), (10.0, 1.0), (1.0, 10.0)] {
            let frame = Frame { left: 20.0, right: 420.0, top: 30.0, bottom: 230.0, x: axis(x), y: axis(y) };
            let frame = frame.equally_scaled();
            let corner = |at| frame.place(at).unwrap();
            let (zero, one) = (corner((0.0, 0.0)), corner((1.0, 1.0)));
            assert!((one.0 - zero.0 - (zero.1 - one.1)).abs() < 1e-9, "{zero:?} {one:?}");
            assert!(frame.left >= 20.0 && frame.right <= 420.0 && frame.top >= 30.0 && frame.bottom <= 230.0);
            assert_eq!(
                (f64::midpoint(frame.left, frame.right), f64::midpoint(frame.top, frame.bottom)),
                (220.0, 130.0)
            );
        }
    }

    #[test]
    fn gaps_split_a_curve() {
        let points = [Some((0.0, 0.0)), Some((1.0, 0.0)), None, None, Some((2.0, 0.0)), None];
        let lengths: Vec<_> = pieces(points.into_iter()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        assert!(pieces(std::iter::empty()).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_extremes() {
        let mut rng = Rng::seeded(5);
        let points: Vec<Point> = (0..100_000).map(|i| (f64::from(i) / 250.0, rng.normal())).collect();
        let axis = Axis::over(Scale::Linear, [0.0, 1.0].into_iter(), false);
        let frame = Frame { left: 0.0, right: 400.0, top: 0.0, bottom: 300.0, x: axis, y: axis };
        let heights = |points: &[Point]| {
            let ys = || points.iter().map(|p| p.1);
            (ys().fold(f64::MAX, f64::min), ys().fold(f64::MIN, f64::max))
        };
        let thin = thinned(points.clone(), &frame);
        assert!(thin.len() <= 4 * COLUMNS && thin.len() > 2 * COLUMNS, "{}", thin.len());
        assert_eq!(heights(&thin), heights(&points));
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }
}
