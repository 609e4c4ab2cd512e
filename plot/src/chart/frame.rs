//! The data area of a panel (the rectangle in which data are drawn) with its axes, and the conversion of data
//! points to positions on the canvas.

use super::axis::{Axis, Tick};
use crate::canvas::{Point, text_width};
use crate::{Canvas, Colour, TextAnchor};

/// The font size of the labels of axes and legends, in units of the canvas.
pub(crate) const FONT: f64 = 12.0;
/// The largest number of pieces into which a line is divided to thin it. A line with more than twice this
/// number of points is thinned: each piece keeps only its lowest and highest point, so that the line looks
/// the same.
const MAX_PIECES: usize = 1000;

/// The data area of a panel: the positions of its edges on the canvas, and its axes.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Frame {
    /// Returns the position of a data point on the canvas; `None` if an axis can't show the point.
    pub(crate) fn place(&self, point: (f64, f64)) -> Option<Point> {
        let x = self.left + self.x.place(point.0)? * (self.right - self.left);
        Some((x, self.height(self.y.place(point.1)?)))
    }

    pub(crate) fn height(&self, y: f64) -> f64 {
        self.bottom + y * (self.top - self.bottom)
    }

    /// Shrinks the width or the height of the data area, around its centre, so that a unit has the same
    /// length on both axes.
    pub(crate) fn with_equal_scales(self) -> Self {
        let width = self.right - self.left;
        let height = self.bottom - self.top;
        let scale = (width / self.x.length()).min(height / self.y.length());
        let across = (width - scale * self.x.length()) / 2.0;
        let up = (height - scale * self.y.length()) / 2.0;
        let left = self.left + across;
        let right = self.right - across;
        Self { left, right, top: self.top + up, bottom: self.bottom - up, ..self }
    }

    pub(crate) fn draw_axes(&self, canvas: &mut Canvas) {
        let &Self { left, right, top, bottom, .. } = self;
        for (tick, shown) in label_ticks(self.x.ticks(), right - left, |label| text_width(label, FONT) + 8.0)
        {
            let x = left + tick.place * (right - left);
            canvas.line(vec![(x, top), (x, bottom)], Colour::FAINT, 0.5);
            canvas.line(vec![(x, bottom), (x, bottom + 5.0)], Colour::GREY, 1.0);
            if shown {
                canvas.text((x, bottom + 15.0), &tick.label, FONT, Colour::INK, TextAnchor::Middle);
            }
        }
        for (tick, shown) in label_ticks(self.y.ticks(), bottom - top, |_| FONT + 2.0) {
            let y = self.height(tick.place);
            canvas.line(vec![(left, y), (right, y)], Colour::FAINT, 0.5);
            canvas.line(vec![(left - 5.0, y), (left, y)], Colour::GREY, 1.0);
            if shown {
                canvas.text((left - 8.0, y), &tick.label, FONT, Colour::INK, TextAnchor::Right);
            }
        }
        let corners = vec![(left, top), (left, bottom), (right, bottom), (right, top), (left, top)];
        canvas.line(corners, Colour::GREY, 1.0);
    }
}

/// Decides which ticks get a label on an axis of this length, so that labels don't touch. Either every tick
/// gets a label, or every second tick, and so on. Returns each tick with `true` if its label is shown. `room`
/// returns the length that a label takes on the axis.
pub(crate) fn label_ticks(ticks: Vec<Tick>, length: f64, room: impl Fn(&str) -> f64) -> Vec<(Tick, bool)> {
    let touch = |a: &Tick, b: &Tick| (b.place - a.place) * length < (room(&a.label) + room(&b.label)) / 2.0;
    let fits = |&every: &usize| {
        let shown: Vec<&Tick> = ticks.iter().step_by(every).collect();
        shown.windows(2).all(|pair| !touch(pair[0], pair[1]))
    };
    let every = (1..=ticks.len()).find(fits).unwrap_or(1);
    ticks.into_iter().enumerate().map(|(k, tick)| (tick, k % every == 0)).collect()
}

