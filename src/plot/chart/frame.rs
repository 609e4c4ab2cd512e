//! The data area of a panel: its axes, and the conversion of points to lines.

use super::axis::{Axis, Rank, Tick};
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
        let x_ticks = self.x.ticks();
        let across = self.right - self.left;
        let shown = untouching(&x_ticks, across, |label| text_width(label, LABEL) + 8.0);
        for (tick, shown) in x_ticks.iter().zip(shown) {
            let x = self.left + tick.place * across;
            if let Some(label) = &tick.label {
                canvas.line(vec![(x, self.top), (x, self.bottom)], Colour::FAINT, 0.5);
                if shown {
                    canvas.text((x, self.bottom + 15.0), label, LABEL, Colour::INK, TextAnchor::Middle);
                }
            }
            let length = if tick.label.is_some() { 5.0 } else { 3.0 };
            canvas.line(vec![(x, self.bottom), (x, self.bottom + length)], Colour::GREY, 1.0);
        }
        let shown = untouching(y_ticks, self.bottom - self.top, |_| LABEL + 2.0);
        for (tick, shown) in y_ticks.iter().zip(shown) {
            let y = self.height(tick.place);
            if let Some(label) = &tick.label {
                canvas.line(vec![(self.left, y), (self.right, y)], Colour::FAINT, 0.5);
                if shown {
                    canvas.text((self.left - 8.0, y), label, LABEL, Colour::INK, TextAnchor::Right);
                }
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

/// Which ticks show their label, so that no two labels touch on an axis of this length; `room` is what a label takes.
pub(in crate::plot) fn untouching(ticks: &[Tick], length: f64, room: impl Fn(&str) -> f64) -> Vec<bool> {
    let spans: Vec<Option<(f64, f64)>> = ticks
        .iter()
        .map(|tick| {
            let (middle, half) = (tick.place * length, room(tick.label.as_deref()?) / 2.0);
            Some((middle - half, middle + half))
        })
        .collect();
    let even: Vec<usize> = (0..ticks.len()).filter(|&k| ticks[k].rank == Rank::Even && spans[k].is_some()).collect();
    let touch = |a: usize, b: usize| match (spans[a], spans[b]) {
        (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1,
        _ => false,
    };
    let apart =
        |every: &usize| even.iter().step_by(*every).collect::<Vec<_>>().windows(2).all(|w| !touch(*w[0], *w[1]));
    let every = (1..=even.len()).find(apart).unwrap_or(1);
    let mut shown = vec![false; ticks.len()];
    even.iter().step_by(every).for_each(|&k| shown[k] = true);
    for rank in [Rank::Between, Rank::Fine] {
        for k in (0..ticks.len()).filter(|&k| ticks[k].rank == rank && spans[k].is_some()) {
            shown[k] = (0..ticks.len()).all(|other| !shown[other] || !touch(k, other));
        }
    }
    shown
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
    fn labels_do_not_touch() {
        let shown = |scale, low, high, length, room: &dyn Fn(&str) -> f64| -> Vec<String> {
            let ticks = Axis::over(scale, [low, high].into_iter(), false).ticks();
            let shown = untouching(&ticks, length, room);
            ticks.into_iter().zip(shown).filter(|(_, shown)| *shown).filter_map(|(tick, _)| tick.label).collect()
        };
        let width = |label: &str| text_width(label, LABEL) + 8.0;
        // 0.09 and 0.1 would: the power of ten stays.
        assert_eq!(shown(Scale::Log, 0.085, 0.57, 280.0, &width), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(shown(Scale::Log, 0.085, 0.57, 2000.0, &width).len(), 6);
        assert_eq!(shown(Scale::Linear, 0.0, 5000.0, 120.0, &width), ["0", "2000", "4000"]);
        for (low, high) in [(1e-9, 3.0), (0.031, 0.3), (2.0, 2.1), (0.9, 11.0)] {
            for scale in [Scale::Linear, Scale::Log] {
                let ticks = Axis::over(scale, [low, high].into_iter(), true).ticks();
                for length in [60.0, 150.0, 300.0] {
                    let shown = untouching(&ticks, length, width);
                    let ends = ticks.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(tick, _)| {
                        let half = width(tick.label.as_deref().unwrap()) / 2.0;
                        (tick.place * length - half, tick.place * length + half)
                    });
                    let ends: Vec<_> = ends.collect();
                    assert!(!ends.is_empty() && ends.windows(2).all(|w| w[0].1 <= w[1].0), "{low} {high}: {ends:?}");
                }
            }
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