/// Splits a list of points at its gaps (`None`) into lists without gaps.
pub(crate) fn split_at_gaps(points: impl Iterator<Item = Option<Point>>) -> Vec<Vec<Point>> {
    let points: Vec<Option<Point>> = points.collect();
    let runs = points.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().flatten().copied().collect()).collect()
}

/// Thins a line of many points. The line is divided into pieces. The two ends of the line remain, and the
/// lowest and the highest point of each piece.
pub(crate) fn thin(points: Vec<Point>) -> Vec<Point> {
    let n = points.len();
    if n <= 2 * MAX_PIECES {
        return points;
    }
    let by_height = |&a: &usize, &b: &usize| points[a].1.total_cmp(&points[b].1);
    let extremes = (0..MAX_PIECES).flat_map(|k| {
        let piece = || k * n / MAX_PIECES..(k + 1) * n / MAX_PIECES;
        [piece().min_by(by_height), piece().max_by(by_height)].into_iter().flatten()
    });
    let mut kept: Vec<usize> = extremes.chain([0, n - 1]).collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|k| points[k]).collect()
}

#[cfg(test)]
mod tests {
    use gfn::Rng;

    use super::super::Scale;
    use super::*;

    #[test]
    fn an_equally_scaled_frame_shows_squares_as_squares() {
        let axis = |high: f64| Axis::over(Scale::Linear, [0.0, high].into_iter(), false);
        for (x, y) in [(1.0, 1.0), (10.0, 1.0), (1.0, 10.0)] {
            let frame = Frame { left: 20.0, right: 420.0, top: 30.0, bottom: 230.0, x: axis(x), y: axis(y) };
            let frame = frame.with_equal_scales();
            let corner = |at| frame.place(at).unwrap();
            let zero = corner((0.0, 0.0));
            let one = corner((1.0, 1.0));
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
        let width = |label: &str| text_width(label, FONT) + 8.0;
        let shown = |scale, low, high, length| {
            let ticks = Axis::over(scale, [low, high].into_iter(), false).ticks();
            label_ticks(ticks, length, width)
                .into_iter()
                .filter(|(_, shown)| *shown)
                .map(|(tick, _)| tick)
                .collect::<Vec<_>>()
        };
        let labels = |ticks: Vec<Tick>| ticks.into_iter().map(|tick| tick.label).collect::<Vec<_>>();
        assert_eq!(labels(shown(Scale::Linear, 0.0, 5000.0, 120.0)), ["0", "2000", "4000"]);
        for (low, high) in [(1e-9, 3.0), (0.031, 0.3), (2.0, 2.1), (0.9, 11.0), (0.085, 0.57)] {
            for scale in [Scale::Linear, Scale::Log] {
                for length in [60.0, 150.0, 300.0] {
                    let half = |tick: &Tick| width(&tick.label) / 2.0;
                    let ticks = shown(scale, low, high, length);
                    let end = |tick: &Tick| tick.place * length + half(tick);
                    let fit = ticks.windows(2).all(|w| end(&w[0]) <= w[1].place * length - half(&w[1]));
                    assert!(!ticks.is_empty() && fit, "{low} {high}: {ticks:?}");
                }
            }
        }
    }

    #[test]
    fn gaps_split_a_curve() {
        let points = [Some((0.0, 0.0)), Some((1.0, 0.0)), None, None, Some((2.0, 0.0)), None];
        let lengths: Vec<_> = split_at_gaps(points.into_iter()).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        assert!(split_at_gaps(std::iter::empty()).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_extremes() {
        let mut rng = Rng::seeded(5);
        let points: Vec<Point> = (0..100_000).map(|i| (f64::from(i) / 250.0, rng.normal())).collect();
        let heights = |points: &[Point]| {
            let ys = || points.iter().map(|p| p.1);
            (ys().fold(f64::MAX, f64::min), ys().fold(f64::MIN, f64::max))
        };
        let thin = thin(points.clone());
        assert!(thin.len() <= 2 * MAX_PIECES + 2 && thin.len() > MAX_PIECES, "{}", thin.len());
        assert_eq!(heights(&thin), heights(&points));
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }
}
